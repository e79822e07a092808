"""The power of runs: a static part, and a part that depends on the clock and the work.

Power = w0 P^s + w1 P^q (f / f0)^k c^(a P^-h) b^m (r + (1 - r) u), with the least available CPU c, which says the less
of the others the more processors there are, the share u of the time that the run computes, and the pace b: what the
work that the clock paces would take alone over the whole time. r is what waiting for messages draws relative to
computing, 1 where it polls. The voltage that makes k larger than 1 has a least value that no run tells: below the
clocks learned, k counts as 1 at most. What the form leaves over is a process as that of times is
(``gaussian_process``), with the logarithms of N, P, f, c and bandwidth as inputs and the numbers as basis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from metasched.arrays import Floats
from metasched.predictors.gaussian_process import ResidualProcess, ScalePrior, Scales, form_covariance, most_probable

#: Numbers in their order: log w0 and log w1 (relative to the mean power), s, q, k, a, m, the logit of r, and h; what
#: is expected before any run, and the spreads. k is 2, a clock and the voltage that it needs.
MEANS = np.array([-0.7, -0.7, 0.5, 0.8, 2.0, 1.0, 1.0, 1.0, 0.2])
SPREADS = np.array([1.0, 1.0, 0.5, 0.4, 0.8, 0.4, 0.5, 2.0, 0.2])
PRIOR = ScalePrior(Scales(0.03, (2.0, 1.5, 1.0, 1.5, 2.0), 0.03, 0.02), least_noise=0.003)
#: Times that numbers and scales are found again.
ROUNDS = 2
#: Runs that the process is conditioned on at most: the newest.
MOST = 256
#: Spread of log power for a distance of one (a factor e) in N, P, f and loads beyond what was learned.
OUTSIDE = 0.15
#: The largest k below the clocks learned.
LINEAR = 1.0


@dataclass(frozen=True)
class Power:
    """Power of runs of an application on a platform.

    Parameters
    ----------
    numbers : of the form, shape (9,).
    unit : mean power (W).
    middle : mean logarithms of P and f, the clock in MHz.
    process : on what the form leaves over.
    """

    numbers: tuple[float, ...]
    unit: float
    middle: tuple[float, float]
    process: ResidualProcess

    @classmethod
    def fit(
        cls, points: Floats, work: Floats, watts: Floats, known: tuple[Scales, Sequence[float]] | None = None
    ) -> Power:
        """Fit to runs, oldest first.

        Parameters
        ----------
        points : array of shape (n, 5), logarithms of N, P, f (MHz), CPU and bandwidth.
        work : array of shape (n, 2), the share of the time that is computation, and the pace.
        watts : array of shape (n,), measured.
        known : scales of the process and numbers of the form; None for the most probable ones.

        Examples
        --------
        >>> points = np.log([[100.0, p, f, 1.0, 90.0] for p in (1, 2, 4, 8) for f in (1000.0, 1500.0, 2000.0)])
        >>> watts = 50.0 + 5.0 * np.exp(points[:, 1]) * (np.exp(points[:, 2]) / 1000.0) ** 2
        >>> power = Power.fit(points, np.ones((12, 2)), watts)
        >>> asked = np.log([[100.0, 4.0, 1250.0, 1.0, 90.0]])
        >>> bool(abs(power.predict(asked, np.ones((1, 2)))[0][0] / np.log(50.0 + 20.0 * 1.25**2) - 1) < 0.01)
        True
        """
        points, work, watts = points[-MOST:], work[-MOST:], watts[-MOST:]
        unit, middle = float(np.exp(np.log(watts).mean())), (float(points[:, 1].mean()), float(points[:, 2].mean()))
        log_watts = np.log(watts / unit)
        scales, best = (PRIOR.medians, MEANS) if known is None else (known[0], np.asarray(known[1], dtype=np.float64))
        for _ in range(ROUNDS if known is None else 0):
            # The process explains what the form cannot; only the other contrasts determine the parameters.
            covariance = form_covariance(scales, points, points)
            covariance[np.diag_indices(len(points))] += scales.noise**2
            best = _best(best, scipy.linalg.cholesky(covariance, lower=True), log_watts, middle, points, work)
            error, basis = log_watts - _form(best, middle, points, work), _slopes(best, middle, points, work)
            around = error + basis @ (best - MEANS)
            scales = most_probable(points, basis, SPREADS, around, PRIOR, scales)
        error, basis = log_watts - _form(best, middle, points, work), _slopes(best, middle, points, work)
        process = ResidualProcess(points, basis, SPREADS, error, scales, moved=False)
        return cls(tuple(best.tolist()), unit, middle, process)

    def expect(self, points: Floats, work: Floats) -> Floats:
        """Log of the power (W) at points (n, 5) with work (n, 2), shape (n,).

        Parameters
        ----------
        points : logarithms of N, P, f (MHz), CPU and bandwidth (Mbit/s).
        work : the share of the time that is computation, and the pace, see :meth:`Clock.pace`.
        """
        form = _form(np.array(self.numbers), self.middle, points, work, self._corners[0][2])
        return np.asarray(np.log(self.unit) + form + self.process.mean(self._held(points)))

    def predict(self, points: Floats, work: Floats) -> tuple[Floats, Floats]:
        """The result of :meth:`expect`, and the standard deviation of what will be measured; (n,)."""
        best, (low, high) = np.array(self.numbers), self._corners
        mean, spread = self.process.predict(self._held(points), _slopes(best, self.middle, points, work, low[2]))
        away = np.maximum(np.maximum(points - high, low - points), 0.0)
        form = _form(best, self.middle, points, work, low[2])
        wide = np.sqrt(spread**2 + OUTSIDE**2 * np.square(away).sum(axis=1))
        return np.log(self.unit) + form + mean, wide

    @cached_property
    def _corners(self) -> tuple[Floats, Floats]:
        """Least and largest of what was learned, each of shape (5,)."""
        return self.process.points.min(axis=0), self.process.points.max(axis=0)

    def _held(self, points: Floats) -> Floats:
        low, high = self._corners
        return np.clip(points, low - 0.5, high + 0.5)


def _best(
    start: Floats, factor: Floats, log_watts: Floats, middle: tuple[float, float], points: Floats, work: Floats
) -> Floats:
    """The most probable numbers under a covariance with this Cholesky factor, looked for from a start."""

    def left(moves: Floats) -> Floats:
        error = log_watts - _form(MEANS + SPREADS * moves, middle, points, work)
        return np.concatenate([scipy.linalg.solve_triangular(factor, error, lower=True), moves])

    return np.asarray(MEANS + SPREADS * scipy.optimize.least_squares(left, (start - MEANS) / SPREADS).x)


def _form(numbers: Floats, middle: tuple[float, float], points: Floats, work: Floats, lowest: float = -100.0) -> Floats:
    """Log of the form at points (n, 5), relative to the unit; ``lowest`` is the log of the least clock learned."""
    log_w0, log_w1, s, q, k, a, m, logit, h = numbers
    waiting = 1.0 / (1.0 + np.exp(-logit))
    log_p, log_f = points[:, 1] - middle[0], points[:, 2] - middle[1]
    static = log_w0 + s * log_p
    dynamic = log_w1 + q * log_p + k * log_f + a * np.exp(-h * points[:, 1]) * points[:, 3] + m * np.log(work[:, 1])
    dynamic += np.log(waiting + (1.0 - waiting) * work[:, 0])
    dynamic += (min(k, LINEAR) - k) * np.minimum(points[:, 2] - lowest, 0.0)
    return np.asarray(np.logaddexp(static, dynamic))


def _slopes(
    numbers: Floats, middle: tuple[float, float], points: Floats, work: Floats, lowest: float = -100.0
) -> Floats:
    """Derivatives of the form by its numbers, shape (n, 9)."""
    step = 1e-5
    columns = []
    for place in range(len(numbers)):
        moved = [numbers + sign * step * np.eye(len(numbers))[place] for sign in (1.0, -1.0)]
        above, below = (_form(each, middle, points, work, lowest) for each in moved)
        columns.append((above - below) / (2.0 * step))
    return np.stack(columns, axis=1)
