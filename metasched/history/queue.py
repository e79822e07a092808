"""Simulation of the queue of a cluster: when each pending job would start, and when one more job would.

Jobs start by the rules of :mod:`metasched.history.backfilling`: in order of priority, and out of order if they delay no
reservation. As in schedulers, reservations follow from how long jobs may hold their processors; when processors really
become free follows from predicted run times. These are uncertain: a queue is simulated with several possible ones of
each job, and its waits are the means.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from metasched.arrays import Floats, Ints
from metasched.history.course import StandingQueue

#: Assumed limit of a job without one (s).
UNLIMITED = 86_400.0
#: Pending jobs considered for backfill in a simulation; schedulers have such a bound too. On job logs (docs/history.md)
#: waits simulated without a bound are the same, with half of this bound within a percent.
DEPTH = 200
#: Most jobs of the simulations of a queue together: a long queue is simulated with fewer of the possible run times, two
#: at least. What many jobs take together hardly varies: of 9,000 jobs (lognormal run times) two simulations predict the
#: waits behind the first hundred to within 1 to 4 % of the mean of forty random ones, five to within 0.4 to 3 %.
MOST = 25_000


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
    numbers : in its arguments, as :mod:`metasched.history.argument_numbers` writes them.
    tasks : of an array that waits, how many wait in this line, each for so many processors; 1 for any other job.
    placement : uid of the placement that its comment names, empty where it names none.
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
    placement: str = ""
    numbers: str = ""

    @property
    def holds(self) -> float:
        """How long it may hold its processors (s), from now if it runs, else from its start.

        One without a limit may do so for as long from now on, however long it has run.
        """
        return UNLIMITED if not self.limit else max(self.limit - (self.ran or 0.0), 1.0)


#: Possible remaining run times of a job (s), from its start if it is pending; one, or as many as of any other job.
Left = Callable[[QueuedJob], tuple[float, ...]]


def by_limit(job: QueuedJob) -> tuple[float, ...]:
    """The remaining time up to the limit of a job (s)."""
    return (job.holds,)


@dataclass(frozen=True, slots=True)
class PrecedingJob:
    """A job ahead in the queue: its processors, how long it may hold them (s), and how long it possibly will (s)."""

    processors: int
    holds: float
    left: tuple[float, ...]
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

    >>> line = Line(4, [PrecedingJob(4, 600.0, (100.0,))], [PrecedingJob(8, 300.0, (50.0,), "7")])
    >>> line.starts(), line.wait(2, 500.0), line.wait(2, 900.0)
    ({'7': 100.0}, 0.0, 150.0)
    >>> [each.tolist() for each in line.steps()]
    [[1], [150.0]]
    """

    def __init__(self, free: int, running: Sequence[PrecedingJob], waiting: Sequence[PrecedingJob] = ()) -> None:
        running = [job for job in running if job.processors > 0]
        self.processors = free + sum(job.processors for job in running)
        jobs = [*running, *(job for job in waiting if 0 < job.processors <= self.processors)]
        self._numbers = [job.number for job in jobs[len(running) :]]
        self._waiting = np.arange(len(running), len(jobs))
        asked = [(job.processors, max(job.holds, 1.0)) for job in jobs]
        queue = StandingQueue(free, asked[: len(running)], asked[len(running) :], DEPTH)
        sets = max((len(job.left) for job in jobs), default=1)
        possible = np.array([job.left if len(job.left) == sets else job.left * sets for job in jobs]).reshape(-1, sets)
        courses = min(sets, max(2, MOST // max(len(jobs), 1)))
        which = ((np.arange(courses) + 0.5) * sets / courses).astype(np.int64)
        self._courses = [queue.course(left) for left in np.maximum(possible[:, which], 0.0).T.tolist()]

    def starts(self) -> dict[str, float]:
        """Time until each pending job starts without further arrivals (s), by job number; an array's last task."""
        means = np.mean([course.starts[self._waiting] for course in self._courses], axis=0)
        return dict(zip(self._numbers, means.tolist(), strict=True))

    def wait(self, processors: int, limit: float) -> float:
        """Wait of one more job at the end of the queue (s); infinite if it requests more processors than exist.

        Parameters
        ----------
        processors : that it requests.
        limit : its time limit (s).
        """
        if processors > self.processors:
            return math.inf
        return float(np.mean([course.wait(processors, limit) for course in self._courses]))

    def steps(self) -> tuple[Ints, Floats]:
        """Wait of one more job, of any length, that delays no other, by its processors.

        Returns
        -------
        Numbers of processors, ascending from 1, at which the wait changes, and the waits from there on (s), each of
        shape (steps,).
        """
        several = [course.steps(self._waiting) for course in self._courses]
        changes = np.unique(np.concatenate([processors for processors, _ in several]))
        waits = [seconds[np.searchsorted(processors, changes, side="right") - 1] for processors, seconds in several]
        return changes, np.mean(waits, axis=0)
