"""Simulation of the queue of a cluster: when each pending job would start, and when one more job would.

Jobs start by the rules of :mod:`metasched.history.backfilling`: in order of priority, and out of order if they delay no
reservation. As in schedulers, reservations follow from how long jobs may hold their processors; when processors really
become free follows from predicted run times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from metasched.history.backfilling import Backfilling, predicted_starts
from metasched.history.job_log import Floats, Ints

#: Assumed limit of a job without one (s).
UNLIMITED = 86_400.0
#: Pending jobs considered for backfill in a simulation; schedulers have such a bound too.
DEPTH = 50


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """A running or pending job, as its scheduler describes it.

    Parameters
    ----------
    number : its number.
    partitions : that it runs in, or may start in.
    processors : P.
    limit : its time limit (s), None where it has none.
    ran : how long it has run (s), None where it waits.
    nodes : names of its nodes, empty where it waits.
    ready : whether it waits for processors and nothing else.
    submitted, started : when (s), None where that is not known; of a job that was not ready at first when it was.
    planned : when its scheduler means to start it (s), None where it does not say.
    user, name, account, qos : as its scheduler calls them.
    executable : base name of its script or program, empty where its scheduler does not say.
    tasks : of an array that waits, how many wait in this line, each for so many processors; 1 for any other job.
    """

    number: str
    partitions: frozenset[str]
    processors: int
    limit: float | None
    ran: float | None = None
    nodes: tuple[str, ...] = ()
    ready: bool = True
    submitted: float | None = None
    started: float | None = None
    planned: float | None = None
    user: str = ""
    name: str = ""
    account: str = ""
    qos: str = ""
    executable: str = ""
    tasks: int = 1

    @property
    def holds(self) -> float:
        """How long it may hold its processors (s), from now if it runs, else from its start.

        One without a limit may do so for as long from now on, however long it has run.
        """
        return UNLIMITED if not self.limit else max(self.limit - (self.ran or 0.0), 1.0)


#: Expected remaining run time of a job (s), from its start if it is pending.
Left = Callable[[QueuedJob], float]


def by_limit(job: QueuedJob) -> float:
    """The remaining time up to the limit of a job (s)."""
    return job.holds


@dataclass(frozen=True, slots=True)
class PrecedingJob:
    """A job ahead in the queue: its processors, how long it may hold them (s), and how long it is expected to (s)."""

    processors: int
    holds: float
    left: float
    number: str = ""


class Line:
    """The queue of a partition.

    Parameters
    ----------
    free : idle processors.
    running : running jobs.
    waiting : pending jobs in order of priority; those that request more processors than exist are ignored.

    Examples
    --------
    Four of eight processors are free, and a job waits for all of them. What runs may do so for 600 s, but is expected
    to end in 100 s. A job that is done by then need not wait; a longer one would delay the one ahead.

    >>> line = Line(4, [PrecedingJob(4, 600.0, 100.0)], [PrecedingJob(8, 300.0, 50.0, "7")])
    >>> line.starts(), line.wait(2, 500.0, 80.0), line.wait(2, 900.0, 80.0)
    ({'7': 100.0}, 0.0, 150.0)
    >>> [each.tolist() for each in line.steps()]
    [[1], [150.0]]
    """

    def __init__(self, free: int, running: Sequence[PrecedingJob], waiting: Sequence[PrecedingJob] = ()) -> None:
        running = [job for job in running if job.processors > 0]
        self.processors = free + sum(job.processors for job in running)
        self._jobs = [*running, *(job for job in waiting if 0 < job.processors <= self.processors)]
        self._cluster = Backfilling(self.processors)
        self._left = {number: max(job.left, 0.0) for number, job in enumerate(self._jobs)}
        for number, job in enumerate(self._jobs):
            self._cluster.submit(number, job.processors, max(job.holds, 1.0), number, number)
            if number + 1 == len(running):
                self._cluster.schedule(0.0)
        self._begin: dict[int, float] | None = None

    def starts(self) -> dict[str, float]:
        """Time until each pending job starts without further arrivals (s), by job number; an array's last task."""
        return {self._jobs[number].number: start for number, start in self._starts().items()}

    def wait(self, processors: int, limit: float, run_time: float) -> float:
        """Wait of one more job at the end of the queue (s); infinite if it requests more processors than exist.

        Parameters
        ----------
        processors : that it requests.
        limit : its time limit (s).
        run_time : how long it is expected to run (s).
        """
        if processors > self.processors:
            return float("inf")
        last, cluster = len(self._jobs), self._cluster.copy(DEPTH)
        cluster.submit(last, processors, limit, last, last)
        return predicted_starts(cluster, 0.0, {**self._left, last: run_time}, until=last)[last]

    def steps(self) -> tuple[Ints, Floats]:
        """Wait of one more job, of any length, that delays no other, by its processors.

        Returns
        -------
        Numbers of processors, ascending from 1, at which the wait changes, and the waits from there on (s), each of
        shape (steps,).
        """
        times, change = [0.0], [self._cluster.free]
        for number, begin in {**dict.fromkeys(self._cluster.started, 0.0), **self._starts()}.items():
            width = self._jobs[number].processors
            if number not in self._cluster.started:
                times.append(begin)
                change.append(-width)
            times.append(begin + self._left[number])
            change.append(width)
        order = np.argsort(times, kind="stable")
        at, level = np.array(times)[order], np.cumsum(np.array(change)[order])
        last = np.append(at[1:] > at[:-1], True)  # of what happens at one time the end counts
        at, level = at[last], level[last]
        lasting = np.minimum.accumulate(level[::-1])[::-1]  # free from then on for good
        more = np.append(True, lasting[1:] > lasting[:-1]) & (lasting > 0)
        at, lasting = at[more], lasting[more]
        if not at.size:
            return np.array([1]), np.zeros(1)
        return np.append(1, lasting[:-1] + 1).astype(np.int64), at

    def _starts(self) -> dict[int, float]:
        if self._begin is None:
            self._begin = predicted_starts(self._cluster.copy(DEPTH), 0.0, self._left)
        return self._begin
