"""Node failures: probability of completion, expected completion with restarts, and the checkpoint interval.

Failures of a node are a Poisson process of rate lambda, so that of P nodes one fails at the rate lambda P, and the
chance that none does within t is e^(-lambda t P) (Proficz and Czarnul, Table 1). A job that is struck begins again at
its last checkpoint; restarting takes no time of its own.

In all formulas ``work`` is what a job takes without failures (s), ``rate`` lambda P, at which some of its nodes fails
(1/s), and ``cost`` what a checkpoint takes (s): numbers, or arrays that broadcast to the shape of the answer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from metasched.arrays import Floats
from metasched.records import InputError


@dataclass(frozen=True, slots=True)
class FailureRate:
    """How often a node fails: a Gamma distribution, or one number.

    Parameters
    ----------
    mean : failures per second and node, above 0.
    shape : of the Gamma distribution; infinity where the rate is known.

    Examples
    --------
    >>> rate = FailureRate.observed(3, 192 * 30 * 86400.0)
    >>> f"{rate.mean:.3g}, {rate.quantile(0.05):.3g} to {rate.quantile(0.95):.3g}"
    '7.03e-09, 2.18e-09 to 1.41e-08'
    """

    mean: float
    shape: float = math.inf

    def __post_init__(self) -> None:
        if not (0 < self.mean < math.inf and self.shape > 0):
            raise InputError(f"the failure rate is {self.mean:g} per second, expected a finite number above 0")

    @classmethod
    def observed(cls, failures: int, exposure: float) -> FailureRate:
        """The posterior after failures in ``exposure`` node seconds, with Jeffreys' prior (shape 1/2, no exposure).

        Parameters
        ----------
        failures : how many nodes failed.
        exposure : seconds that nodes were watched, added over the nodes.

        Raises
        ------
        InputError : when there was no exposure.
        """
        if not 0 < exposure < math.inf:
            raise InputError(f"nodes were watched for {exposure:g} node seconds, expected a number above 0")
        return cls((failures + 0.5) / exposure, failures + 0.5)

    @property
    def exposure(self) -> float:
        """Node seconds that tell of the rate, infinite where it is known."""
        return self.shape / self.mean

    def quantile(self, share: float) -> float:
        """The quantile of the rate (failures per second and node) at probability ``share``."""
        if math.isinf(self.shape):
            return self.mean
        return float(scipy.special.gammaincinv(self.shape, share)) * self.mean / self.shape

    def success(self, duration: float, nodes: float) -> float:
        """Probability that none of ``nodes`` nodes fails within a duration (s), averaged over the rate's distribution.

        >>> round(FailureRate(5.03372e-10).success(86400, 192), 7)
        0.9916844
        """
        struck = self.mean * duration * nodes
        if math.isinf(self.shape):
            return math.exp(-struck)
        return math.exp(-self.shape * math.log1p(struck / self.shape))

    def success_between(self, duration: float, nodes: float, level: float) -> tuple[float, float]:
        """The interval of :meth:`success` over a time (s), from quantiles of the rate, as wide as to hold the mean."""
        most, least = self.quantile(0.5 + level / 2), self.quantile(0.5 - level / 2)
        # Of few failures the mean may be that of a few small rates, beyond the quantiles.
        ends = (math.exp(-rate * duration * nodes) for rate in (most, least))
        every = (*ends, self.success(duration, nodes))
        return min(every), max(every)


def from_scratch(work: Floats | float, rate: Floats | float) -> Floats:
    """Expected completion (s) if every failure restarts the job from scratch, (e^(lambda P T) - 1) / (lambda P).

    >>> round(float(from_scratch(864.0, 5.03372e-10 * 100_000)), 3)
    883.064
    """
    with np.errstate(over="ignore", invalid="ignore"):
        struck = np.asarray(np.multiply(rate, work))
        # As a share of the work: divided by a rate that is hardly a number, or none, little would be left of it.
        longer = np.divide(np.expm1(struck), struck, out=np.ones_like(struck), where=struck != 0)
        return np.asarray(np.where(np.isinf(struck), math.inf, work * longer))


def young(cost: Floats | float, rate: Floats | float) -> Floats:
    """Young's interval between checkpoints that each take ``cost`` seconds, sqrt(2 C / (lambda P)).

    >>> round(float(young(600.0, 5.03372e-5)), 1)
    4882.5
    """
    return np.asarray(np.sqrt(2.0 * np.asarray(cost) / rate))


def best_interval(cost: Floats | float, rate: Floats | float) -> Floats:
    """The work between checkpoints (s) that ends a long job first, (1 + W(-e^(-1 - lambda P C))) / (lambda P).

    W is Lambert's function, its upper branch. It lies below Young's interval, which leaves out that checkpoints fail
    too.

    >>> round(float(best_interval(600.0, 5.03372e-5)), 1)
    4491.0
    """
    from scipy.special import lambertw

    rate = np.asarray(rate, dtype=np.float64)
    x: Floats = np.asarray(cost * rate, dtype=np.float64)
    branch: Any = -np.exp(-1.0 - x)
    # Near the branch point W loses half of its digits; its series there, in p, loses none.
    p = np.sqrt(-2.0 * np.expm1(-x))
    series = p * (1 + p * (-1 / 3 + p * (11 / 72 + p * (-43 / 540 + p * 769 / 17_280))))
    y = np.where(x < 1e-4, series, 1.0 + lambertw(branch).real)
    return np.asarray(y / rate)


def in_pieces(work: Floats | float, rate: Floats | float, cost: Floats | float, pieces: Floats | float) -> Floats:
    """Expected completion (s) of work in ``pieces`` pieces with a checkpoint after each but the last.

    Every piece takes equally long with its checkpoint: so the last holds more work than the others, by what a
    checkpoint takes, and no other way to part the work ends sooner.

    >>> float(in_pieces(100.0, 1e-12, 1.0, 4).round(6))
    103.0
    """
    return np.asarray(pieces * from_scratch(np.divide(work, pieces) + (1.0 - np.divide(1.0, pieces)) * cost, rate))


def best_pieces(work: Floats | float, rate: Floats | float, cost: Floats | float) -> Floats:
    """The number of pieces with which work (s) is expected to end first (:func:`in_pieces`).

    The expectation is convex in the number of pieces, and as a fraction the best is that of pieces of
    :func:`best_interval`; so the best whole number is next to it.

    >>> best_pieces(np.array([864.0, 4_600.0, 46_000.0]), 5.03372e-5, 600.0).tolist()
    [1.0, 1.0, 10.0]
    """
    fewer = np.maximum(np.floor((np.asarray(work) - cost) / best_interval(cost, rate)), 1.0)
    sooner = in_pieces(work, rate, cost, fewer + 1.0) < in_pieces(work, rate, cost, fewer)
    return np.asarray(fewer + sooner)
