"""Replays of a job log: when each job would have started under a policy, with the run times of some predictor.

The policies differ in what predictions may decide. ``easy``: jobs are considered for backfill in order of submission,
and expected to hold their processors for the predicted run time. ``sjbf``: in addition, the shortest are considered
first; with predictions this is EASY++ (Tsafrir, Etsion & Feitelson 2007). ``order-only``: predictions decide which job
is considered first, but jobs are expected to hold their processors until their time limit, so that a wrong prediction
cannot delay a reservation.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

import numpy as np

from metasched.arrays import Floats
from metasched.history.backfilling import Backfilling
from metasched.history.job_log import JobLog
from metasched.records import InputError

#: Bound of the slowdown (s): shorter jobs count as so long.
SLOWDOWN_BOUND = 10.0


class Policy(StrEnum):
    """How the scheduler orders and backfills jobs, see the module."""

    easy = "easy"
    sjbf = "sjbf"
    order_only = "order-only"


class Expected(NamedTuple):
    """The predictions for a submitted job.

    Parameters
    ----------
    run_time : predicted run time (s).
    order : sort key of the backfill order (s).
    low, high : ends of the 90 % interval of the run time (s), NaN if there is none.
    """

    run_time: float
    order: float
    low: float = math.nan
    high: float = math.nan


class RunTimes(Protocol):
    """Predicts run times, and receives the outcome of each job in chronological order.

    A job is its row in the log, ``now`` the time of the replay (s).
    """

    #: Whether it learns from its errors; if not, waits forecast with it are not corrected for past errors either.
    learns: bool

    def submitted(self, job: int, now: float) -> Expected:
        """The predictions for a job that has just been submitted."""

    def started(self, job: int, now: float) -> None:
        """Note that a job has started."""

    def ended(self, job: int, now: float) -> None:
        """Learn from a job that has ended."""

    def reordered(self, ended: int, now: float) -> Iterable[tuple[int, float]]:
        """Pending jobs with their new sort keys (s), after a job has ended."""

    def left(self, job: int, ran: float) -> Sequence[float]:
        """Possible remaining run times (s) after ``ran`` seconds, 0 for a pending job; as many for every job."""


class Watcher(Protocol):
    """Called for the jobs submitted during a replay."""

    def __call__(self, cluster: Backfilling, job: int, now: float) -> None:
        """A job has been submitted and has not started yet."""


@dataclass(frozen=True, slots=True)
class Replay:
    """The outcome of a replay; arrays of shape (jobs,).

    Parameters
    ----------
    log : the jobs.
    start : when each started (s).
    """

    log: JobLog
    start: Floats

    @property
    def wait(self) -> Floats:
        """The wait of each job from submission to start (s), shape (jobs,)."""
        return self.start - self.log.submit_time

    @property
    def bounded_slowdown(self) -> Floats:
        """Wait plus run time over run time, with run times below ten seconds counted as ten; at least 1."""
        run = self.log.run_time
        return np.maximum(1.0, (self.wait + run) / np.maximum(run, SLOWDOWN_BOUND))


def replay(log: JobLog, processors: int, policy: Policy, run_times: RunTimes, watch: Watcher | None = None) -> Replay:
    """Replay a log: jobs are submitted as recorded, and started by a policy.

    Parameters
    ----------
    log, processors : the jobs, and the processors of the cluster.
    policy : see the module.
    run_times : predicts run times.
    watch : called with each job that is submitted, before anything starts.

    Raises
    ------
    InputError : when a job asks for more processors than there are.

    Notes
    -----
    All events of one moment are processed before jobs are started: first jobs that end, then submissions.

    Examples
    --------
    >>> from metasched.history.run_times.simple import Requests
    >>> log = JobLog(np.array([0.0, 1.0, 2.0]), np.array([50.0, 20.0, 9.0]), np.array([3, 4, 1]),
    ...              np.array([60.0, 60.0, 30.0]))
    >>> replay(log, 4, Policy.easy, Requests(log)).wait.tolist()
    [0.0, 49.0, 0.0]
    """
    if len(log) and int(log.processors.max()) > processors:
        raise InputError(f"a job asks for {int(log.processors.max())} processors, expected no more than {processors}")
    submit, run, width = log.submit_time.tolist(), log.run_time.tolist(), log.processors.tolist()
    limits = dict(enumerate(log.limits().tolist()))
    cluster = Backfilling(processors)
    start, coming, jobs = [0.0] * len(log), 0, len(log)
    ends = list[tuple[float, int]]()
    in_order, by_limit = policy is not Policy.easy, policy is Policy.order_only
    while coming < jobs or ends:
        now = min(submit[coming] if coming < jobs else np.inf, ends[0][0] if ends else np.inf)
        if not by_limit and (later := cluster.next_correction()) < now and cluster.any_waiting:
            now = later
        while ends and ends[0][0] <= now:
            _, job = heapq.heappop(ends)
            cluster.end(job)
            run_times.ended(job, now)
            if in_order:
                for other, order in run_times.reordered(job, now):
                    cluster.reorder(other, order)
        cluster.correct(now, limits)
        while coming < jobs and submit[coming] <= now:
            expected = run_times.submitted(coming, now)
            cluster.submit(
                coming, width[coming], limits[coming] if by_limit else expected.run_time,
                expected.order if in_order else coming, coming,
            )  # fmt: skip
            if watch is not None:
                watch(cluster, coming, now)
            coming += 1
        for job in cluster.schedule(now):
            start[job] = now
            heapq.heappush(ends, (now + run[job], job))
            run_times.started(job, now)
    return Replay(log, np.array(start))


def perturbed(log: JobLog, generator: np.random.Generator) -> JobLog:
    """A perturbed log: every submission a little earlier or later.

    A replay amplifies chance, so a verdict from a single replay depends on chance too (Tsafrir, Ouaknine & Feitelson,
    "Reducing performance evaluation sensitivity and variability by input shaking", MASCOTS 2007).

    Parameters
    ----------
    log : the jobs.
    generator : by how much: a tenth of the mean time between two jobs, or a minute, at most, whichever is more.

    Examples
    --------
    >>> log = JobLog(np.array([0.0, 900.0]), np.array([5.0, 7.0]), np.array([1, 2]), np.array([60.0, 60.0]))
    >>> perturbed(log, np.random.default_rng(1)).run_time.tolist()
    [5.0, 7.0]
    """
    if not len(log):
        return log
    gap = float(log.submit_time[-1] - log.submit_time[0]) / len(log)
    reach = max(0.1 * gap, 60.0)
    times = log.submit_time + np.round(generator.uniform(-reach, reach, len(log)))
    order = np.argsort(times, kind="stable")
    return log.picked(order, times[order])
