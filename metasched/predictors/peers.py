"""The peers that the evaluation stands beside: what a data scientist would reach for first, both from scikit-learn.

Both regress the logarithm of the time on the logarithms of N, P, available CPU and bandwidth, and are fitted again to
all runs after each one: ridge regression on quadratic features with its penalty chosen by cross-validation, and a
Gaussian process with a length scale for each input. They know nothing of Eq. (1).
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from metasched.predictors.calibration import Calibration, score
from metasched.predictors.contract import Floats, Predictions
from metasched.predictors.log_polynomial import LogPolynomial
from metasched.predictors.window import RunWindow
from metasched.records import Interval, Prediction, Request, Run

#: Runs between two optimisations of the hyperparameters of the Gaussian process.
REVISIT = 10
#: Spread that scores are counted in.
SPREAD = 0.1
#: Runs that a peer is fitted to at most.
CAPACITY = 10_000


class LogRegression(ABC):
    """A regression of log time that learns by fitting itself to all runs again.

    Parameters
    ----------
    application, cluster : what it models; those of the first run where empty.
    capacity : how many runs it keeps at most.
    """

    name = "log-regression"

    def __init__(self, application: str = "", cluster: str = "", *, capacity: int = CAPACITY) -> None:
        self.application, self.cluster = application, cluster
        self.window = RunWindow(capacity=capacity)
        self.calibration = Calibration()

    def fit(self, runs: Iterable[Run]) -> LogRegression:
        """Fit to runs and forget everything learned before."""
        self.window = RunWindow(runs, self.window.capacity)
        self.calibration = Calibration()
        self._refit()
        return self

    def learn(self, run: Run) -> None:
        """Take one more run into account."""
        predicted = self.predict_many(
            run.problem_size, run.processors, run.min_avg_avail_cpu, run.min_avg_avail_bw
        ).execution_time[0]
        self.calibration = self.calibration.learned(score(run.execution_time, float(predicted), SPREAD))
        self.window.add(run)
        self._refit()

    def settle(self) -> None:  # noqa: B027
        """Nothing runs beside."""

    def predict(self, request: Request, level: float = 0.9) -> Prediction:
        """Predict one execution time."""
        many = self.predict_many(
            request.problem_size, request.processors, request.available_cpu, request.available_bandwidth, level
        )
        interval = Interval(float(many.low[0]), float(many.high[0]), level)
        return Prediction(float(many.execution_time[0]), interval, self.name)

    def predict_many(
        self,
        problem_size: ArrayLike,
        processors: ArrayLike,
        available_cpu: ArrayLike,
        available_bandwidth: ArrayLike,
        level: float = 0.9,
    ) -> Predictions:
        """Predict many at once."""
        columns = np.broadcast_arrays(
            *(
                np.atleast_1d(np.asarray(column, dtype=np.float64))
                for column in (problem_size, processors, available_cpu, available_bandwidth)
            )
        )
        points = np.log(np.stack(columns, axis=1))
        time = np.exp(self._log_time(points)) if len(points) else np.empty(0)
        low, high = self.calibration.ends(time, SPREAD, level)
        return Predictions(time, low, high, level)

    def _refit(self) -> None:
        first = next(iter(self.window), None)
        if first is not None:
            self.application, self.cluster = self.application or first.application, self.cluster or first.cluster
        runs = self.window.observations()
        points = np.log(np.stack([runs.problem_size, runs.processors, runs.cpu, runs.bw], axis=1))
        self._fit_log_time(points, np.log(runs.time))

    @abstractmethod
    def _fit_log_time(self, points: Floats, log_time: Floats) -> None: ...

    @abstractmethod
    def _log_time(self, points: Floats) -> Floats: ...


class RidgeQuadratic(LogRegression):
    """Ridge regression on quadratic features of the logarithms.

    Examples
    --------
    >>> runs = [Run("cg", "c8", n, p, 0.9, 90.0, 1e-3 * n**2 / p) for n in (100, 200, 400) for p in (1, 2, 4)]
    >>> round(RidgeQuadratic().fit(runs).predict(Request(300, 2, 0.9, 90.0)).execution_time, 1)
    45.0
    """

    name = "ridge"

    def _fit_log_time(self, points: Floats, log_time: Floats) -> None:
        self._model = LogPolynomial(2, points, log_time)

    def _log_time(self, points: Floats) -> Floats:
        return self._model(points)


class GaussianProcess(LogRegression):
    """A Gaussian process with squared-exponential kernel on the logarithms.

    Examples
    --------
    >>> runs = [Run("cg", "c8", n, p, 0.9, 90.0, 1e-3 * n**2 / p) for n in range(100, 900, 100) for p in (1, 2, 4)]
    >>> 43 < GaussianProcess().fit(runs).predict(Request(300, 2, 0.9, 90.0)).execution_time < 47
    True
    """

    name = "gaussian_process"

    def __init__(self) -> None:
        super().__init__()
        self._kernel = ConstantKernel(1.0, (1e-3, 1e3)) * RBF(np.ones(4), (1e-2, 1e3)) + WhiteKernel(1e-2, (1e-6, 1.0))
        self._optimised_at = 0

    def _fit_log_time(self, points: Floats, log_time: Floats) -> None:
        optimise = len(points) >= self._optimised_at + REVISIT
        process = GaussianProcessRegressor(
            self._kernel, normalize_y=True, optimizer="fmin_l_bfgs_b" if optimise else None
        )
        self._model = make_pipeline(StandardScaler(), process)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self._model.fit(points, log_time)
        if optimise:
            self._kernel, self._optimised_at = process.kernel_, len(points)

    def _log_time(self, points: Floats) -> Floats:
        return np.asarray(self._model.predict(points))
