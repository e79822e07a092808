"""One possible course of a queue: when its jobs start without further arrivals, and when one more job would."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metasched.arrays import Floats, Ints
from metasched.history.backfilling import Backfilling, led_on


@dataclass(frozen=True, slots=True)
class Course:
    """The course of a queue with given run times.

    One more job at the end of the queue changes no other's start before its own. So it starts at the first time at
    which, besides all others that start, processors are left for it: this takes no further simulation.

    Parameters
    ----------
    starts, ends : time (s) until each job starts, 0 where it runs already, and until it ends, each of shape (jobs,).
    processors : of each job, shape (jobs,).
    free : processors that nobody holds at present.
    openings : times (s) at which others may start, and what they leave to one more job: the processors that it may hold
        for any time, those that it may hold for a short time, and how long that is (s); shape (4, times).

    Examples
    --------
    Four of eight processors are held until 100 s, but may be until 600 s. One job waits for all and runs for 50 s.

    >>> cluster = Backfilling(8)
    >>> for job, (processors, hold) in enumerate([(4, 600.0), (8, 300.0)]):
    ...     cluster.submit(job, processors, hold)
    >>> cluster.schedule(0.0)
    [0]
    >>> course = Course.of(cluster, np.array([4, 8]), np.array([100.0, 50.0]))
    >>> course.starts.tolist(), course.wait(2, 500.0), course.wait(2, 900.0)
    ([0.0, 100.0], 0.0, 150.0)
    """

    starts: Floats
    ends: Floats
    processors: Ints
    free: int
    openings: Floats

    @classmethod
    def of(cls, cluster: Backfilling, processors: Ints, left: Floats) -> Course:
        """Lead a cluster on.

        Parameters
        ----------
        cluster : as it is; its jobs are numbered from 0. It is changed, so pass a copy.
        processors : of each job, shape (jobs,).
        left : how long each job still runs, or will run once started (s), shape (jobs,).
        """
        starts, openings, free = np.zeros(left.size), [], cluster.free
        for at, begun in led_on(cluster, 0.0, dict(enumerate(left.tolist()))):
            starts[begun] = at
            openings.append((at, *cluster.opening(at)))
        return cls(starts, starts + left, processors, free, np.array(openings).T)

    def wait(self, processors: int, limit: float) -> float:
        """Wait of one more job at the end of the queue (s).

        Parameters
        ----------
        processors : that it requests, no more than there are.
        limit : its time limit (s).
        """
        at, for_any, for_short, short = self.openings
        fits = (processors <= for_any) | (processors <= for_short) & (limit <= short)
        return float(at[fits.argmax()])

    def steps(self, waiting: Ints) -> tuple[Ints, Floats]:
        """Wait of one more job, of any length, that delays no other, by its processors.

        Returns
        -------
        Numbers of processors, ascending from 1, at which the wait changes, and the waits from there on (s), each of
        shape (steps,).
        """
        times = np.concatenate([[0.0], self.starts[waiting], self.ends])
        change = np.concatenate([[self.free], -self.processors[waiting], self.processors])
        order = np.argsort(times, kind="stable")
        at, level = times[order], np.cumsum(change[order])
        last = np.append(at[1:] > at[:-1], True)  # of what happens at one time the end counts
        at, level = at[last], level[last]
        lasting = np.minimum.accumulate(level[::-1])[::-1]  # free from then on for good
        more = np.append(True, lasting[1:] > lasting[:-1]) & (lasting > 0)
        at, lasting = at[more], lasting[more]
        if not at.size:
            return np.array([1]), np.zeros(1)
        return np.append(1, lasting[:-1] + 1).astype(np.int64), at
