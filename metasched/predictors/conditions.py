"""What loads a prediction is asked with: those that a run really met, or a forecast made before it started."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from metasched.predictors.contract import Floats, Predictor
from metasched.records import InputError, Interval, Prediction, Request, Run
from monitors.forecasters.fixed_point import solve_horizon
from monitors.forecasters.loads import LoadOutlook, forecast_loads


@dataclass(frozen=True, slots=True)
class Expected:
    """A request, and the ranges that its two minima are expected in.

    Parameters
    ----------
    request : with the expected minima.
    cpu, bandwidth : low and high ends of their intervals; None where the minima are known.
    """

    request: Request
    cpu: tuple[float, float] | None = None
    bandwidth: tuple[float, float] | None = None


#: Makes the request for a run about to be predicted, for intervals of a level.
Conditions = Callable[[Run, Predictor, float], Expected]


def predict(predictor: Predictor, expected: Expected, level: float) -> Prediction:
    """Predict with an interval that holds the doubt of the model and the doubt about the loads.

    On the logarithm of the time the two are independent, so on each side the reaches add up as squares: that of the
    model's own interval, and those of the times predicted at the ends of the expected CPU and bandwidth.
    """
    found = predictor.predict(expected.request, level)
    if expected.cpu is None or expected.bandwidth is None:
        return found
    request, time = expected.request, found.execution_time
    (cpu_low, cpu_high), (bw_low, bw_high) = expected.cpu, expected.bandwidth
    cpu = np.array([cpu_high, request.available_cpu, cpu_low, request.available_cpu])
    bandwidth = np.array([request.available_bandwidth, bw_high, request.available_bandwidth, bw_low])
    at_ends = predictor.predict_many(request.problem_size, request.processors, cpu, bandwidth, level).execution_time
    away = np.log(np.where(np.isfinite(at_ends), at_ends, time) / time)
    faster = math.hypot(math.log(found.interval.low / time), *np.minimum(away[:2], 0.0))
    slower = math.hypot(math.log(found.interval.high / time), *np.maximum(away[2:], 0.0))
    return replace(found, interval=Interval(time * math.exp(-faster), time * math.exp(slower), level))


def observed(run: Run, predictor: Predictor, level: float) -> Expected:
    """The two minima as they were measured during the run: what the model alone is to blame for.

    Examples
    --------
    >>> from metasched.predictors.peers import RidgeQuadratic
    >>> observed(Run("cg", "c8", 100, 2, 0.5, 80.0, 3.0), RidgeQuadratic(), 0.9).request.available_cpu
    0.5
    """
    return Expected(Request(run.problem_size, run.processors, run.min_avg_avail_cpu, run.min_avg_avail_bw))


@dataclass(frozen=True)
class Forecast:
    """The two minima as forecast when the run started, over the time that the predictor says it will take.

    Parameters
    ----------
    time : array of shape (t,), seconds, increasing.
    nodes : names of the n nodes.
    available_cpu, available_bandwidth : arrays of shape (t, n); NaN where there is no sample.
    """

    time: Floats
    nodes: Sequence[str]
    available_cpu: Floats
    available_bandwidth: Floats

    def __call__(self, run: Run, predictor: Predictor, level: float) -> Expected:
        """Solve forecast and prediction together for one run; only loads from before it started are looked at."""
        if run.start_time is None or not run.nodes:
            raise InputError("a run has no start_time or no nodes, expected both to forecast its loads")
        now = run.start_time

        def outlook(horizon: float) -> LoadOutlook:
            return forecast_loads(
                self.time,
                self.nodes,
                self.available_cpu,
                self.available_bandwidth,
                now=now,
                nodes=run.nodes,
                horizon=horizon,
                level=level,
            )

        def request(found: LoadOutlook) -> Request:
            cpu, bandwidth = found.available_cpu.expected, found.available_bandwidth.expected
            return Request(run.problem_size, run.processors, cpu, bandwidth)

        def predicted(found: LoadOutlook) -> float:
            return predictor.predict(request(found)).execution_time

        try:
            found = solve_horizon(predicted, outlook).forecast
            cpu, bandwidth = found.available_cpu, found.available_bandwidth
            return Expected(request(found), (cpu.low, cpu.high), (bandwidth.low, bandwidth.high))
        except ValueError as error:
            raise InputError(str(error), where=f"forecast for the run at {now:g} s") from None
