"""Forecasts of waits of jobs that join a queue at one time, as thousands do that were submitted together.

Who joins at the end of the queue changes nothing before its own start: a job that does not start holds no processors,
and the reservation is that of the first in line. So the simulation for one job continues for the next, unless this
might have started earlier; then the queue is simulated again from the present.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from itertools import takewhile

from metasched.history.backfilling import Backfilling


class JoinedQueue:
    """Waits in a queue, in the order in which its jobs are submitted.

    Parameters
    ----------
    left : possible remaining run times (s) of a job after it has run so long (s), 0 if it is pending; as many for every
        job, and the same whenever it is asked at one time.

    Examples
    --------
    >>> cluster, queue = Backfilling(8), JoinedQueue(lambda job, ran: [40.0 - ran, 90.0 - ran])
    >>> for number in range(3):
    ...     cluster.submit(number, 8, 100.0, number, number)
    ...     print(queue.waits(cluster, number, 0.0))
    [0.0, 0.0]
    [40.0, 90.0]
    [80.0, 180.0]
    """

    def __init__(self, left: Callable[[int, float], Sequence[float]]) -> None:
        self._left = left
        self._now = math.nan
        self._remaining: list[dict[int, float]] = []
        self._courses: list[_Course] = []

    def waits(self, cluster: Backfilling, job: int, now: float) -> list[float]:
        """The remaining wait of a queued job without further arrivals (s), for each set of possible run times.

        Parameters
        ----------
        cluster : the queue at present. Since it was last asked for this time, jobs may only have joined it, at the end
            of the line.
        job, now : the number of the job that joined last, and the time (s).
        """
        if now != self._now:
            self._now, self._remaining, self._courses = now, [{} for _ in self._left(job, 0.0)], []
        known, started = self._remaining[0], cluster.started
        joined = list(takewhile(lambda other: other not in known, reversed(cluster.width)))[::-1]
        for other in joined:
            possible = self._left(other, now - started[other] if other in started else 0.0)
            for remaining, seconds in zip(self._remaining, possible, strict=True):
                remaining[other] = seconds
        if not self._courses:
            self._courses = [_Course(cluster.copy(), now, remaining) for remaining in self._remaining]
        else:
            for place, course in enumerate(self._courses):
                if not all(course.join(cluster, other) for other in joined):
                    self._courses[place] = _Course(cluster.copy(), now, self._remaining[place])
        return [course.start(job) - now for course in self._courses]


class _Course:
    """A simulation of a queue by the remaining run times of its jobs (s), as far as it has been asked about."""

    def __init__(self, cluster: Backfilling, now: float, remaining: dict[int, float]) -> None:
        self._cluster, self._now, self._remaining = cluster, now, remaining
        self._ends = [(now + remaining[job], job) for job in cluster.started]
        heapq.heapify(self._ends)
        self._starts: dict[int, float] = {}
        self._offers: list[tuple[int, int, float]] = []
        self._begin()

    def join(self, queue: Backfilling, job: int) -> bool:
        """Add the job of another queue that is last in line there; False if it might have started before."""
        processors, hold, order, priority = queue.request(job)
        for free, extra, patience in self._offers:
            if processors <= free and (processors <= extra or hold <= patience):
                return False
        all_started = not self._cluster.any_waiting
        self._cluster.submit(job, processors, hold, order, priority)
        if all_started:  # in the order of the line, so it is its turn now
            self._begin()
        return True

    def start(self, job: int) -> float:
        """The time (s) at which a job that has joined starts; the simulation continues up to it."""
        while job not in self._starts:
            self._now = self._ends[0][0]
            while self._ends and self._ends[0][0] == self._now:
                self._cluster.end(heapq.heappop(self._ends)[1])
            self._begin()
        return self._starts[job]

    def _begin(self) -> None:
        for job in self._cluster.schedule(self._now):
            self._starts[job] = self._now
            heapq.heappush(self._ends, (self._now + self._remaining[job], job))
        if self._cluster.offered[0]:
            self._offers.append(self._cluster.offered)
