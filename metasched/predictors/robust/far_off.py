"""Runs that are far off: set aside before the scales of the process are searched.

A single such run makes the most probable scales so large that it is not far off any more, and with them all intervals.
So it has to be recognised under the scales that are expected before any run. It also spoils the predictions of the runs
beside it, so that these seem to be far off, too. Therefore runs are taken away one at a time, always the one that the
others predict worst, as long as they predict each other much better (a forward search; Atkinson, "Fast very robust
methods for the detection of multiple outliers", JASA 89, 1994, has its principle).
"""

from __future__ import annotations

import numpy as np

from metasched.arrays import Floats
from metasched.predictors.gaussian_process import DEGREES, ResidualProcess

#: A run is far off if its weight is below this fraction of that of the median run: usually, and where much may differ
#: from what is expected without being wrong: the effects of settings, or few runs of a platform beside those of others.
FAR_OFF, FAR_OFF_IF_UNLIKE = 0.05, 0.0125
#: At most one in this many runs is set aside, with so small a weight that it does not count.
SET_ASIDE, NO_WEIGHT = 5, 1e-6


def first_weights(process: ResidualProcess, *, settings: bool = False) -> Floats:
    """Weights before any scale is known, shape (n,): 1, or next to nothing for runs that are far off.

    Parameters
    ----------
    process : of all runs, each with weight 1, as expected before any run.
    settings : whether the runs differ in settings.
    """
    weights = np.ones(len(process.error))
    below = FAR_OFF_IF_UNLIKE if settings else FAR_OFF
    weights[far_off(process, below, len(weights) // SET_ASIDE)] = NO_WEIGHT
    return weights


def far_off(process: ResidualProcess, below: float, most: int) -> list[int]:
    """Positions of the runs that the others do not come near to predicting, the farthest first.

    Parameters
    ----------
    process : of all runs, each with weight 1.
    below : a run is far off if its weight is below this fraction of that of the median run.
    most : the largest number of such runs, below n.

    Examples
    --------
    >>> from metasched.predictors.gaussian_process import Scales
    >>> points = np.log([[100.0, 1.0], [200.0, 1.0], [200.0, 2.0], [300.0, 2.0], [400.0, 2.0], [400.0, 4.0]])
    >>> error = np.array([0.0, 0.02, 1.1, -0.02, 0.01, 0.0])
    >>> process = ResidualProcess(points, np.ones((6, 1)), np.ones(1), error, Scales(0.03, (2.0, 2.0), 0.03, 0.03))
    >>> far_off(process, 0.05, 2)
    [2]
    """
    inverse, kept = process.inverse, np.arange(len(process.error))
    found: list[int] = []
    for _ in range(most):
        error = np.abs(inverse @ process.error[kept]) / np.sqrt(np.diag(inverse))
        farthest = int(np.argmax(error))
        rest = np.arange(len(kept)) != farthest
        across = inverse[rest, farthest]
        inverse = inverse[np.ix_(rest, rest)] - np.outer(across, across) / inverse[farthest, farthest]
        usual = np.median((inverse @ process.error[kept[rest]]) ** 2 / np.diag(inverse))
        if DEGREES + usual >= below * (DEGREES + error[farthest] ** 2):
            break
        found.append(int(kept[farthest]))
        kept = kept[rest]
    return found
