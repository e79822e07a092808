"""A polynomial in the logarithms of N / P, P, available CPU and bandwidth, fitted to log time by ridge regression.

Of degree one it is a power law, of degree two the usual response surface. Both know nothing of Eq. (1), which makes
them good company for models that do: they err elsewhere.
"""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from metasched.predictors.contract import Floats

#: Penalties that leave-one-out cross-validation chooses from.
PENALTIES = np.logspace(-6, 2, 17)


class LogPolynomial:
    """Ridge regression on polynomial features.

    Parameters
    ----------
    degree : 1 or 2.
    points : array of shape (n, 4), see ``residual.inputs``.
    log_time : array of shape (n,).

    Examples
    --------
    >>> points = np.random.default_rng(0).normal(size=(30, 4))
    >>> law = LogPolynomial(1, points, 2.0 * points[:, 0] - points[:, 1])
    >>> law(np.array([[1.0, 1.0, 0.0, 0.0]])).round(3)
    array([1.])
    """

    def __init__(self, degree: int, points: Floats, log_time: Floats) -> None:
        self._model = make_pipeline(
            StandardScaler(), PolynomialFeatures(degree, include_bias=False), RidgeCV(PENALTIES)
        )
        self._model.fit(points, log_time)

    def __call__(self, points: Floats) -> Floats:
        """Log time at points of shape (m, 4)."""
        return np.asarray(self._model.predict(points)) if len(points) else np.empty(0)
