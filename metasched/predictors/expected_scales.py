"""What runs leave open about the scales of a process.

The scales that a few runs make most probable may be too small by chance, the more so the more parameters are learned
from the same runs. The covariance of a process is linear in the squares of its scales. So what is expected of the next
run are the means of these squares over all scales that the runs allow. The posterior of their logarithms is taken as
normal (Laplace's method), its precision being the expected information of the runs plus that of the prior (Rasmussen &
Williams, Gaussian Processes for Machine Learning, sections 3.4 and 5.4.1).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from metasched.predictors.gaussian_process import ResidualProcess, ScalePrior, Scales, form_covariance


def expected_scales(process: ResidualProcess, prior: ScalePrior) -> Scales:
    """The square roots of the expected squares of the scales; length scales stay as they are.

    Parameters
    ----------
    process : on the runs, under their most probable scales.
    prior : of the scales.

    Examples
    --------
    >>> prior = ScalePrior(Scales(0.01, (2.0, 2.0), 0.01, 0.05))
    >>> def noise(runs):
    ...     one = np.ones((runs, 1))
    ...     process = ResidualProcess(np.log(np.ones((runs, 2))), one, np.ones(1), np.zeros(runs), prior.medians)
    ...     return round(expected_scales(process, prior).noise, 3)
    >>> noise(2), noise(5), noise(100)
    (0.064, 0.055, 0.05)
    """
    scales, points, few = process.scales, process.points, np.exp(-process.points[:, 1])
    same = 1.0 if process.kinship is None else process.kinship.same
    usual = scales.noise_on(1.0 / few)
    smooth, wiener = (
        form_covariance(part, points, points) * same
        for part in (replace(scales, scaling=0.0), replace(scales, bend=0.0))
    )
    on_all, on_one = usual * process.noise * np.array([usual, scales.noise * scales.alone * few])
    # Derivatives of the covariance by the logarithms of bend, scaling, noise and alone, each times its inverse.
    inverse = 2.0 * process.inverse
    parts = inverse @ smooth, inverse @ wiener, inverse * on_all, inverse * on_one
    information = 0.5 * np.array([[np.sum(one * other.T) for one in parts] for other in parts])
    learned = np.array([True, True, True, not prior.fixed_alone])
    spread = np.zeros_like(information)
    known = np.ix_(learned, learned)
    spread[known] = np.linalg.inv(information[known] + np.eye(learned.sum()) / prior.spread**2)
    # If a logarithm has the variance v, the mean of the square is exp(2 v) times the square of the median. On one
    # processor the noise is the product of two scales.
    bend, scaling, noise = np.exp(np.diag(spread)[:3])
    alone = np.exp(spread[3, 3] + 2.0 * spread[2, 3])
    return Scales(
        scales.bend * float(bend),
        scales.lengths,
        scales.scaling * float(scaling),
        scales.noise * float(noise),
        scales.alone * float(alone),
    )


def with_expected_scales(process: ResidualProcess, prior: ScalePrior) -> ResidualProcess:
    """The same process under the expected squares of its scales, its formula being the most probable one.

    Parameters
    ----------
    process, prior : as of :func:`expected_scales`.
    """
    return ResidualProcess(
        process.points,
        process.basis,
        process.spreads,
        process.error,
        expected_scales(process, prior),
        noise=process.noise,
        extra=process.extra,
        moved=False,
        kinship=process.kinship,
    )
