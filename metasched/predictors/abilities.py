"""What only some predictors can do, asked of any: each function says what the others answer.

Nobody has to know which predictor it has. Placements ask for most of these, so only an attribute is looked for:
checking a protocol costs as much as a prediction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import ArrayLike

from metasched.arrays import Floats
from metasched.predictors.columns import broadcast
from metasched.predictors.contract import Predictor
from metasched.records import DEFAULT_SETTINGS, InputError, Prediction, Request, Run, Settings


def for_user(predictor: Predictor, user: str) -> Predictor:
    """The predictor for a user: the predictor itself, or a separate one for a user whose runs contradict the others."""
    apart = getattr(predictor, "for_user", None)
    found: Predictor = predictor if apart is None else apart(user)
    return found


def prepare(predictor: Predictor) -> None:
    """Let a predictor compute what it will be asked for, such as separate predictors of users: nobody waits for it."""
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


class PredictsProcesses(Predictor, Protocol):
    """A predictor that knows what the loads of each process do, not just their minima."""

    def predict_processes(
        self, problem_size: float, available_cpu: ArrayLike, available_bandwidth: ArrayLike, level: float = 0.9
    ) -> Prediction:
        """Predict one execution time from the loads of each process, by its id: arrays of shape (P,)."""


def by_process(predictor: Predictor) -> PredictsProcesses | None:
    """The predictor as one that predicts from the loads of each process; None if its method knows their minima only."""
    return cast(PredictsProcesses, predictor) if hasattr(predictor, "predict_processes") else None


def layouts_of(predictor: Predictor) -> frozenset[tuple[int | None, int]]:
    """Processes per node and threads of the runs that a predictor has learned; none where they do not matter to it."""
    found: frozenset[tuple[int | None, int]] = getattr(predictor, "layouts", frozenset())
    return found


class UsualLoad(NamedTuple):
    """What replaces a load that was not measured: its median, and the standard deviation of its logarithm."""

    median: float
    spread: float


def usual_loads(predictor: Predictor) -> tuple[UsualLoad, UsualLoad] | None:
    """CPU (share of a processor) and bandwidth (Mbit/s) with which a predictor learns runs whose loads are not known.

    None if these are the loads of idle nodes, see ``Run.request``.
    """
    found: tuple[UsualLoad, UsualLoad] | None = getattr(predictor, "usual_loads", None)
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


def with_usual_threads(settings: Settings, predictor: Predictor) -> Settings:
    """The settings of a run whose threads are not stated: with those that all runs of a predictor had.

    Where these differ, or are not known, each process has one.
    """
    had = {threads for _, threads in layouts_of(predictor)}
    return replace(settings, threads=had.pop()) if len(had) == 1 else settings


def understood(settings: Settings, answering: Iterable[object]) -> tuple[Settings, tuple[str, ...]]:
    """The settings without the parameters that something refuses, and why each of these is refused.

    A job is placed, whatever its user has misspelt; whoever predicts for the settings that are left can say the rest.

    Parameters
    ----------
    settings : of a job or a run.
    answering : predictors or models; those without a method ``under`` refuse nothing.
    """
    if not settings.parameters:
        return settings, ()
    able = [found for each in answering if (found := getattr(each, "under", None)) is not None]
    with suppress(InputError):
        for answer in able:
            answer(settings)
        return settings, ()
    kept, refused = [], []
    for parameter in settings.parameters:
        try:
            for answer in able:
                answer(Settings(parameters=(parameter,)))
        except InputError as error:
            refused.append(str(error))
        else:
            kept.append(parameter)
    return replace(settings, parameters=tuple(kept)), tuple(refused)


def all_under(
    predictors: Mapping[str, Predictor], settings: Settings
) -> tuple[dict[str, Predictor], Settings, tuple[str, ...]]:
    """Predictors that are compared, each for the same settings: without the parameters that any of them refuses.

    A parameter that counted for some of them only would make the others look better or worse than they are.

    Parameters
    ----------
    predictors : by any name.
    settings : of a job.

    Returns
    -------
    predictors, settings, refused : the predictors for these settings, and why each parameter was left out.
    """
    known, refused = understood(settings, predictors.values())
    return {name: under(predictor, known) for name, predictor in predictors.items()}, known, refused


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


def usual_clock(predictor: Predictor) -> float | None:
    """The clock (MHz) of a predictor's answers where none is requested; None if its runs were not at several."""
    found: float | None = getattr(predictor, "usual_clock", None)
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

    None where it has learned none.
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
