"""What a formula leaves over: a Gaussian process on the logarithm of measured over predicted time.

Caches, imbalance and shared links bend real times away from any formula of two terms. Log measured over predicted time
is taken as a sum of four independent parts:

* a smooth *bend*, Matern 5/2 in the logarithms of the inputs;
* *scaling*, a Wiener process in log P: the farther apart two processor counts, the less one says of the other;
* *levers*: what the formula's own numbers may be off by, each a factor of known derivative and a normal prior;
* noise, larger for runs that are given more of it, and with the tails of a Student t distribution.

How large each part is follows from the runs by marginal likelihood, held by log-normal priors while runs are few
(Rasmussen & Williams, Gaussian Processes for Machine Learning, sections 2.7 and 5.4.1). The levers are integrated out
exactly (Eqs. 2.39-2.42 there), so a prediction's spread knows how unsure the formula is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from metasched.predictors.contract import Floats

#: Degrees of freedom of the noise: the usual choice where they cannot be estimated (Lange, Little & Taylor 1989).
DEGREES = 4.0
#: The farthest that a scale may move from the median of its prior, on the logarithm.
REACH = 4.0
#: Runs that a process uses: the newest, and of the older those that cover most ground.
NEWEST, COVERING = 192, 64


@dataclass(frozen=True, slots=True)
class Scales:
    """Spread of the bend, its length scale for each input, spreads of scaling (over one unit of log P) and noise."""

    bend: float
    lengths: tuple[float, ...]
    scaling: float
    noise: float

    @property
    def logs(self) -> Floats:
        """All as one vector of shape (d + 3,): bend, lengths, scaling, noise."""
        return np.log([self.bend, *self.lengths, self.scaling, self.noise])

    @classmethod
    def of_logs(cls, logs: Floats) -> Scales:
        """The scales of such a vector, shape (d + 3,)."""
        bend, *lengths, scaling, noise = np.exp(logs).tolist()
        return cls(bend, tuple(lengths), scaling, noise)


@dataclass(frozen=True, slots=True)
class ScalePrior:
    """What is expected of the scales before any run.

    Parameters
    ----------
    medians : of each.
    spread : of the logarithm of each.
    fixed_lengths : of this many first inputs the length scales stay at their medians; the others are learned.
    least_noise : no formula holds better than this.
    """

    medians: Scales
    spread: float = 0.7
    fixed_lengths: int = 0
    least_noise: float = 0.01


@dataclass(frozen=True)
class Kinship:
    """What runs on other platforms have to do with the platform that is asked about.

    All platforms have the levers in common but for small differences; bend and scaling are each platform's own. Seen
    from one platform, the levers of each other one are off by two such differences: its own, and that of the platform
    asked about, which the runs on all others share.

    Parameters
    ----------
    platforms : array of shape (n,), the platform of each run by number, 0 for the one asked about.
    apart : array of shape (l,), how far each lever is off from platform to platform.

    Examples
    --------
    >>> kin = Kinship(np.array([1, 1, 2, 0]), np.array([0.5]))
    >>> kin.differences(np.ones((4, 1)))
    array([[0.5 , 0.5 , 0.25, 0.  ],
           [0.5 , 0.5 , 0.25, 0.  ],
           [0.25, 0.25, 0.5 , 0.  ],
           [0.  , 0.  , 0.  , 0.  ]])
    """

    platforms: NDArray[np.intp]
    apart: Floats

    @cached_property
    def asked(self) -> NDArray[np.bool_]:
        """Which runs are of the platform asked about, shape (n,)."""
        return np.equal(self.platforms, 0)

    @cached_property
    def same(self) -> NDArray[np.bool_]:
        """Which runs are of one platform, shape (n, n)."""
        return np.equal.outer(self.platforms, self.platforms)

    def differences(self, levers: Floats) -> Floats:
        """Covariance of log times that other levers on other platforms cause, (n, n), from levers (n, l)."""
        away = levers * self.apart * ~self.asked[:, None]
        return np.asarray(away @ away.T * (1.0 + self.same))


class ResidualProcess:
    """The process, conditioned on runs.

    Parameters
    ----------
    points : array of shape (n, d), logarithms of the inputs; the second is log P.
    levers : array of shape (n, l), derivatives of the formula's log time by its uncertain numbers.
    spreads : array of shape (l,), how far each number may be off (its prior spread).
    error : array of shape (n,), log(measured / formula).
    scales : of the parts.
    noise : array of shape (n,), variance of each run's noise relative to the usual; 1 where None.
    extra : array of shape (n,), variance of what else disturbs each run; 0 where None.
    moved : whether the levers' most probable values are part of the mean. Not where the formula already stands at its
        most probable numbers: then they only widen the spread.
    kinship : of runs on other platforms; None where all are of one.

    Examples
    --------
    >>> points = np.log(np.array([[100.0, 1.0], [200.0, 1.0], [200.0, 2.0]]))
    >>> levers = np.array([[1.0, 0.0], [1.0, 0.0], [0.8, 0.2]])
    >>> scales = Scales(0.1, (2.0, 2.0), 0.1, 0.03)
    >>> process = ResidualProcess(points, levers, np.array([0.3, 0.7]), np.array([0.10, 0.11, 0.09]), scales)
    >>> mean, spread = process.predict(points[:1], levers[:1])
    >>> mean.round(2), bool(spread[0] < 0.06)
    (array([0.1]), True)
    """

    def __init__(
        self,
        points: Floats,
        levers: Floats,
        spreads: Floats,
        error: Floats,
        scales: Scales,
        *,
        noise: Floats | None = None,
        extra: Floats | None = None,
        moved: bool = True,
        kinship: Kinship | None = None,
    ) -> None:
        self.points, self.levers, self.spreads, self.error, self.scales = points, levers, spreads, error, scales
        self._noise = np.ones(len(error)) if noise is None else noise
        self._extra = np.zeros(len(error)) if extra is None else extra
        self._kinship = kinship
        covariance = run_covariance(scales, points, levers, scales.noise**2 * self._noise + self._extra, kinship)
        self._factor = scipy.linalg.cholesky(covariance, lower=True)
        white = scipy.linalg.solve_triangular(self._factor, np.column_stack([levers, error]), lower=True)
        self._white, self._white_error = white[:, :-1], white[:, -1]
        scaled = self._white * spreads
        # Posterior of the levers in units of their spreads; its Cholesky factor inverted gives their covariance.
        precision = scipy.linalg.cholesky(np.eye(len(spreads)) + scaled.T @ scaled, lower=True)
        self.roots = scipy.linalg.solve_triangular(precision, np.diag(spreads), lower=True)
        self.moves = self.roots.T @ (self.roots @ (self._white.T @ self._white_error))
        if not moved:
            self.moves = np.zeros_like(self.moves)
        left = self._white_error - self._white @ self.moves
        #: Weights of the runs in the mean, and in what the levers explain.
        self.weights = scipy.linalg.solve_triangular(self._factor, left, lower=True, trans="T")
        self.absorbed = scipy.linalg.solve_triangular(self._factor, self._white, lower=True, trans="T")

    def form(self, points: Floats) -> tuple[Floats, Floats, Floats]:
        """Mean and variance of bend and scaling at points (m, d), and what they take over of each lever, (m, l)."""
        across = self._form(points)
        seen = across @ self._asked
        known = seen[:, 1 + len(self.spreads) :]
        known *= across
        variance = self.scales.bend**2 + self.scales.scaling**2 * points[:, 1]
        variance -= known.sum(axis=1)
        return seen[:, 0], np.maximum(variance, 0.0, out=variance), seen[:, 1 : 1 + len(self.spreads)]

    def between(self, points: Floats) -> tuple[Floats, Floats, Floats]:
        """Of bend and scaling at points (m, d): what runs tell of their covariance, and what it was before any run.

        Returns
        -------
        learned, absorbed, before : arrays of shape (m, m); of shape (m, l), what is taken over of each lever; (m, m).
        """
        across = self._form(points)
        inverse = self._asked[:, 1 + len(self.spreads) :]
        return across @ inverse @ across.T, across @ self.absorbed, form_covariance(self.scales, points, points)

    def mean(self, points: Floats) -> Floats:
        """Mean of bend and scaling alone at points (m, d)."""
        return np.asarray(self._form(points) @ self.weights)

    def predict(self, points: Floats, levers: Floats, noise: Floats | float = 1.0) -> tuple[Floats, Floats]:
        """Mean and spread of a new run's log(measured / formula), for points (m, d) and levers (m, l)."""
        mean, variance, absorbed = self.form(points)
        return mean + levers @ self.moves, self.spread(variance, (levers - absorbed).T, noise)

    def spread(self, variance: Floats, levers: Floats, noise: Floats | float) -> Floats:
        """Spread of a new run, from the variance of its form, the levers (l, m) left to it and its relative noise."""
        free = self.roots @ levers
        return np.asarray(np.sqrt(np.einsum("ij,ij->j", free, free) + variance + self.scales.noise**2 * noise))

    def leave_one_out(self) -> tuple[Floats, Floats]:
        """Error of every run predicted from the others under these scales, and its spread (Eqs. 5.10-12 there).

        The levers are found anew without the run. The spread leaves out what this one run carries beyond the usual.
        """
        inverse = self._inverse
        diagonal = np.diag(inverse)
        return inverse @ self.error / diagonal, self._usual_spread(1.0 / diagonal)

    def leave_group_out(self, groups: NDArray[np.intp]) -> tuple[Floats, Floats]:
        """The same, every run predicted without any of its group.

        Parameters
        ----------
        groups : array of shape (n,), the group of each run.
        """
        inverse, error, variance = self._inverse, np.empty(len(groups)), np.empty(len(groups))
        whole = inverse @ self.error
        for group in np.unique(groups):
            own = np.flatnonzero(groups == group)
            covariance = scipy.linalg.inv(inverse[np.ix_(own, own)])
            error[own], variance[own] = covariance @ whole[own], np.diag(covariance)
        return error, self._usual_spread(variance)

    def group_weights(self, groups: NDArray[np.intp]) -> Floats:
        """Weights of runs whose group is farther from what the others say than expected, shape (n,), at most 1.

        As of a Student t distribution with as many dimensions as the group has runs.
        """
        inverse, weights = self._inverse, np.ones(len(groups))
        whole = inverse @ self.error
        for group in np.unique(groups):
            own = np.flatnonzero(groups == group)
            away = float(whole[own] @ np.linalg.solve(inverse[np.ix_(own, own)], whole[own]))
            weights[own] = min((DEGREES + len(own)) / (DEGREES + away), 1.0)
        return weights

    @cached_property
    def _inverse(self) -> Floats:
        """Inverse of the covariance of the runs, the levers integrated out."""
        whole = scipy.linalg.solve_triangular(self._factor, np.eye(len(self.error)), lower=True)
        taken = self.absorbed @ self.roots.T
        return np.asarray(whole.T @ whole - taken @ taken.T)

    def _usual_spread(self, variance: Floats) -> Floats:
        """Spreads without what single runs carry beyond the usual."""
        usual = self.scales.noise**2
        return np.sqrt(np.maximum(variance - usual * (self._noise - 1.0) - self._extra, usual))

    @cached_property
    def _asked(self) -> Floats:
        """Mean, levers taken over, and inverse of the covariance, side by side: one product answers for all three."""
        inverse = scipy.linalg.cho_solve((self._factor, True), np.eye(len(self.error)))
        return np.column_stack([self.weights, self.absorbed, inverse])

    def _form(self, points: Floats) -> Floats:
        """Covariance of bend and scaling between points (m, d) and the runs, shape (m, n)."""
        across = form_covariance(self.scales, points, self.points)
        if self._kinship is not None:
            across *= self._kinship.asked
        return across


def run_covariance(scales: Scales, points: Floats, levers: Floats, alone: Floats, kinship: Kinship | None) -> Floats:
    """Covariance of what a formula leaves over of runs, shape (n, n), the levers at their values aside.

    Parameters
    ----------
    scales, points, levers, kinship : as of :class:`ResidualProcess`.
    alone : array of shape (n,), the variance that each run has for itself.
    """
    covariance = form_covariance(scales, points, points)
    if kinship is not None:
        covariance *= kinship.same
        covariance += kinship.differences(levers)
    covariance[np.diag_indices(len(points))] += alone
    return covariance


def form_covariance(scales: Scales, first: Floats, second: Floats) -> Floats:
    """Covariance of bend and scaling between points (m, d) and (n, d), shape (m, n)."""
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
    levers: Floats,
    spreads: Floats,
    error: Floats,
    prior: ScalePrior,
    start: Scales,
    *,
    noise: Floats | None = None,
    extra: Floats | None = None,
    kinship: Kinship | None = None,
) -> Scales:
    """The scales of largest posterior density; parameters as of :class:`ResidualProcess`, levers around their prior.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> points = np.log(rng.uniform(1.0, 100.0, (60, 2)))
    >>> prior = ScalePrior(Scales(0.05, (2.0, 2.0), 0.01, 0.05))
    >>> found = most_probable(points, np.ones((60, 1)), np.ones(1), rng.normal(0, 0.2, 60), prior, prior.medians)
    >>> bool(0.17 < found.noise < 0.23)
    True
    """
    inputs = points.shape[1]
    shape = np.ones(len(error)) if noise is None else noise
    squared = (points[:, None, :] - points[None, :, :]) ** 2
    wiener = np.minimum.outer(points[:, 1], points[:, 1])
    fixed = (levers * spreads**2) @ levers.T
    fixed[np.diag_indices(len(error))] += 0.0 if extra is None else extra
    same: NDArray[np.bool_] | float = 1.0
    if kinship is not None:
        same = kinship.same
        wiener = wiener * same
        fixed += kinship.differences(levers)
    identity, medians = np.eye(len(error)), prior.medians.logs
    free = np.array([True, *(place >= prior.fixed_lengths for place in range(inputs)), True, True])
    full = np.where(free, start.logs, medians)

    def negative_log_posterior(chosen: Floats) -> tuple[float, Floats]:
        logs = full.copy()
        logs[free] = chosen
        bend2, scaling2, noise2 = np.exp(2.0 * logs[[0, -2, -1]])
        lengths = np.exp(logs[1:-2])
        root = math.sqrt(5.0) * np.sqrt(squared @ lengths**-2.0)
        decay = np.exp(-root) * same
        bend = bend2 * (1.0 + root + root * root / 3.0) * decay
        covariance = bend + scaling2 * wiener + fixed
        covariance[np.diag_indices(len(error))] += noise2 * shape
        factor = scipy.linalg.cholesky(covariance, lower=True)
        weights = scipy.linalg.cho_solve((factor, True), error)
        away = (logs - medians) / prior.spread
        value = 0.5 * error @ weights + np.log(np.diag(factor)).sum() + 0.5 * away @ away
        # d value / d log scale = trace((K^-1 - w w') dK / d log scale) / 2 (Eq. 5.9)
        slope = scipy.linalg.cho_solve((factor, True), identity) - np.outer(weights, weights)
        gradient = np.zeros(len(logs))
        gradient[0] = np.sum(slope * bend)
        if free[1:-2].any():
            by_length = slope * (bend2 * 5.0 / 3.0 * (1.0 + root) * decay)
            gradient[1:-2] = 0.5 * np.einsum("ij,ijd->d", by_length, squared) * lengths**-2.0
        gradient[-2] = scaling2 * np.sum(slope * wiener)
        gradient[-1] = noise2 * np.diag(slope) @ shape
        return float(value), (gradient + away / prior.spread)[free]

    bounds = np.stack([medians - REACH, medians + REACH], axis=1)
    bounds[-1, 0] = math.log(prior.least_noise)
    found = scipy.optimize.minimize(
        negative_log_posterior, full[free], jac=True, method="L-BFGS-B", bounds=bounds[free]
    )
    full[free] = found.x
    return Scales.of_logs(full)


def t_weights(errors: Floats) -> Floats:
    """Weights of runs from their errors in units of the spread expected, shape (n,); the typical run counts 1.

    Under Student t errors a wild run hardly counts; the fit is a weighted one (Lange, Little & Taylor, "Robust
    statistical modeling using the t distribution", JASA 84, 1989).

    Examples
    --------
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
