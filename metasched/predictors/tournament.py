"""A tournament of predictors: the one with the smallest recent error answers, and states the reason.

Chosen as the Network Weather Service chooses among its forecasters: every entrant predicts every run before it learns
it, and whose errors over the last runs are least on average answers next. One that the runs do not suffice for sits
out until they do.
"""

from __future__ import annotations

import copy
import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from metasched.arrays import Floats
from metasched.plain_numbers import number_of
from metasched.predictors.abilities import distinguishes_settings, layouts_of, under
from metasched.predictors.columns import ByColumns, Columns
from metasched.predictors.contract import Learned, Predictions, Predictor, Term
from metasched.predictors.memory.window import RunWindow
from metasched.records import DEFAULT_SETTINGS, InputError, Prediction, Request, Run, Settings

#: Runs that errors are averaged over.
WINDOW = 20
#: Number of runs stored for entrants that cannot be fitted yet.
CAPACITY = 512
#: Share of the training runs that entrants are tried on before all of them are learned.
_TRIAL = 0.25


def error_of(entrant: Predictor, run: Run) -> float | None:
    """How wrong a predictor is on a run: half the time is as wrong as twice, so a low answer gains nothing.

    Returns
    -------
    An error of at least 0, infinite where nothing is predicted; None for a run that shows nothing of it: its loads were
    not measured, or it is the first with its settings.
    """
    if not run.measured:
        return None
    try:
        asked = under(entrant, run.settings)
    except InputError:
        return None
    try:
        predicted = asked.predict(run.request).execution_time
    except InputError:
        return math.inf
    return max(predicted / run.execution_time, run.execution_time / predicted) - 1.0


class Tournament(ByColumns):
    """Entrants and their recent errors.

    Parameters
    ----------
    entrants : unfitted predictors with names of their own, the favourite first: ties go to the earlier one.
    application, cluster : what they model; those of the first run where empty.

    Examples
    --------
    >>> from metasched.predictors.judging.peers import RidgeQuadratic
    >>> from metasched.predictors.robust.predictor import RobustPredictor
    >>> runs = [Run("a", "c", n, p, 0.9, 90.0, 1e-3 * n**2 / p) for n in range(100, 900, 100) for p in (1, 2, 4)]
    >>> tournament = Tournament([RobustPredictor(), RidgeQuadratic()]).fit(runs)
    >>> tournament.chosen.name in tournament.reason
    True
    """

    name = "tournament"

    def __init__(self, entrants: Sequence[Predictor], application: str = "", cluster: str = "") -> None:
        names = [entrant.name for entrant in entrants]
        if not entrants or len(set(names)) < len(names):
            raise InputError(f"entrants {', '.join(names) or 'none'}, expected at least one and names that differ")
        self.entrants = tuple(entrants)
        self.application, self.cluster = application, cluster
        self.window = RunWindow(capacity=CAPACITY)
        #: Recent errors of each entrant, oldest first, and why those that sit out do.
        self.errors: dict[str, deque[float]] = {}
        self.absent: dict[str, str] = {}

    def fit(self, runs: Iterable[Run]) -> Tournament:
        """Try every entrant on the last quarter of the runs, fitted to those before, then fit it to all."""
        known = list(runs)
        self.window = RunWindow(known, CAPACITY)
        if known:
            self.application = self.application or known[0].application
            self.cluster = self.cluster or known[0].cluster
        self.errors, self.absent = {}, {}
        held_back = int(len(known) * _TRIAL)
        for entrant in self.entrants:
            self.errors[entrant.name] = deque(maxlen=WINDOW)
            if held_back and self._fitted(entrant, known[:-held_back]):
                self._score(entrant, known[-held_back:])
            self._fitted(entrant, known)
        if len(self.absent) == len(self.entrants):
            raise InputError("; ".join(f"{name}: {why}" for name, why in self.absent.items()))
        return self

    @property
    def chosen(self) -> Predictor:
        """The entrant with the smallest recent errors, which answers."""
        present = [entrant for entrant in self.entrants if entrant.name not in self.absent]
        if not self.errors or not present:
            raise InputError("the tournament has learned nothing yet, expected it to be fitted to at least one run")
        return min(present, key=self._recent)

    @property
    def reason(self) -> str:
        """Why the chosen one answers: the recent error of each entrant, in one line."""
        chosen = self.chosen
        lines = []
        for entrant in sorted(self.entrants, key=self._recent):
            if entrant.name in self.absent:
                lines.append(f"{entrant.name} does not take part ({self.absent[entrant.name]})")
            elif self.errors[entrant.name]:
                lines.append(f"{entrant.name} {self._recent(entrant):.1%}")
            else:
                lines.append(f"{entrant.name} not judged yet")
        runs = len(self.errors[chosen.name])
        over = f", mean error over the last {number_of(runs, 'run')}" if runs else ""
        return f"{chosen.name} predicts{over}: {', '.join(lines)}"

    def under(self, settings: Settings) -> Tournament:
        """The tournament in its present state, in which the entrants that distinguish settings predict for others.

        Raises
        ------
        InputError : the chosen entrant does not know them.
        """
        chosen, asked = self.chosen, under(self.chosen, settings)
        view = copy.copy(self)
        view.entrants = tuple(asked if entrant is chosen else entrant for entrant in self.entrants)
        return view

    @property
    def layouts(self) -> frozenset[tuple[int | None, int]]:
        """Processes per node and threads of the runs learned, where they matter to the chosen entrant."""
        return layouts_of(self.chosen)

    def predict(self, request: Request, level: float = 0.9) -> Prediction:
        """Predict with the chosen entrant; the model names it and the reason."""
        chosen = self.chosen
        found = chosen.predict(request, level)
        doubts: tuple[str, ...] = ()
        if request.settings != DEFAULT_SETTINGS and not distinguishes_settings(chosen):
            doubts = (f"{request.settings.text} is given, but {chosen.name} models do not depend on it",)
        return replace(found, model=f"{found.model} [{self.reason}]", warnings=(*found.warnings, *doubts))

    def _predicted(self, columns: Columns, level: float) -> Predictions:
        return self.chosen.predict_many(*columns, level)

    def _expected(self, columns: Columns) -> Floats:
        return self.chosen.expect_many(*columns)

    def breakdown(self, request: Request) -> tuple[Term, ...]:
        """The terms of the chosen entrant, after why it was chosen."""
        return (Term("tournament", self.reason, 0.0), *self.chosen.breakdown(request))

    def learned(self) -> Learned:
        """What the chosen entrant has learned, and why it was chosen."""
        found = self.chosen.learned()
        first, *rest = found.parts
        chosen = {"chosen": self.chosen.name, "reason": self.reason}
        return replace(found, parts=(replace(first, facts={**chosen, **first.facts}), *rest))

    def learn(self, run: Run) -> None:
        """Let every entrant predict the run, note its error, and let it learn the run."""
        self.window.add(run)
        for entrant in self.entrants:
            if entrant.name in self.absent:
                self._fitted(entrant, list(self.window))
            else:
                self._score(entrant, [run])
                entrant.learn(run)

    def settle(self) -> None:
        """Wait for searches of entrants that are running."""
        for entrant in self.entrants:
            if entrant.name not in self.absent:
                entrant.settle()

    def _fitted(self, entrant: Predictor, runs: Sequence[Run]) -> bool:
        try:
            entrant.fit(runs)
        except InputError as error:
            self.absent[entrant.name] = str(error)
            return False
        self.absent.pop(entrant.name, None)
        return True

    def _score(self, entrant: Predictor, runs: Sequence[Run]) -> None:
        errors = (error_of(entrant, run) for run in runs)
        self.errors[entrant.name].extend(error for error in errors if error is not None)

    def _recent(self, entrant: Predictor) -> float:
        errors = self.errors.get(entrant.name)
        return float(np.mean(errors)) if errors else float("inf")
