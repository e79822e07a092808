"""Many requests as columns of numbers, and a base class of the predictors that answer all of them at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from metasched.arrays import Floats
from metasched.predictors.contract import Learned, Part, Predictions, Term
from metasched.records import Interval, Prediction, Request

#: N, P, available CPU and available bandwidth (Mbit/s) of many requests, arrays of one shape (n,).
Columns = tuple[Floats, Floats, Floats, Floats]


def broadcast(
    problem_size: ArrayLike, processors: ArrayLike, available_cpu: ArrayLike, available_bandwidth: ArrayLike
) -> Columns:
    """The four columns of many requests as arrays of one shape (n,).

    >>> [column.shape for column in broadcast(100.0, [1, 2], 0.5, 90.0)]
    [(2,), (2,), (2,), (2,)]
    """
    given = (problem_size, processors, available_cpu, available_bandwidth)
    columns = [np.asarray(column, dtype=np.float64) for column in given]
    shape = np.broadcast(*columns).shape or (1,)
    n, p, cpu, bw = (each if each.shape == shape else _repeated(each, shape) for each in columns)
    return n, p, cpu, bw


def _repeated(column: Floats, shape: tuple[int, ...]) -> Floats:
    """The column in a shape; a single number without numpy's function, which takes ten times as long."""
    if column.ndim:
        return np.broadcast_to(column, shape)
    return np.ndarray(shape, buffer=column, strides=(0,) * len(shape))


def columns_of(request: Request) -> Columns:
    """The four columns of one request, each of shape (1,).

    >>> columns_of(Request(100, 2, 0.5, 90.0))[1]
    array([2.])
    """
    return broadcast(request.problem_size, request.processors, request.available_cpu, request.available_bandwidth)


#: A bandwidth (Mbit/s) with which nothing takes time to be sent.
BOUNDLESS = 1e9


class ByColumns(ABC):
    """A base class that derives the other methods from ``name`` and predictions for columns of one shape."""

    name: str

    def predict_many(
        self,
        problem_size: ArrayLike,
        processors: ArrayLike,
        available_cpu: ArrayLike,
        available_bandwidth: ArrayLike,
        level: float = 0.9,
    ) -> Predictions:
        """Predict many requests at once, see :class:`metasched.predictors.contract.Predictor`."""
        return self._predicted(broadcast(problem_size, processors, available_cpu, available_bandwidth), level)

    def expect_many(
        self, problem_size: ArrayLike, processors: ArrayLike, available_cpu: ArrayLike, available_bandwidth: ArrayLike
    ) -> Floats:
        """The execution times of :meth:`predict_many` without their intervals."""
        return self._expected(broadcast(problem_size, processors, available_cpu, available_bandwidth))

    @abstractmethod
    def _predicted(self, columns: Columns, level: float) -> Predictions:
        """Times with intervals; infinite if no prediction is defined."""

    def _expected(self, columns: Columns) -> Floats:
        return self._predicted(columns, 0.9).execution_time

    def predict(self, request: Request, level: float = 0.9) -> Prediction:
        """Predict one execution time (s), as one of many."""
        many = self._predicted(columns_of(request), level)
        interval = Interval(float(many.low[0]), float(many.high[0]), level)
        return Prediction(float(many.execution_time[0]), interval, self.name)

    def settle(self) -> None:  # noqa: B027
        """Return at once: nothing is searched in the background."""

    def breakdown(self, request: Request) -> tuple[Term, ...]:
        """The time with infinite bandwidth is computation, the rest is communication."""
        n, p, cpu, bw = columns_of(request)
        time, unbounded = (float(self.expect_many(n, p, cpu, links)[0]) for links in (bw, BOUNDLESS))
        computation = min(time, unbounded)
        return (
            Term("computation", f"{self.name} model with boundless bandwidth", computation),
            Term("communication", f"{self.name} model, the rest", time - computation),
        )

    def learned(self) -> Learned:
        """The fitted parameters, each by its name."""
        return Learned((Part("", None, self._facts()),))

    def _facts(self) -> Mapping[str, Any]:
        return {}
