"""The published method: two sorted lists, adapted after every run.

Sanjay & Vadhiyar 2008, section 3. Runs on two and more processors live in the sorted list of Eq. (1); runs on one
processor in a list of their own, the computation functions of stage one, because there is no communication to model.
A prediction takes the best combination that is defined for the request. Learning goes on beside predicting: the state
is one immutable value, replaced when something was learned, and a search runs in the background.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from candidate_functions.staged import StagedResult, staged_search
from candidate_functions.terms import Combinations, Observations, TermTable, evaluate, formula
from metasched.arrays import Floats
from metasched.predictors.columns import ByColumns, Columns, columns_of
from metasched.predictors.contract import Learned, Part, Predictions, Term
from metasched.predictors.formulas.few_runs import simplest_model, supports_search
from metasched.predictors.formulas.sorted_list import SortedList
from metasched.predictors.memory.background import BackgroundSearch
from metasched.predictors.memory.calibration import Calibration, score
from metasched.predictors.memory.domain import Domain
from metasched.predictors.memory.learned_state import LearnedState, at_least_one
from metasched.predictors.memory.representable import refuse_unrepresentable, representable
from metasched.predictors.memory.window import RunWindow, observations
from metasched.records import InputError, Interval, Prediction, Request, Run

#: Number of predictions after which the communication stage is searched again with all candidates.
REVISIT = 50
#: Most combinations a sorted list may hold.
LONGEST = 1000
#: Spread of log(measured / predicted) that scores are counted in.
SPREAD = 0.1

Models = Literal["multiple", "single"]


@dataclass(frozen=True)
class PublishedState:
    """All that the published method has learned.

    Parameters
    ----------
    parallel : sorted list for requests on two and more processors, or on one while ``alone`` is None.
    alone : sorted list for requests on one processor, or None.
    calibration : scores of past predictions.
    domain : what was learned from.
    tried : combinations tried by the last search, by stage; empty when there were too few runs for one.
    notes : what a user of the predictions should know.
    since_search : runs learned since the last search.
    """

    parallel: SortedList
    alone: SortedList | None
    calibration: Calibration
    domain: Domain
    tried: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    since_search: int = 0

    def list_for(self, processors: float) -> SortedList:
        """The list that answers for a processor count."""
        return self.alone if processors == 1 and self.alone is not None else self.parallel


class PublishedPredictor(LearnedState[PublishedState], ByColumns):
    """The adaptive model as published.

    Parameters
    ----------
    application, cluster : what it models, for the record.
    models : ``"multiple"`` learns after every run; ``"single"`` freezes the best model after training.
    capacity : runs that a revisit looks back at.

    Examples
    --------
    >>> runs = [
    ...     Run("cg", "c8", n, p, 0.9, 90.0, 1e-3 * n**1.5 / (0.9 * p) + 1e-3 * n * math.log(p))
    ...     for n in range(100, 900, 50) for p in (1, 2, 4, 8)
    ... ]
    >>> predictor = PublishedPredictor("cg", "c8").fit(runs)
    >>> prediction = predictor.predict(Request(500, 4, 0.9, 90.0))
    >>> abs(prediction.execution_time / (1e-3 * 500**1.5 / 3.6 + 0.5 * math.log(4)) - 1) < 0.02
    True
    """

    name = "published"

    def __init__(
        self, application: str = "", cluster: str = "", *, models: Models = "multiple", capacity: int = 512
    ) -> None:
        self.application = application
        self.cluster = cluster
        self.models = models
        self.window = RunWindow(capacity=capacity)
        self._search: BackgroundSearch[PublishedState] = BackgroundSearch()
        self._since_start: list[Run] = []

    def fit(self, runs: Iterable[Run]) -> PublishedPredictor:
        """Search on training runs and forget everything learned before."""
        runs = at_least_one(runs)
        refuse_unrepresentable(runs)
        self.window = RunWindow(runs, self.window.capacity)
        self._search.forget()
        kept = self.window.observations()
        state = _searched(kept, None, Domain.of(runs))
        self._state = replace(state, calibration=Calibration.starting(_leave_one_out_scores(state, kept)))
        return self

    def predict(self, request: Request, level: float = 0.9) -> Prediction:
        """Predict one execution time from the best combination that is defined for the request."""
        state = self.state
        combination, coefficients, time = self._answering(request)
        factor = math.exp(min(state.calibration.reach(level) * SPREAD, 50.0))
        return Prediction(
            time,
            Interval(time / factor, time * factor, level),
            formula(combination, coefficients),
            state.notes + state.domain.warnings(request),
        )

    def breakdown(self, request: Request) -> tuple[Term, ...]:
        """Both terms of the combination that answers."""
        combination, (a, b), _ = self._answering(request)
        where = _where(request)
        return tuple(
            Term(name, formula(combination, alone), float(evaluate(combination, alone, *where)))
            for name, alone in (("computation", (a, 0.0)), ("communication", (0.0, b)))
        )

    def learned(self) -> Learned:
        """The sorted list that answers for runs on several processors."""
        return Learned((Part("", self.state.parallel),), self.state.notes)

    def _answering(self, request: Request) -> tuple[Combinations, Floats, float]:
        """The best combination that is defined for a request, its coefficients, and the time (s) it predicts."""
        models, where = self.state.list_for(request.processors), _where(request)
        for combination, coefficients in zip(models.combinations, models.coefficients, strict=True):
            time = float(evaluate(combination, coefficients, *where))
            if 0.0 < time < math.inf:
                return combination, coefficients, time
        raise InputError(f"no model in the sorted list is defined for {request}")

    def _predicted(self, columns: Columns, level: float) -> Predictions:
        state = self.state
        return state.calibration.around(_times(state, columns), SPREAD, level)

    def _expected(self, columns: Columns) -> Floats:
        return _times(self.state, columns)

    def learn(self, run: Run) -> None:
        """Absorb one run: score the prediction that would have been made, refit, reorder, thin out, maybe search."""
        if not representable(run):
            return
        state = self.state
        calibration = state.calibration.learned(
            score(run.execution_time, float(_times(state, columns_of(run.request))[0]), SPREAD)
        )
        state = replace(state, calibration=calibration, domain=state.domain.learned(run))
        self.window.add(run)
        if self.models == "multiple":
            state = _absorbed(state, run)
            self._since_start.append(run)
            state = self._adopted(replace(state, since_search=state.since_search + 1))
            if (state.since_search >= REVISIT or not state.tried) and not self._search.running:
                self._search_again(state)
        self._state = state

    def _search_again(self, known: PublishedState) -> None:
        """Search the runs kept, in the background, if it is time or they suffice for the first time."""
        kept = self.window.observations()
        if known.since_search >= REVISIT or supports_search(kept):
            self._since_start = []
            self._search.start(lambda: _searched(kept, known, known.domain))

    def settle(self) -> None:
        """Wait for a search that is running and take its result."""
        self._search.wait()
        self._state = self._adopted(self.state)

    def _adopted(self, state: PublishedState) -> PublishedState:
        """The state with the lists of a finished search, caught up with the runs learned while it ran."""
        found = self._search.take()
        if found is None:
            return state
        for run in self._since_start:
            found = _absorbed(found, run)
        return replace(
            state,
            parallel=found.parallel,
            alone=found.alone,
            tried=found.tried,
            notes=found.notes,
            since_search=len(self._since_start),
        )


def _where(request: Request) -> list[Floats]:
    asked = request.problem_size, request.processors, request.available_cpu, request.available_bandwidth
    return [np.asarray(value, dtype=np.float64) for value in asked]


def _times(state: PublishedState, where: Columns) -> Floats:
    """Expected times (s); infinite where no combination is defined."""
    time = _first_defined(state.parallel, *where)
    if state.alone is not None and (alone := where[1] == 1.0).any():
        time[alone] = _first_defined(state.alone, *(column[alone] for column in where))
    return time


def _first_defined(models: SortedList, n: Floats, p: Floats, cpu: Floats, bw: Floats) -> Floats:
    """Predictions by the best combination; where it is not defined or not positive, by the next, and so on."""
    time = np.full(n.shape, np.inf)
    if not len(models):
        return time
    time = evaluate(models.combinations[0], models.coefficients[0], n, p, cpu, bw)
    missing = np.flatnonzero(~((time > 0.0) & (time < np.inf)))
    for combination, coefficients in zip(models.combinations[1:], models.coefficients[1:], strict=True):
        if not len(missing):
            break
        again = evaluate(combination, coefficients, n[missing], p[missing], cpu[missing], bw[missing])
        defined = (again > 0.0) & (again < np.inf)
        time[missing[defined]] = again[defined]
        missing = missing[~defined]
    time[missing] = np.inf
    return time


def _absorbed(state: PublishedState, run: Run) -> PublishedState:
    row = observations([run])
    if run.processors == 1 and state.alone is not None:
        return replace(state, alone=state.alone.learned(row))
    return replace(state, parallel=state.parallel.learned(row))


def _searched(runs: Observations, before: PublishedState | None, domain: Domain) -> PublishedState:
    """Lists from a fresh search on runs; on a revisit, joined with the combinations that were still in use."""
    calibration = before.calibration if before is not None else Calibration()
    found = _staged(runs)
    if found is None:
        model = simplest_model(runs)
        models = SortedList.of(model.combination, runs, relative=True, nonnegative=True)
        return PublishedState(models, None, calibration, domain, notes=model.assumptions)
    one = runs.processors == 1.0
    alone = None
    if len(found.computation):
        computation = np.zeros((len(found.computation), 5), dtype=np.int16)
        computation[:, 0], computation[:, 2:] = found.computation, 1
        if before is not None and before.alone is not None:
            computation = _joined(computation, before.alone.combinations)
        alone = SortedList.of(computation, runs.where(one))
    combinations = found.combinations
    if before is not None and before.tried:
        combinations = _joined(combinations, before.parallel.combinations)
    parallel = SortedList.of(combinations, runs.where(~one) if alone is not None else runs)
    return PublishedState(parallel, alone, calibration, domain, tried=found.tried)


def _staged(runs: Observations) -> StagedResult | None:
    """The staged search where the runs support it and it leaves anything; else None."""
    parallel = runs.processors > 1.0
    if not supports_search(runs) or parallel.sum() < 4:
        return None
    found = staged_search(runs)
    return found if len(found.combinations) else None


def _joined(first: Combinations, second: Combinations) -> Combinations:
    """Combinations of both without repetition, those of first first, at most as many as a sorted list may hold."""
    both = np.concatenate([first, second])
    _, positions = np.unique(both, axis=0, return_index=True)
    return both[np.sort(positions)][:LONGEST]


def _leave_one_out_scores(state: PublishedState, runs: Observations) -> Floats:
    """Scores of the training runs, each predicted by the best model fitted to the others."""
    scores = []
    one = runs.processors == 1.0
    for models, chosen in ((state.alone, one), (state.parallel, ~one if state.alone is not None else one | ~one)):
        if models is None or not len(models) or chosen.sum() < 4:
            continue
        part = runs.where(chosen)
        weight = 1.0 / part.time if models.relative else np.ones_like(part.time)
        used = np.flatnonzero(models.coefficients[0])
        design = (TermTable.at(part).columns(models.combinations[:1])[0] * weight).T[:, used]
        residual = part.time - (design @ models.coefficients[0][used]) / weight
        orthogonal, _ = np.linalg.qr(design)
        leverage = np.einsum("ij,ij->i", orthogonal, orthogonal)
        left_out = part.time - residual / np.maximum(1.0 - leverage, 1e-3)
        defined = left_out > 0.0
        ratio = part.time / np.where(defined, left_out, 1.0)
        scores.append(np.where(defined, np.abs(np.log(ratio)), 3.0) / SPREAD)
    return np.concatenate(scores) if scores else np.empty(0)
