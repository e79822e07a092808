"""The robust method, the default: one formula, one process, fitted again after every run at a cost that does not grow.

While runs are few the scales of the process are looked for after each; later every tenth run, in the background.
Outcomes teach how far the intervals must reach. Users who contradict the others teach only what is predicted for
themselves, see ``trust``; what changes for all is followed, see ``drift``.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import ArrayLike

from candidate_functions.terms import Observations
from metasched.predictors.contract import (
    Floats,
    Learned,
    Part,
    Plan,
    PowerTerm,
    Predictions,
    Term,
    broadcast,
    columns_of,
)
from metasched.predictors.formulas.searched import searched_list
from metasched.predictors.gaussian_process import Scales
from metasched.predictors.memory.background import BackgroundSearch
from metasched.predictors.memory.calibration import Calibration
from metasched.predictors.memory.domain import Domain
from metasched.predictors.memory.learned_state import LearnedState, at_least_one
from metasched.predictors.memory.window import RunWindow, measured
from metasched.predictors.robust.drift import REMEMBERED, Drift, Surprise
from metasched.predictors.robust.model import Model
from metasched.predictors.robust.planning import plan
from metasched.predictors.robust.tabulated import Tabulated
from metasched.predictors.robust.trust import FARTHEST, doubted
from metasched.records import DEFAULT_SETTINGS, InputError, Interval, Prediction, Request, Run, Settings

#: Runs between two searches for the scales of the process, and up to how many runs each run sets one off.
REVISIT, AT_ONCE = 10, 20
#: Scores that intervals start from: as many as this, distributed as the model says. Each outcome drives out two.
IMAGINED = 80
#: Runs between two whole searches for users to believe.
JUDGED = 10
#: Runs from which on they decide most of the model.
FEW = 10
#: Runs of other platforms that count before there is any here.
BORROWED = 96
#: Settings whose answers are kept ready at most.
MOST_VIEWS = 64
#: Decimal digits that a size or a time may have before or after the point.
LARGEST_DIGITS = 60
#: Inputs whose logarithms vary by less than this say nothing about their effect.
HARDLY = 0.1


def imagined() -> Calibration:
    """Scores before any outcome: |z| of a normal z at even steps, as they would be were spreads exactly right.

    Examples
    --------
    >>> round(imagined().reach(0.9), 1)
    1.7
    """
    steps = (np.arange(IMAGINED) + 0.5) / IMAGINED
    return Calibration.starting(scipy.special.ndtri(0.5 + 0.5 * steps))


@dataclass(frozen=True)
class RobustState:
    """All that the robust method knows at one moment.

    Parameters
    ----------
    model : formula and process.
    calibration : scores of past predictions.
    domain : what was learned from.
    notes : what a user of the predictions should know.
    since_search : runs learned since the last search for scales.
    doubted : users whose runs teach nobody but themselves.
    surprises : errors of the last predictions, oldest first.
    drift : the last one.
    asked : the settings that it answers for.
    """

    model: Model
    calibration: Calibration
    domain: Domain
    notes: tuple[str, ...] = ()
    since_search: int = 0
    asked: Settings = DEFAULT_SETTINGS
    doubted: frozenset[str] = frozenset()
    surprises: tuple[Surprise, ...] = ()
    drift: Drift | None = None

    @cached_property
    def own(self) -> dict[str, RobustPredictor]:
        """What was learned from each doubted user alone, as far as it was asked for."""
        return {}

    @cached_property
    def tabulated(self) -> Tabulated:
        """The model's answers to many requests at once, from tables that are filled as they are needed."""
        return Tabulated(self.model)

    def predict(self, n: Floats, p: Floats, cpu: Floats, bw: Floats) -> tuple[Floats, Floats]:
        """Log times and their spreads, for arrays of one shape (n,)."""
        time, spread = self.tabulated.predict(n, p, cpu, bw)
        return np.log(time), spread

    def under(self, settings: Settings) -> RobustState:
        """The same knowledge, answering for other settings; InputError where they are none that it knows."""
        if settings is DEFAULT_SETTINGS or settings == DEFAULT_SETTINGS:
            return self
        view = self._views.get(settings)
        if view is None:
            view = replace(self, model=self.model.under(settings), asked=settings)
            if len(self._views) >= MOST_VIEWS:
                self._views.clear()
            self._views[settings] = view
        return view

    @cached_property
    def doubts(self) -> tuple[str, ...]:
        """What a user should know of the settings that it answers for."""
        return self.model.formula.effects.columns.doubts(self.asked)

    @cached_property
    def _views(self) -> dict[Settings, RobustState]:
        return {}


class RobustPredictor(LearnedState[RobustState]):
    """The robust method.

    Parameters
    ----------
    application, cluster : what it models, for the record.
    capacity : runs that it looks back at.
    revisit : runs between two searches.

    Examples
    --------
    >>> runs = [
    ...     Run("cg", "c8", n, p, 0.9, 90.0, 1e-3 * n**1.5 / (0.9 * p) + 1e-3 * n * (p - 1))
    ...     for n in range(100, 900, 50) for p in (1, 2, 4, 8)
    ... ]
    >>> predictor = RobustPredictor("cg", "c8").fit(runs)
    >>> prediction = predictor.predict(Request(500, 4, 0.9, 90.0))
    >>> abs(prediction.execution_time / (1e-3 * 500**1.5 / 3.6 + 1.5) - 1) < 0.05
    True
    """

    name = "robust"

    def __init__(
        self, application: str = "", cluster: str = "", *, capacity: int = 512, revisit: int = REVISIT
    ) -> None:
        self.application = application
        self.cluster = cluster
        self.revisit = revisit
        self.window = RunWindow(capacity=capacity)
        self.lent: tuple[Run, ...] = ()
        self._search: BackgroundSearch[Model] = BackgroundSearch()
        self._since_start = 0

    def borrowing(self, runs: Iterable[Run]) -> RobustPredictor:
        """Count with runs of other platforms from the next run learned on, while there are few here; the predictor.

        Those of earlier calls are given back.
        """
        self.lent = tuple(run for run in runs if representable(run))
        return self

    def fit(self, runs: Iterable[Run]) -> RobustPredictor:
        """Fit to training runs, perhaps none where others were borrowed, and forget everything learned before."""
        runs = tuple(runs) if self.lent else at_least_one(runs)
        if not all(map(representable, runs)):
            raise InputError("no model can be fitted to these runs: their numbers are too large or too small")
        self.window = RunWindow(runs, self.window.capacity)
        not_believed = doubted(self.window)
        taught, first = self._teaching(not_believed), self.window.seen - len(self.window)
        numbers = [first + place for place, run in enumerate(self.window) if run.user not in not_believed]
        known = self.known(not_believed)
        model = known.model()
        # As if they had been predicted: the others' predictions of the last runs.
        own = range(len(known.runs) - len(taught), len(known.runs))
        last = range(len(taught))[-REMEMBERED:] if len(model.weights) == len(known.runs) else ()
        error, spread = (values[own] for values in model.process.leave_one_out())
        surprises = tuple(Surprise(numbers[k], taught[k].user, float(error[k]), float(spread[k])) for k in last)
        self._state = RobustState(
            model,
            imagined(),
            Domain.of(known.runs),
            known.notes,
            doubted=not_believed,
            surprises=surprises,
        )
        return self

    def under(self, settings: Settings) -> RobustPredictor:
        """The predictor as it is now, answering for other settings.

        Raises
        ------
        InputError
            A parameter is unknown, or a word where numbers were.
        """
        view = copy.copy(self)
        view._state = self.state.under(settings)
        return view

    def plan(self, asked: Sequence[Request], candidates: Sequence[Request], budget: float) -> Plan:
        """Choose runs to make next, see :func:`metasched.predictors.robust.planning.plan`."""
        return plan(self.state.model, asked, candidates, budget)

    def widths(self, spreads: Floats, level: float) -> Floats:
        """Upper over lower ends of intervals, from spreads of log time, both of shape (t,)."""
        return np.asarray(np.exp(np.minimum(2.0 * self.state.calibration.reach(level) * spreads, 50.0)))

    @property
    def layouts(self) -> frozenset[tuple[int | None, int]]:
        """Processes per node and threads of the runs learned, where they differ."""
        columns = {column.kind for column in self.state.model.formula.effects.columns.columns}
        if not columns & {"per_node", "threads"}:
            return frozenset()
        every = [run.settings for run in (*self.lent, *self.window)]
        return frozenset((each.processes_per_node, each.threads) for each in every)

    def for_user(self, user: str) -> RobustPredictor:
        """What predicts for a user: this, unless the others' runs contradict the user's; then what these taught."""
        state = self.state
        if user not in state.doubted:
            return self
        if user not in state.own:
            runs = [run for run in self.window if run.user == user]
            if not runs:
                return self
            made = RobustPredictor(self.application, self.cluster, capacity=self.window.capacity)
            made.window = RunWindow(runs, self.window.capacity)
            kept = measured(runs)
            model = Model.fit(kept, settings=[run.settings for run in runs])
            note = "your runs contradict those of the other users: this was learned from yours alone"
            made.state = RobustState(model, imagined(), Domain.of(runs), (*notes_on(kept), note))
            state.own[user] = made
        return state.own[user]

    @property
    def teaching(self) -> tuple[Run, ...]:
        """The runs that the model has learned from, oldest first."""
        return tuple(self._teaching(self.state.doubted))

    def _teaching(self, not_believed: frozenset[str]) -> list[Run]:
        """The runs that are learned from."""
        return [run for run in self.window if run.user not in not_believed]

    def known(self, not_believed: frozenset[str]) -> Known:
        """All that is learned from while some users are not believed."""
        own = self._teaching(not_believed)
        return Known(self.cluster, (*borrowed(self.lent, len(own)), *own), len(own))

    @property
    def notices(self) -> tuple[str, ...]:
        """Whom the model does not believe, and what has changed for all; each a clause for the user."""
        state, found = self.state, []
        if state.doubted:
            count = sum(run.user in state.doubted for run in self.window)
            whose = ", ".join(sorted(user or "nobody named" for user in state.doubted))
            found.append(f"{_count(count, 'run')} of {whose} that the other users' contradict: they teach nobody else")
        if state.drift is not None:
            found.append(state.drift.text)
        return tuple(found)

    def predict(self, request: Request, level: float = 0.9) -> Prediction:
        """Predict the execution time (s) of one run, with its interval at ``level``."""
        state = self.state.under(request.settings)
        seconds, spread = state.model.predict_one(
            request.problem_size, request.processors, request.available_cpu, request.available_bandwidth
        )
        if not 0.0 < seconds < math.inf:
            raise InputError(f"the model predicts {seconds} s for {request}, which is too far from all that it learned")
        factor = math.exp(min(state.calibration.reach(level) * spread, 50.0))
        interval = Interval(seconds / factor, seconds * factor, level)
        notes = state.notes + self.notices + state.doubts + state.domain.warnings(request)
        return Prediction(seconds, interval, state.model.formula.text, notes)

    def predict_many(
        self,
        problem_size: ArrayLike,
        processors: ArrayLike,
        available_cpu: ArrayLike,
        available_bandwidth: ArrayLike,
        level: float = 0.9,
    ) -> Predictions:
        """Predict the execution times (s) of many requests at once, arrays of shape (n,)."""
        state = self.state
        time, spread = state.tabulated.predict(*broadcast(problem_size, processors, available_cpu, available_bandwidth))
        low, high = state.calibration.ends(time, spread, level)
        return Predictions(time, low, high, level)

    def expect_many(
        self, problem_size: ArrayLike, processors: ArrayLike, available_cpu: ArrayLike, available_bandwidth: ArrayLike
    ) -> Floats:
        """The execution times of :meth:`predict_many` without their intervals."""
        return self.state.tabulated.expect(*broadcast(problem_size, processors, available_cpu, available_bandwidth))

    def power_terms(self, problem_size: float, processors: ArrayLike) -> tuple[PowerTerm, ...]:
        """Computation and communication, whose sum :meth:`expect_many` tells."""
        return self.state.tabulated.power_terms(problem_size, np.asarray(processors, dtype=np.float64))

    def computing_share(
        self, problem_size: ArrayLike, processors: ArrayLike, available_cpu: ArrayLike, available_bandwidth: ArrayLike
    ) -> Floats:
        """The shares of the expected times that are computation, shape (n,)."""
        columns = broadcast(problem_size, processors, available_cpu, available_bandwidth)
        terms = self.state.model.formula.terms(*columns)
        return terms.computation / terms.time

    def breakdown(self, request: Request) -> tuple[Term, ...]:
        """Both terms of the formula, and what the process makes of each."""
        model, columns = self.state.under(request.settings).model, columns_of(request)
        terms = model.formula.terms(*columns)
        bend = float(model.predict(*columns)[0][0] / terms.time[0])
        parts = zip(
            ("computation", "communication"), model.formula.texts, (terms.computation, terms.communication), strict=True
        )
        return tuple(
            Term(name, f"{text}, {bend - 1.0:+.1%} by what runs near it took", bend * float(seconds[0]))
            for name, text, seconds in parts
        )

    def learned(self) -> Learned:
        """The formula, and the combinations of Eq. (1) that come nearest to the runs by the exhaustive search."""
        state = self.state
        runs = measured(self._teaching(state.doubted))
        whole, *_ = state.model.loads.filled(runs)
        part = Part("", searched_list(whole) if len(runs) else None, {"formula": state.model.formula.text})
        return Learned((part,), state.notes + self.notices + (assumed_effects(runs) if len(runs) else ()))

    def learn(self, run: Run) -> None:
        """Absorb one run: score its prediction, fit again, maybe start a search in the background."""
        if not representable(run):
            return
        state, calibration, drift = self.state, self.state.calibration, self.state.drift
        surprise = self._surprise(run)
        self.window.add(run)
        not_believed = self._doubted(run, surprise)
        surprises = state.surprises
        if surprise is not None:
            surprises = (*surprises, surprise)[-REMEMBERED:]
            if run.user not in not_believed:
                calibration = calibration.learned(abs(surprise.error) / surprise.spread)
                if drift is not None:
                    drift, more = drift.with_run(surprise)
                    self.window.slow_down(more, before=drift.since)
            found = Drift.in_errors(surprises)
            if found is not None:
                drift, surprises = found, ()
                self.window.slow_down(found.factor, before=found.since)
                not_believed = doubted(self.window)
        kept, scales = self.known(not_believed), state.model.process.scales
        searched = self._search.take()
        if searched is not None:
            scales = searched.process.scales
            since = self._since_start + 1
        else:
            since = state.since_search + 1
        at_once = kept.own <= AT_ONCE
        self._state = RobustState(
            kept.model(scales, search=at_once),
            calibration,
            state.domain if run.user in not_believed else state.domain.learned(run),
            kept.notes,
            0 if at_once else since,
            doubted=not_believed,
            surprises=surprises,
            drift=drift,
        )
        self.for_user(run.user)  # so that nobody waits for it later
        if self._search.running:
            self._since_start += 1
        elif not at_once and since >= self.revisit:
            self._since_start = 0
            self._search.start(lambda: kept.model(scales))

    def _surprise(self, run: Run) -> Surprise | None:
        """How far a run was from its prediction; None where its loads were not measured."""
        if not run.measured:
            return None
        try:
            time, spread = self.state.under(run.settings).model.predict(*columns_of(run.request))
        except InputError:  # the first run with a new parameter
            return None
        if not 0.0 < time[0] < math.inf:
            return None
        error = math.log(run.execution_time / float(time[0]))
        return Surprise(self.window.seen, run.user, error, float(spread[0]))

    def _doubted(self, run: Run, surprise: Surprise | None) -> frozenset[str]:
        """Whom not to believe after one more run: the same users, unless it may have changed something."""
        known = self.state.doubted
        if len(self.window.users) < 2:
            return frozenset()
        if self.window.seen % JUDGED == 0 or len(self.window) <= AT_ONCE:
            return doubted(self.window)
        if run.user in known or surprise is None or abs(surprise.error) > FARTHEST * surprise.spread:
            return doubted(self.window, known)
        return known

    def settle(self) -> None:
        """Wait for a search that is running and take its result."""
        self._search.wait()
        found = self._search.take()
        if found is not None:
            model = found
            if self._since_start:
                model = self.known(self.state.doubted).model(found.process.scales, search=False)
            self._state = replace(self.state, model=model, since_search=self._since_start)


@dataclass(frozen=True)
class Known:
    """The runs that a model is fitted to: those borrowed from other platforms, then those of its own.

    Parameters
    ----------
    cluster : the platform asked about.
    runs : all of them.
    own : how many of the last are its own.
    """

    cluster: str
    runs: tuple[Run, ...]
    own: int

    @property
    def settings(self) -> tuple[Settings, ...]:
        """The settings of each run, in the order of the runs."""
        return tuple(run.settings for run in self.runs)

    @property
    def lent(self) -> tuple[Run, ...]:
        """The runs that other platforms lend; they come before the own ones."""
        return self.runs[: len(self.runs) - self.own]

    @property
    def platforms(self) -> tuple[int, ...]:
        """Of the runs by number, 0 for the one asked about."""
        others = dict.fromkeys(run.cluster for run in self.lent)
        number = {platform: place for place, platform in enumerate(others, start=1)}
        return (*(number[run.cluster] for run in self.lent), *(0 for _ in range(self.own)))

    def model(self, scales: Scales | None = None, *, search: bool = True) -> Model:
        """The model fitted to them, see ``Model.fit``."""
        return Model.fit(measured(self.runs), scales, search=search, settings=self.settings, platforms=self.platforms)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user of the predictions should know."""
        others = ", ".join(dict.fromkeys(run.cluster for run in self.lent))
        if not others:
            return notes_on(measured(self.runs))
        return (f"{_count(self.own, 'run')} on {self.cluster}: what is known of {others} is borrowed",)


def borrowed(lent: Iterable[Run], own: int) -> tuple[Run, ...]:
    """The runs of other platforms that count beside so many own ones: from each about as many, over all it ran on.

    They are :data:`BORROWED`, and two fewer for each own run, so that they leave one by one as runs come.

    Examples
    --------
    >>> runs = [Run("cg", c, n, 1, 1.0, 90.0, 1.0) for c, most in (("a", 200), ("b", 3)) for n in range(1, most)]
    >>> [run.cluster for run in borrowed(runs, own=46)]
    ['a', 'a', 'b', 'b']
    """
    of_platform: dict[str, list[Run]] = {}
    for run in lent:
        of_platform.setdefault(run.cluster, []).append(run)
    left, chosen = max(BORROWED - 2 * own, 0), []
    for place, runs in enumerate(sorted(of_platform.values(), key=len)):
        share = min(left // (len(of_platform) - place), len(runs))
        ordered = sorted(runs, key=lambda run: (run.processors, run.problem_size))
        chosen += [ordered[k] for k in np.linspace(0, len(ordered) - 1, share).round().astype(int)]
        left -= share
    return tuple(sorted(chosen, key=lambda run: [*of_platform].index(run.cluster)))


def representable(run: Run) -> bool:
    """Whether size and time of a run are such that products of their powers are numbers; no real run is otherwise.

    Examples
    --------
    >>> representable(Run("a", "c", 1e300, 1, 1.0, 90.0, 1e-300))
    False
    """
    return max(abs(math.log10(run.problem_size)), abs(math.log10(run.execution_time))) < LARGEST_DIGITS


def notes_on(runs: Observations) -> tuple[str, ...]:
    """What runs cannot tell and had to be assumed, each a clause for the user.

    Examples
    --------
    >>> notes_on(Observations.of([100.0], [1], [1.0], [90.0], [2.0]))[1]
    '1 run on 1 processor count with 1 problem size: how time grows with N and falls with P is mostly assumed'
    """
    notes = []
    if len(runs) < FEW:
        notes.append(f"with {_count(len(runs), 'run')} the model is largely what is usual of parallel applications")
    sizes, counts = len(np.unique(runs.problem_size)), len(np.unique(runs.processors))
    assumed = [what for few, what in ((sizes < 2, "grows with N"), (counts < 2, "falls with P")) if few]
    if assumed:
        where = (
            f"{_count(len(runs), 'run')} on {_count(counts, 'processor count')} with {_count(sizes, 'problem size')}"
        )
        notes.append(f"{where}: how time {' and '.join(assumed)} is mostly assumed")
    unmeasured = int(np.count_nonzero(np.isnan(runs.cpu) | np.isnan(runs.bw)))
    if unmeasured:
        notes.append(f"loads were not measured during {unmeasured} of {_count(len(runs), 'run')}, which count for less")
    return tuple(notes)


def assumed_effects(runs: Observations) -> tuple[str, ...]:
    """The loads whose effect runs cannot tell, as they hardly varied, each a clause for the user.

    Examples
    --------
    >>> assumed_effects(Observations.of([100.0, 200.0], [2, 2], [1.0, 0.5], [90.0, 90.0], [2.0, 3.0]))
    ('available bandwidth hardly varied in the runs: its effect is assumed',)
    """
    notes = []
    for name, values in (("available CPU", runs.cpu), ("available bandwidth", runs.bw[runs.processors > 1])):
        known = np.log(values[~np.isnan(values)])
        if not len(known) or np.ptp(known) < HARDLY:
            notes.append(f"{name} hardly varied in the runs: its effect is assumed")
    return tuple(notes)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
