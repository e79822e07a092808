"""Runs of one application on several platforms: each has its own model, and one with few runs borrows from the others.

What carries over is the shape: how time grows with N, falls with P, and depends on the loads. Each platform that is
known well says by its own model what a run takes; the middle of what they say, each first brought to the runs of the
platform asked about, is the prediction there. What remains is learned from that platform's own runs as a ported model
learns it (see ``transfer``): a scale of its own, a share of communication of its own, a bend. Before any run there the
scale is not known, and the interval says so. Porting by Eq. (3) is the case of one other platform, of which idle runs
are known.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from metasched.predictors.contract import ByBatch, Floats, Learned, Part, Predictions, Term, broadcast, columns_of
from metasched.predictors.gaussian_process import ResidualProcess, ScalePrior, Scales, most_probable, well_chosen
from metasched.predictors.memory.calibration import Calibration, score
from metasched.predictors.memory.domain import Domain
from metasched.predictors.memory.learned_state import LearnedState, at_least_one
from metasched.predictors.memory.window import RunWindow, observations
from metasched.predictors.porting.transfer import inputs
from metasched.predictors.robust.predictor import RobustPredictor, imagined
from metasched.records import DEFAULT_SETTINGS, InputError, Prediction, Request, Run, Settings

#: Runs from which on a platform needs no others, and from which on others may borrow from it, unless one of them has
#: four times as many.
ENOUGH, LENDS = 20, 3
#: Spread of the logarithm of a platform's scale, and of its communication relative to that.
LEVERS = np.array([0.8, 0.5])
#: Scales of the process before any run of the platform; lengths for log N / P, P, CPU and bandwidth.
PRIOR = ScalePrior(Scales(0.06, (2.0, 2.0, 2.0, 2.0), 0.15, 0.04))
#: Runs between two looks for better scales.
REVISIT = 5


@dataclass(frozen=True)
class BorrowedState:
    """What a platform has taught besides what it borrows.

    Parameters
    ----------
    process : on what the others say, None before the first run.
    calibration : scores of past predictions.
    domain : what was run anywhere.
    shifts : by how much the logarithm of what each of the others says is moved, shape (r,).
    since_search : runs learned since the last look for better scales.
    """

    process: ResidualProcess | None
    calibration: Calibration
    domain: Domain
    shifts: Floats
    since_search: int = 0


class BorrowingPredictor(LearnedState[BorrowedState], ByBatch):
    """An application on a platform with few runs of its own, or none.

    Parameters
    ----------
    lenders : its models on other platforms; they are not changed.
    cluster : name of the platform.

    Examples
    --------
    >>> def runs(cluster, factor, sizes):
    ...     return [Run("cg", cluster, n, p, 1.0, 90.0, factor * 1e-4 * n**2 / p) for n in sizes for p in (1, 2, 4)]
    >>> lender = RobustPredictor("cg", "old").fit(runs("old", 1.0, (200, 400, 800, 1600)))
    >>> new = BorrowingPredictor([lender], "new").fit(runs("new", 0.5, (300,)))
    >>> request = Request(1200, 4, 1.0, 90.0)
    >>> round(new.predict(request).execution_time / lender.predict(request).execution_time, 1)
    0.5
    """

    name = "borrowed"

    def __init__(self, lenders: Sequence[RobustPredictor], cluster: str, *, capacity: int = 512) -> None:
        self.lenders = tuple(lenders)
        self.application, self.cluster = self.lenders[0].application, cluster
        self.window = RunWindow(capacity=capacity)
        self._asked = DEFAULT_SETTINGS

    def fit(self, runs: Iterable[Run]) -> BorrowingPredictor:
        """Learn the runs of the platform, perhaps none, and forget those learned before."""
        self.window = RunWindow(runs, self.window.capacity)
        domain = Domain.of(run for lender in self.lenders for run in lender.window)
        for run in self.window:
            domain = domain.learned(run)
        self._learned_from(imagined(), domain, None, 0, search=True)
        return self

    def under(self, settings: Settings) -> BorrowingPredictor:
        """The predictor as it is now, answering for other settings; see ``RobustPredictor.under``."""
        view = copy.copy(self)
        view._asked = settings
        return view

    def predict_many(
        self,
        problem_size: ArrayLike,
        processors: ArrayLike,
        available_cpu: ArrayLike,
        available_bandwidth: ArrayLike,
        level: float = 0.9,
    ) -> Predictions:
        """Predict many at once."""
        columns = broadcast(problem_size, processors, available_cpu, available_bandwidth)
        time, spread, _ = self._expected(columns, self._asked)
        low, high = self.state.calibration.ends(time, spread, level)
        return Predictions(time, low, high, level)

    def predict(self, request: Request, level: float = 0.9) -> Prediction:
        """Predict one execution time."""
        asked = self.under(request.settings) if request.settings != DEFAULT_SETTINGS else self
        found = super(BorrowingPredictor, asked).predict(request, level)
        others = ", ".join(lender.cluster for lender in self.lenders)
        count = len(self.window)
        said = f"{count} run{'' if count == 1 else 's'} on {self.cluster}: what is known of {others} is borrowed"
        warnings = (said, *self.state.domain.warnings(request))
        return replace(found, model=f"the middle of the models of {others}, scaled", warnings=warnings)

    def computing_share(
        self, problem_size: ArrayLike, processors: ArrayLike, available_cpu: ArrayLike, available_bandwidth: ArrayLike
    ) -> Floats:
        """The shares of the expected times that are computation, shape (n,)."""
        columns = broadcast(problem_size, processors, available_cpu, available_bandwidth)
        return self._expected(columns, self._asked)[2]

    def breakdown(self, request: Request) -> tuple[Term, ...]:
        """Computation and communication, as the others have them on average."""
        time, _, share = (float(value[0]) for value in self._expected(columns_of(request), request.settings))
        others = ", ".join(lender.cluster for lender in self.lenders)
        return (
            Term("computation", f"as on {others}, scaled", share * time),
            Term("communication", f"as on {others}, scaled", (1.0 - share) * time),
        )

    def learned(self) -> Learned:
        """From where it borrows."""
        others = ", ".join(lender.cluster for lender in self.lenders)
        return Learned((Part(),), (f"borrowed from {others}",))

    def learn(self, run: Run) -> None:
        """Absorb one run of the platform: score its prediction, and condition the process on it."""
        state, row = self.state, observations([run])
        columns = row.problem_size, row.processors, row.cpu, row.bw
        time, spread, _ = self._expected(columns, run.settings)
        calibration = state.calibration.learned(score(run.execution_time, float(time[0]), float(spread[0])))
        self.window.add(run)
        since = state.since_search + 1
        scales = None if state.process is None else state.process.scales
        search = since >= REVISIT or len(self.window) <= REVISIT
        self._learned_from(calibration, state.domain.learned(run), scales, since % REVISIT, search=search)

    def _learned_from(
        self, calibration: Calibration, domain: Domain, scales: Scales | None, since: int, *, search: bool
    ) -> None:
        runs, shifts = list(self.window), np.zeros(len(self.lenders))
        if not runs:
            self.state = BorrowedState(None, calibration, domain, shifts, since)
            return
        kept = observations(runs)
        points = inputs(kept.problem_size, kept.processors, kept.cpu, kept.bw)
        chosen = well_chosen(points)
        kept, points, runs = kept.at(chosen), points[chosen], [runs[k] for k in chosen]
        said = np.empty((len(self.lenders), len(runs)))
        shares = np.empty(len(runs))
        columns = kept.problem_size, kept.processors, kept.cpu, kept.bw
        for settings in {run.settings for run in runs}:
            here = np.array([run.settings == settings for run in runs])
            said[:, here], shares[here] = self._said(tuple(column[here] for column in columns), settings)
        shifts = np.median(np.log(kept.time) - said, axis=1)
        error = np.log(kept.time) - np.median(said + shifts[:, None], axis=0)
        levers = np.stack([np.ones(len(runs)), 1.0 - shares], axis=1)
        scales = scales or PRIOR.medians
        if search:
            scales = most_probable(points, levers, LEVERS, error, PRIOR, scales)
        process = ResidualProcess(points, levers, LEVERS, error, scales)
        self.state = BorrowedState(process, calibration, domain, shifts, since)

    def _expected(self, columns: Sequence[Floats], settings: Settings) -> tuple[Floats, Floats, Floats]:
        """Times (s), spreads of their logarithms, and shares of computation, each of shape (n,)."""
        state = self.state
        said, share = self._said(columns, settings)
        said += state.shifts[:, None]
        middle, apart = np.median(said, axis=0), said.std(axis=0)
        levers = np.stack([np.ones(len(share)), 1.0 - share], axis=1)
        if state.process is None:
            bend, spread = np.zeros(len(share)), np.sqrt(levers**2 @ LEVERS**2)
        else:
            bend, spread = state.process.predict(inputs(*columns), levers)
        with np.errstate(over="ignore"):
            return np.exp(middle + bend), np.hypot(spread, apart / np.sqrt(len(said))), share

    def _said(self, columns: Sequence[Floats], settings: Settings) -> tuple[Floats, Floats]:
        """Logarithms of what each of the others expects (r, n), and the mean share of computation, (n,)."""
        said, shares = [], []
        for lender in self.lenders:
            try:
                state = lender.state.under(settings)
            except InputError:  # a parameter that was never varied there
                state = lender.state
            terms = state.model.formula.terms(*columns)
            said.append(np.log(state.tabulated.expect(*columns)))
            shares.append(terms.computation / terms.time)
        return np.array(said), np.mean(shares, axis=0)


class PlatformsPredictor(ByBatch):
    """One application on several platforms.

    Parameters
    ----------
    application : its name.
    models : by platform.
    cluster : the platform that it answers for; at first the one with most runs.

    Examples
    --------
    >>> sizes = [(n, p) for n in (9, 99) for p in (1, 2)]
    >>> made = [Run("cg", name, n, p, 1.0, 90.0, f * n / p) for name, f in (("a", 1.0), ("b", 2.0)) for n, p in sizes]
    >>> found = PlatformsPredictor("cg").fit(made)
    >>> sorted(found.models), found.on("c").cluster
    (['a', 'b'], 'c')
    """

    name = "platforms"

    def __init__(self, application: str = "", models: Mapping[str, RobustPredictor] | None = None) -> None:
        self.application = application
        self.models = dict(models or {})

    @property
    def cluster(self) -> str:
        """The platform with most runs."""
        return max(self.models, key=lambda platform: self.models[platform].window.seen, default="")

    @property
    def window(self) -> RunWindow:
        """The runs of the platform with most."""
        return self.models[self.cluster].window

    def fit(self, runs: Iterable[Run]) -> PlatformsPredictor:
        """Learn the runs of each platform, and forget everything learned before."""
        runs = at_least_one(runs)
        self.models = {
            platform: RobustPredictor(self.application, platform).fit(run for run in runs if run.cluster == platform)
            for platform in dict.fromkeys(run.cluster for run in runs)
        }
        return self

    def lending_to(self, platform: str) -> BorrowingPredictor | None:
        """What borrows for a platform from the others, without runs of its own; None where none has enough."""
        others = [model for name, model in self.models.items() if name != platform]
        least = max(LENDS, max((len(model.window) for model in others), default=0) // 4)
        able = [model for model in others if len(model.window) >= least]
        return BorrowingPredictor(able, platform) if able else None

    def on(self, platform: str) -> RobustPredictor | BorrowingPredictor:
        """What predicts on a platform, whether it was ever used or not.

        Raises
        ------
        InputError
            It never was, and no other has runs enough.
        """
        own = self.models.get(platform)
        if own is not None and len(own.window) >= ENOUGH:
            return own
        borrowing = self.lending_to(platform)
        if borrowing is not None:
            return borrowing.fit(own.window if own is not None else ())
        if own is None:
            raise InputError(f"no platform has {LENDS} runs of {self.application} to predict from on {platform}")
        return own

    def predict_many(
        self,
        problem_size: ArrayLike,
        processors: ArrayLike,
        available_cpu: ArrayLike,
        available_bandwidth: ArrayLike,
        level: float = 0.9,
    ) -> Predictions:
        """Predict many at once, on the platform with most runs."""
        asked = problem_size, processors, available_cpu, available_bandwidth
        return self.on(self.cluster).predict_many(*asked, level=level)

    def predict(self, request: Request, level: float = 0.9) -> Prediction:
        """Predict one execution time, on the platform with most runs."""
        return self.on(self.cluster).predict(request, level)

    def breakdown(self, request: Request) -> tuple[Term, ...]:
        """The terms on the platform with most runs."""
        return self.on(self.cluster).breakdown(request)

    def learn(self, run: Run) -> None:
        """Take one finished run into account, on its platform."""
        own = self.models.get(run.cluster)
        if own is None:
            self.models[run.cluster] = RobustPredictor(self.application, run.cluster).fit([run])
        else:
            own.learn(run)

    def settle(self) -> None:
        """Wait for searches that are running."""
        for model in self.models.values():
            model.settle()

    def learned(self) -> Learned:
        """What was learned on each platform."""
        each = {platform: model.learned() for platform, model in self.models.items()}
        parts = tuple(replace(part, name=platform) for platform, found in each.items() for part in found.parts)
        return Learned(parts, tuple(f"{platform}: {note}" for platform, found in each.items() for note in found.notes))
