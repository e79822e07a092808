"""A model ported to a target platform, which then adapts on the target's own runs.

Before any run of its own it predicts by Eq. (3), corrected by what the dedicated runs of the target already say. Every
run that it learns then counts for as much as the evidence gives it: see ``transfer``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from metasched.arrays import Floats
from metasched.predictors.columns import ByColumns, Columns, broadcast, columns_of
from metasched.predictors.contract import Learned, Predictions, Term
from metasched.predictors.formulas.published import PublishedPredictor
from metasched.predictors.gaussian_process import ResidualProcess, Scales, well_chosen
from metasched.predictors.memory.calibration import Calibration, score
from metasched.predictors.memory.domain import Domain
from metasched.predictors.memory.learned_state import LearnedState, at_least_one
from metasched.predictors.memory.representable import refuse_unrepresentable, representable
from metasched.predictors.memory.window import RunWindow, observations
from metasched.predictors.porting.factors import Factor
from metasched.predictors.porting.link_sharing import LinkSharing
from metasched.predictors.porting.ported_formula import PortedFormula
from metasched.predictors.porting.reference import Reference
from metasched.predictors.porting.transfer import transfer
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.records import InputError, Interval, Prediction, Request, Run

#: Runs between two looks for better scales of the process.
REVISIT = 5


@dataclass(frozen=True)
class PortedState:
    """All that a ported model has learned on its target.

    Parameters
    ----------
    process : on what the ported formula gets wrong.
    calibration : scores of past predictions.
    domain : what the reference and the target have run.
    notes : what a user of the predictions should know.
    since_search : runs learned since the last look for better scales.
    """

    process: ResidualProcess
    calibration: Calibration
    domain: Domain
    notes: tuple[str, ...]
    since_search: int = 0


class PortedPredictor(LearnedState[PortedState], ByColumns):
    """A reference model on a target platform.

    Parameters
    ----------
    reference : the model learned on the reference platform; it is not changed.
    cluster : name of the target platform.
    rcpu, rbw : scale factors.
    bandwidth_ratio : bandwidth of an idle link of the reference over that of the target.
    dedicated_runs : of the reference, on one and on two processors.
    sharing : how many nodes both platforms have; None where not known.
    capacity : runs that are looked back at.

    Examples
    --------
    >>> from metasched.predictors.porting.port import port
    >>> def runs(cluster, sizes, counts, computing, sending):
    ...     return [
    ...         Run("cg", cluster, n, p, 1.0, 90.0, computing * n**1.5 / p + sending * n * (p - 1))
    ...         for n in sizes for p in counts
    ...     ]
    >>> reference = RobustPredictor("cg", "c8").fit(runs("c8", range(100, 900, 50), (1, 2, 4, 8), 1e-3, 1e-3))
    >>> ported = port(
    ...     reference,
    ...     runs("c8", range(200, 800, 100), (1, 2), 1e-3, 1e-3),
    ...     runs("d16", range(200, 800, 100), (1, 2), 5e-4, 8e-4),
    ... )
    >>> round(ported.rcpu.value, 3)
    0.5
    >>> truth = 5e-4 * 500**1.5 / 8 + 8e-4 * 500 * 7
    >>> abs(ported.predict(Request(500, 8, 1.0, 90.0)).execution_time / truth - 1) < 0.05
    True
    """

    name = "ported"
    unfitted = "the ported model knows no run of its target yet, expected it to be fitted to at least one"

    def __init__(
        self,
        reference: PublishedPredictor | RobustPredictor,
        cluster: str,
        rcpu: Factor,
        rbw: Factor,
        *,
        bandwidth_ratio: float,
        dedicated_runs: Iterable[Run],
        sharing: LinkSharing | None,
        capacity: int = 512,
    ) -> None:
        self.reference = reference
        self.application = reference.application
        self.cluster = cluster
        self.rcpu, self.rbw = rcpu, rbw
        self.bandwidth_ratio = bandwidth_ratio
        self.dedicated_runs = tuple(dedicated_runs)
        most = reference.state.domain.most_processors
        self.formula = PortedFormula(
            Reference.of(reference, self.dedicated_runs),
            bandwidth_ratio,
            replace(sharing or LinkSharing(), most_processors=most),
            rcpu.value,
            rbw.value,
        )
        self.window = RunWindow(capacity=capacity)

    def fit(self, runs: Iterable[Run]) -> PortedPredictor:
        """Learn runs of the target, at least one, and forget those learned before; the reference model stays."""
        runs = at_least_one(runs, "no runs of the target, expected at least one")
        refuse_unrepresentable(runs)
        self.window = RunWindow(runs, self.window.capacity)
        process = self.fit_process(None, search=True)
        error, spread = process.leave_one_out()
        domain = self.reference.state.domain
        for run in runs:
            domain = domain.learned(run)
        known, notes = self.formula.reference, []
        if not known.communicates:
            notes.append("the reference model has no communication to scale")
        if known.asked:
            notes.append(f"in the runs of {self.reference.cluster} {known.asked}")
        self._state = PortedState(process, Calibration.starting(np.abs(error) / spread), domain, tuple(notes))
        return self

    def fit_process(self, scales: Scales | None, *, search: bool = False) -> ResidualProcess:
        """Condition a process on well-chosen runs of the window."""
        runs = self.window.observations()
        chosen = well_chosen(self.formula.points(runs.problem_size, runs.processors, runs.cpu, runs.bw))
        n, p, cpu, bw, measured = (
            column[chosen] for column in (runs.problem_size, runs.processors, runs.cpu, runs.bw, runs.time)
        )
        time, share = self.formula.split(n, p, cpu, bw)
        defined = np.isfinite(time)
        error = np.log(measured[defined] / time[defined])
        points = self.formula.points(n, p, cpu, bw)[defined]
        return transfer(points, self.formula.basis(share, p)[defined], error, scales, search=search)

    def expected(self, n: Floats, p: Floats, cpu: Floats, bw: Floats) -> tuple[Floats, Floats]:
        """Times (s) and spreads of their logarithms, for arrays of one shape (n,)."""
        time, share = self.formula.split(n, p, cpu, bw)
        mean, spread = self.state.process.predict(self.formula.points(n, p, cpu, bw), self.formula.basis(share, p))
        return time * np.exp(mean), spread

    def predict(self, request: Request, level: float = 0.9) -> Prediction:
        """Predict the execution time (s) on the target platform."""
        many = self.predict_many(*columns_of(request), level)
        time = float(many.execution_time[0])
        if not np.isfinite(time):
            raise InputError(f"the ported formula is not defined for {request}")
        state = self.state
        return Prediction(
            time,
            Interval(float(many.low[0]), float(many.high[0]), level),
            f"{self.formula.text}, ported from {self.reference.cluster} (bw x {self.bandwidth_ratio:.3g})",
            state.notes + state.domain.warnings(request),
        )

    def _predicted(self, columns: Columns, level: float) -> Predictions:
        return self.state.calibration.around(*self.expected(*columns), level)

    def _expected(self, columns: Columns) -> Floats:
        return self.expected(*columns)[0]

    def computing_share(
        self, problem_size: ArrayLike, processors: ArrayLike, available_cpu: ArrayLike, available_bandwidth: ArrayLike
    ) -> Floats:
        """The shares of the expected times that are computation, shape (n,)."""
        return self.formula.split(*broadcast(problem_size, processors, available_cpu, available_bandwidth))[1]

    def breakdown(self, request: Request) -> tuple[Term, ...]:
        """Both scaled terms of the reference, and their correction by the runs of the target."""
        columns = columns_of(request)
        terms = [float(term[0]) for term in self.formula.terms(*columns)]
        bend = float(self.expected(*columns)[0][0]) / sum(terms)
        factors = self.rcpu.value, self.rbw.value * self.bandwidth_ratio
        return tuple(
            Term(name, f"{factor:.3g} · [{text}], {bend - 1.0:+.1%} by the runs near it", bend * seconds)
            for name, factor, text, seconds in zip(
                ("computation", "communication"), factors, self.formula.reference.texts, terms, strict=True
            )
        )

    def learned(self) -> Learned:
        """What the reference has learned, and its scale factors."""
        scaled = (
            f"ported from {self.reference.cluster}: computation x {self.rcpu.value:.3g}, "
            f"communication x {self.rbw.value:.3g}"
        )
        return Learned(self.reference.learned().parts, (scaled, *self.state.notes))

    def learn(self, run: Run) -> None:
        """Absorb one run of the target: score its prediction, condition the process on it, maybe look for scales."""
        if not representable(run):
            return
        state = self.state
        row = observations([run])
        time, spread = self.expected(row.problem_size, row.processors, row.cpu, row.bw)
        calibration = state.calibration.learned(score(run.execution_time, float(time[0]), float(spread[0])))
        self.window.add(run)
        since = state.since_search + 1
        process = self.fit_process(state.process.scales, search=since >= REVISIT)
        self._state = replace(
            state,
            process=process,
            calibration=calibration,
            domain=state.domain.learned(run),
            since_search=since % REVISIT,
        )
