"""The SPMD models as a predictor: the seven parameters, and their growth with the problem size, learned from runs.

The runs' problem sizes scale the times by a power each of computation and of data, the available CPU stretches
computation, and the available bandwidth stretches communication.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from metasched.arrays import Floats
from metasched.plain_numbers import number_of
from metasched.predictors.analytic.spmd.application import Phase
from metasched.predictors.analytic.spmd.bursts import Scale
from metasched.predictors.analytic.spmd.fitting import PARAMETERS, bounded_least_squares
from metasched.predictors.analytic.spmd.surface import phase_time
from metasched.predictors.log_regression import LogRegression
from metasched.records import InputError, Run

#: The growth of computation and of data with N starts here, and stays below the last.
_GROWTH, _STEEPEST = 1.0, 5.0
#: Share of new runs that is worth fitting all parameters again; in between only the level follows.
_WORTH_FITTING = 0.2
#: Runs that are kept.
_CAPACITY = 512


@dataclass(frozen=True, slots=True)
class SpmdFit:
    """What was fitted.

    Parameters
    ----------
    values : array of shape (9,), the parameters in the order of ``PARAMETERS``, and the growth of computation and of
        data with N.
    origin : array of shape (4,), logarithms of N, P, CPU and bandwidth at which they hold.
    level : what recent runs add to the logarithm of the time.
    fitted_to : number of runs that had been learned when the values were fitted.
    """

    values: Floats
    origin: Floats
    level: float
    fitted_to: int


class SpmdPredictor(LogRegression):
    """A phase fitted to runs.

    Parameters
    ----------
    template : the phase whose other parameters (how I/O is done, c, r, ...) are known; where nothing is, one
        computation burst a cycle and processes that do not wait for each other, through one I/O node.
    disks : d of the platform.

    Examples
    --------
    >>> from metasched.records import Request, Run
    >>> conditions = [(n, p) for n in (500, 1000, 4000) for p in (1, 2, 4, 16)]
    >>> runs = [Run("a", "c", n, p, 1.0, 100.0, 1e-3 * n / p + 1e-4 * n) for n, p in conditions]
    >>> predictor = SpmdPredictor().fit(runs)
    >>> abs(predictor.predict(Request(2000, 8, 1.0, 100.0)).execution_time / 0.45 - 1) < 0.02
    True
    """

    name = "spmd"

    def __init__(
        self, template: Phase | None = None, *, disks: int = 1, application: str = "", cluster: str = ""
    ) -> None:
        super().__init__(application, cluster, capacity=_CAPACITY)
        self.template = template if template is not None else Phase(1.0, io="bus")
        self.disks = disks
        self.fitted: SpmdFit | None = None

    def fit(self, runs: Iterable[Run]) -> SpmdPredictor:
        """Fit to runs and forget everything learned before."""
        self.fitted = None
        super().fit(runs)
        return self

    def _fit_log_time(self, points: Floats, log_time: Floats) -> None:
        seen, fitted = self.window.seen, self.fitted
        if fitted is None or seen >= (1 + _WORTH_FITTING) * fitted.fitted_to:
            fitted = self._fit_parameters(points, log_time)
        # Recent runs say at what level the times are now, whatever the parameters were fitted to.
        left = log_time - np.log(self._time(fitted.values, points, fitted.origin))
        self.fitted = replace(fitted, level=float(np.median(left[-20:])))

    def _fit_parameters(self, points: Floats, log_time: Floats) -> SpmdFit:
        unknown = len(PARAMETERS) + 2
        if len(points) < unknown:
            raise InputError(f"{number_of(len(points), 'run')}, expected at least {unknown} for the SPMD model")
        if np.unique(points[:, 1]).size < 2:
            raise InputError("all runs have the same number of processors, expected at least two for the SPMD model")
        origin = np.append(points.mean(axis=0)[:1], [0.0, 0.0, points[:, 3].mean()])
        work = float(np.exp((log_time + points[:, 1]).min()))
        first = np.append(np.array([1.0, 0.02, 0.02, 0.2, 0.02, 0.1]) * work, [0.5, _GROWTH, _GROWTH])
        upper = np.append(np.full(6, np.inf), [1.0, _STEEPEST, _STEEPEST])

        def residual(values: Floats) -> Floats:
            return np.asarray(np.log(self._time(values, points, origin)) - log_time)

        if not np.isfinite(residual(first)).all():
            raise InputError(f"the {self.template.io} model is not defined for all numbers of processors of the runs")
        found = bounded_least_squares(residual, first, upper, max_nfev=60)
        return SpmdFit(np.asarray(found.x), origin, 0.0, self.window.seen)

    def _log_time(self, points: Floats) -> Floats:
        fitted = self.fitted
        if fitted is None:
            raise InputError("the model has learned nothing yet, expected it to be fitted to runs")
        time = self._time(fitted.values, points, fitted.origin)
        return np.where(np.isnan(time), np.inf, np.log(time) + fitted.level)

    def _facts(self) -> Mapping[str, Any]:
        if self.fitted is None:
            return {}
        names = (*PARAMETERS, "growth_of_computation", "growth_of_data")
        return dict(zip(names, self.fitted.values.tolist(), strict=True))

    def _time(self, values: Floats, points: Floats, origin: Floats) -> Floats:
        """Times for logarithms of N, P, CPU and bandwidth, shape (n, 4 + c); NaN where the model is not defined.

        Columns of settings, the last c, do not matter to it.
        """
        phase = replace(self.template, **dict(zip(PARAMETERS, values[:7].tolist(), strict=True)))
        size, processors, cpu, bandwidth = (points[:, :4] - origin).T
        data = values[8] * size
        scale = Scale(np.exp(values[7] * size - cpu), np.exp(data - bandwidth), np.exp(data))
        counts = np.exp(processors).round().astype(np.int64)
        return phase_time(phase, counts, np.full(counts.shape, self.disks), scale)
