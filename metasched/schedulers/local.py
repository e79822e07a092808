"""Runs a command on this host at once, under the monitors, and records its time and loads.

The job comes first. Its input and output are its own, signals reach it, its exit status is passed on, and nothing that
goes wrong with the monitors keeps it from running to its end.
"""

from __future__ import annotations

import math
import os
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import IO

from metasched.records import DEFAULT_SETTINGS, FASTEST, SLOWEST, InputError, Run, Settings
from metasched.schedulers.forwarded_signals import forwarding
from metasched.schedulers.host_monitors import HostMonitors
from metasched.store.database.run_records import RecordedRun
from metasched.store.files.whole_files import refusal
from monitors.sampling import Sampler
from monitors.sensors.power.found import fixed_clock

#: Seconds allowed between two readings.
_SHORTEST, _LONGEST = 0.01, 86_400.0


class CommandError(Exception):
    """The command could not be started; ``status`` is what a shell would leave with, 127 (not found) or 126."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Finished:
    """A job that has ended: its record, and warnings of the monitors."""

    record: RecordedRun
    warnings: tuple[str, ...]


def host_name() -> str:
    """The name of this host without its domain, which is also the name of the cluster that it forms alone."""
    return socket.gethostname().partition(".")[0] or "localhost"


def run(
    command: Sequence[str],
    *,
    application: str,
    problem_size: float,
    processors: int,
    cluster: str | None = None,
    phase: str | None = None,
    settings: Settings = DEFAULT_SETTINGS,
    interfaces: Sequence[str] | None = None,
    speeds: Mapping[str, float] | None = None,
    interval: float = 0.5,
    idle_watts: float = 0.0,
    stdout: int | IO[str] | None = None,
) -> Finished:
    """Run a command under the monitors and wait for its end.

    Parameters
    ----------
    command : the program and its arguments; no shell reads them.
    application, problem_size, processors, cluster, phase, settings : what the run is to be recorded as; ``cluster`` is
        by default the name of this host.
    interfaces, speeds : links that the job uses, by default the loopback interface, over which processes on one host
        communicate; and their speeds (Mbit/s) where they are known better than the kernel knows them.
    interval : seconds between two readings of the monitors.
    idle_watts : what this host draws doing nothing by its meter, of which the run is given a part by its processors;
        where 0, all that its meter counts is shared by processor time.
    stdout : where the command's standard output goes; by default to ours.

    Raises
    ------
    InputError : when the run could not be recorded as what it is said to be; the command is then not started.
    CommandError : when the command cannot be started.
    """
    if not command:
        raise InputError("the command is missing, expected it after --")
    if not application:
        raise InputError("application is empty, expected a name")
    if not _SHORTEST <= interval <= _LONGEST:
        raise InputError(f"interval is {interval:g}, expected a number of seconds from {_SHORTEST:g} to {_LONGEST:g}")
    if not 0.0 <= idle_watts < math.inf:
        raise InputError(f"idle_watts is {idle_watts:g}, expected a finite number of watts of at least 0")
    # An invalid request is refused before the job has run for a day.
    asked = Run(application, cluster or host_name(), problem_size, processors, math.nan, math.nan, 1.0, phase=phase,
                extra=settings.cells)  # fmt: skip

    monitors = HostMonitors(processors, interfaces, speeds or {})
    clock = fixed_clock()
    if settings.frequency is None and clock is not None and SLOWEST <= clock <= FASTEST:
        settings = replace(settings, frequency=clock)
    with forwarding() as (adopt, wait):
        start_time, begin = time.time(), time.perf_counter()
        child = _start(command, stdout)
        adopt(child.pid)
        monitors.follow(child.pid)
        with Sampler(monitors.sensors, interval) as sampler:
            wait(child.pid)
            execution_time = time.perf_counter() - begin
        status = child.wait()

    found = monitors.found(sampler.averages, execution_time, processors * settings.threads, idle_watts)
    measured = replace(
        asked,
        min_avg_avail_cpu=found.available_cpu,
        min_avg_avail_bw=found.available_bandwidth,
        execution_time=execution_time,
        start_time=start_time,
        nodes=(host_name(),),
        extra=MappingProxyType(settings.cells | found.cells | {"user": str(os.getuid())}),
    )
    exit_status = status if status >= 0 else 128 - status
    return Finished(RecordedRun(measured, exit_status, exit_status == 0), found.warnings)


def _start(command: Sequence[str], stdout: int | IO[str] | None) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(list(command), stdout=stdout)  # noqa: S603
    except FileNotFoundError:
        raise CommandError(f"{command[0]}: command not found", 127) from None
    except (OSError, ValueError) as error:
        raise CommandError(f"{command[0]}: cannot be run: {refusal(error)}", 126) from None
