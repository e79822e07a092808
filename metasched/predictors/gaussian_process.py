"""The residuals of a formula: a Gaussian process on the logarithm of measured over predicted time.

Caches, imbalance and shared links make real times deviate from any formula of two terms. The logarithm of measured over
predicted time is modelled as a sum of four independent parts:

* the smooth part (``bend``), Matern 5/2 in the logarithms of the inputs;
* ``scaling``, a Wiener process in log P: the farther apart two processor counts are, the weaker their correlation;
* the uncertainty of the formula's parameters: ``basis`` has the derivatives of log time by each of them, whose
  coefficients have normal priors;
* noise with the tails of a Student t distribution, whose size may differ between one processor and many.

The scales of these parts are estimated from the runs by marginal likelihood with log-normal priors, which matter while
runs are few (Rasmussen & Williams, Gaussian Processes for Machine Learning, sections 2.7 and 5.4.1). The coefficients
are integrated out exactly (Eqs. 2.39-2.42 there), so the standard deviation of a prediction includes the uncertainty of
the formula.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from metasched.arrays import Flags, Floats

#: Degrees of freedom of the noise: the usual choice where they cannot be estimated (Lange, Little & Taylor 1989).
DEGREES = 4.0
#: The largest distance of a scale from the median of its prior, on the logarithm.
REACH = 4.0
#: Runs that a process uses: the newest, and those older ones that cover the most of the inputs' range.
NEWEST, COVERING = 192, 64


@dataclass(frozen=True, slots=True)
class Scales:
    """Standard deviations of the parts of a process, and the length scales of the smooth part.

    Parameters
    ----------
    bend : standard deviation of the smooth part.
    lengths : its length scale for each input.
    scaling : standard deviation of the Wiener process over one unit of log P.
    noise : standard deviation of the noise on many processors.
    alone : the noise on one processor relative to that.

    Examples
    --------
    >>> Scales(0.1, (2.0, 2.0), 0.1, 0.03, alone=0.5).noise_on(np.array([1.0, 2.0, 1000.0])).round(4)
    array([0.015 , 0.0225, 0.03  ])
    """

    bend: float
    lengths: tuple[float, ...]
    scaling: float
    noise: float
    alone: float = 1.0

    @property
    def logs(self) -> Floats:
        """All as one vector of shape (d + 4,): bend, lengths, scaling, noise, alone."""
        return np.log([self.bend, *self.lengths, self.scaling, self.noise, self.alone])

    @classmethod
    def of_logs(cls, logs: Floats) -> Scales:
        """The scales of such a vector, shape (d + 4,)."""
        bend, *lengths, scaling, noise, alone = np.exp(logs).tolist()
        return cls(bend, tuple(lengths), scaling, noise, alone)

    def noise_on(self, processors: Any) -> Any:
        """Standard deviation of the noise on P processors, for a number or an array of shape (n,)."""
        return self.noise * (1.0 - (1.0 - self.alone) / processors)


@dataclass(frozen=True, slots=True)
class ScalePrior:
    """The log-normal prior of the scales.

    Parameters
    ----------
    medians : of each scale.
    spread : standard deviation of the logarithm of each scale.
    fixed_lengths : the length scales of this many first inputs stay at their medians; the others are learned.
    least_noise : lower bound of the noise.
    fixed_alone : whether the noise on one processor relative to that on many stays at its median.
    """

    medians: Scales
    spread: float = 0.7
    fixed_lengths: int = 0
    least_noise: float = 0.01
    fixed_alone: bool = True


@dataclass(frozen=True)
class Kinship:
    """How runs on other platforms are correlated with those on the target platform.

    The coefficients of the basis are common to all platforms but for small differences. Relative to the target
    platform, the coefficients of another one differ by two such differences: its own, and that of the target platform,
    which the runs on all others have in common. Smooth part and scaling are independent on each platform, but one
    Wiener process in log P, which is part of the scaling, is common to all.

    Parameters
    ----------
    platforms : array of shape (n,), the platform of each run by number, 0 for the target platform.
    apart : array of shape (l,), standard deviation of each coefficient between platforms.
    shared : standard deviation, over one unit of log P, of the Wiener process that all platforms have in common.

    Examples
    --------
    >>> kin = Kinship(np.array([1, 1, 2, 0]), np.array([0.5]))
    >>> kin.covariance(np.zeros((4, 2)), np.ones((4, 1)))
    array([[0.5 , 0.5 , 0.25, 0.  ],
           [0.5 , 0.5 , 0.25, 0.  ],
           [0.25, 0.25, 0.5 , 0.  ],
           [0.  , 0.  , 0.  , 0.  ]])
    """

    platforms: NDArray[np.intp]
    apart: Floats
    shared: float = 0.0

    @cached_property
    def asked(self) -> Flags:
        """Which runs are of the target platform, shape (n,)."""
        return np.equal(self.platforms, 0)

    @cached_property
    def same(self) -> Flags:
        """Which runs are of one platform, shape (n, n)."""
        return np.equal.outer(self.platforms, self.platforms)

    def covariance(self, points: Floats, basis: Floats) -> Floats:
        """Covariance of log times due to other coefficients on other platforms, and to what all share, (n, n).

        Parameters
        ----------
        points : of the runs, the second coordinate being log P, shape (n, d).
        basis : derivatives of their log time by the coefficients, shape (n, l).
        """
        away = basis * self.apart * ~self.asked[:, None]
        return away @ away.T * (1.0 + self.same) + self.shared**2 * np.minimum.outer(points[:, 1], points[:, 1])


class ResidualProcess:
    """The process, conditioned on runs.

    Parameters
    ----------
    points : array of shape (n, d), logarithms of the inputs; the second is log P.
    basis : array of shape (n, l), derivatives of the formula's log time by its uncertain parameters.
    spreads : array of shape (l,), prior standard deviation of each of these parameters.
    error : array of shape (n,), log(measured / formula).
    scales : of the parts.
    noise : array of shape (n,), variance of each run's noise relative to that expected on its processors; 1 if None.
    extra : array of shape (n,), variance of further disturbances of each run; 0 if None.
    moved : whether the most probable coefficients are part of the mean. Not if the formula already has its most
        probable parameters: then the coefficients only contribute to the variance.
    kinship : of runs on other platforms; None if all are of one.

    Examples
    --------
    >>> points = np.log(np.array([[100.0, 1.0], [200.0, 1.0], [200.0, 2.0]]))
    >>> basis = np.array([[1.0, 0.0], [1.0, 0.0], [0.8, 0.2]])
    >>> scales = Scales(0.1, (2.0, 2.0), 0.1, 0.03)
    >>> process = ResidualProcess(points, basis, np.array([0.3, 0.7]), np.array([0.10, 0.11, 0.09]), scales)
    >>> mean, spread = process.predict(points[:1], basis[:1])
    >>> mean.round(2), bool(spread[0] < 0.06)
    (array([0.1]), True)
    """

    def __init__(
        self,
        points: Floats,
        basis: Floats,
        spreads: Floats,
        error: Floats,
        scales: Scales,
        *,
        noise: Floats | None = None,
        extra: Floats | None = None,
        moved: bool = True,
        kinship: Kinship | None = None,
    ) -> None:
        self.points, self.basis, self.spreads, self.error, self.scales = points, basis, spreads, error, scales
        self.noise = np.ones(len(error)) if noise is None else noise
        self.extra = np.zeros(len(error)) if extra is None else extra
        self.kinship = kinship
        # On the target platform, its own scaling and that of all platforms add up to one Wiener process.
        self._whole = replace(scales, scaling=math.hypot(scales.scaling, kinship.shared if kinship else 0.0))
        self._usual = scales.noise_on(np.exp(points[:, 1])) ** 2
        own = self._usual * self.noise + self.extra
        self._factor = scipy.linalg.cholesky(run_covariance(scales, points, basis, own, kinship), lower=True)
        white = scipy.linalg.solve_triangular(self._factor, np.column_stack([basis, error]), lower=True)
        self._white, self._white_error = white[:, :-1], white[:, -1]
        scaled = self._white * spreads
        # Posterior precision of the coefficients in units of their prior deviations; the inverse of its Cholesky factor
        # gives their covariance.
        precision = scipy.linalg.cholesky(np.eye(len(spreads)) + scaled.T @ scaled, lower=True)
        self.roots = scipy.linalg.solve_triangular(precision, np.diag(spreads), lower=True)
        self.moves = self.roots.T @ (self.roots @ (self._white.T @ self._white_error))
        if not moved:
            self.moves = np.zeros_like(self.moves)
        left = self._white_error - self._white @ self.moves
        #: Weights of the runs in the mean, and in the part of each basis function that the process explains.
        self.weights = scipy.linalg.solve_triangular(self._factor, left, lower=True, trans="T")
        self.absorbed = scipy.linalg.solve_triangular(self._factor, self._white, lower=True, trans="T")

    def form(self, points: Floats) -> tuple[Floats, Floats, Floats]:
        """Mean and variance of smooth part and scaling at points (m, d), and the basis that they explain, (m, l)."""
        across = self._form(points)
        seen = across @ self._asked
        known = seen[:, 1 + len(self.spreads) :]
        known *= across
        variance = self._whole.bend**2 + self._whole.scaling**2 * points[:, 1]
        variance -= known.sum(axis=1)
        return seen[:, 0], np.maximum(variance, 0.0, out=variance), seen[:, 1 : 1 + len(self.spreads)]

    def between(self, points: Floats) -> tuple[Floats, Floats, Floats]:
        """The covariance of smooth part and scaling at points (m, d), before any run and as reduced by the runs.

        Returns
        -------
        learned, absorbed, before : the reduction by the runs, shape (m, m); the basis that they explain, (m, l); the
            covariance before any run, (m, m).
        """
        across = self._form(points)
        inverse = self._asked[:, 1 + len(self.spreads) :]
        return across @ inverse @ across.T, across @ self.absorbed, form_covariance(self._whole, points, points)

    def mean(self, points: Floats) -> Floats:
        """Mean of smooth part and scaling alone at points (m, d)."""
        return np.asarray(self._form(points) @ self.weights)

    def predict(self, points: Floats, basis: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation of log(measured / formula) of new runs, for points (m, d) and basis (m, l).

        Parameters
        ----------
        points : of the new runs, as those learned, shape (m, d).
        basis : derivatives of the formula's log time by its parameters there, shape (m, l).
        """
        mean, variance, absorbed = self.form(points)
        noise = self.scales.noise_on(np.exp(points[:, 1]))
        return mean + basis @ self.moves, self.spread(variance, (basis - absorbed).T, noise**2)

    def spread(self, variance: Floats, basis: Floats, noise: Floats) -> Floats:
        """Standard deviation for new runs, from the process' variance, the unexplained basis (l, m) and the noise.

        Parameters
        ----------
        variance : of the process, shape (m,).
        basis : the formula's derivatives without what the learned runs explain of them, shape (l, m).
        noise : variance of the noise of the new runs, shape (m,).
        """
        free = self.roots @ basis
        return np.asarray(np.sqrt(np.einsum("ij,ij->j", free, free) + variance + noise))

    def leave_one_out(self) -> tuple[Floats, Floats]:
        """Error of every run predicted from the others under these scales, and its deviation (Eqs. 5.10-12 there).

        The coefficients are estimated without the run. The standard deviation excludes further disturbances of this
        run.
        """
        inverse = self.inverse
        diagonal = np.diag(inverse)
        return inverse @ self.error / diagonal, self._usual_spread(1.0 / diagonal)

    def leave_group_out(self, groups: NDArray[np.intp]) -> tuple[Floats, Floats]:
        """The same, but every run is predicted without all runs of its group.

        Parameters
        ----------
        groups : array of shape (n,), the group of each run.
        """
        inverse, error, variance = self.inverse, np.empty(len(groups)), np.empty(len(groups))
        whole = inverse @ self.error
        for group in np.unique(groups):
            own = np.flatnonzero(groups == group)
            covariance = scipy.linalg.inv(inverse[np.ix_(own, own)])
            error[own], variance[own] = covariance @ whole[own], np.diag(covariance)
        return error, self._usual_spread(variance)

    def group_weights(self, groups: NDArray[np.intp]) -> Floats:
        """Weights of runs, shape (n,), below 1 if their group deviates more from the others' prediction than expected.

        They are those of a Student t distribution with as many dimensions as the group has runs.
        """
        inverse, weights = self.inverse, np.ones(len(groups))
        whole = inverse @ self.error
        for group in np.unique(groups):
            own = np.flatnonzero(groups == group)
            away = float(whole[own] @ np.linalg.solve(inverse[np.ix_(own, own)], whole[own]))
            weights[own] = min((DEGREES + len(own)) / (DEGREES + away), 1.0)
        return weights

    @cached_property
    def inverse(self) -> Floats:
        """Inverse of the covariance of the runs, with the coefficients integrated out."""
        whole = scipy.linalg.solve_triangular(self._factor, np.eye(len(self.error)), lower=True)
        taken = self.absorbed @ self.roots.T
        return np.asarray(whole.T @ whole - taken @ taken.T)

    def _usual_spread(self, variance: Floats) -> Floats:
        """Standard deviations without the further disturbances of single runs."""
        return np.asarray(np.sqrt(np.maximum(variance - self._usual * (self.noise - 1.0) - self.extra, self._usual)))

    @cached_property
    def _asked(self) -> Floats:
        """Weights of the mean and of the basis, and the inverse covariance, side by side, for a single product."""
        inverse = scipy.linalg.cho_solve((self._factor, True), np.eye(len(self.error)))
        return np.column_stack([self.weights, self.absorbed, inverse])

    def _form(self, points: Floats) -> Floats:
        """Covariance of smooth part and scaling between points (m, d) and the runs, shape (m, n)."""
        across = form_covariance(self.scales, points, self.points)
        if self.kinship is not None:
            across *= self.kinship.asked
            across += self.kinship.shared**2 * np.minimum.outer(points[:, 1], self.points[:, 1])
        return across


def run_covariance(scales: Scales, points: Floats, basis: Floats, own: Floats, kinship: Kinship | None) -> Floats:
    """Covariance of the residuals of runs for given parameters of the formula, shape (n, n).

    Parameters
    ----------
    scales, points, basis, kinship : as of :class:`ResidualProcess`.
    own : array of shape (n,), the independent variance of each run.
    """
    covariance = form_covariance(scales, points, points)
    if kinship is not None:
        covariance *= kinship.same
        covariance += kinship.covariance(points, basis)
    covariance[np.diag_indices(len(points))] += own
    return covariance


def form_covariance(scales: Scales, first: Floats, second: Floats) -> Floats:
    """Covariance of smooth part and scaling between points (m, d) and (n, d), shape (m, n).

    Parameters
    ----------
    scales : amplitudes and lengths of the process.
    first : points, the second coordinate being log P, shape (m, d).
    second : others, shape (n, d).
    """
    distance: Floats | float = 0.0
    for one, other, length in zip(first.T, second.T, scales.lengths, strict=True):
        step = one[:, None] - other
        step *= math.sqrt(5.0) / length
        step *= step
        distance = step + distance
    root = np.sqrt(distance)
    bend = root * (scales.bend**2 / 3.0)
    bend += scales.bend**2
    bend *= root
    bend += scales.bend**2
    np.negative(root, out=root)
    bend *= np.exp(root, out=root)  # Eq. 4.17
    wiener = np.minimum(first[:, 1, None], second[:, 1])
    wiener *= scales.scaling**2
    bend += wiener
    return np.asarray(bend)


def most_probable(
    points: Floats,
    basis: Floats,
    spreads: Floats,
    error: Floats,
    prior: ScalePrior,
    start: Scales,
    *,
    noise: Floats | None = None,
    extra: Floats | None = None,
    kinship: Kinship | None = None,
) -> Scales:
    """The scales of largest posterior density; parameters as of :class:`ResidualProcess`, ``error`` at the prior means.

    >>> rng = np.random.default_rng(0)
    >>> points = np.log(rng.uniform(1.0, 100.0, (60, 2)))
    >>> prior = ScalePrior(Scales(0.05, (2.0, 2.0), 0.01, 0.05))
    >>> found = most_probable(points, np.ones((60, 1)), np.ones(1), rng.normal(0, 0.2, 60), prior, prior.medians)
    >>> bool(0.17 < found.noise < 0.23)
    True
    """
    inputs, few = points.shape[1], np.exp(-points[:, 1])
    shape = np.ones(len(error)) if noise is None else noise
    squared = (points[:, None, :] - points[None, :, :]) ** 2
    wiener = np.minimum.outer(points[:, 1], points[:, 1])
    fixed = (basis * spreads**2) @ basis.T
    fixed[np.diag_indices(len(error))] += 0.0 if extra is None else extra
    same: Flags | float = 1.0
    if kinship is not None:
        same = kinship.same
        wiener = wiener * same
        fixed += kinship.covariance(points, basis)
    identity, medians = np.eye(len(error)), prior.medians.logs
    free = np.array([True, *(k >= prior.fixed_lengths for k in range(inputs)), True, True, not prior.fixed_alone])
    full = np.where(free, start.logs, medians)

    def negative_log_posterior(chosen: Floats) -> tuple[float, Floats]:
        logs = full.copy()
        logs[free] = chosen
        bend2, scaling2, noise2 = np.exp(2.0 * logs[[0, -3, -2]])
        lengths, alone = np.exp(logs[1:-3]), np.exp(logs[-1])
        waiting = 1.0 - (1.0 - alone) * few
        root = math.sqrt(5.0) * np.sqrt(squared @ lengths**-2.0)
        decay = np.exp(-root) * same
        bend = bend2 * (1.0 + root + root * root / 3.0) * decay
        covariance = bend + scaling2 * wiener + fixed
        covariance[np.diag_indices(len(error))] += noise2 * shape * waiting**2
        factor = scipy.linalg.cholesky(covariance, lower=True)
        weights = scipy.linalg.cho_solve((factor, True), error)
        away = (logs - medians) / prior.spread
        value = 0.5 * error @ weights + np.log(np.diag(factor)).sum() + 0.5 * away @ away
        # d value / d log scale = trace((K^-1 - w w') dK / d log scale) / 2 (Eq. 5.9)
        slope = scipy.linalg.cho_solve((factor, True), identity) - np.outer(weights, weights)
        gradient = np.zeros(len(logs))
        gradient[0] = np.sum(slope * bend)
        if free[1:-3].any():
            by_length = slope * (bend2 * 5.0 / 3.0 * (1.0 + root) * decay)
            gradient[1:-3] = 0.5 * np.einsum("ij,ijd->d", by_length, squared) * lengths**-2.0
        gradient[-3] = scaling2 * np.sum(slope * wiener)
        of_runs = noise2 * np.diag(slope) * shape * waiting
        gradient[-2:] = of_runs @ waiting, alone * of_runs @ few
        return float(value), (gradient + away / prior.spread)[free]

    bounds = np.stack([medians - REACH, medians + REACH], axis=1)
    bounds[-2, 0] = math.log(prior.least_noise)
    found = scipy.optimize.minimize(
        negative_log_posterior, full[free], jac=True, method="L-BFGS-B", bounds=bounds[free]
    )
    full[free] = found.x
    return Scales.of_logs(full)


def t_weights(errors: Floats) -> Floats:
    """Weights of runs from their errors in units of the expected deviation, shape (n,); the median run has weight 1.

    With Student t errors an outlier has a small weight; the fit is a weighted one (Lange, Little & Taylor, "Robust
    statistical modeling using the t distribution", JASA 84, 1989).

    >>> t_weights(np.array([0.0, -0.5, 0.5, 1.0, 10.0])).round(2)
    array([1.  , 1.  , 1.  , 0.85, 0.04])
    """
    weights = (DEGREES + 1.0) / (DEGREES + errors**2)
    return np.asarray(np.minimum(weights / np.median(weights), 1.0))


def well_chosen(points: Floats) -> NDArray[np.intp]:
    """Positions of the runs that a process should use, ascending: the newest, and older ones that cover the rest.

    Older runs are chosen one at a time, always the one farthest from all chosen so far.

    Parameters
    ----------
    points : array of shape (n, d), oldest first.
    """
    n = len(points)
    if n <= NEWEST + COVERING:
        return np.arange(n)
    points = points / np.maximum(points.std(axis=0), 0.1)
    older, newest = points[: n - NEWEST], points[n - NEWEST :]
    distance = np.min(np.linalg.norm(older[:, None] - newest[None], axis=2), axis=1)
    chosen = []
    for _ in range(COVERING):
        farthest = int(np.argmax(distance))
        chosen.append(farthest)
        distance = np.minimum(distance, np.linalg.norm(older - older[farthest], axis=1))
    return np.concatenate([np.unique(chosen), np.arange(n - NEWEST, n)])
