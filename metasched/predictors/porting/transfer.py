"""The errors of a ported formula on its new platform: a Gaussian process whose kernel models how porting fails.

The two scale factors may be off: a change of log Rcpu moves log time by the share of time spent computing, a change of
log Rbw by the rest. So does the sharing of links: an application that sends mostly within a node raises the congestion
reckoned with to a power of less than 1. These three are the basis of ``gaussian_process``; its Wiener process stands
for an application that scales otherwise than on the reference, its bend for what else the platform changes. How far
runs are believed against the ported formula follows from the sizes of these parts, and those from the runs.
"""

from __future__ import annotations

import math

import numpy as np

from metasched.arrays import Floats
from metasched.predictors.gaussian_process import ResidualProcess, ScalePrior, Scales, form_covariance, most_probable

#: Spreads of log Rcpu, log Rbw and the power of the congestion before the runs of the target are known.
LEVER_SPREADS = np.array([0.3, math.log(2.0), 0.4])
#: Scales before any run of the target, the lengths for log N / P, P, CPU and bandwidth. What a formula misses must not
#: pass for knowledge of the scale factors, which would be carried to where they matter more: so the least noise.
PRIOR = ScalePrior(Scales(0.1, (2.0, 2.0, 2.0, 2.0), 0.12, 0.03), least_noise=0.01)


def inputs(problem_size: Floats, processors: Floats, cpu: Floats, bw: Floats) -> Floats:
    """Inputs of the process: logarithms of N / P, P, available CPU and bandwidth, shape (n, 4).

    N / P stands for N because what a processor holds, not the whole problem, decides where caches overflow.
    """
    return np.log(np.stack([problem_size / processors, processors, cpu, bw], axis=1))


def transfer(
    points: Floats, basis: Floats, error: Floats, scales: Scales | None = None, *, search: bool = False
) -> ResidualProcess:
    """The process, conditioned on runs of the target.

    Parameters
    ----------
    points : array of shape (n, 4), see :func:`inputs`.
    basis : array of shape (n, 3), derivatives of log time by log Rcpu, log Rbw and the power of the congestion: the
        share of the ported time spent computing, the rest, and the rest times the logarithm of the congestion.
    error : array of shape (n,), log(measured / ported).
    scales : to use as they are, or to start from.
    search : whether to look for the most probable scales.

    Examples
    --------
    >>> points = np.log(np.array([[100.0, 1.0, 1.0, 90.0], [200.0, 1.0, 1.0, 90.0], [200.0, 2.0, 1.0, 90.0]]))
    >>> basis = np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.8, 0.2, 0.0]])
    >>> mean, spread = transfer(points, basis, np.array([0.10, 0.11, 0.09])).predict(points[:1], basis[:1])
    >>> mean.round(2), bool(spread[0] < 0.06)
    (array([0.1]), True)
    """
    scales = scales or PRIOR.medians
    if search:
        scales = most_probable(points, basis, LEVER_SPREADS, error, PRIOR, scales)
    return ResidualProcess(points, basis, LEVER_SPREADS, error, scales)


def misfit(points: Floats, error: Floats) -> float:
    """Mean square of log errors in units of what form and noise lead to expect, the scale factors aside.

    Runs on as many processors are off together: fifteen of them do not say fifteen times as much as one.

    Parameters
    ----------
    points : array of shape (n, 4), see :func:`inputs`.
    error : array of shape (n,), log(measured / expected).

    Examples
    --------
    >>> points = np.log(np.array([[100.0, 2.0, 1.0, 90.0], [100.0, 2.0, 1.0, 90.0]]))
    >>> together, apart = misfit(points, np.array([0.1, 0.1])), misfit(points, np.array([0.1, -0.1]))
    >>> bool(together < 1.0 < apart)
    True
    """
    covariance = form_covariance(PRIOR.medians, points, points)
    covariance[np.diag_indices(len(points))] += PRIOR.medians.noise**2
    return float(error @ np.linalg.solve(covariance, error)) / len(error)
