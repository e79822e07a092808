"""Possible courses of a queue: when its jobs start without further arrivals, and when one more job would.

The rules are those of :mod:`metasched.history.backfilling`. Since nobody joins the queue and no order changes, a set of
its jobs is a whole number with a bit for each, and a few operations on such numbers find the jobs that may start.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import or_

import numpy as np

from metasched.arrays import Floats, Ints


class StandingQueue:
    """A queue that nobody joins any more.

    Parameters
    ----------
    free : processors that nobody holds.
    running, waiting : processors of each job, and how long it may hold them (s), from now or once it has started. Those
        that wait are in the order of their priority, which is that of backfill as well, and one of them is first.
    depth : how many waiting jobs are considered for backfill at a time.

    Examples
    --------
    The second waiting job is over before the first, which needs all processors, can start; the third would not be.

    >>> queue = StandingQueue(4, [(4, 100.0)], [(8, 300.0), (2, 90.0), (2, 110.0)], depth=200)
    >>> queue.course([100.0, 300.0, 90.0, 110.0]).starts.tolist()
    [0.0, 100.0, 0.0, 400.0]
    """

    def __init__(
        self, free: int, running: Sequence[tuple[int, float]], waiting: Sequence[tuple[int, float]], depth: int
    ) -> None:
        self.free, self.depth, self.running = free, depth, len(running)
        jobs = (*running, *waiting)
        self.processors, self.holds = [width for width, _ in jobs], [hold for _, hold in jobs]
        self.narrow, self.short = _AtMost(self.processors[len(running) :]), _AtMost(self.holds[len(running) :])

    def course(self, left: Sequence[float]) -> Course:
        """The course with given run times: how long each job still runs, or will run once started (s), of all jobs."""
        led = _Led(self, left)
        openings = [led.opening()]
        while led.ended():
            openings.append(led.opening())
        starts = np.array(led.starts)
        return Course(
            starts, starts + np.array(left), np.array(self.processors, dtype=np.int64), self.free, np.array(openings).T
        )


class _AtMost:
    """The sets of jobs of which something is at most so much."""

    def __init__(self, values: Sequence[float]) -> None:
        self._values = sorted(set(values))
        of = dict.fromkeys(self._values, 0)
        for job, value in enumerate(values):
            of[value] |= 1 << job
        self._jobs = list(accumulate(of.values(), or_, initial=0))

    def __call__(self, most: float) -> int:
        return self._jobs[bisect_right(self._values, most)]


class _Led:
    """A queue that is led on, up to some time.

    Parameters
    ----------
    queue : as it is at 0 s.
    left : how long each job still runs, or will run once started (s).

    Attributes
    ----------
    starts : when each job starts (s), 0 where it has not started.
    """

    def __init__(self, queue: StandingQueue, left: Sequence[float]) -> None:
        self._queue, self._left, self._free, self._now = queue, left, queue.free, 0.0
        self.starts = [0.0] * len(left)
        running = range(queue.running)
        self._ends = [(left[job], job) for job in running]
        heapq.heapify(self._ends)
        self._expected = sorted((queue.holds[job], job) for job in running)
        self._first, self._begun = queue.running, 0
        self._waiting = (1 << (len(left) - queue.running)) - 1

    def ended(self) -> bool:
        """Continue up to the next time at which jobs end; return whether any did."""
        if not self._ends:
            return False
        self._now = self._ends[0][0]
        processors, holds = self._queue.processors, self._queue.holds
        while self._ends and self._ends[0][0] == self._now:
            _, job = heapq.heappop(self._ends)
            self._free += processors[job]
            del self._expected[bisect_left(self._expected, (self.starts[job] + holds[job], job))]
        return True

    def opening(self) -> tuple[float, int, int, float]:
        """Start the jobs that start now; return the time, and what they leave to one more, see :class:`Course`."""
        queue, total = self._queue, len(self.starts)
        while self._first < total:
            if self._waiting >> (self._first - queue.running) & 1:
                if queue.processors[self._first] > self._free:
                    break
                self._start(self._first)
            self._first += 1
        else:
            return self._now, self._free, self._free, math.inf
        considered = queue.depth + self._begun  # behind them nobody has been considered yet, and none has started
        may = self._waiting & ((1 << considered) - 1) & queue.narrow(self._free)
        closed = queue.running + considered <= total
        if closed and not may:
            return self._now, 0, 0, 0.0
        patience, extra = self._reservation()
        if may:
            extra = self._fill(may, patience, extra)
        return (self._now, 0, 0, 0.0) if closed else (self._now, min(self._free, extra), self._free, patience)

    def _start(self, job: int) -> None:
        self.starts[job] = self._now
        self._free -= self._queue.processors[job]
        self._waiting ^= 1 << (job - self._queue.running)
        self._begun += 1
        insort(self._expected, (self._now + self._queue.holds[job], job))
        heapq.heappush(self._ends, (self._now + self._left[job], job))

    def _reservation(self) -> tuple[float, int]:
        """How long it takes until the first in line starts at the latest (s), and the processors that it leaves."""
        processors = self._queue.processors
        first, free, at = processors[self._first], self._free, math.inf
        for end, job in self._expected:
            if end > at:
                break
            free += processors[job]
            if free >= first:
                at = max(end, self._now)
        return at - self._now, free - first

    def _fill(self, may: int, patience: float, extra: int) -> int:
        """Start those of some jobs, one after the other, that delay no reservation; return what they leave of it."""
        queue = self._queue
        short = queue.short(patience)
        may &= short | queue.narrow(extra)
        while may:
            place = (may & -may).bit_length() - 1
            job = queue.running + place
            self._start(job)
            if queue.holds[job] > patience:
                extra -= queue.processors[job]
            may &= self._waiting & queue.narrow(self._free) & (short | queue.narrow(extra))
        return extra


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

    >>> course = StandingQueue(4, [(4, 600.0)], [(8, 300.0)], depth=200).course([100.0, 50.0])
    >>> course.starts.tolist(), course.wait(2, 500.0), course.wait(2, 900.0)
    ([0.0, 100.0], 0.0, 150.0)
    """

    starts: Floats
    ends: Floats
    processors: Ints
    free: int
    openings: Floats

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
