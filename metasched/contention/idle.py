"""The mean number of idle processors of a pool while a job computes there and others come and go.

With few jobs this is the sum over all patterns of who else is there, whose idle processors follow from the loads alone
and are tabulated once. With many, the load of the others is close to normally distributed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from metasched.arrays import Floats, Ints

#: Jobs up to which all patterns are summed.
MOST_PATTERNS = 6


@dataclass(frozen=True, slots=True)
class Idle:
    """Processors of pools, and the processors that jobs use there.

    Parameters
    ----------
    loads : array of shape (candidates, jobs, stations), processors that each job asks for.
    capacity : array of shape (candidates, stations), processors.
    table : array of shape (candidates, jobs, stations, 2^jobs), processors left by a job and by the others of each
        pattern; None where there are too many jobs for it, or no pool has several processors.

    Examples
    --------
    A job on one of two processors leaves the other idle, unless a second one is there, half of the time.

    >>> idle = Idle.of(np.ones((1, 2, 1)), np.array([[2.0]]))
    >>> idle.spare(np.full((1, 1, 2, 1), 0.5)).ravel()
    array([0.5, 0.5])
    """

    loads: Floats
    capacity: Floats
    table: Floats | None

    @classmethod
    def of(cls, loads: Floats, capacity: Floats) -> Idle:
        """Tabulate the idle processors of every pattern, for arrays as those of the class."""
        jobs = loads.shape[1]
        if jobs > MOST_PATTERNS or not np.any(capacity > 1):
            return cls(loads, capacity, None)
        there = (np.arange(2**jobs)[:, None] >> np.arange(jobs)) & 1
        others = np.einsum("pj,bjk->bkp", there.astype(np.float64), loads)
        left = capacity[:, None, :, None] - loads[..., None] - others[:, None]
        return cls(loads, capacity, np.maximum(left, 0.0))

    def take(self, rows: Ints) -> Idle:
        """The same for the candidates at these positions, shape (k,), in this order."""
        return Idle(self.loads[rows], self.capacity[rows], None if self.table is None else self.table[rows])

    def effort(self, *, everybody: bool) -> float:
        """About how many numbers an iteration computes; ``everybody``: all jobs find the same of the others."""
        jobs = self.loads.shape[1]
        each = 20 + (0 if everybody else 4 * jobs) + (0 if self.table is None else 3 * self.table.shape[-1])
        return float(self.loads.size * each)

    def spare(self, presence: Floats) -> Floats | float:
        """Mean number of processors that stay idle while a job is there, shape (candidates, jobs, stations).

        Parameters
        ----------
        presence : array of shape (candidates, jobs or 1, jobs, stations), probability that the first job finds the
            second one there.
        """
        if not np.any(self.capacity > 1):
            return 0.0
        return self._normal(presence) if self.table is None else self._summed(presence, self.table)

    def _summed(self, presence: Floats, table: Floats) -> Floats:
        candidates, jobs, stations = self.loads.shape
        chance = np.ones((candidates, jobs, stations, 1))
        for other in range(jobs):
            there = np.repeat(presence[:, :, other, :, None], jobs // presence.shape[1], axis=1)
            there[:, other] = 0.0
            # The job's bit is the next higher one: first all patterns without it, then all with it.
            chance = np.concatenate([chance * (1.0 - there), chance * there], axis=-1)
        return np.asarray(np.einsum("brkp,brkp->brk", chance, table))

    def _normal(self, presence: Floats) -> Floats:
        jobs = self.loads.shape[1]
        own = np.arange(jobs)
        mean, variance = (
            np.einsum("brsk,bsk->brk", weight, weighted) - weight[:, own % presence.shape[1], own] * weighted
            for weight, weighted in ((presence, self.loads), (presence * (1.0 - presence), self.loads**2))
        )
        deviation = np.sqrt(np.maximum(variance, 1e-24))
        free = self.capacity[:, None] - self.loads - mean
        ratio = free / deviation
        # E[(free - noise)+] of a normal distribution
        below = 0.5 * scipy.special.erfc(-ratio / np.sqrt(2.0))
        density = np.exp(-0.5 * np.minimum(ratio**2, 1400.0)) / np.sqrt(2.0 * np.pi)
        return np.asarray(np.maximum(free * below + deviation * density, 0.0))
