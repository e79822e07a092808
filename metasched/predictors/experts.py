"""The experts of the robust method: four ways to see the same runs, from formulas alone to hardly any formula.

* ``formulas``: the averaged models of Eq. (1).
* ``formulas + process``: the same, with a Gaussian process on what they leave over.
* ``power law + process``: a power law in N, P, available CPU and bandwidth, with a process on what it leaves over.
* ``response surface``: a quadratic in the logarithms.

Which one is right depends on the application and on how far outside its runs it is asked; see ``committee``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from candidate_functions.terms import Observations
from metasched.predictors.contract import Floats
from metasched.predictors.log_polynomial import LogPolynomial
from metasched.predictors.residual import Hyperparameters, ResidualProcess, inputs, well_chosen
from metasched.predictors.trend import Trend

#: The experts, in the order of their rows.
NAMES = ("formulas", "formulas + process", "power law + process", "response surface")

Kernels = tuple[Hyperparameters, Hyperparameters]


@dataclass(frozen=True)
class Experts:
    """All four, fitted to the same runs.

    Parameters
    ----------
    trend : the models of Eq. (1).
    beside_trend : process on what the trend leaves over.
    power_law : log time by a polynomial of degree one.
    beside_power_law : process on what the power law leaves over.
    surface : log time by a polynomial of degree two.
    noise : root mean square error of the trend and of the surface on the runs, the spreads that they claim.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> n, p = rng.uniform(100, 1000, 40), rng.choice([1.0, 2.0, 4.0, 8.0], 40)
    >>> runs = Observations.of(n, p, np.full(40, 0.9), np.full(40, 90.0), 1e-3 * n**2 / p)
    >>> log_time, spread = Experts.fit(Trend.search(runs), runs).predict(*np.array([[500.0], [4.0], [0.9], [90.0]]))
    >>> bool(np.allclose(np.exp(log_time[:, 0]), 62.5, rtol=0.02))
    True
    """

    trend: Trend
    beside_trend: ResidualProcess
    power_law: LogPolynomial
    beside_power_law: ResidualProcess
    surface: LogPolynomial
    noise: tuple[float, float]

    @classmethod
    def fit(cls, trend: Trend, runs: Observations, kernels: Kernels | None = None, *, optimise: bool = True) -> Experts:
        """Fit all but the trend to runs, starting from the hyperparameters given."""
        chosen = runs.at(well_chosen(runs))
        points = inputs(chosen.problem_size, chosen.processors, chosen.cpu, chosen.bw)
        log_time = np.log(chosen.time)
        of_trend, of_power_law = kernels or (None, None)
        rest = log_time - trend.log_time(chosen.problem_size, chosen.processors, chosen.cpu, chosen.bw)
        defined = np.isfinite(rest)
        power_law = LogPolynomial(1, points, log_time, resistant=True)
        surface = LogPolynomial(2, points, log_time, resistant=True)
        noise = (_rms(rest[defined]), _rms(log_time - surface(points)))
        return cls(
            trend,
            ResidualProcess(points[defined], rest[defined], of_trend, optimise=optimise),
            power_law,
            ResidualProcess(points, log_time - power_law(points), of_power_law, optimise=optimise),
            surface,
            noise,
        )

    @property
    def kernels(self) -> Kernels:
        """Hyperparameters of the two processes."""
        return self.beside_trend.hyperparameters, self.beside_power_law.hyperparameters

    def predict(self, n: Floats, p: Floats, cpu: Floats, bw: Floats) -> tuple[Floats, Floats]:
        """Log times and spreads by every expert: arrays of shape (n,) to two of shape (4, n)."""
        points = inputs(n, p, cpu, bw)
        trend = self.trend.log_time(n, p, cpu, bw)
        bend, bend_spread = self.beside_trend.predict(points)
        rest, rest_spread = self.beside_power_law.predict(points)
        log_time = np.stack([trend, trend + bend, self.power_law(points) + rest, self.surface(points)])
        spread = np.stack(
            [np.full_like(trend, self.noise[0]), bend_spread, rest_spread, np.full_like(trend, self.noise[1])]
        )
        return log_time, spread

    def expect(self, n: Floats, p: Floats, cpu: Floats, bw: Floats) -> Floats:
        """Log times by every expert, as :meth:`predict` tells them, without the spreads that take most of its time."""
        points = inputs(n, p, cpu, bw)
        trend = self.trend.log_time(n, p, cpu, bw)
        return np.stack(
            [
                trend,
                trend + self.beside_trend.mean(points),
                self.power_law(points) + self.beside_power_law.mean(points),
                self.surface(points),
            ]
        )


def _rms(values: Floats) -> float:
    return float(np.sqrt(np.mean(values**2))) if len(values) else 0.0
