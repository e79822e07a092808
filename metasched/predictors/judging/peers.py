"""The peers of the evaluation: common methods that do not use Eq. (1).

All regress the logarithm of the time and are fitted again to all runs after each one: a power law of N, P, available
CPU and bandwidth; ridge regression on quadratic features of their logarithms with its penalty chosen by
cross-validation; a Gaussian process with a length scale for each of them (both from scikit-learn); and Amdahl's law
with one serial share for all sizes.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from metasched.arrays import Floats
from metasched.predictors.judging.log_polynomial import LogPolynomial
from metasched.predictors.log_regression import LogRegression

#: Runs between two optimisations of the hyperparameters of the Gaussian process; fewer while there are few runs.
REVISIT = 10
#: Serial shares that Amdahl's law is tried with.
SERIAL_SHARES = np.concatenate(([0.0], np.geomspace(1e-4, 1.0, 81)))


class PowerLaw(LogRegression):
    """A product of powers of N / P, P, available CPU and bandwidth.

    >>> from metasched.records import Request, Run
    >>> runs = [Run("cg", "c8", n, p, 0.9, 90.0, 1e-3 * n**2 / p) for n in (100, 200, 400) for p in (1, 2, 4)]
    >>> round(PowerLaw().fit(runs).predict(Request(300, 2, 0.9, 90.0)).execution_time, 1)
    45.0
    """

    name = "power_law"

    degree = 1

    def _fit_log_time(self, points: Floats, log_time: Floats) -> None:
        if len(points) == 1:  # cross-validation leaves one out
            points, log_time = np.repeat(points, 2, axis=0), np.repeat(log_time, 2)
        self._model = LogPolynomial(self.degree, points, log_time)

    def _log_time(self, points: Floats) -> Floats:
        return self._model(points)


class RidgeQuadratic(PowerLaw):
    """Ridge regression on quadratic features of the logarithms.

    >>> from metasched.records import Request, Run
    >>> runs = [Run("cg", "c8", n, p, 0.9, 90.0, 1e-3 * n**2 / p) for n in (100, 200, 400) for p in (1, 2, 4)]
    >>> round(RidgeQuadratic().fit(runs).predict(Request(300, 2, 0.9, 90.0)).execution_time, 1)
    45.0
    """

    name = "ridge"
    degree = 2


class GaussianProcess(LogRegression):
    """A Gaussian process with squared-exponential kernel on the logarithms.

    >>> from metasched.records import Request, Run
    >>> runs = [Run("cg", "c8", n, p, 0.9, 90.0, 1e-3 * n**2 / p) for n in range(100, 900, 100) for p in (1, 2, 4)]
    >>> 43 < GaussianProcess().fit(runs).predict(Request(300, 2, 0.9, 90.0)).execution_time < 47
    True
    """

    name = "gaussian_process"

    def __init__(self) -> None:
        super().__init__()
        self._inputs = 0

    def _fit_log_time(self, points: Floats, log_time: Floats) -> None:
        if points.shape[1] != self._inputs:
            self._inputs, self._optimised_at = points.shape[1], 0
            form = ConstantKernel(1.0, (1e-3, 1e3)) * RBF(np.ones(self._inputs), (1e-2, 1e3))
            self._start = self._kernel = form + WhiteKernel(1e-2, (1e-6, 1.0))
        optimise = len(points) >= min(self._optimised_at + REVISIT, 1.25 * self._optimised_at)
        # Each search starts again: one that few runs led astray would hold those after it there.
        process = GaussianProcessRegressor(
            self._start if optimise else self._kernel, normalize_y=True, optimizer="fmin_l_bfgs_b" if optimise else None
        )
        self._model = make_pipeline(StandardScaler(), process)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self._model.fit(points, log_time)
        if optimise:
            self._kernel, self._optimised_at = process.kernel_, len(points)

    def _log_time(self, points: Floats) -> Floats:
        return np.asarray(self._model.predict(points))


class Amdahl(LogRegression):
    """Amdahl's law with one serial share s: A N^a (s + (1 - s) / P) / CPU, fitted by least squares of log time.

    >>> from metasched.records import Request, Run
    >>> runs = [Run("cg", "c8", n, p, 1.0, 90.0, n * (0.1 + 0.9 / p)) for n in (100, 200, 400) for p in (1, 2, 4)]
    >>> round(Amdahl().fit(runs).predict(Request(1000, 9, 1.0, 90.0)).execution_time)
    200
    """

    name = "amdahl"

    def _fit_log_time(self, points: Floats, log_time: Floats) -> None:
        size = points[:, 0] - points[:, 0].mean()
        free = log_time[:, None] + points[:, [2]] - self._log_shape(points, SERIAL_SHARES)  # log(A N^a) for each s
        middle = free.mean(axis=0)
        slope = size @ free / (size @ size) if size.any() else np.zeros(len(middle))
        best = int(np.square(free - middle - size[:, None] * slope).sum(axis=0).argmin())
        self._serial, self._power = SERIAL_SHARES[[best]], float(slope[best])
        self._scale = float(middle[best]) - self._power * float(points[:, 0].mean())

    def _log_time(self, points: Floats) -> Floats:
        shape: Floats = self._log_shape(points, self._serial)[:, 0]
        return self._scale + self._power * points[:, 0] + shape - points[:, 2]

    @staticmethod
    def _log_shape(points: Floats, serial: Floats) -> Floats:
        """Logarithm of s + (1 - s) / P for points of shape (n, 4) and shares of shape (k,): shape (n, k)."""
        return np.asarray(np.log(serial + (1.0 - serial) * np.exp(-points[:, [1]])))


#: All of them, in the order that tables show them.
PEERS = (PowerLaw, RidgeQuadratic, GaussianProcess, Amdahl)
