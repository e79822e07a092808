"""The dependence of times on the clock: computation as 1 / f, time waiting for memory or messages not at all.

Relative to its time at a reference clock f0 a term of a run takes (k (f0 / f)^p + 1 - k)^(1 / p). The share k of it
that the clock paces depends on N and P for computation, and is one number, mostly small, for communication. With p = 1
shares add up (time = a + b / f), a larger p lets what the clock paces and what it does not overlap, as computation
hides transfers from memory. All follow from runs at two clocks. What of a run is computation at its loads is known
beforehand, so that at any clock more CPU or bandwidth makes no run longer.

Points, of shape (n, 5), are log N, log P, log cpu, log bw, and the share of the time at the reference clock that is
computation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import scipy

from metasched.arrays import Floats
from metasched.predictors.contract import Predictions
from metasched.predictors.gaussian_process import Scales, form_covariance

#: Logit of the share of computation, its slopes in the standardised logarithms of N and P and in the square of that of
#: P, log(p), and the logit of the share of communication, with the spreads of their priors: the clock paces most of the
#: computation and little else, and shares nearly add up, until runs say otherwise.
MEANS = np.array([1.5, 0.0, 0.0, 0.0, 0.3, -2.0])
SPREADS = np.array([1.5, 0.7, 1.0, 0.7, 0.6, 1.5])
#: Scales of the other effects on times: noise, and the smooth part in N and P. Loads have a basis of prior deviation 1.
_SCALES = Scales(0.3, (1.5, 1.5), 0.3, 0.01)
#: Spread of log time for a clock a factor e outside those learned.
OUTSIDE = 0.15
#: Standardised log P beyond which its square no longer grows.
WITHIN = 2.5
#: Runs that the clock is found from at most: the newest.
MOST = 300


@dataclass(frozen=True)
class Clock:
    """How the times of an application follow the clock.

    Parameters
    ----------
    reference : the clock that others are related to (MHz).
    least, most : of the clocks learned (MHz).
    numbers : shares and exponent, as :data:`MEANS` has them, shape (6,).
    middle, unit : of the logarithms of N and P, each of shape (2,).
    doubt : root of the covariance of the numbers that the runs leave, shape (6, 6), flat; none where not known.

    Examples
    --------
    >>> points = np.log(np.array([[100.0, p, 1.0, 100.0, np.e] for p in (1, 2, 4, 8) for _ in range(2)]))
    >>> f = np.array([1000.0, 2000.0] * 4)
    >>> clock = Clock.fit(points, np.log(0.3 + 0.7 * 2000.0 / f) - points[:, 1], f)
    >>> slower, faster = clock.factor(points[:2], np.array([1000.0, 1500.0]))
    >>> round(float(slower), 2), bool(1.2 < faster < 1.25)
    (1.7, True)
    """

    reference: float
    least: float
    most: float
    numbers: tuple[float, ...]
    middle: tuple[float, ...]
    unit: tuple[float, ...]
    doubt: tuple[float, ...] = ()

    @classmethod
    def fit(cls, points: Floats, log_time: Floats, frequency: Floats) -> Clock | None:
        """Fit the effect of the clock to runs, oldest first; None if none has a frequency.

        Parameters
        ----------
        points : array of shape (n, 5).
        log_time : array of shape (n,).
        frequency : array of shape (n,), MHz; NaN where it is not recorded.
        """
        known = np.flatnonzero(np.isfinite(frequency))[-MOST:]
        if not known.size:
            return None
        points, log_time, frequency = points[known], log_time[known], frequency[known]
        least, most = float(frequency.min()), float(frequency.max())
        sizes = points[:, :2]
        middle, unit = sizes.mean(axis=0), np.maximum(sizes.std(axis=0), 0.1)
        usual = float(np.sort(frequency)[len(frequency) // 2])
        found = cls(usual, least, most, tuple(MEANS), tuple(middle), tuple(unit))
        if least == most:
            return replace(found, doubt=tuple(np.diag(SPREADS).ravel().tolist()))
        covariance = form_covariance(_SCALES, sizes, sizes)
        # Size, count and loads change times by powers of about one; the smooth part explains the rest.
        basis = points[:, :4] - points[:, :4].mean(axis=0)
        covariance += 100.0 + basis @ np.diag([4.0, 1.0, 1.0, 1.0]) @ basis.T
        covariance[np.diag_indices(len(points))] += _SCALES.noise**2
        factor = scipy.linalg.cholesky(covariance, lower=True)

        def left(moves: Floats) -> Floats:
            numbers = MEANS + SPREADS * moves
            error = log_time - np.log(found._with(numbers).factor(points, frequency))
            white = scipy.linalg.solve_triangular(factor, error, lower=True)
            return np.concatenate([white, moves])

        solved = scipy.optimize.least_squares(left, np.zeros(len(MEANS)))
        slopes = np.asarray(solved.jac, dtype=np.float64)
        root = np.linalg.inv(np.linalg.cholesky(slopes.T @ slopes)) * SPREADS
        # Runs that scatter more than by the noise above tell as much less.
        root *= max(1.0, math.sqrt(float(np.square(solved.fun[: len(points)]).mean())))
        return replace(found._with(MEANS + SPREADS * solved.x), doubt=tuple(root.ravel().tolist()))

    def _with(self, numbers: Floats) -> Clock:
        return replace(self, numbers=tuple(numbers.tolist()))

    def _features(self, points: Floats) -> Floats:
        """What the logit of the share of computation is linear in, shape (n, 4)."""
        scaled = (points[:, :2] - np.array(self.middle)) / np.array(self.unit)
        bend = np.square(np.clip(scaled[:, 1], -WITHIN, WITHIN))
        return np.column_stack([np.ones(len(points)), scaled, bend])

    def shares(self, points: Floats) -> tuple[Floats, Floats]:
        """The shares of computation and of communication at the reference clock that the clock paces, each (n,)."""
        logits = self._features(points) @ np.array(self.numbers[:4]), np.full(len(points), self.numbers[5])
        computation, communication = (np.asarray(scipy.special.expit(each)) for each in logits)
        return computation, communication

    def factor(self, points: Floats, frequency: Floats) -> Floats:
        """Time at clocks (MHz), shape (n,), over that at the reference; points of shape (n, 5). 1 where NaN.

        Parameters
        ----------
        points : of each run.
        frequency : clocks (MHz); the reference where NaN.
        """
        computation, communication = self.factors(points, frequency)
        return np.asarray(communication + points[:, 4] * (computation - communication))

    def factors(self, points: Floats, frequency: Floats) -> tuple[Floats, Floats]:
        """The same of computation and of communication alone, which depend on N, P and the clock, each (n,).

        Parameters
        ----------
        points : of each run; the first two columns suffice.
        frequency : clocks (MHz); the reference where NaN.
        """
        ratio = self.reference / np.where(np.isfinite(frequency), frequency, self.reference)
        power = float(np.exp(self.numbers[4]))
        computation, communication = (
            np.asarray((1.0 + share * (ratio**power - 1.0)) ** (1.0 / power)) for share in self.shares(points)
        )
        return computation, communication

    def spread(self, points: Floats, frequency: float, beside: float | None = None) -> Floats:
        """Spread of the logarithm of the time at one clock over that at another, for points (n, 5); shape (n,).

        The doubt about the numbers, by the slopes of that logarithm in them, and what clocks outside those learned add.
        What both clocks owe to the same numbers cancels out.

        Parameters
        ----------
        points : of each run.
        frequency : the clock (MHz).
        beside : the other one (MHz); the reference where None.
        """
        beside = self.reference if beside is None else beside
        away = np.full(len(points), OUTSIDE * abs(self._away(frequency) - self._away(beside)))
        if not self.doubt:
            return away
        slopes = self._slopes(points, frequency) - self._slopes(points, beside)
        return np.asarray(np.hypot(np.linalg.norm(slopes @ np.reshape(self.doubt, (len(MEANS), -1)).T, axis=1), away))

    def _slopes(self, points: Floats, frequency: float) -> Floats:
        """Derivatives of the logarithm of :meth:`factor` by the numbers, shape (n, 6)."""
        ratio, power = self.reference / frequency, float(np.exp(self.numbers[4]))
        clocks, paced = np.full(len(points), frequency), ratio**power
        parts = [
            part * factor / self.factor(points, clocks)
            for part, factor in zip((points[:, 4], 1.0 - points[:, 4]), self.factors(points, clocks), strict=True)
        ]
        by_logit, by_power = [], []
        for part, share in zip(parts, self.shares(points), strict=True):
            mixed = share * paced + 1.0 - share
            by_logit.append(part * (paced - 1.0) * share * (1.0 - share) / (power * mixed))
            by_power.append(part * (share * paced * np.log(ratio) / mixed - np.log(mixed) / power))
        return np.column_stack([by_logit[0][:, None] * self._features(points), sum(by_power), by_logit[1]])

    def pace(self, points: Floats, frequency: Floats) -> Floats:
        """The share of the time that work bound by the clock would take alone, at some clocks (MHz).

        Points of shape (n, 5), clocks of shape (n,); shape (n,).
        """
        ratio = self.reference / np.where(np.isfinite(frequency), frequency, self.reference)
        computation, communication = (share ** float(np.exp(-self.numbers[4])) for share in self.shares(points))
        paced = points[:, 4] * computation + (1.0 - points[:, 4]) * communication
        return np.asarray(paced * ratio / self.factor(points, frequency))

    def outside(self, frequency: float) -> float:
        """The distance of a clock (MHz) from the learned ones, on the logarithm."""
        return abs(self._away(frequency))

    def _away(self, frequency: float) -> float:
        """That distance with its sign: above 0 for clocks higher than those learned."""
        return float(np.log(frequency / np.clip(frequency, self.least, self.most)))


def at_clock(found: Predictions, factor: Floats, spread: Floats) -> Predictions:
    """Predictions at the reference clock, as they are at another; factors and spreads of their logarithms (n,).

    On the logarithm of the time the doubts are independent: their reaches add up as squares.
    """
    reach = scipy.special.ndtri(0.5 + 0.5 * found.level) * spread
    time = found.execution_time * factor
    with np.errstate(invalid="ignore", over="ignore"):
        low, high = (np.exp(np.hypot(np.log(end / found.execution_time), reach)) for end in (found.low, found.high))
        low, high = time / low, time * high
    undefined = time == np.inf
    return Predictions(time, np.where(undefined, time, low), np.where(undefined, time, high), found.level)
