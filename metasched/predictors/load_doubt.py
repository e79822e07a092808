"""Prediction intervals that include the uncertainty of the loads to come as well as the model's own.

On the logarithm of the time the two are taken to be independent, so on each side the half-widths add in quadrature:
that of the model's own interval, and those of the times predicted at the ends of the forecast CPU and bandwidth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import ArrayLike

from metasched.arrays import Floats
from metasched.predictors.abilities import UsualLoad, expect_few, under, usual_loads
from metasched.predictors.contract import Predictions, Predictor
from metasched.predictors.memory.window import measured, median_loads
from metasched.records import Interval, Prediction, Request


@dataclass(frozen=True)
class LoadDoubt:
    """Intervals of the two minima of a run, as factors of their forecasts, at the level of a prediction.

    Parameters
    ----------
    cpu, bandwidth : low and high ends, arrays of shape (2, k) or (2,): 1 is the forecast.
    cpu_middle, bandwidth_middle : medians of the factors, arrays of shape (k,); 1 where None.

    Examples
    --------
    >>> cpu, bandwidth = LoadDoubt(np.array([0.5, 1.5]), np.array([0.9, 1.1])).ends(0.8, 100.0)
    >>> cpu.round(1).tolist(), bandwidth.round(1).tolist()
    ([1.2, 0.8, 0.4, 0.8], [100.0, 110.0, 100.0, 90.0])
    """

    cpu: Floats
    bandwidth: Floats
    cpu_middle: Floats | None = None
    bandwidth_middle: Floats | None = None

    def carried(self, known: float, level: float) -> LoadDoubt:
        """The ends at another level than the known one.

        On each side of the median the logarithms are taken to be normal.
        """
        power = scipy.special.ndtri((1 + level) / 2) / scipy.special.ndtri((1 + known) / 2)
        cpu, bandwidth = (
            ends**power if middle is None else middle * (ends / middle) ** power
            for ends, middle in ((self.cpu, self.cpu_middle), (self.bandwidth, self.bandwidth_middle))
        )
        return replace(self, cpu=cpu, bandwidth=bandwidth)

    def middle(self, cpu: Floats, bandwidth: Floats) -> tuple[Floats, Floats]:
        """Medians of the minima from their forecasts: arrays of shape (k,).

        Parameters
        ----------
        cpu, bandwidth : forecast minima, share of a processor and Mbit/s.

        Examples
        --------
        >>> doubt = LoadDoubt(np.array([0.5, 1.5]), np.array([0.9, 1.1]), cpu_middle=np.array(1.05))
        >>> [float(each) for each in doubt.middle(np.array(0.8), np.array(100.0))]
        [0.8400000000000001, 100.0]
        """
        middles = ((cpu, self.cpu_middle), (bandwidth, self.bandwidth_middle))
        above, below = (each if part is None else each * part for each, part in middles)
        return above, below

    def ends(self, cpu: ArrayLike, bandwidth: ArrayLike) -> tuple[Floats, Floats]:
        """The four points to predict at, shape (4,) or (4, k): more CPU, more bandwidth, less CPU, less bandwidth.

        Parameters
        ----------
        cpu, bandwidth : expected minima, share of a processor and Mbit/s: numbers, or arrays of shape (k,).
        """
        of_cpu, of_bandwidth = self._factors
        multiplied = np.multiply.outer if of_cpu.ndim == 1 else np.multiply
        return multiplied(of_cpu, np.asarray(cpu)), multiplied(of_bandwidth, np.asarray(bandwidth))

    @cached_property
    def _factors(self) -> tuple[Floats, Floats]:
        """Those of CPU and of bandwidth at the four points."""
        one = np.ones_like(self.cpu[0])
        (less_cpu, more_cpu), (less_link, more_link) = self.cpu, self.bandwidth
        return np.stack([more_cpu, one, less_cpu, one]), np.stack([one, more_link, one, less_link])

    @cached_property
    def factors_of_one(self) -> list[tuple[float, float]]:
        """Those of one set, (2,), without arrays: of CPU and of bandwidth at each point of :meth:`ends`."""
        of_cpu, of_bandwidth = self._factors
        return list(zip(of_cpu.tolist(), of_bandwidth.tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class Expected:
    """A request, and the uncertainty of its two minima; None if they are known."""

    request: Request
    doubt: LoadDoubt | None = None


def with_usual_loads(
    predictor: Predictor, cpu: float, bandwidth: float, level: float
) -> tuple[float, float, LoadDoubt] | None:
    """Loads with the usual ones where they are not known, and the doubt about these.

    Parameters
    ----------
    predictor : whose usual loads they are; the result is None if it has none.
    cpu, bandwidth : share of a processor, and Mbit/s, NaN where not known.
    level : of the intervals.

    Examples
    --------
    >>> from metasched.predictors.robust.predictor import RobustPredictor
    >>> from metasched.records import Run
    >>> runs = [Run("cg", "c", 100 * k, 2, 0.2 + 0.1 * k, 90.0, 1.0 * k) for k in range(1, 6)]
    >>> cpu, bandwidth, doubt = with_usual_loads(RobustPredictor("cg", "c").fit(runs), math.nan, 60.0, 0.9)
    >>> round(cpu, 2), bandwidth, doubt.cpu.round(2).tolist(), doubt.bandwidth.tolist()
    (0.5, 60.0, [0.58, 1.73], [1.0, 1.0])
    """
    usual = usual_loads(predictor)
    if usual is None:
        return None
    cpu, of_cpu = _known_or_usual(cpu, usual[0], level, most=1.0)
    bandwidth, of_bandwidth = _known_or_usual(bandwidth, usual[1], level)
    return cpu, bandwidth, LoadDoubt(of_cpu, of_bandwidth)


def loads_to_expect(
    predictor: Predictor, cpu: float, bandwidth: float, level: float
) -> tuple[float, float, LoadDoubt | None]:
    """The loads to predict with, and the doubt about them for intervals.

    Those that are not known are the predictor's usual ones. There is no doubt if both are known, nor by predictors that
    do not know how much loads vary: these take the medians of the runs that they remember.

    Parameters
    ----------
    predictor : of any method.
    cpu, bandwidth : share of a processor, and Mbit/s, NaN where not known.
    level : of the intervals.

    Examples
    --------
    >>> from metasched.predictors.robust.predictor import RobustPredictor
    >>> loads_to_expect(RobustPredictor("cg", "c"), 0.5, 60.0, 0.9)
    (0.5, 60.0, None)
    """
    if not math.isnan(cpu + bandwidth):
        return cpu, bandwidth, None
    if (usual := with_usual_loads(predictor, cpu, bandwidth, level)) is not None:
        return usual
    known = measured(getattr(predictor, "window", ()))
    medians = median_loads(known.cpu, known.bw)
    return medians[0] if math.isnan(cpu) else cpu, medians[1] if math.isnan(bandwidth) else bandwidth, None


def _known_or_usual(load: float, usual: UsualLoad, level: float, most: float = math.inf) -> tuple[float, Floats]:
    """A load, or the usual one if it is NaN, and its interval of a level, up to the most, as factors of it: (2,)."""
    if not math.isnan(load):
        return load, np.ones(2)
    reach = usual.spread * float(scipy.special.ndtri((1.0 + level) / 2.0))
    return usual.median, np.minimum(np.exp(np.array([-reach, reach])), most / usual.median)


def widened(found: Predictions, at_ends: Floats) -> Predictions:
    """Predictions whose intervals include the uncertainty of the loads.

    Parameters
    ----------
    found : k predictions with the expected loads, and the model's own intervals.
    at_ends : times (s) predicted at :meth:`LoadDoubt.ends`, shape (4, k); the expected time where not finite.

    Examples
    --------
    >>> alone = Predictions(np.array([10.0]), np.array([10.0]), np.array([12.0]), 0.9)
    >>> found = widened(alone, np.array([[8.0], [10.0], [15.0], [10.0]]))
    >>> found.low.round(2).tolist(), found.high.round(2).tolist()
    ([8.0], [15.6])
    """
    time = found.execution_time
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        away = np.log(np.where(np.isfinite(at_ends) & (at_ends > 0), at_ends, time) / time)
        faster = np.hypot(np.log(found.low / time), np.linalg.norm(np.minimum(away[:2], 0.0), axis=0))
        slower = np.hypot(np.log(found.high / time), np.linalg.norm(np.maximum(away[2:], 0.0), axis=0))
        low, high = time * np.exp(-faster), time * np.exp(slower)
    sound = np.isfinite(low) & np.isfinite(high)
    return replace(found, low=np.where(sound, low, found.low), high=np.where(sound, high, found.high))


def widen_one(found: Prediction, at_ends: Sequence[float]) -> Prediction:
    """The same for one prediction.

    Parameters
    ----------
    found : the prediction with the loads that are expected.
    at_ends : times (s) with more CPU, more bandwidth, less CPU and less bandwidth, see :meth:`LoadDoubt.ends`.
    """
    time, interval = found.execution_time, found.interval
    try:
        away = [math.log(each / time) if 0.0 < each < math.inf else 0.0 for each in map(float, at_ends)]
        faster = math.hypot(math.log(interval.low / time), *(min(each, 0.0) for each in away[:2]))
        slower = math.hypot(math.log(interval.high / time), *(max(each, 0.0) for each in away[2:]))
        low, high = time * math.exp(-faster), time * math.exp(slower)
    except (ArithmeticError, ValueError):  # of 0 or infinity, which only arrays pass through
        low = high = math.inf
    if not (math.isfinite(low) and math.isfinite(high)):
        alone = Predictions(np.array([time]), np.array([interval.low]), np.array([interval.high]), interval.level)
        many = widened(alone, np.array(at_ends)[:, None])
        low, high = many.low.item(), many.high.item()
    return replace(found, interval=Interval(low, high, interval.level))


def predict_one(
    predictor: Predictor,
    problem_size: float,
    processors: int,
    cpu: float,
    bandwidth: float,
    level: float,
    doubt: LoadDoubt | None,
) -> Prediction:
    """One prediction whose interval includes the uncertainty of the loads.

    A processor faster than the reference node's offers more than 1; a request of one prediction stops there.

    Parameters
    ----------
    predictor : that knows nothing of the doubt.
    problem_size, processors : N and P.
    cpu, bandwidth : the two minima to expect: share of a processor, and Mbit/s.
    level : probability that the interval holds the outcome.
    doubt : about the two minima; None where they are known.
    """
    found = predictor.predict(Request(problem_size, processors, min(1.0, cpu), bandwidth), level)
    if cpu > 1.0:
        many = predictor.predict_many(problem_size, processors, cpu, bandwidth, level)
        interval = Interval(many.low.item(), many.high.item(), level)
        found = replace(found, execution_time=many.execution_time.item(), interval=interval)
    if doubt is None:
        return found
    ends = [(processors, cpu * of_cpu, bandwidth * of_bandwidth) for of_cpu, of_bandwidth in doubt.factors_of_one]
    return widen_one(found, expect_few(predictor, problem_size, ends))


def predict_expected(predictor: Predictor, expected: Expected, level: float) -> Prediction:
    """The same for a request with its settings."""
    asked = expected.request
    return predict_one(
        under(predictor, asked.settings),
        asked.problem_size,
        asked.processors,
        asked.available_cpu,
        asked.available_bandwidth,
        level,
        expected.doubt,
    )


def predict_many(
    predictor: Predictor,
    problem_size: ArrayLike,
    processors: ArrayLike,
    cpu: Floats,
    bandwidth: Floats,
    level: float,
    doubt: LoadDoubt | None,
) -> Predictions:
    """The same as :func:`predict_one` for arrays of CPU and bandwidth (Mbit/s) of shape (k,), N and P too or alone."""
    found = predictor.predict_many(problem_size, processors, cpu, bandwidth, level)
    if doubt is None:
        return found
    at_cpu, at_bandwidth = doubt.ends(cpu, bandwidth)
    count = np.broadcast_to(np.asarray(processors), at_cpu.shape)
    size = np.broadcast_to(problem_size, at_cpu.shape).ravel() if np.ndim(problem_size) else problem_size
    times = predictor.expect_many(size, count.ravel(), at_cpu.ravel(), at_bandwidth.ravel())
    return widened(found, times.reshape(at_cpu.shape))
