"""What loads a prediction is asked with: those that a run really met, or a forecast made before it started."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from metasched.predictors.contract import Floats, Predictor
from metasched.records import InputError, Request, Run
from monitors.forecasters.fixed_point import solve_horizon
from monitors.forecasters.loads import LoadOutlook, forecast_loads

#: Makes the request for a run about to be predicted.
Conditions = Callable[[Run, Predictor], Request]


def observed(run: Run, predictor: Predictor) -> Request:
    """The two minima as they were measured during the run: what the model alone is to blame for.

    Examples
    --------
    >>> from metasched.predictors.peers import RidgeQuadratic
    >>> observed(Run("cg", "c8", 100, 2, 0.5, 80.0, 3.0), RidgeQuadratic()).available_cpu
    0.5
    """
    return Request(run.problem_size, run.processors, run.min_avg_avail_cpu, run.min_avg_avail_bw)


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

    def __call__(self, run: Run, predictor: Predictor) -> Request:
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
            )

        def request(found: LoadOutlook) -> Request:
            cpu, bandwidth = found.available_cpu.expected, found.available_bandwidth.expected
            return Request(run.problem_size, run.processors, cpu, bandwidth)

        def predicted(found: LoadOutlook) -> float:
            return predictor.predict(request(found)).execution_time

        try:
            return request(solve_horizon(predicted, outlook).forecast)
        except ValueError as error:
            raise InputError(str(error), where=f"forecast for the run at {now:g} s") from None
