"""Simulation of a cluster under EASY backfilling.

The first in line gets a reservation; others may start before it if they do not delay it (Lifka, "The ANL/IBM SP
scheduling system", JSSPP 1995). In which order the others are tried, and how long jobs are expected to hold their
processors, makes the variants: first come first served or shortest job first (SJBF; Tsafrir, Etsion & Feitelson,
"Backfilling using system-generated predictions rather than user runtime estimates", IEEE TPDS 18(6), 2007, Section 4).
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Mapping
from typing import Self

from metasched.history.backfill_order import BackfillOrder

#: How much longer a job is expected to run each time it outlives what was expected (s; Tsafrir et al., Section 4.3).
CORRECTIONS = (60.0, 300.0, 900.0, 1800.0, 3600.0, 7200.0, 18_000.0, 36_000.0, 72_000.0, 180_000.0, 360_000.0)


def outlived(ran: float, limit: float) -> float:
    """The corrected run time (s) of a job that has run longer than predicted.

    Longer by the first of :data:`CORRECTIONS` that is above half of what it ran, but not beyond its limit.

    >>> outlived(100.0, 3600.0), outlived(3500.0, 3600.0)
    (160.0, 3600.0)
    """
    longer = ran + next((more for more in CORRECTIONS if more > 0.5 * ran), CORRECTIONS[-1])
    return min(longer, limit) if limit > ran else longer


class Backfilling:
    """The state of a cluster: its running jobs and its queue.

    Parameters
    ----------
    processors : of the cluster.

    Attributes
    ----------
    free : processors that nobody holds.
    started : when each running job started (s).
    width : processors of each job that runs or waits.
    offered : to the jobs behind the first in line when jobs were last started: the free processors, those of them that
        may be held for any time, and how long the others may be (s); 0 processors where nobody waited.

    Examples
    --------
    Six of eight processors are taken until 100 s. The first in line needs all; the next fits before it starts, the last
    would delay it.

    >>> cluster = Backfilling(8)
    >>> for job, (processors, hold) in enumerate([(6, 100.0), (8, 50.0), (2, 90.0), (1, 200.0)]):
    ...     cluster.submit(job, processors, hold, order=hold)
    >>> cluster.schedule(0.0), cluster.free
    ([0, 2], 0)
    """

    def __init__(self, processors: int) -> None:
        self.free = processors
        self.started: dict[int, float] = {}
        self.width: dict[int, int] = {}
        self.offered = 0, 0, 0.0
        self._hold: dict[int, float] = {}
        self._order: dict[int, float] = {}
        self._priority: dict[int, float] = {}
        self._line: list[tuple[float, int]] = []  # waiting, by priority
        self._backfill = BackfillOrder()
        self._expected: list[tuple[float, int]] = []  # running, by when they are expected to end
        self._widths: dict[int, int] = {}  # how many wait for each number of processors
        self._shadow, self._extra = -1.0, 0  # when the first in line starts, and what it leaves
        self._changed = True

    def copy(self) -> Self:
        """An independent copy of the cluster."""
        other = type(self)(0)
        for name, value in vars(self).items():
            setattr(other, name, value.copy() if isinstance(value, dict | list | BackfillOrder) else value)
        return other

    @property
    def waiting(self) -> list[int]:
        """Numbers of the pending jobs, those of highest priority first."""
        return [job for _, job in self._line]

    @property
    def any_waiting(self) -> bool:
        """Whether the queue holds a job that has not started."""
        return bool(self._line)

    def submit(self, job: int, processors: int, hold: float, order: float = 0.0, priority: float = 0.0) -> None:
        """Add a job to the queue.

        Parameters
        ----------
        job : its number; among equals the lower number is first.
        processors : P, no more than the cluster has.
        hold : how long it is expected to hold its processors (s).
        order : the smaller, the sooner it is tried for backfill.
        priority : the smaller, the sooner it is first in line.
        """
        self.width[job], self._hold[job], self._order[job], self._priority[job] = processors, hold, order, priority
        self._widths[processors] = self._widths.get(processors, 0) + 1
        insort(self._line, (priority, job))
        self._backfill.add(order, job, processors, hold)
        if self._line[0][1] == job:
            self._changed = True

    def request(self, job: int) -> tuple[int, float, float, float]:
        """What :meth:`submit` was given for a pending job, or :meth:`reorder`, after its number."""
        return self.width[job], self._hold[job], self._order[job], self._priority[job]

    def reorder(self, job: int, order: float) -> None:
        """Change a pending job's place in the order of backfill, from the next end of a job on.

        Parameters
        ----------
        job : its number.
        order : what jobs are put in order by, the least first: an expected run time (s).
        """
        if order != self._order[job]:
            self._backfill.remove(self._order[job], job)
            self._order[job] = order
            self._backfill.add(order, job, self.width[job], self._hold[job])

    def end(self, job: int) -> None:
        """Free the processors of a running job, which has ended."""
        del self._expected[bisect_left(self._expected, (self.started.pop(job) + self._hold.pop(job), job))]
        self.free += self.width.pop(job)
        del self._order[job], self._priority[job]
        self._changed = True

    def next_correction(self) -> float:
        """The time at which the next running job exceeds its predicted run time (s); infinity if none runs."""
        return self._expected[0][0] if self._expected else float("inf")

    def correct(self, now: float, limits: Mapping[int, float]) -> None:
        """Correct the predictions of jobs that have run longer than predicted, see :data:`CORRECTIONS`.

        Parameters
        ----------
        now : the time (s); jobs that end now have ended already.
        limits : time limit of each running job (s), beyond which it is expected only when it has outlived that too.
        """
        while self._expected and self._expected[0][0] <= now:
            _, job = self._expected.pop(0)
            # What was expected is over, also where the difference of two times is rounded to less.
            ran = max(now - self.started[job], self._hold[job])
            self._hold[job] = outlived(ran, limits[job])
            insort(self._expected, (self.started[job] + self._hold[job], job))
            self._changed = True

    def schedule(self, now: float) -> list[int]:
        """Start the jobs that start now.

        Returns
        -------
        Their numbers in the order they start.
        """
        begun: list[int] = []
        width = self.width
        while self._line and width[self._line[0][1]] <= self.free:
            begun.append(self._line[0][1])
            self._start(begun[-1], now)
        self.offered = (self.free, self.free, math.inf) if self._line else (0, 0, 0.0)
        if self._line and self.free >= min(self._widths):
            if begun or self._changed or self._shadow <= now:
                self._reserve(now)
            self.offered = self.free, self._extra, self._shadow - now
            begun += self._fill(now)
        return begun

    def _start(self, job: int, now: float) -> None:
        del self._line[bisect_left(self._line, (self._priority[job], job))]
        self._backfill.remove(self._order[job], job)
        width = self.width[job]
        self.free -= width
        self._widths[width] -= 1
        if not self._widths[width]:
            del self._widths[width]
        self.started[job] = now
        insort(self._expected, (now + self._hold[job], job))
        self._changed = True

    def _reserve(self, now: float) -> None:
        """The reservation of the first pending job: its start (s) and the processors that it leaves free."""
        first, free, shadow, width = self.width[self._line[0][1]], self.free, math.inf, self.width
        for end, job in self._expected:
            if end > shadow:
                break
            free += width[job]
            if free >= first:
                shadow = max(end, now)
        self._shadow, self._extra = shadow, free - first

    def _fill(self, now: float) -> list[int]:
        """Backfill: start the jobs that do not delay the reservation."""
        begun, extra = self._backfill.fitting(
            self.free, self._extra, self._shadow - now, first=self._line[0][1], least=min(self._widths)
        )
        for job in begun:
            self._start(job, now)
        self._extra, self._changed = extra, False
        return begun
