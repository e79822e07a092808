"""The run times of a log's jobs as :class:`~metasched.history.run_times.neighbours.Neighbours` expects them."""

from __future__ import annotations

import numpy as np

from metasched.history.job_log import JobLog
from metasched.history.replay import Expected
from metasched.history.run_times.neighbours import GRID, Forecast, Neighbours, Submission

#: What each quantile stands for of the distribution.
SHARES = np.diff(np.concatenate([[0.0], (GRID[1:] + GRID[:-1]) / 2.0, [1.0]]))


class Learned:
    """Learns from each job that has ended.

    Parameters
    ----------
    log : the jobs.
    level : of the intervals.
    """

    def __init__(self, log: JobLog, level: float = 0.9) -> None:
        self.past = Neighbours(level)
        limits, run, width = log.limits().tolist(), log.run_time.tolist(), log.processors.tolist()
        user = log.labelled("user").tolist()
        named = [
            log.labels[each].tolist() for each in ("name", "executable", "partition", "account") if each in log.labels
        ]
        names = ["/".join(map(str, each)) for each in zip(*named, strict=True)] if named else [""] * len(log)
        self._run = run
        self._jobs = [Submission(*each) for each in zip(user, width, limits, names, strict=True)]

    def submitted(self, job: int, now: float) -> Expected:
        """See :class:`~metasched.history.replay.RunTimes`."""
        found = self.past.submitted(job, self._jobs[job], now)
        return Expected(found.run_time, order(found), found.low, found.high)

    def started(self, job: int, now: float) -> None:
        """See :class:`~metasched.history.replay.RunTimes`."""
        self.past.started(job, now)

    def ended(self, job: int, now: float) -> None:
        """See :class:`~metasched.history.replay.RunTimes`."""
        self.past.ended(job, self._run[job], now)

    def remaining(self, job: int, ran: float) -> float:
        """See :class:`~metasched.history.replay.RunTimes`."""
        return self.past.remaining(job, ran)


def order(found: Forecast) -> float:
    """What a job is put in order by (s): the mean, in which long runs that are possible count."""
    return float(found.quantiles @ SHARES)
