"""The pending jobs of a cluster in the order in which they are considered for backfill.

Of the thousands of jobs in a site's queue few fit after each end of a job, so the order is kept in columns,
in which those that may fit are found without considering each.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from typing import Self

import numpy as np

#: Number of jobs considered singly, since comparing columns is slower for a few, and the factor by which each further
#: step compares more: what fits is often near the front.
FEW, MORE = 64, 4


class BackfillOrder:
    """Pending jobs by their sort keys.

    Four processors are free, one of them for any time, the others for 100 s.

    >>> order = BackfillOrder()
    >>> for job, (processors, hold) in enumerate([(1, 300.0), (2, 200.0), (2, 50.0)]):
    ...     order.add(hold, job, processors, hold)
    >>> order.fitting(4, 1, 100.0)
    ([2, 0], 0)
    """

    def __init__(self) -> None:
        self._jobs: list[tuple[float, int]] = []
        self._processors = array("q")
        self._holds = array("d")

    def copy(self) -> Self:
        """The same jobs in the same order, in columns of their own."""
        other = type(self)()
        other._jobs, other._processors, other._holds = self._jobs[:], self._processors[:], self._holds[:]
        return other

    def add(self, order: float, job: int, processors: int, hold: float) -> None:
        """Add a job.

        Parameters
        ----------
        order : its sort key; the least is considered first, and among equals the lower number.
        job : its number.
        processors : P.
        hold : how long it is expected to hold them (s).
        """
        place = bisect_left(self._jobs, (order, job))
        self._jobs.insert(place, (order, job))
        self._processors.insert(place, processors)
        self._holds.insert(place, hold)

    def remove(self, order: float, job: int) -> None:
        """Remove a job, by its sort key and number."""
        place = bisect_left(self._jobs, (order, job))
        del self._jobs[place], self._processors[place], self._holds[place]

    def fitting(
        self, free: int, extra: int, patience: float, *, first: int = -1, least: int = 1
    ) -> tuple[list[int], int]:
        """The jobs that start, one after the other, without delaying a reservation.

        Parameters
        ----------
        free : idle processors.
        extra : of them, those that may be held for any time.
        patience : how long the others may be held (s).
        first : the job that the reservation is for.
        least : processors of the smallest job; with fewer nothing more fits.

        Returns
        -------
        Their numbers, and what is left of ``extra``.
        """
        begun: list[int] = []
        jobs, processors, holds = self._jobs, self._processors, self._holds
        place, step = 0, FEW
        while place < len(jobs) and free >= least:
            end = min(place + step, len(jobs))
            near = range(place, end) if not place else self._possible(place, end, free, extra, patience)
            for each in near:
                width = processors[each]
                if width > free or (job := jobs[each][1]) == first:
                    continue
                if holds[each] > patience:
                    if width > extra:
                        continue
                    extra -= width
                free -= width
                begun.append(job)
                if free < least:
                    break
            place, step = end, MORE * step
        return begun, extra

    def _possible(self, place: int, end: int, free: int, extra: int, patience: float) -> list[int]:
        """Places, from one to before another, of jobs that fit if no other starts before."""
        processors = np.frombuffer(self._processors, dtype=np.int64)[place:end]
        holds = np.frombuffer(self._holds)[place:end]
        fits = (processors <= extra) | (holds <= patience)
        fits &= processors <= free
        return (np.flatnonzero(fits) + place).tolist()
