"""The contract that every predictor keeps: fit to runs, predict one, predict many, learn one, take a prediction apart.

Any predictor can stand in for any other: the ranker, the evaluation and the daemon know this file, and
``abilities.py`` for what only some predictors can do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from metasched.arrays import Floats
from metasched.records import Prediction, Request, Run


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


@dataclass(frozen=True, slots=True)
class Term:
    """One part of a predicted time.

    Parameters
    ----------
    name : what it is, such as computation.
    how : how it was found, in words or as a formula.
    seconds : how much of the time it is; below 0 where it takes something off.
    """

    name: str
    how: str
    seconds: float


class Ranked(Protocol):
    """Combinations of Eq. (1), best first."""

    @property
    def combinations(self) -> NDArray[np.int16]:
        """Their functions, array of shape (k, 5)."""

    @property
    def coefficients(self) -> Floats:
        """Their coefficients, array of shape (k, 2)."""

    @property
    def standard_error(self) -> Floats:
        """Array of shape (k,), ascending; a share of the measured times where ``relative``, else seconds."""

    @property
    def relative(self) -> bool:
        """Whether errors are relative to the measured times."""

    def __len__(self) -> int:
        """How many combinations the list holds."""


@dataclass(frozen=True, slots=True)
class Part:
    """What a predictor has learned about an application, or one of its phases, for display.

    Parameters
    ----------
    name : of the phase; empty for the whole.
    models : the combinations of Eq. (1) that come nearest to the runs; None for methods that know none.
    facts : what else was found, by name.
    """

    name: str
    models: Ranked | None
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PhaseShare:
    """A phase at one number of processes, where no load slows it.

    Parameters
    ----------
    phase : its number; None for all phases together that take too little of the time to be listed.
    share : of the execution time.
    communication : share of its own time that is communication.
    efficiency : processor-seconds at the smallest number of processes that was traced, over those here.
    """

    phase: int | None
    share: float
    communication: float
    efficiency: float


@dataclass(frozen=True, slots=True)
class PhaseShares:
    """The phases of a signature at one number of processors; efficiencies are relative to ``least`` processors."""

    processors: int
    least: int
    phases: Sequence[PhaseShare]


@dataclass(frozen=True, slots=True)
class Learned:
    """What a predictor has learned, for display.

    Parameters
    ----------
    parts : one for the whole, or one for each phase.
    notes : what a user of the predictions should know.
    phases : how the time divides among the phases of a signature; None where none is known.
    """

    parts: tuple[Part, ...]
    notes: tuple[str, ...] = ()
    phases: PhaseShares | None = None


@runtime_checkable
class Predictor(Protocol):
    """The contract of all predictors.

    A prediction never waits for learning: while a search runs, answers come from what was known before it. Attributes
    beside the methods: ``name``, the method as the command line spells it; ``application`` and ``cluster``, what it
    models.
    """

    @property
    def name(self) -> str:
        """Name of the method, as the command line spells it."""

    def fit(self, runs: Iterable[Run]) -> Any:
        """Learn training runs, and forget everything learned before; the predictor itself.

        Raises
        ------
        InputError : the runs do not suffice.
        """

    def predict(self, request: Request, level: float = 0.9) -> Prediction:
        """Predict one execution time, with an interval that holds it with probability ``level``.

        Raises
        ------
        InputError : nothing was learned yet, or the model is not defined for the request.
        """

    def predict_many(
        self,
        problem_size: ArrayLike,
        processors: ArrayLike,
        available_cpu: ArrayLike,
        available_bandwidth: ArrayLike,
        level: float = 0.9,
    ) -> Predictions:
        """Predict many: arrays broadcast against each other to shape (n,); infinite where nothing is defined."""

    def expect_many(
        self, problem_size: ArrayLike, processors: ArrayLike, available_cpu: ArrayLike, available_bandwidth: ArrayLike
    ) -> Floats:
        """The execution times (s) of :meth:`predict_many` without their intervals, shape (n,)."""

    def learn(self, run: Run) -> None:
        """Take one finished run into account."""

    def settle(self) -> None:
        """Wait for a search that is running in the background, and take its result."""

    def breakdown(self, request: Request) -> tuple[Term, ...]:
        """The terms whose sum is a predicted time: computation, communication, and possibly others."""

    def learned(self) -> Learned:
        """What was learned so far, by parts, for display."""


class RunsSeen(Protocol):
    """The latest runs that a predictor has learned, oldest first, and the number of all."""

    seen: int

    def __len__(self) -> int:
        """How many runs are kept, at most the capacity."""

    def __iter__(self) -> Iterator[Run]:
        """The runs that are kept, oldest first."""


class Saved(Predictor, Protocol):
    """A predictor with a record of its application, platform and runs, as saved in documents."""

    @property
    def application(self) -> str:
        """The application whose execution times it predicts."""

    @property
    def cluster(self) -> str:
        """The platform that its runs were on."""

    @property
    def window(self) -> RunsSeen:
        """The runs that it looks back at."""


class Assumed(Saved, Protocol):
    """A predictor that answers before the first run, such as a simulation or a signature, and is corrected by runs."""

    def corrected(self, runs: Sequence[Run]) -> Self:
        """Another that knows these runs and no others.

        Raises
        ------
        InputError : when it predicts nothing for any of the runs.
        """

    def prepare(self) -> None:
        """Compute what rankings will ask for, where that is known beforehand and takes long."""
