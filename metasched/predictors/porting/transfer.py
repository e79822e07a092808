"""What a ported formula gets wrong on its new platform: a Gaussian process whose kernel knows how porting fails.

Log measured over ported time is a sum of six parts. The two scale factors may be off: a change of log Rcpu moves log
time by the share of time spent computing, a change of log Rbw by the rest, so each adds a kernel of rank one. So does
the sharing of links: an application that sends mostly within a node raises the congestion reckoned with to a power of
less than 1. The application may scale otherwise than on the reference, the farther from one processor the more: a
Wiener process in log P. The platform may bend the formula in its own way, smoothly in the logarithms of N / P, P,
available CPU and bandwidth: a Matern 5/2 kernel. And clocks are noisy. How far runs are believed against the ported
formula follows from the variances of these parts, and those from the runs themselves: marginal likelihood, held by
log-normal priors while runs are few (Rasmussen & Williams, Gaussian Processes for Machine Learning, sections 2.7 and
5.4.1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import linalg, optimize

from metasched.predictors.contract import Floats

#: Spreads of log Rcpu, log Rbw and the power of the congestion before the runs of the target are looked at.
LEVER_SPREADS = np.array([0.3, math.log(2.0), 0.4])
#: Medians of the priors: spread of the bend, its length scales for log N / P, P, CPU and bandwidth, spread of the
#: Wiener process over one unit of log P, spread of the noise.
PRIOR_MEDIANS = (0.1, 2.0, 2.0, 2.0, 2.0, 0.12, 0.03)
#: Spread of the logarithm of each under its prior, and the farthest it may move from the median.
PRIOR_SPREAD, REACH = 0.7, 4.0
#: Least spread of the noise: no formula holds better than this, and what it misses must not pass for knowledge of the
#: scale factors, which would be carried to where they matter more.
LEAST_NOISE = 0.01
#: Column of log P among the inputs.
_P = 1


@dataclass(frozen=True, slots=True)
class TransferScales:
    """Spread of the bend, its length scales for log N / P, P, CPU and bandwidth; spreads of scaling and noise."""

    bend: float = PRIOR_MEDIANS[0]
    lengths: tuple[float, float, float, float] = PRIOR_MEDIANS[1:5]
    scaling: float = PRIOR_MEDIANS[5]
    noise: float = PRIOR_MEDIANS[6]


class TransferProcess:
    """The process, conditioned on runs of the target.

    Parameters
    ----------
    points : array of shape (n, 4), see ``metasched.predictors.residual.inputs``.
    levers : array of shape (n, 3), derivatives of log time by log Rcpu, log Rbw and the power of the congestion: the
        share of the ported time spent computing, the rest, and the rest times the logarithm of the congestion.
    error : array of shape (n,), log(measured / ported).
    scales : to use as they are, or to start from.
    optimise : whether to look for the scales of largest posterior density.

    Examples
    --------
    >>> points = np.log(np.array([[100.0, 1.0, 1.0, 90.0], [200.0, 1.0, 1.0, 90.0], [200.0, 2.0, 1.0, 90.0]]))
    >>> levers = np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.8, 0.2, 0.0]])
    >>> process = TransferProcess(points, levers, np.array([0.10, 0.11, 0.09]))
    >>> mean, spread = process.predict(points[:1], levers[:1])
    >>> mean.round(2), bool(spread[0] < 0.06)
    (array([0.1]), True)
    """

    def __init__(
        self,
        points: Floats,
        levers: Floats,
        error: Floats,
        scales: TransferScales | None = None,
        *,
        optimise: bool = False,
    ) -> None:
        self._points, self._levers, self._error = points, levers, error
        self.scales = scales or TransferScales()
        if optimise:
            self.scales = self._most_probable(self.scales)
        covariance = self._covariance(points, levers)
        covariance[np.diag_indices(len(points))] += self.scales.noise**2
        self._factor = linalg.cholesky(covariance, lower=True)
        self._weights = linalg.cho_solve((self._factor, True), error)

    def predict(self, points: Floats, levers: Floats) -> tuple[Floats, Floats]:
        """Mean and spread of a new run's log(measured / ported), for points (m, 4) and levers (m, 3)."""
        across = self._covariance(points, levers)
        mean = across @ self._weights
        seen = linalg.solve_triangular(self._factor, across.T, lower=True)
        before = _lever_variance(levers) + self.scales.bend**2 + self.scales.scaling**2 * points[:, _P]
        variance = before + self.scales.noise**2 - np.einsum("nm,nm->m", seen, seen)
        return mean, np.sqrt(np.maximum(variance, self.scales.noise**2))

    def leave_one_out(self) -> tuple[Floats, Floats]:
        """Error and spread of every run, predicted from the others (Rasmussen & Williams, Eqs. 5.10-12)."""
        inverse_factor = linalg.solve_triangular(self._factor, np.eye(len(self._error)), lower=True)
        diagonal = np.einsum("ij,ij->j", inverse_factor, inverse_factor)
        return self._weights / diagonal, 1.0 / np.sqrt(diagonal)

    def _covariance(self, points: Floats, levers: Floats) -> Floats:
        """Covariance of the noise-free parts between points (m, 4) and the runs, shape (m, n)."""
        form = _form_covariance(self.scales, points, self._points)
        return np.asarray(form + _lever_covariance(levers, self._levers))

    def _most_probable(self, start: TransferScales) -> TransferScales:
        """The scales of largest posterior density."""
        medians = np.log(PRIOR_MEDIANS)
        steps = _squared_steps(self._points, self._points)
        wiener = np.minimum.outer(self._points[:, _P], self._points[:, _P])
        fixed = _lever_covariance(self._levers, self._levers)
        identity = np.eye(len(self._error))

        def negative_log_posterior(logs: Floats) -> tuple[float, Floats]:
            bend2, scaling2, noise2 = np.exp(2.0 * logs[[0, 5, 6]])
            lengths = np.exp(logs[1:5])
            distance = np.sqrt(steps @ lengths**-2.0)
            bend = bend2 * _matern(distance)
            factor = linalg.cholesky(bend + scaling2 * wiener + fixed + noise2 * identity, lower=True)
            weights = linalg.cho_solve((factor, True), self._error)
            away = (logs - medians) / PRIOR_SPREAD
            value = 0.5 * self._error @ weights + np.log(np.diag(factor)).sum() + 0.5 * away @ away
            # d value / d log scale = trace((K^-1 - w w') dK / d log scale) / 2 (Eq. 5.9 there)
            slope = linalg.cho_solve((factor, True), identity) - np.outer(weights, weights)
            by_length = slope * (bend2 * _matern_slope(distance))
            gradient = np.empty(7)
            gradient[0] = np.sum(slope * bend)
            gradient[1:5] = 0.5 * np.einsum("ij,ijd->d", by_length, steps) * lengths**-2.0
            gradient[5] = scaling2 * np.sum(slope * wiener)
            gradient[6] = noise2 * np.trace(slope)
            return float(value), gradient + away / PRIOR_SPREAD

        logs = np.log([start.bend, *start.lengths, start.scaling, start.noise])
        bounds = list(zip(medians - REACH, medians + REACH, strict=True))
        bounds[6] = (math.log(LEAST_NOISE), bounds[6][1])
        found = optimize.minimize(negative_log_posterior, logs, jac=True, method="L-BFGS-B", bounds=bounds).x
        bend, one, two, three, four, scaling, noise = (float(scale) for scale in np.exp(found))
        return TransferScales(bend, (one, two, three, four), scaling, noise)


def misfit(points: Floats, error: Floats, scales: TransferScales | None = None) -> float:
    """Mean square of log errors in units of what form and noise lead to expect, the scale factors aside.

    Runs on as many processors are off together: fifteen of them do not say fifteen times as much as one.

    Parameters
    ----------
    points : array of shape (n, 4), see ``metasched.predictors.residual.inputs``.
    error : array of shape (n,), log(measured / expected).
    scales : of form and noise; the medians of their priors where it is None.

    Examples
    --------
    >>> points = np.log(np.array([[100.0, 2.0, 1.0, 90.0], [100.0, 2.0, 1.0, 90.0]]))
    >>> together, apart = misfit(points, np.array([0.1, 0.1])), misfit(points, np.array([0.1, -0.1]))
    >>> bool(together < 1.0 < apart)
    True
    """
    scales = scales or TransferScales()
    covariance = _form_covariance(scales, points, points)
    covariance[np.diag_indices(len(points))] += scales.noise**2
    return float(error @ linalg.cho_solve(linalg.cho_factor(covariance, lower=True), error)) / len(error)


def _form_covariance(scales: TransferScales, first: Floats, second: Floats) -> Floats:
    """Covariance of what is wrong with the form of the formula: its bend and its scaling, shape (m, n)."""
    distance = np.sqrt(_squared_steps(first, second) @ np.power(scales.lengths, -2.0))
    scaling = scales.scaling**2 * np.minimum.outer(first[:, _P], second[:, _P])
    return np.asarray(scales.bend**2 * _matern(distance) + scaling)


def _squared_steps(first: Floats, second: Floats) -> Floats:
    """Squared differences in each input, shape (m, n, 4)."""
    return np.asarray((first[:, None, :] - second[None, :, :]) ** 2)


def _matern(distance: Floats) -> Floats:
    root = math.sqrt(5.0) * distance
    return np.asarray((1.0 + root + root * root / 3.0) * np.exp(-root))


def _matern_slope(distance: Floats) -> Floats:
    """Derivative of the Matern 5/2 correlation by the logarithm of a length, over the squared scaled step."""
    root = math.sqrt(5.0) * distance
    return np.asarray(5.0 / 3.0 * (1.0 + root) * np.exp(-root))


def _lever_covariance(first: Floats, second: Floats) -> Floats:
    return np.asarray((first * LEVER_SPREADS**2) @ second.T)


def _lever_variance(levers: Floats) -> Floats:
    return np.asarray(levers**2 @ LEVER_SPREADS**2)
