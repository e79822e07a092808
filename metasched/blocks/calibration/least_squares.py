"""Weighted linear least squares with the uncertainty of each coefficient."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from metasched.arrays import Floats

#: Smallest mean squared residual, relative: measurements without noise must not weigh infinitely.
LEAST = 1e-24
#: Columns whose least singular value is below this share of the largest one do not determine their coefficients.
DETERMINED = 1e-10


class Line(NamedTuple):
    """Coefficients and their standard uncertainties, arrays of shape (k,), and the sum of squared residuals."""

    coefficients: Floats
    uncertainties: Floats
    squares: float


def fitted(columns: Floats, value: Floats, weights: Floats) -> Line | None:
    """Least squares of ``weights * (columns @ coefficients - value)``; None where the columns do not determine it.

    Parameters
    ----------
    columns : array of shape (n, k).
    value, weights : arrays of shape (n,).

    Examples
    --------
    >>> line = fitted(np.array([[1.0, 1.0], [1.0, 2.0], [1.0, 3.0]]), np.array([3.0, 5.0, 7.0]), np.ones(3))
    >>> line.coefficients.round(6).tolist()
    [1.0, 2.0]
    """
    count, unknown = columns.shape
    scale = np.abs(columns * weights[:, None]).max(axis=0, initial=0.0)
    if count < unknown or not scale.all():
        return None
    design, target = columns * weights[:, None] / scale, value * weights
    left, sizes, right = np.linalg.svd(design, full_matrices=False)
    if sizes[-1] <= DETERMINED * sizes[0]:
        return None
    # By the singular values: the sums of squares of normal equations have lost half of the digits.
    inverse = right.T / sizes
    found = inverse @ (left.T @ target)
    squares = float(((design @ found - target) ** 2).sum())
    variance = squares / max(count - unknown, 1)
    doubt = np.linalg.norm(inverse, axis=1) * np.sqrt(variance)
    return Line(found / scale, doubt / scale, max(squares, LEAST * count))
