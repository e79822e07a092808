"""The one recurrence under the exact single-class solvers: y(n) = c(n) (1 + y(n - 1)), y(0) = 0.

It gives the queue of a station whose speed is fixed (c = X(n) D, the arrival theorem), and the growth of the
normalisation constants when such a station is added. All terms are positive, so it loses nothing.
"""

from __future__ import annotations

import numpy as np

from metasched.arrays import Floats


def accumulate(coefficients: Floats) -> Floats:
    """Solve the recurrence along the first axis.

    Long and narrow input is solved by composing the affine maps y -> c + c y pairwise (the parallel prefix of Hillis
    and Steele, log2 N passes over all n at once), other input step by step over n, all columns at once.

    Parameters
    ----------
    coefficients : array of shape (N, ...), c(1), ..., c(N), none negative.

    Returns
    -------
    array of the same shape, y(1), ..., y(N).

    References
    ----------
    Hillis and Steele, Data parallel algorithms, CACM 29(12), 1986.

    Examples
    --------
    >>> accumulate(np.array([1.0, 0.5, 2.0]))
    array([1., 1., 4.])
    """
    steps = coefficients.shape[0]
    if coefficients.size < steps * steps:
        constant, slope = coefficients.copy(), coefficients.copy()
        reach = 1
        while reach < steps:
            constant[reach:] += slope[reach:] * constant[:-reach]
            # A slope that vanishes belongs to a part of y too small to count beside c(n) itself.
            with np.errstate(under="ignore"):
                slope[reach:] *= slope[:-reach]
            reach *= 2
        return constant
    result = np.empty_like(coefficients)
    before = np.zeros(coefficients.shape[1:])
    for step in range(steps):
        before = coefficients[step] * (1.0 + before)
        result[step] = before
    return result
