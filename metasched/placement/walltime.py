"""Time limits from a predictive distribution: how long a job may be given, and how likely it is then to be killed.

A scheduler kills a job at its time limit, and lets shorter jobs start sooner. What the run will take is uncertain for
two reasons: the model's error, which its prediction intervals tell of, and the loads that the job will meet, which
nobody knows when the limit is written. The second is taken from the loads that past runs met: the distribution is the
mixture, over these, of the predictive distributions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from metasched.predictors.contract import Predictor
from metasched.records import InputError, Run

Floats = NDArray[np.float64]

#: Levels of the intervals whose ends trace the distribution.
LEVELS = (0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.998)
#: Ends of intervals that lie nearer together are taken for a step.
LEAST_WIDTH = 1e-9
#: Chances of being killed that limits are suggested for where none is named.
CHANCES = (0.1, 0.05, 0.02, 0.01)
#: Past runs at most whose loads are met again.
MOST_LOADS = 500


@dataclass(frozen=True, slots=True)
class Limit:
    """A time limit (s) and the chance that the job is killed by it."""

    seconds: float
    chance: float

    @property
    def minutes(self) -> int:
        """The limit in whole minutes, as schedulers take it; never less than the limit."""
        return max(1, math.ceil(self.seconds / 60.0 - 1e-9))


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Time limits for a job on one cluster: what half the runs end within (s), and limits, the shortest first."""

    cluster: str
    median: float
    limits: tuple[Limit, ...]

    def as_dict(self) -> dict[str, Any]:
        """What it says, by name; times in seconds."""
        limits = [{"seconds": each.seconds, "minutes": each.minutes, "chance": each.chance} for each in self.limits]
        return {"cluster": self.cluster, "median": self.median, "limits": limits}


def suggested(
    cluster: str, times: ExecutionTimes, chances: Sequence[float], limits: Sequence[float] = ()
) -> Suggestion:
    """The limits for some chances of being killed, and the chances of some limits (s).

    Raises
    ------
    InputError
        When a chance is not between 0 and 1.
    """
    found = [times.limit(each) for each in chances] + [Limit(each, times.chance(each)) for each in limits]
    return Suggestion(cluster, times.limit(0.5).seconds, tuple(sorted(found, key=lambda each: each.seconds)))


def loads_to_expect(runs: Sequence[Run], cpu: float | None, bandwidth: float | None) -> tuple[Floats, Floats]:
    """The loads that past runs met, but where something else is to be expected.

    Raises
    ------
    InputError
        When one of them is not said, and there are no runs.
    """
    met = loads_met(runs) if cpu is None or bandwidth is None else (np.ones(1), np.ones(1))
    said = (cpu, bandwidth)
    first, second = (
        each if value is None else np.full(each.size, value) for value, each in zip(said, met, strict=True)
    )
    return first, second


def loads_met(runs: Sequence[Run]) -> tuple[Floats, Floats]:
    """Available CPU and bandwidth that the last of some runs met, arrays of shape (k,).

    Raises
    ------
    InputError
        When there are no runs.
    """
    if not runs:
        raise InputError("no past run tells of the loads to expect, expected runs or --cpu and --bandwidth")
    last = runs[-MOST_LOADS:]
    return np.array([run.min_avg_avail_cpu for run in last]), np.array([run.min_avg_avail_bw for run in last])


class ExecutionTimes:
    """The distribution of a run's execution time over the loads it may meet.

    Parameters
    ----------
    predictor : the application's on the cluster.
    problem_size, processors : N and P.
    cpu, bandwidth : the loads, arrays of shape (k,), each as likely as any other.

    Raises
    ------
    InputError
        When the model is not defined there.

    Notes
    -----
    The ends of the interval of level c are taken for the quantiles (1 - c)/2 and (1 + c)/2. Between and beyond them the
    logarithm of the time is taken to be linear in the normal quantile, as it is where errors are log-normal.

    Examples
    --------
    >>> from metasched.predictors.robust import RobustPredictor
    >>> runs = [Run("cg", "c", n, p, 0.9, 90.0, 1e-3 * n**1.5 / p) for n in range(100, 900, 100) for p in (1, 2, 4)]
    >>> times = ExecutionTimes(RobustPredictor("cg", "c").fit(runs), 500, 2, *loads_met(runs))
    >>> limit = times.limit(0.05)
    >>> 5.59 < limit.seconds < 8.0, times.chance(limit.seconds) <= 0.05
    (True, True)
    """

    def __init__(
        self, predictor: Predictor, problem_size: float, processors: int, cpu: Floats, bandwidth: Floats
    ) -> None:
        asked = [predictor.predict_many(problem_size, processors, cpu, bandwidth, level) for level in LEVELS]
        ends = [each.low for each in reversed(asked)] + [each.high for each in asked]
        with np.errstate(divide="ignore", invalid="ignore"):
            log_times = np.log(np.maximum.accumulate(np.array(ends), axis=0))  # (quantiles, loads)
        sound = np.all(np.isfinite(log_times), axis=0)
        if not sound.any():
            raise InputError(f"the model is not defined for N = {problem_size:g}, P = {processors}")
        self._log_times = log_times[:, sound]
        tails = np.array(LEVELS)
        self._normal = ndtri(np.concatenate([(1 - tails[::-1]) / 2, (1 + tails) / 2]))

    def chance(self, seconds: float) -> float:
        """The chance that a run takes longer."""
        if seconds <= 0:
            return 1.0
        return float(np.mean(ndtr(-self._at(math.log(seconds)))))

    def limit(self, chance: float) -> Limit:
        """The shortest limit by which a run is killed with no more than this chance.

        Raises
        ------
        InputError
            When the chance is not between 0 and 1.
        """
        if not 0 < chance < 1:
            raise InputError(f"chance is {chance:g}, expected a number between 0 and 1")
        low, high = float(self._log_times.min()) - 1.0, float(self._log_times.max()) + 1.0
        while self.chance(math.exp(high)) > chance and high < 50.0:
            high += 1.0
        while self.chance(math.exp(low)) <= chance and low > -50.0:
            low -= 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if self.chance(math.exp(middle)) <= chance else (middle, high)
        return Limit(math.exp(high), chance)

    def _at(self, log_time: float) -> Floats:
        """The normal quantile that a log time stands at for each of the loads, shape (k,)."""
        known, normal = self._log_times, self._normal
        column = np.arange(known.shape[1])
        upper = np.clip((known <= log_time).sum(axis=0), 1, len(normal) - 1)
        lower = upper - 1
        # Beyond the last end the slope is that from the middle to it: one between two ends so far out is all chance.
        beyond = log_time > known[-1]
        lower, upper = np.where(beyond, len(LEVELS), lower), np.where(beyond, len(normal) - 1, upper)
        width = np.maximum(known[upper, column] - known[lower, column], LEAST_WIDTH)
        share = (log_time - known[lower, column]) / width
        return np.asarray(normal[lower] + share * (normal[upper] - normal[lower]))
