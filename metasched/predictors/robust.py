"""The robust method, the default: a trend that is still Eq. (1), a Gaussian process on what it leaves over.

Differs from the published method where that loses accuracy: all twelve million combinations are searched instead of
three stages, errors are relative instead of in seconds, coefficients are not negative, near-equal models are averaged,
and the residual process follows what no formula of two terms can. Both parts are relearned after every run at a cost
that does not grow; the search over all combinations and over the hyperparameters runs in the background.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from candidate_functions.terms import Observations
from metasched.predictors.background import BackgroundSearch
from metasched.predictors.calibration import Calibration, score
from metasched.predictors.contract import Floats, Predictions
from metasched.predictors.domain import Domain
from metasched.predictors.residual import Hyperparameters, ResidualProcess, inputs, well_chosen
from metasched.predictors.simple import supports_search
from metasched.predictors.trend import Trend
from metasched.predictors.window import RunWindow, observations
from metasched.records import InputError, Interval, Prediction, Request, Run

#: Runs between two searches over all combinations and hyperparameters.
REVISIT = 10
#: Spread of the log residual assumed until a process can be fitted.
UNKNOWN_SPREAD = 0.3


@dataclass(frozen=True)
class RobustState:
    """All that the robust method has learned.

    Parameters
    ----------
    trend : the models of Eq. (1).
    residual : process on what the trend leaves over; None with too few runs.
    calibration : scores of past predictions.
    domain : what was learned from.
    notes : what a user of the predictions should know.
    since_search : runs learned since the last search.
    """

    trend: Trend
    residual: ResidualProcess | None
    calibration: Calibration
    domain: Domain
    notes: tuple[str, ...] = ()
    since_search: int = 0

    def predict(self, n: Floats, p: Floats, cpu: Floats, bw: Floats) -> tuple[Floats, Floats]:
        """Times and spreads of their logarithms, for arrays of one shape (n,)."""
        time = self.trend(n, p, cpu, bw)
        if self.residual is None:
            return time, np.full(time.shape, UNKNOWN_SPREAD)
        mean, spread = self.residual.predict(inputs(n, p, cpu, bw))
        return time * np.exp(mean), spread


class RobustPredictor:
    """Trend and residual process together.

    Parameters
    ----------
    application, cluster : what it models, for the record.
    capacity : runs that a search looks back at.

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

    def __init__(self, application: str = "", cluster: str = "", *, capacity: int = 512) -> None:
        self.application = application
        self.cluster = cluster
        self.window = RunWindow(capacity=capacity)
        self._state: RobustState | None = None
        self._search: BackgroundSearch[RobustState] = BackgroundSearch()
        self._since_start: list[Run] = []

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
        if state.residual is not None:
            error, spread = state.residual.leave_one_out()
            state = replace(state, calibration=Calibration.of(np.abs(error) / spread))
        self._state = state
        return self

    def predict(self, request: Request, level: float = 0.9) -> Prediction:
        """Predict one execution time."""
        state = self.state
        where = np.array(
            [[request.problem_size], [request.processors], [request.available_cpu], [request.available_bandwidth]],
            dtype=np.float64,
        )
        time, spread = state.predict(*where)
        if not np.isfinite(time[0]):
            raise InputError(f"no model of the trend is defined for {request}")
        low, high = state.calibration.ends(time, spread, level)
        model = state.trend.formula()
        if state.residual is not None:
            bend = float(time[0] / state.trend(*where)[0]) - 1.0
            model = f"{model}; {bend:+.1%} from the residual process"
        return Prediction(
            float(time[0]),
            Interval(float(low[0]), float(high[0]), level),
            model,
            state.notes + state.domain.warnings(request),
        )

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
        time, spread = state.predict(*np.broadcast_arrays(*columns))
        low, high = state.calibration.ends(time, spread, level)
        return Predictions(time, low, high, level)

    def learn(self, run: Run) -> None:
        """Absorb one run: score its prediction, refit trend and process, maybe start a search in the background."""
        state = self.state
        row = observations([run])
        time, spread = state.predict(row.problem_size, row.processors, row.cpu, row.bw)
        calibration = state.calibration.learned(score(run.execution_time, float(time[0]), float(spread[0])))
        self.window.add(run)
        kept = self.window.observations()
        state = replace(
            state,
            trend=state.trend.learned(row),
            calibration=calibration,
            domain=state.domain.learned(run),
            since_search=state.since_search + 1,
        )
        if state.residual is not None:
            state = replace(state, residual=fit_process(state.trend, kept, state.residual.hyperparameters))
        state = self._adopted(state, kept)
        if self._search.running:
            self._since_start.append(run)
        elif supports_search(kept) and (state.since_search >= REVISIT or state.residual is None):
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
        residual = found.residual and fit_process(trend, kept, found.residual.hyperparameters)
        return replace(state, trend=trend, residual=residual, notes=found.notes, since_search=len(self._since_start))


def _searched(runs: Observations, before: RobustState | None, domain: Domain) -> RobustState:
    """A fresh search over all combinations, and over the hyperparameters of the process."""
    calibration = before.calibration if before is not None else Calibration()
    if not supports_search(runs):
        trend, notes = Trend.simplest(runs)
        return RobustState(trend, None, calibration, domain, notes=notes)
    trend = Trend.search(runs)
    start = before.residual.hyperparameters if before is not None and before.residual is not None else None
    return RobustState(trend, fit_process(trend, runs, start, optimise=True), calibration, domain)


def fit_process(
    trend: Trend, runs: Observations, hyperparameters: Hyperparameters | None, *, optimise: bool = False
) -> ResidualProcess:
    """Fit a process to what the trend leaves over of well-chosen runs."""
    chosen = well_chosen(runs)
    n, p, cpu, bw = (column[chosen] for column in (runs.problem_size, runs.processors, runs.cpu, runs.bw))
    time = trend(n, p, cpu, bw)
    defined = np.isfinite(time)
    points = inputs(n, p, cpu, bw)[defined]
    residual = np.log(runs.time[chosen][defined] / time[defined])
    return ResidualProcess(points, residual, hyperparameters, optimise=optimise)
