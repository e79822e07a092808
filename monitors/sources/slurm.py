"""Slurm's own view of its nodes as a source: :class:`Slurm` reads the load averages that ``sinfo`` shows.

A coarse view: the load is the kernel's one-minute average, minutes old at times, and of the whole host where several
nodes are emulated on one. It says nothing about links. Use it where no monitor runs.
"""

from __future__ import annotations

import subprocess
import time

from monitors.sensors.cpu_views import queue_view
from monitors.sources.contract import Readings, Sample


class Slurm:
    """Asks ``sinfo``, at most once in a while.

    Parameters
    ----------
    command : the program, with options that choose a cluster if need be.
    interval : seconds for which an answer is used again, so that rankings never flood the controller.
    timeout : seconds to wait.
    """

    name = "Slurm"

    def __init__(self, command: tuple[str, ...] = ("sinfo",), interval: float = 30.0, timeout: float = 5.0) -> None:
        self._command = (*command, "--noheader", "--Node", "--format=%N|%c|%O")
        self._interval, self._timeout = interval, timeout
        self._answer = Readings(fault="not asked yet")
        self._asked = float("-inf")

    def read(self) -> Readings:
        """The latest sample of each node."""
        if time.monotonic() - self._asked >= self._interval:
            self._asked = time.monotonic()
            self._answer = self._ask()
        return self._answer

    def _ask(self) -> Readings:
        try:
            answer = subprocess.run(  # noqa: S603 - a fixed command without a shell
                self._command, capture_output=True, text=True, timeout=self._timeout, check=True
            )
        except (OSError, subprocess.SubprocessError) as error:
            return Readings(fault=f"Slurm: {' '.join(str(error).split())[:200]}")
        return parsed(answer.stdout, time.time())


def parsed(text: str, moment: float) -> Readings:
    r"""Samples from lines ``node|processors|load``; nodes that report no load are left out.

    Examples
    --------
    >>> parsed("n0|4|2.00\nn1|4|7.00\nn2|4|N/A\n", 0.0).samples[1]
    Sample(node='n1', time=0.0, available_cpu=0.5, available_bandwidth=nan)
    """
    samples: dict[str, Sample] = {}
    for line in text.splitlines():
        try:
            node, processors, load = line.strip().split("|")
            samples[node] = Sample(node, moment, queue_view(int(processors), max(float(load), 0.0)))
        except ValueError:
            continue
    return Readings(tuple(samples.values()), "" if samples else "Slurm: no node reports its load")
