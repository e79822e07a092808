"""Slurm's own view of its nodes as a source: :class:`Slurm` reads the load averages of ``sinfo --json``.

A coarse view: the load is the kernel's one-minute average, as slurmd last reported it (up to a third of SlurmdTimeout
ago), and of the whole host where several nodes are emulated on one. It says nothing about links. Use it where no
monitor runs.
"""

from __future__ import annotations

import json
import time
from typing import Any

from monitors.bounded_commands import run
from monitors.one_line import one_line
from monitors.sensors.cpu_views import queue_view
from monitors.sources.contract import Readings, Sample

#: From this number on Slurm means that it does not know (NO_VAL and INFINITE of slurm.h).
_NO_VALUE = 0xFFFFFFFC


class Slurm:
    """Asks ``sinfo``.

    Parameters
    ----------
    configuration : path of slurm.conf, empty for the usual one.
    timeout : seconds to wait.
    """

    name = "Slurm"

    def __init__(self, *, configuration: str = "", timeout: float = 5.0) -> None:
        self._timeout = timeout
        self._environment = {"SLURM_CONF": configuration} if configuration else {}

    def read(self) -> Readings:
        """The latest sample of each node that reports its load."""
        try:
            printed = run("sinfo", "--json", environment=self._environment, timeout=self._timeout)
            return parsed(json.loads(printed.encode(errors="surrogateescape")), time.time())
        except (RuntimeError, ValueError) as error:
            return Readings(fault=one_line(error))


def parsed(document: Any, moment: float) -> Readings:
    """Samples from the output of ``sinfo --json``; nodes without a load are left out.

    Parameters
    ----------
    document : decoded JSON.
    moment : when it was printed (s).

    Examples
    --------
    >>> nodes = [{"name": "n0", "cpus": 4, "cpu_load": 200}, {"name": "n1", "cpus": 4, "cpu_load": 700}]
    >>> parsed({"nodes": [*nodes, {"name": "n2", "cpus": 4, "cpu_load": 4294967294}]}, 0.0).samples[1]
    Sample(node='n1', time=0.0, available_cpu=0.5, available_bandwidth=nan)
    """
    nodes = document.get("nodes") if isinstance(document, dict) else None
    if not isinstance(nodes, list):
        return Readings(fault="what sinfo --json prints holds no nodes")
    samples = []
    for node in nodes:
        try:
            load = node["cpu_load"]
            # Releases after 22.05 say beside the number whether there is one.
            number = float(load["number"] if isinstance(load, dict) and load.get("set") else load)
            if 0 <= number < _NO_VALUE:
                samples.append(Sample(str(node["name"]), moment, queue_view(max(int(node["cpus"]), 1), number / 100)))
        except (KeyError, TypeError, ValueError, OverflowError):
            continue
    return Readings(tuple(samples), "" if samples else "no node reports its load")
