"""How several experts become one prediction: a weighted mean of log times, weights by their record.

Combining forecasts in inverse proportion to their squared errors goes back to Bates & Granger, "The combination of
forecasts" (Operational Research Quarterly 20, 1969). Recent errors count more than old ones, one wild miss counts no
more than a large one, and the spread of the whole includes how far the experts disagree.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from metasched.predictors.contract import Floats

#: Share of its weight that a past error keeps after each further run.
MEMORY = 0.97
#: Errors of log time that every expert starts with, and how many of them.
PRIOR_ERROR, PRIOR_COUNT = 0.05, 5.0
#: A larger error of log time counts as this one.
LARGEST_ERROR = 0.2
#: No expert pulls from farther away than this from the weighted median of all, on the logarithm of time (a factor e).
PULL = 1.0
#: Power of the mean squared error that weights fall with: between averaging (0) and choosing the best (infinity).
SHARPNESS = 2.0


@dataclass(frozen=True)
class Record:
    """Discounted squared errors of each expert's log time.

    Parameters
    ----------
    squares : sums of squared errors, one for each of m experts.
    count : discounted number of errors in each sum.

    Examples
    --------
    >>> record = Record.fresh(2).learned(np.array([0.01, 0.3]))
    >>> record.weights().round(2)
    array([0.95, 0.05])
    """

    squares: tuple[float, ...]
    count: float

    @classmethod
    def fresh(cls, experts: int) -> Record:
        """The record of experts of whom nothing is known."""
        return cls((PRIOR_COUNT * PRIOR_ERROR**2,) * experts, PRIOR_COUNT)

    def learned(self, errors: Floats) -> Record:
        """The record after one more run: errors of log time, shape (m,); one that is not finite counts as largest."""
        squares = np.minimum(np.nan_to_num(np.abs(errors), nan=LARGEST_ERROR, posinf=LARGEST_ERROR), LARGEST_ERROR) ** 2
        return Record(
            tuple(float(MEMORY * old + new) for old, new in zip(self.squares, squares, strict=True)),
            MEMORY * self.count + 1.0,
        )

    def weights(self) -> Floats:
        """Weights of the experts, shape (m,), summing to 1."""
        weight = (np.asarray(self.squares) / self.count) ** -SHARPNESS
        return np.asarray(weight / weight.sum())


def combine(log_time: Floats, spread: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Mean and spread of the committee.

    Parameters
    ----------
    log_time, spread : arrays of shape (m, n), one row an expert; an infinite log time is an expert without an answer.
    weights : array of shape (m,).

    Returns
    -------
    log_time, spread : arrays of shape (n,); infinite log time where no expert has an answer.

    Examples
    --------
    >>> mean, spread = combine(np.array([[1.0], [2.0]]), np.zeros((2, 1)), np.array([0.5, 0.5]))
    >>> mean, spread
    (array([1.5]), array([0.5]))
    """
    known, weight, able = _known(log_time, weights)
    mean = (weight * known).sum(axis=0)
    variance = (weight * (spread**2 + (known - mean) ** 2)).sum(axis=0)
    return np.where(able, mean, np.inf), np.sqrt(variance)


def combined(log_time: Floats, weights: Floats) -> Floats:
    """The mean alone, as :func:`combine` tells it.

    Examples
    --------
    >>> combined(np.array([[1.0], [2.0]]), np.array([0.5, 0.5]))
    array([1.5])
    """
    known, weight, able = _known(log_time, weights)
    return np.where(able, (weight * known).sum(axis=0), np.inf)


def _known(log_time: Floats, weights: Floats) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Log times that count and their weights, both of shape (m, n), and where there are any, shape (n,)."""
    answers = np.isfinite(log_time)
    if answers.all():  # nearly always, and so in half the time
        weight = np.repeat(weights[:, None], log_time.shape[1], axis=1)
        return _within_reach(log_time, weight), weight, np.ones(log_time.shape[1], dtype=np.bool_)
    weight = np.where(answers, weights[:, None], 0.0)
    total = weight.sum(axis=0)
    able = total > 0.0
    weight /= np.where(able, total, 1.0)
    return _within_reach(np.where(answers, log_time, 0.0), weight), weight, able


def _within_reach(log_time: Floats, weight: Floats) -> Floats:
    """Log times of shape (m, n), drawn towards the weighted median of each column where they lie too far from it."""
    order, column = np.argsort(log_time, axis=0), np.arange(log_time.shape[1])
    passed = weight[order, column].cumsum(axis=0)
    middle = (passed >= 0.5 * passed[-1]).argmax(axis=0)
    median = log_time[order[middle, column], column]
    return np.asarray(np.minimum(np.maximum(log_time, median - PULL), median + PULL))
