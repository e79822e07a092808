"""How much of what the formula leaves unexplained is common to all platforms of an application.

An application whose data begin to fit into caches on eight nodes of one platform may do so elsewhere, too. So part of
the residuals is a Wiener process in log P that all platforms share. Its scale is found by marginal likelihood under a
log-normal prior, among a few values, as applications differ: where platforms deviate from the formula independently of
each other, a small one is the most probable.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import scipy

from metasched.arrays import Floats
from metasched.predictors.gaussian_process import Kinship, Scales, run_covariance

#: Values tried for the standard deviation over a factor e in P, and the median of their prior and its spread. They were
#: chosen on jobs of three applications on Spark clusters (``benchmarks.elsewhere``), where the mean error is 5.3 % with
#: them and 6.4 % without.
TRIED, MEDIAN, SPREAD = (0.01, 0.02, 0.04, 0.08, 0.16), 0.03, 0.7


def sharing(
    kinship: Kinship, scales: Scales, points: Floats, basis: Floats, spreads: Floats, error: Floats, own: Floats
) -> Kinship:
    """The kinship with the most probable scale of what the platforms share.

    Parameters
    ----------
    kinship : of the runs, without anything shared.
    scales, points, basis, spreads : as of ``ResidualProcess``.
    error : log(measured / formula) at the prior means of the parameters, shape (n,).
    own : independent variance of each run, shape (n,).

    Examples
    --------
    >>> platforms = np.repeat([0, 1, 2], 5)
    >>> points = np.log(np.tile([[1.0, 1.0], [1.0, 2.0], [1.0, 4.0], [1.0, 8.0], [1.0, 16.0]], (3, 1)))
    >>> kinship, scales = Kinship(platforms, np.array([0.1])), Scales(0.02, (2.0, 2.0), 0.02, 0.02)
    >>> faster = np.tile([0.0, 0.0, 0.0, -0.2, -0.2], 3)
    >>> def shared(error):
    ...     return sharing(kinship, scales, points, np.ones((15, 1)), np.ones(1), error, np.full(15, 4e-4)).shared
    >>> shared(faster), shared(np.zeros(15))
    (0.08, 0.02)
    """
    covariance = run_covariance(scales, points, basis, own, kinship) + (basis * spreads**2) @ basis.T
    wiener = np.minimum.outer(points[:, 1], points[:, 1])

    def negative_log_posterior(scale: float) -> float:
        factor = scipy.linalg.cholesky(covariance + scale**2 * wiener, lower=True)
        white = scipy.linalg.solve_triangular(factor, error, lower=True)
        away = math.log(scale / MEDIAN) / SPREAD
        return float(0.5 * white @ white + np.log(np.diag(factor)).sum() + 0.5 * away**2)

    return replace(kinship, shared=min(TRIED, key=negative_log_posterior))
