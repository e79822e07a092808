"""A polynomial in the logarithms of N / P, P, available CPU and bandwidth, fitted to log time by ridge regression.

Of degree one it is a power law, of degree two the usual response surface. Left alone far outside its runs a polynomial
goes anywhere, so it is not asked there: loads, and for degree two all inputs, are held within reach of the range that
was learned.
"""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import RidgeCV

from metasched.arrays import Floats

#: Penalties that leave-one-out cross-validation chooses from.
PENALTIES = np.logspace(-6, 2, 17)
#: How far beyond the range learned, as a share of its width, an input is believed.
REACH = 0.5
#: Smallest deviation of a logarithm that counts: inputs that varied by less than a tenth do not show their effect.
LEAST_DEVIATION = 0.1


class LogPolynomial:
    """Ridge regression on polynomial features.

    Parameters
    ----------
    degree : 1 or 2.
    points : array of shape (n, 4 + c), the inputs and columns of settings, scaled here to mean 0 and
        deviation 1, or less for what hardly varied.
    log_time : array of shape (n,).

    Examples
    --------
    >>> points = np.random.default_rng(0).normal(size=(30, 4))
    >>> law = LogPolynomial(1, points, 2.0 * points[:, 0] - points[:, 1])
    >>> law(np.array([[1.0, 1.0, 0.0, 0.0]])).round(3)
    array([1.])
    """

    def __init__(self, degree: int, points: Floats, log_time: Floats) -> None:
        self._centre, self._scale = points.mean(axis=0), np.maximum(points.std(axis=0), LEAST_DEVIATION)
        low, high = points.min(axis=0), points.max(axis=0)
        self._low, self._high = np.full(points.shape[1], -np.inf), np.full(points.shape[1], np.inf)
        held = [2, 3] if degree == 1 else list(range(points.shape[1]))
        self._low[held] = (low - REACH * (high - low))[held]
        self._high[held] = (high + REACH * (high - low))[held]
        self._degree = degree
        self._ridge = RidgeCV(PENALTIES).fit(self._features(points), log_time)

    def __call__(self, points: Floats) -> Floats:
        """Log time at points of shape (m, 4)."""
        return np.asarray(self._ridge.predict(self._features(np.clip(points, self._low, self._high))))

    def _features(self, points: Floats) -> Floats:
        scaled = (points - self._centre) / self._scale
        if self._degree == 1:
            return np.asarray(scaled)
        one, other = np.triu_indices(scaled.shape[1])
        return np.concatenate([scaled, scaled[:, one] * scaled[:, other]], axis=1)
