"""Probabilities that a job fails early or reaches its time limit, from the frequencies among similar jobs.

Frequencies are kept by user, name and limit, by user and name, by user, and of all. Each is smoothed by the next
wider one, which counts as some jobs more: a key that few jobs have says what the wider one says (Jelinek & Mercer,
"Interpolated estimation of Markov source parameters from sparse data", 1980).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from metasched.arrays import Flags
from metasched.history.job_log import AT_LIMIT, CANCELLED, COMPLETED, TIMEOUT
from metasched.history.submission import Submission

#: A job that ends otherwise than well within so long (s), or this share of its limit where that is less, failed early.
EARLY, EARLY_SHARE = 300.0, 0.1
#: As how many jobs the next wider key counts, and what share of its count each older job keeps when another is added.
PRIOR, MEMORY = 8.0, 0.99
#: Keys that are remembered; beyond, the one that was made first is forgotten.
MOST_KEYS = 400_000


@dataclass(frozen=True, slots=True)
class Chances:
    """The probabilities that a job fails early and that it reaches its limit, and the number of similar jobs.

    Parameters
    ----------
    early_failure, time_limit : both probabilities.
    jobs : how many jobs like it, of which older ones count less.
    """

    early_failure: float
    time_limit: float
    jobs: float


def outcome(limit: float, run_time: float, state: str) -> tuple[bool, bool]:
    """Whether a job failed early, and whether it ran into its limit.

    Parameters
    ----------
    limit : the time that the job was given (s).
    run_time : how long it ran (s).
    state : how it ended, as Slurm spells it; empty where that is not known.

    Examples
    --------
    >>> outcome(3600.0, 20.0, "FAILED"), outcome(3600.0, 3601.0, ""), outcome(3600.0, 20.0, "")
    ((True, False), (False, True), (False, False))
    """
    failed, reached = how_ended(limit, run_time, state)
    return bool(failed) and run_time <= min(EARLY, EARLY_SHARE * limit), bool(reached)


def how_ended(limit: ArrayLike, run_time: ArrayLike, state: ArrayLike) -> tuple[Flags, Flags]:
    """Which jobs failed, and which reached their limits.

    Parameters
    ----------
    limit, run_time : of each job (s), arrays of shape (jobs,); a limit is NaN where it is not known.
    state : how each ended, as :func:`outcome` takes it, array of shape (jobs,).

    Returns
    -------
    Two arrays of shape (jobs,).

    Examples
    --------
    >>> how_ended([60.0, np.nan], [60.0, 9.0], ["", "FAILED"])
    (array([False,  True]), array([ True, False]))
    """
    states, at_limit = np.asarray(state, dtype=np.str_), np.asarray(run_time) >= AT_LIMIT * np.asarray(limit)
    unknown, timed_out = states == "", states == TIMEOUT
    well = unknown | timed_out | (states == COMPLETED) | (states == CANCELLED)
    return ~well, timed_out | (unknown & at_limit)


class Outcomes:
    """Outcome probabilities, learned from ended jobs.

    >>> outcomes, job = Outcomes(), Submission("ada", 4, 3600.0, "solve")
    >>> for _ in range(30):
    ...     outcomes.learn(job, 20.0, "FAILED")
    >>> round(outcomes.chances(job).early_failure, 1), outcomes.chances(job).time_limit < 0.1
    (1.0, True)
    """

    def __init__(self) -> None:
        self._counts: dict[Hashable, list[float]] = {}

    def learn(self, job: Submission, run_time: float, state: str) -> None:
        """Count how a job, as submitted, ended after its run time (s): early, at its limit, or otherwise."""
        found = outcome(job.limit, run_time, state)
        for key in _keys(job):
            counts = self._counts.setdefault(key, [0.0, 0.0, 0.0])
            memory = MEMORY if key else 1.0
            counts[:] = (memory * count + here for count, here in zip(counts, (1.0, *found), strict=True))
        while len(self._counts) > MOST_KEYS:
            # The first is that of all jobs.
            del self._counts[next(key for key in self._counts if key)]

    def correct(self, job: Submission, run_time: float, before: str, state: str) -> None:
        """Count a job that was learned otherwise than it was; later jobs have made it count less since, if at all.

        Parameters
        ----------
        job : as it was submitted.
        run_time : how long it ran (s).
        before, state : how it was said to have ended, and how it ended.
        """
        change = np.subtract(outcome(job.limit, run_time, state), outcome(job.limit, run_time, before), dtype=float)
        for counts in filter(None, map(self._counts.get, _keys(job))):
            counts[1:] = np.clip(counts[1:] + change, 0.0, counts[0]).tolist()

    def chances(self, job: Submission) -> Chances:
        """The outcome probabilities of a submitted job."""
        early, limit, jobs = 0.05, 0.05, 0.0
        for key in _keys(job):
            seen, failed, reached = self._counts.get(key, (0.0, 0.0, 0.0))
            early = (failed + PRIOR * early) / (seen + PRIOR)
            limit = (reached + PRIOR * limit) / (seen + PRIOR)
            jobs = seen or jobs
        return Chances(early, limit, jobs)

    def forget(self, user: Hashable) -> None:
        """Forget all jobs of a user; they only remain in the counts over all users."""
        for key in [key for key in self._counts if isinstance(key, tuple) and key and key[0] == user]:
            del self._counts[key]


def _keys(job: Submission) -> tuple[tuple[Hashable, ...], ...]:
    """The keys of a job, from the most general to the most specific."""
    return (), (job.user,), (job.user, job.name), (job.user, job.name, job.limit)
