"""The contract that every predictor keeps: fit to runs, predict one, predict many, learn one, take a prediction apart.

Any predictor can stand in for any other: the ranker, the evaluation and the daemon know only this file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, Self, cast, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from metasched.records import DEFAULT_SETTINGS, InputError, Interval, Prediction, Request, Run, Settings

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
        InputError
            When it predicts nothing for any of the runs.
        """

    def prepare(self) -> None:
        """Compute what rankings will ask for, where that is known beforehand and takes long."""


def for_user(predictor: Predictor, user: str) -> Predictor:
    """The predictor for a user: the predictor itself, or a separate one for a user whose runs contradict the others."""
    apart = getattr(predictor, "for_user", None)
    found: Predictor = predictor if apart is None else apart(user)
    return found


def prepare(predictor: Predictor) -> None:
    """Have the separate predictors of users at hand, where there are any: nobody has to wait for them."""
    if (ready := getattr(predictor, "prepare", None)) is not None:
        ready()


@dataclass(frozen=True)
class Plan:
    """Runs to make, in this order.

    Parameters
    ----------
    runs : what to run.
    seconds : expected times of each, shape (k,).
    before, after : spread of log time at each placement asked for, now and once the runs were made, shape (t,).
    """

    runs: tuple[Request, ...]
    seconds: Floats
    before: Floats
    after: Floats


class PlansRuns(Predictor, Protocol):
    """A predictor that knows which runs would narrow its intervals most."""

    def plan(self, asked: Sequence[Request], candidates: Sequence[Request], budget: float) -> Plan:
        """Choose runs among candidates that take at most ``budget`` seconds together, for the requested placements."""

    def widths(self, spreads: Floats, level: float) -> Floats:
        """Upper over lower ends of intervals, from spreads of log time, both of shape (t,)."""


def planner(predictor: Predictor) -> PlansRuns | None:
    """The predictor as one that plans runs; None if its method cannot."""
    return cast(PlansRuns, predictor) if hasattr(predictor, "plan") else None


def layouts_of(predictor: Predictor) -> frozenset[tuple[int | None, int]]:
    """Processes per node and threads of the runs that a predictor has learned; none where they do not matter to it.

    Every placement asks, so only the attribute is looked for: checking a protocol costs as much as a prediction.
    """
    found: frozenset[tuple[int | None, int]] = getattr(predictor, "layouts", frozenset())
    return found


def expect_few(predictor: Predictor, problem_size: float, points: Sequence[tuple[int, float, float]]) -> list[float]:
    """Expected execution times (s) of one size at a few points, which a predictor may know without arrays.

    Parameters
    ----------
    predictor : any.
    problem_size : N.
    points : of each time the processors, the available CPU and the available bandwidth (Mbit/s).
    """
    own = getattr(predictor, "expect_few", None)
    columns = np.array(points, dtype=np.float64).T if own is None else ()
    found: list[float] = own(problem_size, points) if own else predictor.expect_many(problem_size, *columns).tolist()
    return found


class PowerTerm(NamedTuple):
    """A part of times that is a power of each load: factor * cpu**cpu * bandwidth**bandwidth seconds.

    Parameters
    ----------
    factor : for each number of processors, shape (k,).
    cpu, bandwidth : exponents of the available CPU and of the available bandwidth (Mbit/s).
    """

    factor: Floats
    cpu: float
    bandwidth: float


def power_terms(predictor: Predictor, problem_size: float, processors: ArrayLike) -> tuple[PowerTerm, ...] | None:
    """The terms whose sum is the expected times, if these are powers of the loads; else None.

    Whoever compares very many loads on the same numbers of processors takes each power once.

    Parameters
    ----------
    predictor : any; it knows such terms by a method ``power_terms`` of the same arguments.
    problem_size : N.
    processors : array of shape (k,).
    """
    find = getattr(predictor, "power_terms", None)
    found: tuple[PowerTerm, ...] | None = None if find is None else find(problem_size, processors)
    return found


def distinguishes_settings(predictor: Predictor) -> bool:
    """Whether layouts on nodes, parameters by name and clocks matter to a predictor; its ``predict`` minds them."""
    return hasattr(predictor, "under")


def under(predictor: Predictor, settings: Settings) -> Predictor:
    """The predictor in its present state, for some settings; the same one if it does not distinguish settings.

    Raises
    ------
    InputError : they are none that it knows.
    """
    if settings == DEFAULT_SETTINGS or not distinguishes_settings(predictor):
        return predictor
    found: Predictor = predictor.under(settings)  # type: ignore[attr-defined]
    return found


def check_depends(predictor: Predictor, settings: Settings) -> None:
    """Refuse, by InputError, settings that were stated for a predictor that does not distinguish any."""
    if settings != DEFAULT_SETTINGS and not distinguishes_settings(predictor):
        raise InputError(f"{settings.text} is given, but {predictor.name} models do not depend on it")


def on_platform(predictor: Predictor, platform: str) -> Predictor:
    """The predictor for a platform: the part of one for several platforms, else the predictor itself."""
    apart = getattr(predictor, "on", None)
    found: Predictor = predictor if apart is None else apart(platform)
    return found


def teaching_of(predictor: Predictor) -> tuple[Run, ...]:
    """The runs of a platform that models of other platforms can borrow, oldest first; empty if its method has none."""
    found: tuple[Run, ...] = getattr(predictor, "teaching", ())
    return found


def borrow(predictor: Predictor, runs: Iterable[Run]) -> None:
    """Let a predictor borrow runs of other platforms from its next fit on, if its method can."""
    borrowing = getattr(predictor, "borrowing", None)
    if borrowing is not None:
        borrowing(runs)


def borrowed_by(predictor: Predictor) -> tuple[Run, ...]:
    """The runs that a predictor borrows from other platforms; empty if its method cannot."""
    found: tuple[Run, ...] = getattr(predictor, "lent", ())
    return found


def reason_of(predictor: Predictor) -> str | None:
    """The reason for the choice of a predictor that represents several; None for a single one."""
    found: str | None = getattr(predictor, "reason", None)
    return found


def computing_share(
    predictor: Predictor,
    problem_size: ArrayLike,
    processors: ArrayLike,
    available_cpu: ArrayLike,
    available_bandwidth: ArrayLike,
) -> Floats:
    """The shares of expected times that are computation, as the terms of ``breakdown`` have them, shape (n,)."""
    at_once = getattr(predictor, "computing_share", None)
    if at_once is not None:
        split: Floats = at_once(problem_size, processors, available_cpu, available_bandwidth)
        return split
    columns = np.stack(broadcast(problem_size, processors, available_cpu, available_bandwidth), axis=1)
    rows, place = np.unique(columns, axis=0, return_inverse=True)
    shares = []
    for n, p, cpu, bw in rows.tolist():
        terms = predictor.breakdown(Request(n, int(p), min(cpu, 1.0), bw))
        whole = sum(term.seconds for term in terms)
        computing = sum(term.seconds for term in terms if term.name.startswith("computation"))
        shares.append(min(max(computing / whole, 0.0), 1.0) if whole > 0.0 else 1.0)
    return np.array(shares)[place.ravel()]


def clocks_of(predictor: Predictor) -> tuple[float, float] | None:
    """The lowest and the highest clock that a predictor has learned (MHz); None if no run recorded one."""
    found: tuple[float, float] | None = getattr(predictor, "clocks", None)
    return found


def clock_spread(
    predictor: Predictor,
    beside: float | None,
    problem_size: ArrayLike,
    processors: ArrayLike,
    available_cpu: ArrayLike,
    available_bandwidth: ArrayLike,
) -> Floats:
    """Spreads of the logarithms of times over those of the same predictor at another clock (MHz), shape (n,).

    0 where its method knows no doubt about the effect of the clock.
    """
    columns = broadcast(problem_size, processors, available_cpu, available_bandwidth)
    asked = getattr(predictor, "clock_spread", None)
    found: Floats = np.zeros(len(columns[0])) if asked is None else asked(beside, *columns)
    return found


def energy_predictor(predictor: Predictor) -> Predictor | None:
    """The predictor of the energy of runs whose times a predictor predicts, with joules instead of seconds.

    None where it has learned none. Asked of every placement, as :func:`layouts_of`.
    """
    asked = getattr(predictor, "energy_predictor", None)
    found: Predictor | None = None if asked is None else asked()
    return found


def expect_watts(
    predictor: Predictor,
    problem_size: ArrayLike,
    processors: ArrayLike,
    available_cpu: ArrayLike,
    available_bandwidth: ArrayLike,
) -> Floats | None:
    """Expected mean power (W) of runs whose times a predictor predicts, shape (n,); None where it learned no energy."""
    energy = energy_predictor(predictor)
    if energy is None:
        return None
    columns = broadcast(problem_size, processors, available_cpu, available_bandwidth)
    own = getattr(energy, "expect_watts", None)
    found: Floats = energy.expect_many(*columns) / predictor.expect_many(*columns) if own is None else own(*columns)
    return found


def most_watts(
    predictor: Predictor,
    problem_size: ArrayLike,
    processors: ArrayLike,
    available_cpu: ArrayLike,
    available_bandwidth: ArrayLike,
    level: float = 0.9,
) -> Floats | None:
    """Upper ends of the intervals of mean power (W) of runs whose times a predictor predicts, shape (n,).

    None where it has learned no energy; what is expected where its method knows no interval.
    """
    ends = getattr(energy_predictor(predictor), "most_watts", None)
    if ends is None:
        return expect_watts(predictor, problem_size, processors, available_cpu, available_bandwidth)
    found: Floats = ends(*broadcast(problem_size, processors, available_cpu, available_bandwidth), level)
    return found


#: N, P, available CPU and available bandwidth (Mbit/s) of many requests, arrays of one shape (n,).
Columns = tuple[Floats, Floats, Floats, Floats]


def broadcast(
    problem_size: ArrayLike, processors: ArrayLike, available_cpu: ArrayLike, available_bandwidth: ArrayLike
) -> Columns:
    """The four columns of many requests as arrays of one shape (n,).

    Examples
    --------
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

    Examples
    --------
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
        """Predict many requests at once, see :class:`Predictor`."""
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
