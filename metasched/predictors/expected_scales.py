"""What runs leave open about the scales of a process.

The scales that a few runs make most probable may be too small by chance, the more so the more parameters are learned
from the same runs. The covariance of a process is linear in the squares of its scales. So what is expected of the next
run are the means of these squares over all scales that the runs allow. The posterior of their logarithms is taken as
normal (Laplace's method), its precision being the expected information of the runs plus that of the prior (Rasmussen &
Williams, Gaussian Processes for Machine Learning, sections 3.4 and 5.4.1).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from metasched.arrays import Floats
from metasched.predictors.gaussian_process import ResidualProcess, ScalePrior, Scales, form_covariance

#: Weight, as a number of runs, of the priors' own deviations.
WORTH = 1.0
#: A run with a variance of its noise above this, relative to the usual one, is an outlier.
OUTLYING = 4.0


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


def as_expected(process: ResidualProcess, prior: ScalePrior, error: Floats, least: float = 0.0) -> ResidualProcess:
    """The same process with the deviations that are expected of the next run, its formula being the most probable one.

    They are those of the expected squares of the scales and of the parameters' priors, times a factor that all have in
    common. The misfit of n runs, under the most probable scales and with one parameter that is free, is n - 1 if the
    priors suit. The square of the factor is its ratio to that, and 1 before any run, with the weight of :data:`WORTH`
    runs (a Student t process; Shah, Wilson & Ghahramani, "Student-t processes as alternatives to Gaussian processes",
    AISTATS 2014). The mean stays that of the most probable scales, so predicted times do not change.

    Parameters
    ----------
    process, prior : as of :func:`expected_scales`.
    error : log(measured / formula) at the prior means of the parameters, shape (n,).
    least : lower bound of the square of the factor.

    Examples
    --------
    >>> prior, one = ScalePrior(Scales(0.01, (2.0, 2.0), 0.01, 0.05)), np.ones((20, 1))
    >>> process = ResidualProcess(np.log(np.ones((20, 2))), one, np.ones(1), np.zeros(20), prior.medians)
    >>> suits, not_at_all = np.tile([0.05, -0.05], 10), np.tile([0.15, -0.15], 10)
    >>> [round(as_expected(process, prior, error).scales.noise, 3) for error in (suits, not_at_all)]
    [0.053, 0.154]
    """
    left, outlying = process.inverse @ error, process.noise > OUTLYING
    # Without outliers, which add to the misfit of the others their own when they are predicted from these.
    added = left[outlying] @ np.linalg.solve(process.inverse[np.ix_(outlying, outlying)], left[outlying])
    usual = max(int(np.count_nonzero(~outlying)), 1)
    square = max((WORTH + float(error @ left - added)) / (WORTH + usual - 1.0), least)
    known, expected, kinship = process.scales, expected_scales(process, prior), process.kinship
    # Smooth part and scaling are stretched alike, so that the mean is the same with other weights.
    before, after = (np.sum(each.bend**2 + each.scaling**2 * process.points[:, 1]) for each in (known, expected))
    factor, form = math.sqrt(square), math.sqrt(square * float(after / before))
    if kinship is not None:
        kinship = replace(kinship, apart=kinship.apart * factor, shared=kinship.shared * form)
    found = ResidualProcess(
        process.points,
        process.basis,
        process.spreads * factor,
        process.error,
        replace(expected, bend=known.bend * form, scaling=known.scaling * form, noise=expected.noise * factor),
        noise=process.noise,
        extra=process.extra * square,
        moved=False,
        kinship=kinship,
    )
    found.weights = process.weights / form**2
    return found
