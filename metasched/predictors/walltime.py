"""Time limits from a predictive distribution, each with the probability that it kills the job.

A scheduler kills a job at its time limit, and lets shorter jobs start sooner. What the run will take is uncertain for
two reasons: the model's error, which its prediction intervals tell of, and the loads that the job will meet, which
are unknown when the limit is set. The second is taken from the loads that past runs met: the distribution is the
mixture, over these, of the predictive distributions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from metasched.arrays import Floats
from metasched.predictors.abilities import check_depends, under, with_usual_threads
from metasched.predictors.contract import Predictor
from metasched.predictors.memory.window import measured, median_loads
from metasched.records import DEFAULT_SETTINGS, IDLE_BANDWIDTH, IDLE_CPU, InputError, Placement, Request, Run, Settings

#: Levels of the intervals whose ends trace the distribution.
LEVELS = (0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.998)
#: Ends of intervals closer than this are treated as a step.
LEAST_WIDTH = 1e-9
#: Default probabilities of being killed for which limits are suggested.
CHANCES = (0.1, 0.05, 0.02, 0.01)
#: Largest number of past runs whose loads are used.
MOST_LOADS = 500


@dataclass(frozen=True, slots=True)
class Limit:
    """A time limit (s) and the probability that it kills the job."""

    seconds: float
    chance: float

    @property
    def minutes(self) -> int:
        """The limit in whole minutes, as schedulers take it; never less than the limit."""
        return max(1, math.ceil(self.seconds / 60.0 - 1e-9))


@dataclass(frozen=True, slots=True)
class Question:
    """A job that time limits are suggested for.

    Parameters
    ----------
    application, problem_size, processors : name, N and P.
    chances : chances of being killed to allow; :data:`CHANCES` where neither they nor ``limits`` are given.
    limits : limits to judge (s).
    available_cpu, available_bandwidth : minima to expect (fraction, Mbit/s), those that past runs met where None.
    settings : layout and parameters of the run.
    usual_threads : whether each process has the threads that all runs on a platform had, in place of those of
        ``settings``.

    Raises
    ------
    InputError : when a size, a load or a limit cannot be.
    """

    application: str
    problem_size: float
    processors: int
    chances: Sequence[float] = ()
    limits: Sequence[float] = ()
    available_cpu: float | None = None
    available_bandwidth: float | None = None
    settings: Settings = DEFAULT_SETTINGS
    usual_threads: bool = False

    def __post_init__(self) -> None:
        cpu = IDLE_CPU if self.available_cpu is None else self.available_cpu
        bandwidth = IDLE_BANDWIDTH if self.available_bandwidth is None else self.available_bandwidth
        Request(self.problem_size, self.processors, cpu, bandwidth, self.settings)  # which refuses what cannot be
        _check_limits(self.limits)


def suggestions(
    question: Question, predictors: Mapping[str, Predictor], past: Callable[[str], Sequence[Run]]
) -> dict[str, Any]:
    """Time limits for a job on each platform: the document that answers.

    Parameters
    ----------
    question : about the job.
    predictors : the application's, by platform.
    past : gives the runs of the application on a platform whose loads may be met again. A platform without any is left
        out where the question does not say what loads to expect and others have runs.

    Raises
    ------
    InputError : when a chance is not between 0 and 1, neither runs nor the question tell of the loads, or a model does
        not depend on the settings.
    """
    size, processors = question.problem_size, question.processors
    met = {platform: past(platform) for platform in sorted(predictors)}
    stated = question.available_cpu is not None and question.available_bandwidth is not None
    found = []
    for platform, runs in met.items():
        if not (runs or stated) and any(met.values()):
            continue
        check_depends(predictors[platform], question.settings)
        settings = question.settings
        if question.usual_threads:
            settings = with_usual_threads(settings, predictors[platform])
        predictor = under(predictors[platform], settings)
        loads = loads_to_expect(runs, question.available_cpu, question.available_bandwidth)
        times = ExecutionTimes(predictor, size, processors, *loads)
        limits = [times.limit(each) for each in question.chances or (() if question.limits else CHANCES)]
        limits += [Limit(each, times.chance(each)) for each in question.limits]
        found.append(_suggested(platform, times.limit(0.5).seconds, limits))
    return {
        "application": question.application, "problem_size": size, "processors": processors, "clusters": found
    }  # fmt: skip


def of_placement(placement: Placement, chances: Sequence[float] = (), limits: Sequence[float] = ()) -> dict[str, Any]:
    """Time limits for a job that has a placement: by the placement's own interval, whatever was learned since.

    The interval of level c ends at the quantiles (1 - c)/2 and (1 + c)/2 of a log-normal distribution, about the
    expected time on each side; the slowdown by jobs already there stretches all of it.

    Parameters
    ----------
    placement : with the prediction that limits are derived from.
    chances : probabilities with which the job may be killed, a limit for each.
    limits : time limits (s), the chance of each.

    Raises
    ------
    InputError : when a chance is not between 0 and 1, or a limit no time.

    Examples
    --------
    >>> from metasched.records import Interval, Prediction, ResourceSet
    >>> sets = ResourceSet("c", ("n1",), 2, 1.0, 100.0)
    >>> placement = Placement(sets, Prediction(10.0, Interval(8.0, 14.0, 0.9), "m"))
    >>> round(of_placement(placement, chances=[0.05])["clusters"][0]["limits"][0]["seconds"], 6)
    14.0
    >>> round(of_placement(placement, limits=[14.0])["clusters"][0]["limits"][0]["chance"], 6)
    0.05
    """
    _check_limits(limits)
    interval, median = placement.prediction.interval, placement.slowdown * placement.prediction.execution_time
    reach = scipy.special.ndtri((1.0 + interval.level) / 2.0)
    slower = max(math.log(interval.high / placement.prediction.execution_time), LEAST_WIDTH) / reach
    faster = max(math.log(placement.prediction.execution_time / interval.low), LEAST_WIDTH) / reach
    found = []
    for chance in chances or (() if limits else CHANCES):
        _check_chance(chance)
        normal = scipy.special.ndtri(1.0 - chance)
        found.append(Limit(median * math.exp(normal * (slower if normal > 0 else faster)), chance))
    for limit in limits:
        away = math.log(limit / median)
        found.append(Limit(limit, float(scipy.special.ndtr(-away / (slower if away > 0 else faster)))))
    return {"clusters": [_suggested(placement.resource_set.cluster, median, found)]}


def _suggested(cluster: str, median: float, limits: Iterable[Limit]) -> dict[str, Any]:
    """The limits of a cluster in a document, the shortest first."""
    shown = [{"seconds": each.seconds, "minutes": each.minutes, "chance": each.chance}
             for each in sorted(limits, key=lambda each: each.seconds)]  # fmt: skip
    return {"cluster": cluster, "median": median, "limits": shown}


def _check_limits(limits: Sequence[float]) -> None:
    for limit in limits:
        if not 0 < limit < math.inf:
            raise InputError(f"the time limit is {limit:g} s, expected one above 0 and finite")


def _check_chance(chance: float) -> None:
    if not 0 < chance < 1:
        raise InputError(f"chance is {chance:g}, expected a number between 0 and 1")


def loads_to_expect(runs: Sequence[Run], cpu: float | None, bandwidth: float | None) -> tuple[Floats, Floats]:
    """The loads that the last runs met, but where something else is to be expected, arrays of shape (k,).

    Runs whose loads were not measured do not tell. If none tells both, medians replace what was not measured.

    Parameters
    ----------
    runs : those that the model has learned.
    cpu : least available CPU to expect, share of one processor; None for what the runs met.
    bandwidth : least available bandwidth to expect (Mbit/s); None for what the runs met.

    Raises
    ------
    InputError : when one of them is not said, and there are no runs.
    """
    if cpu is not None and bandwidth is not None:
        return np.array([cpu]), np.array([bandwidth])
    said = np.array([math.nan if each is None else each for each in (cpu, bandwidth)])
    return _known(np.where(np.isnan(said), _met(runs), said))


def _met(runs: Sequence[Run]) -> Floats:
    if not runs:
        raise InputError("there are no past runs with loads, expected at least one, or --cpu and --bandwidth")
    return _loads(runs[-MOST_LOADS:])


def _loads(runs: Sequence[Run]) -> Floats:
    """CPU and bandwidth of runs, shape (k, 2), NaN where they were not measured."""
    known = measured(runs)
    return np.stack([known.cpu, known.bw], axis=1)


def _known(loads: Floats) -> tuple[Floats, Floats]:
    """The columns of loads, of the rows without NaN; if there are none, with the medians in its place."""
    unknown = np.isnan(loads)
    whole = ~unknown.any(axis=1)
    found = loads[whole] if whole.any() else np.where(unknown, median_loads(*loads.T), loads)
    return found[:, 0], found[:, 1]


class ExecutionTimes:
    """The distribution of a run's execution time over the loads it may meet.

    Parameters
    ----------
    predictor : the application's on the cluster.
    problem_size, processors : N and P.
    cpu, bandwidth : the loads, arrays of shape (k,), each as likely as any other.

    Raises
    ------
    InputError : when the model is not defined there.

    Notes
    -----
    The ends of the interval of level c are taken for the quantiles (1 - c)/2 and (1 + c)/2. Between and beyond them the
    logarithm of the time is taken to be linear in the normal quantile, as it is where errors are log-normal.

    Examples
    --------
    >>> from metasched.predictors.robust.predictor import RobustPredictor
    >>> runs = [Run("cg", "c", n, p, 0.9, 90.0, 1e-3 * n**1.5 / p) for n in range(100, 900, 100) for p in (1, 2, 4)]
    >>> times = ExecutionTimes(RobustPredictor("cg", "c").fit(runs), 500, 2, *loads_to_expect(runs, None, None))
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
        self._normal = scipy.special.ndtri(np.concatenate([(1 - tails[::-1]) / 2, (1 + tails) / 2]))

    def chance(self, seconds: float) -> float:
        """The probability that a run takes longer than a number of seconds."""
        if seconds <= 0:
            return 1.0
        return float(np.mean(scipy.special.ndtr(-self._at(math.log(seconds)))))

    def limit(self, chance: float) -> Limit:
        """The shortest limit by which a run is killed with no more than this chance.

        Raises
        ------
        InputError : when the chance is not between 0 and 1.
        """
        _check_chance(chance)
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
