"""The contract that every predictor keeps: predict one, predict many, learn one.

Any predictor can stand in for any other: the ranker, the evaluation and the daemon know only this file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from metasched.records import Prediction, Request, Run

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Predictions:
    """Many predictions at once.

    Parameters
    ----------
    execution_time : array of shape (n,), seconds.
    low, high : arrays of shape (n,), the ends of the prediction intervals, seconds.
    level : probability that an interval holds its outcome.
    """

    execution_time: Floats
    low: Floats
    high: Floats
    level: float


@runtime_checkable
class Predictor(Protocol):
    """What every way to predict can do.

    A prediction never waits for learning: while a search runs, answers come from what was known before it.
    """

    @property
    def name(self) -> str:
        """Name of the method, as the command line spells it."""
        ...

    def predict(self, request: Request, level: float = 0.9) -> Prediction:
        """Predict one execution time, with an interval that holds it with probability ``level``."""
        ...

    def predict_many(
        self,
        problem_size: ArrayLike,
        processors: ArrayLike,
        available_cpu: ArrayLike,
        available_bandwidth: ArrayLike,
        level: float = 0.9,
    ) -> Predictions:
        """Predict many: arrays broadcast against each other to shape (n,)."""
        ...

    def learn(self, run: Run) -> None:
        """Take one finished run into account."""
        ...


def expected(
    predictor: Predictor,
    problem_size: ArrayLike,
    processors: ArrayLike,
    available_cpu: ArrayLike,
    available_bandwidth: ArrayLike,
) -> Floats:
    """The execution times that ``predict_many`` tells, without their intervals where a predictor can leave those out.

    It can where it has a method ``expect_many`` of the same four arguments.
    """
    quick = getattr(predictor, "expect_many", None)
    if quick is not None:
        return np.asarray(quick(problem_size, processors, available_cpu, available_bandwidth))
    return predictor.predict_many(problem_size, processors, available_cpu, available_bandwidth).execution_time
