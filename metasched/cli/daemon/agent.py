"""``metasched agent``: the monitor that runs on every node."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from metasched.cli import output
from metasched.cli.options import JsonOption
from metasched.records import InputError
from monitors.agent.settings import read_settings
from monitors.sensors.cpu import ProbedCpu
from monitors.sensors.limits import cpu_limit
from monitors.sensors.network.corrected import CorrectedLink
from monitors.sources.this_host import ThisHost


def agent(
    settings: Annotated[
        Path | None, typer.Argument(help="TOML file; METASCHED_AGENT_... variables override it.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Take one sample, print it, and exit.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Log every probe and failure.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Sample this node, spool the samples to disk, and send them to the daemon."""
    if as_json and not once:
        raise InputError("--json prints one sample, expected --once too")
    try:
        asked = read_settings(settings)
    except ValueError as error:
        raise InputError(str(error)) from None
    if not once:
        # A fresh interpreter without the rest of the command line: half the memory, for as long as the node is up.
        words = [sys.executable, "-m", "monitors.agent", *([str(settings)] if settings else [])]
        os.execv(sys.executable, [*words, *(["--verbose"] if verbose else [])])  # noqa: S606 - no shell is meant
    try:
        link = CorrectedLink(asked.interface)
        cpu = ProbedCpu(asked.processors, limit=cpu_limit(own=False))
        host = ThisHost(cpu.read, link.read, asked.node)
    except ValueError as error:
        raise InputError(str(error)) from None
    time.sleep(min(asked.interval, 1.0))
    readings = host.read()
    if readings.fault:
        raise InputError(readings.fault)
    (sample,) = readings.samples
    shown = f"available CPU {sample.available_cpu:.2f}, available bandwidth {sample.available_bandwidth:.1f} Mbit/s"
    output.answer(as_json, asdict(sample), f"{sample.node}: {shown}")
