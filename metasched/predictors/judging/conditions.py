"""The loads of an evaluated prediction: those that a run really had, or a forecast made before it started."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from metasched.arrays import Floats
from metasched.predictors.contract import Predictor
from metasched.predictors.load_doubt import Expected, LoadDoubt, with_usual_loads
from metasched.records import InputError, Request, Run
from monitors.forecasters.fixed_point import solve_horizon
from monitors.forecasters.sets import LEVEL, forecast_sets

#: Makes the request for a run about to be predicted, for intervals of a level.
Conditions = Callable[[Run, Predictor, float], Expected]


def observed(run: Run, predictor: Predictor, level: float) -> Expected:
    """The two minima as they were measured during the run: the model alone is to blame.

    One that was not measured is the one with which the predictor would learn the run: the usual one, which is then
    uncertain, or that of idle nodes.

    >>> from metasched.predictors.judging.peers import RidgeQuadratic
    >>> observed(Run("cg", "c8", 100, 2, 0.5, 80.0, 3.0), RidgeQuadratic(), 0.9).request.available_cpu
    0.5
    """
    usual = None if run.measured else with_usual_loads(predictor, run.min_avg_avail_cpu, run.min_avg_avail_bw, level)
    if usual is None:
        return Expected(run.request)
    cpu, bandwidth, doubt = usual
    return Expected(Request(run.problem_size, run.processors, cpu, bandwidth, run.settings), doubt)


@dataclass(frozen=True)
class Forecast:
    """The two minima as forecast at the start of the run, for its predicted duration.

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
        """Solve forecast and prediction together for one run; only loads from before it started are used."""
        if run.start_time is None or not run.nodes:
            raise InputError("a run has no start_time or no nodes, expected both to forecast its loads")
        now = run.start_time
        where = f"forecast for the run at {now:g} s"
        before = slice(0, int(np.searchsorted(self.time, now, side="right")))
        cpu, bandwidth = self.available_cpu[before], self.available_bandwidth[before]
        known = np.flatnonzero(np.isfinite(cpu).any(axis=0) & np.isfinite(bandwidth).any(axis=0)).tolist()
        place = {self.nodes[index]: number for number, index in enumerate(known)}
        unknown = [node for node in run.nodes if node not in place]
        if unknown:
            raise InputError(
                f"node {unknown[0]} has no loads by then, expected loads of every node of the run", where=where
            )
        chosen = [place[node] for node in dict.fromkeys(run.nodes)]

        def forecast(horizon: float) -> Expected:
            found = forecast_sets(self.time[before], cpu[:, known], bandwidth[:, known], now, horizon, chosen=chosen)
            least_cpu = min(float(found.cpu[chosen].min() * found.cpu_sets.part[0]), 1.0)
            least_bandwidth = float(found.bandwidth[chosen].min() * found.bandwidth_sets.part[0])
            ends, middles = (
                [getattr(each, part)[..., 0] for each in (found.cpu_sets, found.bandwidth_sets)]
                for part in ("ends", "middle")
            )
            doubt = LoadDoubt(*ends, *middles).carried(LEVEL, level)
            return Expected(Request(run.problem_size, run.processors, least_cpu, least_bandwidth, run.settings), doubt)

        try:
            return solve_horizon(lambda found: predictor.predict(found.request).execution_time, forecast).forecast
        except ValueError as error:
            raise InputError(str(error), where=where) from None
