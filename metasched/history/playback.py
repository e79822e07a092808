"""Learning from a job log: when a daemon starts, for a single prediction, and before a replay of newer jobs."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np

from metasched.arrays import Ints
from metasched.history.job_log import JobLog
from metasched.history.run_times.neighbours import Neighbours
from metasched.history.run_times.similarity import OTHERS, OWN
from metasched.history.submission import submissions

#: How many of the newest jobs are played back besides the last of each user and limit, and how many at most in all.
NEWEST, MOST = 10_000, 60_000
#: How many of the newest jobs are played back for one question.
FEW = 2000


def informative_jobs(log: JobLog, newest: int) -> Ints:
    """The jobs that predictions depend on: the newest, and the last of each user and each limit, bounded in number.

    Returns
    -------
    Their places in the log, ascending.

    Examples
    --------
    >>> ones = np.ones(600)
    >>> log = JobLog(np.arange(600.0), ones, ones.astype(int), 60 * ones, labels={"user": np.arange(600) // 590})
    >>> informative_jobs(log, newest=20).tolist()[:2], len(informative_jobs(log, newest=20))
    ([350, 351], 250)
    """
    end = log.ends()
    order = np.argsort(end, kind="stable")[::-1]
    wanted = np.zeros(len(log), dtype=bool)
    wanted[order[:newest]] = True
    for column, most in ((log.labelled("user"), OWN), (log.limits(), OTHERS)):
        _, group = np.unique(column[order], return_inverse=True)
        by_group = np.argsort(group, kind="stable")
        first = np.searchsorted(group[by_group], group[by_group])
        wanted[order[by_group[np.arange(len(log)) - first < most]]] = True
    wanted[order[wanted[order].cumsum() > MOST]] = False
    return np.flatnonzero(wanted)


def play(
    log: JobLog, past: Neighbours, key: Callable[[int], Hashable] = int, pause: Callable[[], object] = lambda: None
) -> None:
    """Pass the submissions, starts and ends of a log to a predictor in chronological order.

    Parameters
    ----------
    log : the jobs; where waits are not known each starts when it is submitted.
    past : learns from them.
    key : what a job of the log is known by to it.
    pause : called before each thing that happens, and may wait.
    """
    jobs = submissions(log)
    start = log.starts()
    time = np.concatenate([log.submit_time, start, start + log.run_time])
    # What happens at one time happens in this order: jobs end, come, and start; but none ends before it starts.
    kind = np.repeat([1, 2, 0], len(log))
    kind[2 * len(log) :][log.run_time == 0] = 3
    run_time = log.run_time.tolist()
    for place in np.lexsort((kind, time)).tolist():
        pause()
        what, job = divmod(place, len(log))
        if what == 0:
            past.submitted(key(job), jobs[job], float(time[place]))
        elif what == 1:
            past.started(key(job), float(time[place]))
        else:
            past.ended(key(job), run_time[job], float(time[place]))
