"""Weights that keep single wild runs from bending a fit: Student t errors instead of normal ones.

A load that changes in the middle of a run leaves a time that its averages cannot explain. Under normal errors such a
run drags the whole fit along; under t errors with few degrees of freedom it hardly counts. The fit under t errors is a
weighted one whose weights follow from the errors (expectation-maximisation; Lange, Little & Taylor, "Robust statistical
modeling using the t distribution", JASA 84, 1989).
"""

from __future__ import annotations

import numpy as np

from metasched.predictors.contract import Floats

#: Degrees of freedom of the t distribution: the usual choice where they cannot be estimated well.
DEGREES = 4.0


def t_weights(errors: Floats) -> Floats:
    """Weights of runs from their errors in units of the spread expected, shape (n,); the typical run counts 1.

    Examples
    --------
    >>> t_weights(np.array([0.0, -0.5, 0.5, 1.0, 10.0])).round(2)
    array([1.  , 1.  , 1.  , 0.85, 0.04])
    """
    weights = (DEGREES + 1.0) / (DEGREES + errors**2)
    return np.asarray(np.minimum(weights / np.median(weights), 1.0))


def robust_spread(errors: Floats) -> float:
    """Standard deviation of normal errors with the same median absolute error (never 0).

    Examples
    --------
    >>> round(robust_spread(np.array([-1.0, 0.5, 0.7, 1.0, 50.0])), 3)
    1.483
    """
    return max(1.4826 * float(np.median(np.abs(errors))), 1e-9)
