"""The robust method, the default: a committee of four experts, of which two are still Eq. (1).

Differs from the published method where that loses accuracy: all twelve million combinations are searched instead of
three stages, errors are relative instead of in seconds, coefficients are not negative, near-equal models are averaged,
a Gaussian process follows what no formula of two terms can, and experts that know no formula sit beside them. All are
relearned after every run at a cost that does not grow; the search over all combinations and over the hyperparameters
runs in the background.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from candidate_functions.terms import Observations
from metasched.predictors.background import BackgroundSearch
from metasched.predictors.calibration import Calibration, score
from metasched.predictors.committee import Record, combine
from metasched.predictors.contract import Floats, Predictions
from metasched.predictors.domain import Domain
from metasched.predictors.experts import NAMES, Experts
from metasched.predictors.extrapolation import Extrapolation
from metasched.predictors.robust_state import Looked, RobustState
from metasched.predictors.simple import supports_search
from metasched.predictors.trend import Trend
from metasched.predictors.window import RunWindow, observations
from metasched.records import InputError, Prediction, Request, Run

#: Runs between two searches over all combinations and hyperparameters.
REVISIT = 10
#: Runs on most processors that a rehearsal counts at most.
REHEARSALS = 10


class RobustPredictor:
    """The committee.

    Parameters
    ----------
    application, cluster : what it models, for the record.
    capacity : runs that a search looks back at.
    revisit : runs between two searches.

    Examples
    --------
    >>> runs = [
    ...     Run("cg", "c8", n, p, 0.9, 90.0, 1e-3 * n**1.5 / (0.9 * p) + 1e-3 * n * (p - 1))
    ...     for n in range(100, 900, 50) for p in (1, 2, 4, 8)
    ... ]
    >>> predictor = RobustPredictor("cg", "c8").fit(runs)
    >>> prediction = predictor.predict(Request(500, 4, 0.9, 90.0))
    >>> abs(prediction.execution_time / (1e-3 * 500**1.5 / 3.6 + 1.5) - 1) < 0.02
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
        self._state: RobustState | None = None
        self._search: BackgroundSearch[RobustState] = BackgroundSearch()
        self._since_start: list[Run] = []
        self._last: Looked | None = None

    @property
    def state(self) -> RobustState:
        """What has been learned; InputError before the first fit."""
        if self._state is None:
            raise InputError("the model has learned nothing yet, expected it to be fitted to at least one run")
        return self._state

    @state.setter
    def state(self, state: RobustState) -> None:
        self._state = state

    def fit(self, runs: Iterable[Run]) -> RobustPredictor:
        """Search on training runs and forget everything learned before."""
        runs = tuple(runs)
        if not runs:
            raise InputError("no runs, expected at least one to learn from")
        self.window = RunWindow(runs, self.window.capacity)
        kept = self.window.observations()
        state = _searched(kept, None, Domain.of(runs))
        if state.experts is not None:
            error, spread = state.experts.beside_trend.leave_one_out()
            calibration = Calibration.starting(np.abs(error) / spread)
            record, extrapolation = _rehearsed(kept)
            state = replace(state, calibration=calibration, record=record, extrapolation=extrapolation)
        self._state = state
        return self

    def predict(self, request: Request, level: float = 0.9) -> Prediction:
        """Predict one execution time."""
        # The same is often asked at two levels, one for the interval and one for a time limit.
        last = self._last
        if last is None or last.state is not self.state or last.request != request:
            return self.predict_among(request, np.empty((3, 0)), level)[0]
        return last.at(level)

    def predict_among(self, request: Request, others: ArrayLike, level: float = 0.9) -> tuple[Prediction, Floats]:
        """Predict one execution time, and tell what is expected for others of the same size, in one evaluation.

        Parameters
        ----------
        request : what to predict.
        others : processors, available CPU and available bandwidth of each, shape (3, k).
        level : of the interval.

        Returns
        -------
        The prediction, and execution times of shape (k,).
        """
        state = self.state
        own = [request.processors], [request.available_cpu], [request.available_bandwidth]
        points = np.concatenate([np.array(own, dtype=np.float64), np.asarray(others, dtype=np.float64)], axis=1)
        log_time, spread, trend = state.compare(np.full(points.shape[1], request.problem_size), *points)
        if not np.isfinite(log_time[0]):
            raise InputError(f"no model of the trend is defined for {request}")
        self._last = last = Looked(
            state, request, float(log_time[0]), float(spread[0]), state.explained(log_time[0] - trend[0])
        )
        with np.errstate(over="ignore"):
            return last.at(level), np.exp(log_time[1:])

    def predict_many(
        self,
        problem_size: ArrayLike,
        processors: ArrayLike,
        available_cpu: ArrayLike,
        available_bandwidth: ArrayLike,
        level: float = 0.9,
    ) -> Predictions:
        """Predict many at once; where the trend is not defined the time is infinite."""
        state = self.state
        columns = (
            np.atleast_1d(np.asarray(column, dtype=np.float64))
            for column in (problem_size, processors, available_cpu, available_bandwidth)
        )
        log_time, spread = state.predict(*np.broadcast_arrays(*columns))
        with np.errstate(over="ignore"):
            time = np.exp(log_time)
        low, high = state.calibration.ends(time, spread, level)
        return Predictions(time, low, high, level)

    def expect_many(
        self, problem_size: ArrayLike, processors: ArrayLike, available_cpu: ArrayLike, available_bandwidth: ArrayLike
    ) -> Floats:
        """The execution times that :meth:`predict_many` tells, without their intervals, in a third of the time."""
        columns = (
            np.atleast_1d(np.asarray(column, dtype=np.float64))
            for column in (problem_size, processors, available_cpu, available_bandwidth)
        )
        with np.errstate(over="ignore"):
            return np.exp(self.state.expect(*np.broadcast_arrays(*columns)))

    def learn(self, run: Run) -> None:
        """Absorb one run: score its prediction, refit trend and process, maybe start a search in the background."""
        state = self.state
        row = observations([run])
        where = (row.problem_size, row.processors, row.cpu, row.bw)
        log_time, spread = state.predict(*where)
        expected = float(np.exp(log_time[0]))
        calibration = state.calibration.learned(score(run.execution_time, expected, float(spread[0])))
        record, extrapolation = state.record, state.extrapolation
        if state.experts is not None:
            record = record.learned(state.experts.predict(*where)[0][:, 0] - np.log(run.execution_time))
            outside = extrapolation.spread(*where)
            inside = np.sqrt(np.maximum(spread**2 - outside**2, 0.0))
            extrapolation = extrapolation.judged(extrapolation.distance(*where), log_time - np.log(row.time), inside)
        self.window.add(run)
        kept = self.window.observations()
        trend = state.trend.learned(row)
        experts = state.experts and Experts.fit(trend, kept, state.experts.kernels, optimise=False)
        state = RobustState(
            trend,
            experts,
            record,
            calibration,
            state.domain.learned(run),
            extrapolation.grown(row),
            state.notes,
            state.since_search + 1,
        )
        state = self._adopted(state, kept)
        if self._search.running:
            self._since_start.append(run)
        elif supports_search(kept) and (state.since_search >= self.revisit or state.experts is None):
            before = state
            self._since_start = []
            self._search.start(lambda: _searched(kept, before, before.domain))
        self._state = state

    def settle(self) -> None:
        """Wait for a search that is running and take its result."""
        self._search.wait()
        self._state = self._adopted(self.state, self.window.observations())

    def _adopted(self, state: RobustState, kept: Observations) -> RobustState:
        """The state with what a finished search found, caught up with the runs learned while it ran."""
        found = self._search.take()
        if found is None:
            return state
        trend = found.trend.learned(observations(self._since_start))
        experts = found.experts and Experts.fit(trend, kept, found.experts.kernels, optimise=False)
        return replace(state, trend=trend, experts=experts, notes=found.notes, since_search=len(self._since_start))


def _searched(runs: Observations, before: RobustState | None, domain: Domain) -> RobustState:
    """A fresh search over all combinations, and over the hyperparameters of the processes."""
    calibration = before.calibration if before is not None else Calibration()
    record = before.record if before is not None else Record.fresh(len(NAMES))
    extrapolation = before.extrapolation if before is not None else Extrapolation.of(runs)
    if not supports_search(runs):
        trend, notes = Trend.simplest(runs)
        return RobustState(trend, None, record, calibration, domain, extrapolation, notes)
    trend = Trend.search(runs)
    kernels = before.experts.kernels if before is not None and before.experts is not None else None
    return RobustState(trend, Experts.fit(trend, runs, kernels), record, calibration, domain, extrapolation)


def _rehearsed(runs: Observations) -> tuple[Record, Extrapolation]:
    """What experts fitted to all runs but those on most processors make of these: their record, and how far they err.

    What they will be asked lies mostly outside their runs, and this is the part outside that is already known.
    """
    record, extrapolation = Record.fresh(len(NAMES)), Extrapolation.of(runs)
    most = runs.processors == runs.processors.max()
    fewer = runs.where(~most)
    if not supports_search(fewer):
        return record, extrapolation
    rehearsing = Experts.fit(Trend.search(fewer), fewer)
    asked = runs.where(most)
    where = asked.problem_size, asked.processors, asked.cpu, asked.bw
    log_time, spread = rehearsing.predict(*where)
    together = combine(log_time, spread, record.weights())
    extrapolation = extrapolation.judged(
        Extrapolation.of(fewer).distance(*where), together[0] - np.log(asked.time), together[1]
    )
    for errors in (log_time - np.log(asked.time)).T[-REHEARSALS:]:
        record = record.learned(errors)
    return record, extrapolation
