"""How much less sure a prediction is outside what was learned.

Inside its runs a model is checked by them; outside nothing holds it. Its error there is taken to grow like a random
walk with the distance from the box of all that was learned, in the logarithms of N, P, available CPU and bandwidth. How
fast is learned for each application: from a rehearsal on the training runs, and then from every outcome that lay
outside the box when it was predicted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from candidate_functions.terms import Observations
from metasched.predictors.contract import Floats

#: Spread of log time at a distance of one (a factor e) that is assumed, and how many outcomes that is worth.
PRIOR_RATE, PRIOR_WEIGHT = 0.1, 1.0


@dataclass(frozen=True)
class Extrapolation:
    """The box of what was learned, and what was seen of errors outside it.

    Parameters
    ----------
    low, high : smallest and largest logarithms of N, P, available CPU and bandwidth.
    squares, weight : sums of the least squares fit of squared errors to squared distances.

    Examples
    --------
    >>> runs = Observations.of([100.0, 400.0], [4, 4], [1.0, 1.0], [90.0, 90.0], [1.0, 4.0])
    >>> learned = Extrapolation.of(runs)
    >>> learned.spread(*np.array([[200.0, 400.0 * np.e], [4.0, 4.0], [1.0, 1.0], [90.0, 90.0]])).round(3)
    array([0. , 0.1])
    """

    low: tuple[float, float, float, float]
    high: tuple[float, float, float, float]
    squares: float = 0.0
    weight: float = 0.0

    @classmethod
    def of(cls, runs: Observations) -> Extrapolation:
        """The box of some runs, nothing known of errors outside it."""
        points = _points(runs.problem_size, runs.processors, runs.cpu, runs.bw)
        return cls(_four(points.min(axis=0)), _four(points.max(axis=0)))

    @property
    def rate(self) -> float:
        """Spread of log time at a distance of one."""
        squares, weight = PRIOR_WEIGHT * PRIOR_RATE**2 + self.squares, PRIOR_WEIGHT + self.weight
        return float(np.sqrt(squares / weight))

    def distance(self, n: Floats, p: Floats, cpu: Floats, bw: Floats) -> Floats:
        """Distance from the box, arrays of shape (k,) to (k,)."""
        points = _points(n, p, cpu, bw)
        outside = np.maximum(np.maximum(points - np.array(self.high), np.array(self.low) - points), 0.0)
        return np.asarray(np.sqrt((outside**2).sum(axis=1)))

    def spread(self, n: Floats, p: Floats, cpu: Floats, bw: Floats) -> Floats:
        """Spread of log time that comes from lying outside, arrays of shape (k,) to (k,)."""
        return self.rate * self.distance(n, p, cpu, bw)

    def judged(self, distance: Floats, errors: Floats, spread: Floats) -> Extrapolation:
        """With errors of log time at distances from the box, beyond the spreads that the model had there, all (k,).

        An error is weighed by the square of its distance: near the box it says little of the rate.
        """
        near = np.isfinite(errors)
        excess = np.maximum(errors[near] ** 2 - spread[near] ** 2, 0.0)
        far = distance[near] ** 2
        return replace(self, squares=self.squares + float(far @ excess), weight=self.weight + float(far @ far))

    def grown(self, runs: Observations) -> Extrapolation:
        """With a box that holds these runs too."""
        points = _points(runs.problem_size, runs.processors, runs.cpu, runs.bw)
        return replace(
            self,
            low=_four(np.minimum(self.low, points.min(axis=0))),
            high=_four(np.maximum(self.high, points.max(axis=0))),
        )


def _points(n: Floats, p: Floats, cpu: Floats, bw: Floats) -> Floats:
    return np.log(np.stack([n, p, cpu, bw], axis=1))


def _four(values: Floats) -> tuple[float, float, float, float]:
    one, two, three, four = values.tolist()
    return one, two, three, four
