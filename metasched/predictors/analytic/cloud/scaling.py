"""Scaling over processes: time, speedup, efficiency, and the number of processes up to which more are worthwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from metasched.arrays import Floats, Ints


@dataclass(frozen=True)
class Scaling:
    """Times at growing numbers of processes.

    Parameters
    ----------
    processes : array of shape (n,), increasing.
    execution_time : array of shape (n,), seconds.
    single : seconds with one process.

    Examples
    --------
    >>> scaling = Scaling(np.array([1, 2, 4, 8]), np.array([8.0, 4.2, 3.2, 3.4]), 8.0)
    >>> scaling.pays_until, scaling.fastest
    (2, 4)
    """

    processes: Ints
    execution_time: Floats
    single: float

    @classmethod
    def of(cls, processes: Ints, time: Callable[[int], float]) -> Scaling:
        """Evaluate a model at each number of processes; ``time`` gives seconds."""
        return cls(processes, np.array([time(int(n)) for n in processes]), time(1))

    @property
    def speedup(self) -> Floats:
        """T(1) / T(n): how many times faster than one process, shape (n,)."""
        return self.single / self.execution_time

    @property
    def efficiency(self) -> Floats:
        """Speedup over n: the share of each process that is put to use, shape (n,)."""
        return np.asarray(self.speedup / self.processes)

    @property
    def fastest(self) -> int:
        """Number of processes with the least time."""
        return int(self.processes[np.argmin(self.execution_time)])

    @property
    def pays_until(self) -> int:
        """The knee: where speedup times efficiency is largest.

        From there on doubling the processes divides the time by less than the square root of 2. After Eager, Zahorjan
        and Lazowska, Speedup versus efficiency in parallel systems, IEEE Trans. Comp. 38(3), 1989.
        """
        return int(self.processes[np.argmax(self.speedup * self.efficiency)])

    @property
    def verdict(self) -> str:
        """How many processes are worthwhile, in words."""
        if self.pays_until == self.processes[-1]:
            return f"more processes are worthwhile up to the largest number requested, {self.pays_until}"
        return f"more than {self.pays_until} processes are not worthwhile; {self.fastest} are the fastest"
