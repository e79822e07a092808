"""A polynomial in the logarithms of N / P, P, available CPU and bandwidth, fitted to log time by ridge regression.

Of degree one it is a power law, of degree two the usual response surface. Both know nothing of Eq. (1), which makes
them good company for models that do: they err elsewhere. Left alone far outside its runs a polynomial goes anywhere, so
it is not asked there: loads, and for degree two all inputs, are held within reach of the range that was learned.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import Ridge, RidgeCV

from metasched.predictors.contract import Floats
from metasched.predictors.heavy_tails import robust_spread, t_weights
from metasched.predictors.scaling import Scaling

#: Penalties that leave-one-out cross-validation chooses from.
PENALTIES = np.logspace(-6, 2, 17)
#: How far beyond the range learned, as a share of its width, an input is believed.
REACH = 0.5
#: Inputs that are held within reach, by degree: positions in ``residual.inputs``.
HELD = {1: [2, 3], 2: [0, 1, 2, 3]}
#: Times that a resistant fit weighs the runs anew.
REWEIGHTED = 3


class LogPolynomial:
    """Ridge regression on polynomial features.

    Parameters
    ----------
    degree : 1 or 2.
    points : array of shape (n, 4), see ``residual.inputs``.
    log_time : array of shape (n,).
    resistant : whether single wild runs count less, see ``heavy_tails``.

    Examples
    --------
    >>> points = np.random.default_rng(0).normal(size=(30, 4))
    >>> law = LogPolynomial(1, points, 2.0 * points[:, 0] - points[:, 1])
    >>> law(np.array([[1.0, 1.0, 0.0, 0.0]])).round(3)
    array([1.])
    """

    def __init__(self, degree: int, points: Floats, log_time: Floats, *, resistant: bool = False) -> None:
        self._scaling = Scaling.of(points)
        low, high = points.min(axis=0), points.max(axis=0)
        self._low, self._high = np.full(points.shape[1], -np.inf), np.full(points.shape[1], np.inf)
        held = HELD[degree]
        self._low[held] = (low - REACH * (high - low))[held]
        self._high[held] = (high + REACH * (high - low))[held]
        self._degree = degree
        features = self._features(points)
        ridge = RidgeCV(PENALTIES).fit(features, log_time)
        penalty = ridge.alpha_
        for _ in range(REWEIGHTED if resistant else 0):
            error = log_time - ridge.predict(features)
            ridge = Ridge(penalty).fit(features, log_time, sample_weight=t_weights(error / robust_spread(error)))
        self._coefficients, self._intercept = np.asarray(ridge.coef_), float(ridge.intercept_)

    def __call__(self, points: Floats) -> Floats:
        """Log time at points of shape (m, 4)."""
        features = self._features(np.minimum(np.maximum(points, self._low), self._high))
        return np.asarray(features @ self._coefficients + self._intercept)

    def _features(self, points: Floats) -> Floats:
        """The scaled inputs, and for degree 2 their products two by two.

        Done here and not by the library, whose checks of each input take a hundred times as long as a small prediction.
        """
        scaled = self._scaling(points)
        if self._degree == 1:
            return scaled
        one, other = _pairs(scaled.shape[1])
        return np.concatenate([scaled, scaled[:, one] * scaled[:, other]], axis=1)


@cache
def _pairs(inputs: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    return np.triu_indices(inputs)
