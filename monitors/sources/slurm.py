"""Slurm's own view of its nodes as a source: :class:`Slurm` reads the load averages of its nodes.

A coarse view: the load is the kernel's one-minute average, as slurmd last reported it (up to a third of SlurmdTimeout
ago), and of the whole host where several nodes are emulated on one. It says nothing about links. Use it where no
monitor runs.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from monitors.bounded_commands import run
from monitors.one_line import one_line
from monitors.sensors.cpu_views import queue_view
from monitors.sources.contract import Readings, Sample

#: From this number on Slurm means that it does not know (NO_VAL and INFINITE of slurm.h).
_NO_VALUE = 0xFFFFFFFC


def listed_nodes(answer: Callable[..., Any]) -> Any:
    """The document in which Slurm lists all nodes.

    It is that of ``sinfo`` in 22.05, whose ``scontrol`` prints no JSON, and of ``scontrol`` in later releases, whose
    ``sinfo`` lists nodes that are alike as one.

    Parameters
    ----------
    answer : the decoded JSON that a command prints, by its words.
    """
    document = answer("sinfo", "--json")
    together = isinstance(document, dict) and "sinfo" in document
    return answer("scontrol", "show", "nodes", "--json") if together else document


class Slurm:
    """Asks ``sinfo``, or ``scontrol``.

    Parameters
    ----------
    configuration : path of slurm.conf, empty for the usual one.
    timeout : seconds to wait.
    prefix : put before the name of each node.
    """

    name = "Slurm"

    def __init__(self, *, configuration: str = "", timeout: float = 5.0, prefix: str = "") -> None:
        self._timeout, self._prefix = timeout, prefix
        self._environment = {"SLURM_CONF": configuration} if configuration else {}

    def read(self) -> Readings:
        """The latest sample of each node that reports its load."""
        try:
            return parsed(listed_nodes(self._answer), time.time(), self._prefix)
        except (RuntimeError, ValueError) as error:
            return Readings(fault=one_line(error))

    def _answer(self, *words: str) -> Any:
        printed = run(*words, environment=self._environment, timeout=self._timeout)
        return json.loads(printed.encode(errors="surrogateescape"))


def parsed(document: Any, moment: float, prefix: str = "") -> Readings:
    """Samples from the document that lists all nodes; nodes without a load are left out.

    Parameters
    ----------
    document : decoded JSON.
    moment : when it was printed (s).
    prefix : put before the name of each node.

    Examples
    --------
    >>> nodes = [{"name": "n0", "cpus": 4, "cpu_load": 200}, {"name": "n1", "cpus": 4, "cpu_load": 700}]
    >>> parsed({"nodes": [*nodes, {"name": "n2", "cpus": 4, "cpu_load": 4294967294}]}, 0.0).samples[1]
    Sample(node='n1', time=0.0, available_cpu=0.5, available_bandwidth=nan)
    """
    nodes = document.get("nodes") if isinstance(document, dict) else None
    if not isinstance(nodes, list):
        return Readings(fault="Slurm lists no nodes")
    samples = []
    for node in nodes:
        try:
            load = node["cpu_load"]
            # Releases after 22.05 say beside the number whether there is one.
            number = float(load["number"] if isinstance(load, dict) and load.get("set") else load)
            if 0 <= number < _NO_VALUE:
                spare = queue_view(max(int(node["cpus"]), 1), number / 100)
                samples.append(Sample(prefix + str(node["name"]), moment, spare))
        except (KeyError, TypeError, ValueError, OverflowError):
            continue
    return Readings(tuple(samples), "" if samples else "no node reports its load")
