"""The run times of a log's jobs as :class:`~metasched.history.run_times.neighbours.Neighbours` expects them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import islice

import numpy as np

from metasched.history.job_log import JobLog
from metasched.history.replay import Expected
from metasched.history.run_times.neighbours import GRID, Forecast, Neighbours, Submission

#: What each quantile stands for of the distribution.
SHARES = np.diff(np.concatenate([[0.0], (GRID[1:] + GRID[:-1]) / 2.0, [1.0]]))
#: How many kinds of a user's waiting jobs, and how many jobs of each, are looked at again when one of them has ended.
KINDS, OF_A_KIND = 8, 25
#: Shares of the distribution of what is left of a run at which a queue is led on.
EVENLY = (np.arange(5) + 0.5) / 5.0
#: What makes one job long where another is short: the golden ratio spreads multiples of it evenly.
GOLDEN = (5.0**0.5 - 1.0) / 2.0


class Learned:
    """Learns from each job that has ended.

    Parameters
    ----------
    log : the jobs.
    level : of the intervals.
    """

    learns = True

    def __init__(self, log: JobLog, level: float = 0.9) -> None:
        self.past = Neighbours(level)
        limits, run, width = log.limits().tolist(), log.run_time.tolist(), log.processors.tolist()
        user = log.labelled("user").tolist()
        named = [
            log.labels[each].tolist() for each in ("name", "executable", "partition", "account") if each in log.labels
        ]
        names = ["/".join(map(str, each)) for each in zip(*named, strict=True)] if named else [""] * len(log)
        self._run = run
        kinds: dict[Submission, int] = {}
        self._kind = [
            kinds.setdefault(Submission(*each), len(kinds)) for each in zip(user, width, limits, names, strict=True)
        ]
        self._jobs = list(kinds)
        self._waiting: dict[Hashable, dict[int, dict[int, None]]] = {}

    def submitted(self, job: int, now: float) -> Expected:
        """See :class:`~metasched.history.replay.RunTimes`."""
        kind = self._kind[job]
        found = self.past.submitted(job, self._jobs[kind], now)
        self._waiting.setdefault(self._jobs[kind].user, {}).setdefault(kind, {})[job] = None
        return Expected(found.run_time, order(found), found.low, found.high)

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
        self.past.started(job, now)

    def reordered(self, ended: int, now: float) -> Iterator[tuple[int, float]]:
        """See :class:`~metasched.history.replay.RunTimes`: what one of a user's jobs took tells of those that wait."""
        for kind, jobs in islice(self._waiting.get(self._jobs[self._kind[ended]].user, {}).items(), KINDS):
            later = order(self.past.expect(self._jobs[kind], now))
            for job in islice(jobs, OF_A_KIND):
                yield job, later

    def ended(self, job: int, now: float) -> None:
        """See :class:`~metasched.history.replay.RunTimes`."""
        self.past.ended(job, self._run[job], now)

    def left(self, job: int, ran: float) -> Sequence[float]:
        """See :class:`~metasched.history.replay.RunTimes`: evenly spread, and of each job in an order of its own."""
        shares: list[float] = self.past.left(job, ran, np.mod(EVENLY + job * GOLDEN, 1.0)).tolist()
        return shares


def order(found: Forecast) -> float:
    """What a job is put in order by (s).

    The geometric mean of two means: of the mean, in which long runs that are possible count, and of the geometric mean,
    in which short ones do.
    """
    return float(np.sqrt((found.quantiles @ SHARES) * np.exp(np.log(found.quantiles) @ SHARES)))
