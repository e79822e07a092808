"""Run times of a log's jobs, predicted by :class:`~metasched.history.run_times.neighbours.Neighbours`."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from itertools import islice

import numpy as np

from metasched.history.job_log import JobLog
from metasched.history.replay import Expected
from metasched.history.run_times.neighbours import GRID, Forecast, Neighbours
from metasched.history.submission import Submission, submissions

#: The part of the distribution that each quantile represents.
SHARES = np.diff(np.concatenate([[0.0], (GRID[1:] + GRID[:-1]) / 2.0, [1.0]]))
#: How many kinds of a user's pending jobs, and how many jobs of each, are predicted again when one of them has ended.
KINDS, OF_A_KIND = 8, 25
#: How long the prediction of a kind of pending jobs is valid while others of its user run (s): the longer these run,
#: the longer it will.
HOLDS = 300.0


class Learned:
    """Adapts ``Neighbours`` to replays, and learns from each ended job."""

    learns = True

    def __init__(self, log: JobLog, level: float = 0.9) -> None:
        self.past = Neighbours(level)
        self._run = log.run_time.tolist()
        kinds: dict[Submission, int] = {}
        self._kind = [kinds.setdefault(each, len(kinds)) for each in submissions(log)]
        self._jobs = list(kinds)
        self._waiting: dict[Hashable, dict[int, dict[int, None]]] = {}
        self._running: Counter[Hashable] = Counter()
        self._considered: dict[int, tuple[float, float]] = {}

    def submitted(self, job: int, now: float) -> Expected:
        """See :class:`~metasched.history.replay.RunTimes`."""
        kind = self._kind[job]
        found = self.past.submitted(job, self._jobs[kind], now)
        self._waiting.setdefault(self._jobs[kind].user, {}).setdefault(kind, {})[job] = None
        self._considered[kind] = order(found), now
        return Expected(found.run_time, self._considered[kind][0], found.low, found.high)

    def started(self, job: int, now: float) -> None:
        """See :class:`~metasched.history.replay.RunTimes`."""
        kind = self._kind[job]
        user = self._jobs[kind].user
        waiting = self._waiting[user]
        del waiting[kind][job]
        if not waiting[kind]:
            del waiting[kind]
        if not waiting:
            del self._waiting[user]
        self._running[user] += 1
        self.past.started(job, now)

    def reordered(self, ended: int, now: float) -> Iterator[tuple[int, float]]:
        """See :class:`~metasched.history.replay.RunTimes`: the ended job informs about the pending ones of its user.

        So do jobs that still run: the shortest pending ones are predicted again from time to time.
        """
        ended_user = self._jobs[self._kind[ended]].user
        kinds = list(islice(self._waiting.get(ended_user, {}), KINDS))
        aged = [
            (self._considered[kind][0], kind)
            for user, waiting in self._waiting.items()
            if user != ended_user and user in self._running
            for kind in waiting
            if now - self._considered[kind][1] > HOLDS
        ]
        for kind in (*kinds, *(kind for _, kind in heapq.nsmallest(KINDS, aged))):
            later = order(self.past.expect(self._jobs[kind], now))
            self._considered[kind] = later, now
            for job in islice(self._waiting[self._jobs[kind].user][kind], OF_A_KIND):
                yield job, later

    def ended(self, job: int, now: float) -> None:
        """See :class:`~metasched.history.replay.RunTimes`."""
        user = self._jobs[self._kind[job]].user
        self._running[user] -= 1
        if not self._running[user]:
            del self._running[user]
        self.past.ended(job, self._run[job], now)

    def left(self, job: int, ran: float) -> Sequence[float]:
        """See :class:`~metasched.history.replay.RunTimes`."""
        return self.past.possible(job, ran, job)


def order(found: Forecast) -> float:
    """The sort key of the backfill order (s).

    The geometric mean of two means of the distribution: the arithmetic one, which emphasises long run times, and the
    geometric one, which emphasises early ends.
    """
    return float(np.sqrt((found.quantiles @ SHARES) * np.exp(np.log(found.quantiles) @ SHARES)))
