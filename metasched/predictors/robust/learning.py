"""How the robust method learns: its model is fitted again after every run, at a cost that does not grow.

While runs are few, the scales of the process are estimated after each run; later after every tenth, in the background.
Past errors determine the width of the intervals. Runs of users that contradict the others are only used to predict for
these users (``trust``); changes that are common to all users are followed (``drift``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Self, cast

import numpy as np
import scipy

from metasched.plain_numbers import number_of
from metasched.predictors.columns import columns_of
from metasched.predictors.gaussian_process import DEGREES
from metasched.predictors.memory.background import BackgroundSearch
from metasched.predictors.memory.calibration import Calibration
from metasched.predictors.memory.domain import Domain
from metasched.predictors.memory.learned_state import LearnedState, at_least_one
from metasched.predictors.memory.representable import refuse_unrepresentable, representable
from metasched.predictors.memory.window import RunWindow, measured
from metasched.predictors.robust.drift import REMEMBERED, Drift, Surprise
from metasched.predictors.robust.known_runs import KnownRuns, borrowed
from metasched.predictors.robust.model import Model
from metasched.predictors.robust.notes import notes_on
from metasched.predictors.robust.state import RobustState
from metasched.predictors.robust.trust import FARTHEST, doubted
from metasched.records import InputError, Run

#: Runs between two searches for the scales of the process, and the number of runs up to which each run starts one.
REVISIT, AT_ONCE = 10, 20
#: Number of initial scores for the intervals, distributed as the model assumes. Each outcome replaces two of them.
IMAGINED = 80
#: Runs between two complete searches for trusted users.
JUDGED = 10


def imagined(degrees: float = math.inf) -> Calibration:
    """Scores before any outcome: evenly spaced quantiles of |t| / sd(t), as if all deviations were exact.

    The deviations of predicted times include the tails of the noise. With its degrees of freedom, 90 to 94 % of the
    runs of design campaigns and other programs, each program counted alike, are within their 90 % intervals, at every
    number of runs; with normal scores 92 to 96 % are.

    Parameters
    ----------
    degrees : of freedom of t; normal if infinite.

    Examples
    --------
    >>> round(imagined().reach(0.9), 2), round(imagined(DEGREES).reach(0.9), 2)
    (1.68, 1.55)
    """
    steps = (np.arange(IMAGINED) + 0.5) / IMAGINED
    return Calibration.starting(scipy.special.stdtrit(degrees, 0.5 + 0.5 * steps) * math.sqrt(1.0 - 2.0 / degrees))


class RobustLearner(LearnedState[RobustState]):
    """The learning part of the robust method.

    Parameters
    ----------
    application, cluster : of the model, for its record.
    capacity : number of past runs that it stores.
    revisit : runs between two searches.
    """

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

    def borrowing(self, runs: Iterable[Run]) -> Self:
        """Borrow runs of other platforms from the next learned run on, while there are few here; return the predictor.

        They replace those of earlier calls.
        """
        self.lent = tuple(run for run in runs if representable(run))
        return self

    def fit(self, runs: Iterable[Run]) -> Self:
        """Fit to training runs, which may be none if others were borrowed, and forget everything learned before."""
        runs = tuple(runs) if self.lent else at_least_one(runs)
        refuse_unrepresentable(runs)
        self.window = RunWindow(runs, self.window.capacity)
        self._search.forget()
        not_believed = doubted(self.window)
        taught, first = self._teaching(not_believed), self.window.seen - len(self.window)
        numbers = [first + place for place, run in enumerate(self.window) if run.user not in not_believed]
        known = self.known(not_believed)
        model = known.model()
        # The last runs count as if each had been predicted by a model of the others, where the process uses all runs.
        surprises: tuple[Surprise, ...] = ()
        if len(model.weights) == len(known.runs):
            own = range(len(known.runs) - len(taught), len(known.runs))
            last = range(len(taught))[-REMEMBERED:]
            error, spread = (values[own] for values in model.process.leave_one_out())
            surprises = tuple(Surprise(numbers[k], taught[k].user, float(error[k]), float(spread[k])) for k in last)
        self._state = RobustState(
            model, imagined(DEGREES), Domain.of(known.runs), known.notes, doubted=not_believed, surprises=surprises
        )
        return self

    def with_times(self, runs: Sequence[Run]) -> Self:
        """Another that has learned its runs with other times, and remembers scores, errors and drift.

        Parameters
        ----------
        runs : those of the window in their order, with other execution times or settings.
        """
        made = type(self)(self.application, self.cluster, capacity=self.window.capacity, revisit=self.revisit)
        made.borrowing(self.lent).fit(runs)
        made.window = RunWindow(runs, self.window.capacity, self.window.seen)
        before = self.state
        made.state = replace(made.state, calibration=before.calibration, surprises=before.surprises, drift=before.drift)
        return made

    def for_user(self, user: str) -> Self:
        """The predictor for a user: this one, or for a distrusted user one that has learned only the user's runs."""
        state = self.state
        if user not in state.doubted:
            return self
        if user not in state.own:
            self._alone(user, state)
        return cast(Self, state.own.get(user, self))

    def prepare(self) -> None:
        """Have what answers distrusted users at hand, so that none of them has to wait for it."""
        for user in self.state.doubted:
            self.for_user(user)

    def _alone(self, user: str, state: RobustState, before: RobustLearner | None = None) -> None:
        """Have a state know what a user's runs alone teach, which is known where the same runs taught it before."""
        runs = [run for run in self.window if run.user == user]
        if before is not None and [*before.window] == runs:
            state.own[user] = before
        elif runs:
            made = type(self)(self.application, self.cluster, capacity=self.window.capacity)
            made.window = RunWindow(runs, self.window.capacity)
            kept = measured(runs)
            model = Model.fit(kept, settings=[run.settings for run in runs])
            note = "your runs contradict those of other users: this prediction is learned from your runs alone"
            made.state = RobustState(model, imagined(DEGREES), Domain.of(runs), (*notes_on(kept), note))
            state.own[user] = made

    @property
    def teaching(self) -> tuple[Run, ...]:
        """The runs that the model has learned from, oldest first."""
        return tuple(self._teaching(self.state.doubted))

    def _teaching(self, not_believed: frozenset[str]) -> list[Run]:
        """The runs of trusted users, in their order."""
        return [run for run in self.window if run.user not in not_believed]

    def known(self, not_believed: frozenset[str]) -> KnownRuns:
        """The runs that are learned while some users are distrusted."""
        own = self._teaching(not_believed)
        return KnownRuns(self.cluster, (*borrowed(self.lent, len(own)), *own), len(own))

    @property
    def notices(self) -> tuple[str, ...]:
        """Distrusted users, and changes common to all users; each a clause for the user."""
        state, found = self.state, []
        if state.doubted:
            count = sum(run.user in state.doubted for run in self.window)
            whose = ", ".join(
                sorted(f"user {user}" if user.isdecimal() else user or "nobody named" for user in state.doubted)
            )
            found.append(
                f"{number_of(count, 'run')} of {whose} that contradict those of other users: "
                "they are not used for others"
            )
        if state.drift is not None:
            found.append(state.drift.text)
        return tuple(found)

    def learn(self, run: Run) -> None:
        """Learn one run: score its prediction, fit again, and start a search in the background if one is due."""
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
        kept, scales = self.known(not_believed), state.model.scales
        searched = self._search.take()
        if searched is not None:
            scales = searched.scales
            since = self._since_start + 1
        else:
            since = state.since_search + 1
        at_once = kept.own <= AT_ONCE
        learned = RobustState(
            kept.model(scales, search=at_once),
            calibration,
            state.domain if run.user in not_believed else state.domain.learned(run),
            kept.notes,
            0 if at_once else since,
            doubted=not_believed,
            surprises=surprises,
            drift=drift,
        )
        for user in not_believed:  # before they are asked for: nobody waits for it later
            self._alone(user, learned, cast(Self | None, state.own.get(user)))
        self._state = learned
        if self._search.running:
            self._since_start += 1
        elif not at_once and since >= self.revisit:
            self._since_start = 0
            self._search.start(lambda: kept.model(scales))

    def _surprise(self, run: Run) -> Surprise | None:
        """The error of a run's prediction; None if its loads were not measured."""
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
        """The distrusted users after one more run: the same, unless the run may change this."""
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
                model = self.known(self.state.doubted).model(found.scales, search=False)
            self._state = replace(self.state, model=model, since_search=self._since_start)
