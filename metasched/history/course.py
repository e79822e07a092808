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
from itertools import accumulate, chain, pairwise, repeat
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
        self.short = _AtMost(self.holds[len(running) :])
        self.narrow = _AtMost(self.processors[len(running) :]).by_number()

    def course(self, left: Sequence[float]) -> Course:
        """The course with given run times: how long each job still runs, or will run once started (s), of all jobs."""
        begin, openings = _led(self, left)
        starts, processors = np.array(begin), np.array(self.processors, dtype=np.int64)
        return Course(starts, starts + np.array(left), processors, self.free, np.array(openings).T)


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

    def by_number(self) -> list[int]:
        """The sets for all whole numbers from 0 to the largest, where what is compared is whole."""
        steps = pairwise([0, *map(int, self._values)])
        return [*chain.from_iterable(map(repeat, self._jobs, (end - begin for begin, end in steps))), self._jobs[-1]]


def _led(queue: StandingQueue, left: Sequence[float]) -> tuple[list[float], list[tuple[float, int, int, float]]]:
    """Lead a queue on from 0 s until all its jobs have ended; one function, since each step is taken so often.

    Parameters
    ----------
    queue : as it is at 0 s.
    left : how long each job still runs, or will run once started (s).

    Returns
    -------
    When each job starts (s), 0 where it runs already, and the times at which one more job might, see :class:`Course`.
    """
    processors, holds, narrow, running, total = queue.processors, queue.holds, queue.narrow, queue.running, len(left)
    now, free, first, begun = 0.0, queue.free, running, 0
    starts, waits = [0.0] * total, bytearray([1]) * total
    ends = [(left[job], job) for job in range(running)]
    expected = sorted((holds[job], job) for job in range(running))
    heapq.heapify(ends)
    # Those that wait and were considered for backfill; behind them nobody ever was, so that all others wait.
    line = known = 0
    widest = len(narrow) - 1
    openings = []

    def start(job: int) -> None:
        starts[job], waits[job] = now, 0
        insort(expected, (now + holds[job], job))
        heapq.heappush(ends, (now + left[job], job))

    while True:
        while first < total and (not waits[first] or processors[first] <= free):
            if waits[first]:
                free -= processors[first]
                begun += 1
                start(first)
            first += 1
        if first == total:
            openings.append((now, free, free, math.inf))
        else:
            known, before = min(queue.depth + begun, total - running), max(known, first - running)
            line = line & -1 << first - running | (1 << known) - (1 << before)
            may, to_all = line & narrow[min(free, widest)], queue.depth + begun > total - running
            if may or to_all:
                patience, extra = _reservation(expected, processors, processors[first] - free, now)
            if may:
                short = queue.short(patience)
                may &= short | narrow[min(extra, widest)]
                while may:
                    bit = may & -may
                    job = running + bit.bit_length() - 1
                    free -= processors[job]
                    extra -= processors[job] if holds[job] > patience else 0
                    begun += 1
                    start(job)
                    line ^= bit
                    may = (may ^ bit) & narrow[min(free, widest)] & (short | narrow[min(extra, widest)])
            if to_all:
                openings.append((now, min(free, extra), free, patience))
        if not ends:
            return starts, openings
        now = ends[0][0]
        while ends and ends[0][0] == now:
            _, job = heapq.heappop(ends)
            free += processors[job]
            del expected[bisect_left(expected, (starts[job] + holds[job], job))]


def _reservation(
    expected: Sequence[tuple[float, int]], processors: Sequence[int], lacking: int, now: float
) -> tuple[float, int]:
    """How long it takes at the latest until so many more processors are free (s), and how many more are by then."""
    at = math.inf
    for end, job in expected:
        if end > at:
            break
        lacking -= processors[job]
        if lacking <= 0:
            at = max(end, now)
    return at - now, -lacking


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
