"""An application with phases: each phase has its models, and the time of the run is their sum.

Sanjay & Vadhiyar 2008, section 5. Asked with the two minima, as every predictor can be, it predicts each phase from
them. Asked with the loads of every process, it also knows which process would be the slowest.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from metasched.arrays import Floats
from metasched.predictors.columns import ByColumns, Columns, columns_of
from metasched.predictors.contract import Learned, Part, Predictions, Term
from metasched.predictors.memory.calibration import Calibration, score
from metasched.predictors.memory.domain import Domain
from metasched.predictors.memory.learned_state import LearnedState, at_least_one
from metasched.predictors.memory.representable import refuse_unrepresentable, representable
from metasched.predictors.memory.window import RunWindow
from metasched.predictors.phases.phase import PhaseModel, marks_of
from metasched.records import InputError, Interval, Prediction, Request, Run

#: Parts of the training runs that are each predicted from the others, which makes the first scores of intervals.
FOLDS = 5


@dataclass(frozen=True)
class PhasedState:
    """All that has been learned.

    Parameters
    ----------
    phases : models of the phases, in the order in which they run.
    overhead : time of the run over the sum of its phases.
    calibration : scores of predictions from the two minima.
    of_processes : scores of predictions from the loads of every process.
    domain : what was learned from.
    """

    phases: tuple[PhaseModel, ...]
    overhead: float
    calibration: Calibration
    of_processes: Calibration
    domain: Domain


class PhasedPredictor(LearnedState[PhasedState], ByColumns):
    """Models for each phase and each process.

    >>> from metasched.records import PhaseMark
    >>> def marked(n, p):
    ...     marks = [PhaseMark("1", k, 1.0, 90.0, 1e-3 * n / p) for k in range(p)]
    ...     marks += [PhaseMark("2", k, 1.0, 90.0, 1e-6 * n**2 * (2 * k + 1) / p**2) for k in range(p)]
    ...     last = 1e-3 * n / p + 1e-6 * n**2 * (2 * p - 1) / p**2
    ...     return Run("two", "c8", n, p, 1.0, 90.0, last, marks=tuple(marks))
    >>> predictor = PhasedPredictor("two", "c8").fit(
    ...     [marked(n, p) for n in (1000, 2000, 4000) for p in (1, 2, 4)]
    ... )
    >>> run = marked(8000, 4)
    >>> abs(predictor.predict_processes(8000, [1.0] * 4, [90.0] * 4).execution_time / run.execution_time - 1) < 0.05
    True
    """

    name = "phased"
    unfitted = "the model has learned nothing yet, expected it to be fitted to marked runs"

    def __init__(self, application: str, cluster: str) -> None:
        self.application = application
        self.cluster = cluster

    @property
    def window(self) -> RunWindow:
        """The runs looked back at, as the first phase sees them: each phase has the same runs."""
        return self.state.phases[0].slowest.window

    def fit(self, runs: Iterable[Run]) -> PhasedPredictor:
        """Learn marked runs and forget everything learned before.

        Raises
        ------
        InputError : there are no runs, or one does not have a mark for each process of each phase.
        """
        runs = at_least_one(runs)
        refuse_unrepresentable(runs)
        names = tuple(dict.fromkeys(mark.phase for mark in runs[0].marks))
        for run in runs:
            check_marks(run, names)
        fitted, folds = _fitted(names, runs), min(FOLDS, len(runs))
        if folds > 1:
            # Errors of phases and processes of one run belong together, which neither says of itself.
            scores = []
            for fold in range(folds):
                others = _fitted(names, [run for place, run in enumerate(runs) if place % folds != fold])
                scores += [_scores(others, run) for run in runs[fold::folds]]
            minima, processes = map(Calibration.starting, zip(*scores, strict=True))
            fitted = replace(fitted, calibration=minima, of_processes=processes)
        self._state = fitted
        return self

    def predict(self, request: Request, level: float = 0.9) -> Prediction:
        """Predict one execution time from the two minima."""
        many = self.predict_many(*columns_of(request), level)
        state = self.state
        return self._prediction(
            request, float(many.execution_time[0]), float(many.low[0]), float(many.high[0]), level,
            " + ".join(f"[phase {phase.name}: {phase.slowest.state.model.text}]" for phase in state.phases),
        )  # fmt: skip

    def predict_processes(
        self, problem_size: float, available_cpu: ArrayLike, available_bandwidth: ArrayLike, level: float = 0.9
    ) -> Prediction:
        """Predict one execution time from the loads of every process.

        Parameters
        ----------
        problem_size : N.
        available_cpu, available_bandwidth : of each process, by its id: arrays of shape (P,), or of shape (phases, P)
            where they are known to differ from phase to phase.
        level : of the interval.

        Raises
        ------
        InputError : when a load is impossible.
        """
        state = self.state
        shape = (len(state.phases), np.shape(available_cpu)[-1])
        cpu = np.broadcast_to(np.asarray(available_cpu, dtype=np.float64), shape)
        bw = np.broadcast_to(np.asarray(available_bandwidth, dtype=np.float64), shape)
        Request(problem_size, shape[1], float(cpu.max()), float(bw.max()))
        request = Request(problem_size, shape[1], float(cpu.min()), float(bw.min()))
        time, spread = _from_processes(state, problem_size, cpu, bw)
        low, high = state.of_processes.ends(np.array([time]), spread, level)
        return self._prediction(
            request, time, float(low[0]), float(high[0]), level,
            " + ".join(
                f"[phase {phase.name}: slowest process of {phase.processes.state.model.text}]"
                if phase.processes is not None
                else f"[phase {phase.name}: {phase.slowest.state.model.text}]"
                for phase in state.phases
            ),
        )  # fmt: skip

    def _predicted(self, columns: Columns, level: float) -> Predictions:
        return self.state.calibration.around(*_from_minima(self.state, *columns), level)

    def _expected(self, columns: Columns) -> Floats:
        phases = [phase.slowest.expect_many(*columns) for phase in self.state.phases]
        return np.asarray(self.state.overhead * np.sum(phases, axis=0))

    def breakdown(self, request: Request) -> tuple[Term, ...]:
        """The computation and communication of every phase (s), with the overhead between phases."""
        state = self.state
        return tuple(
            Term(f"{term.name}, phase {phase.name}", term.how, state.overhead * term.seconds)
            for phase in state.phases
            for term in phase.slowest.breakdown(request)
        )

    def learned(self) -> Learned:
        """What the model learned about each phase."""
        each = [(phase, phase.slowest.learned()) for phase in self.state.phases]
        parts = (
            Part(
                phase.name,
                found.parts[0].models,
                {"processes": phase.processes is not None, "work": phase.profile.density, **found.parts[0].facts},
            )
            for phase, found in each
        )
        return Learned(tuple(parts), tuple(dict.fromkeys(note for _, found in each for note in found.notes)))

    def learn(self, run: Run) -> None:
        """Learn one finished run; a run without marks only changes the width of the intervals."""
        if not representable(run):
            return
        state = self.state
        if run.marks:
            check_marks(run, tuple(phase.name for phase in state.phases))
        minima, processes = _scores(state, run)
        self._state = replace(
            state,
            calibration=state.calibration.learned(minima),
            of_processes=state.of_processes.learned(processes),
            domain=state.domain.learned(run),
        )
        if run.marks:
            for phase in state.phases:
                phase.learn(run)

    def settle(self) -> None:
        """Wait for searches that are running and take their results."""
        for phase in self.state.phases:
            phase.settle()

    def _prediction(
        self, request: Request, time: float, low: float, high: float, level: float, model: str
    ) -> Prediction:
        if not np.isfinite(time):
            raise InputError(f"no model of one of the phases is defined for {request}")
        return Prediction(time, Interval(low, high, level), model, self.state.domain.warnings(request))


def _fitted(names: tuple[str, ...], runs: Sequence[Run]) -> PhasedState:
    """What is learned from marked runs, with the scores of the first phase until there are some of whole runs."""
    phases = tuple(PhaseModel.fit(name, runs) for name in names)
    overhead = float(np.median([run.execution_time / sum_of_phases(run, names) for run in runs]))
    calibration = phases[0].slowest.state.calibration
    return PhasedState(phases, overhead, calibration, calibration, Domain.of(runs))


def _scores(state: PhasedState, run: Run) -> tuple[float, float]:
    """Scores of a run predicted from its minima, and from the loads of its processes; infinite without marks."""
    time, spread = _from_minima(state, *columns_of(run.request))
    minima = score(run.execution_time, float(time[0]), float(spread[0]))
    if not run.marks:
        return minima, math.inf
    loads = loads_of(run, [phase.name for phase in state.phases])
    return minima, score(run.execution_time, *_from_processes(state, run.problem_size, *loads))


def _from_minima(state: PhasedState, n: Floats, p: Floats, cpu: Floats, bw: Floats) -> tuple[Floats, Floats]:
    """Times (s) and spreads of their logarithms from the two minima, for arrays of one shape (n,)."""
    parts = [phase.slowest.state.predict(n, p, cpu, bw) for phase in state.phases]
    times = np.exp(np.stack([log_time for log_time, _ in parts]))
    return _summed(times, np.stack([spread for _, spread in parts]), state)


def _from_processes(state: PhasedState, problem_size: float, cpu: Floats, bw: Floats) -> tuple[float, float]:
    """Time (s) and spread of its logarithm from the loads of processes, both of shape (phases, P)."""
    parts = [phase.expected(problem_size, cpu[position], bw[position]) for position, phase in enumerate(state.phases)]
    times, spreads = np.array(parts).T
    time, spread = _summed(times, spreads, state)
    return float(time), float(spread)


def loads_of(run: Run, phases: Iterable[str]) -> tuple[Floats, Floats]:
    """Available CPU and bandwidth of every process in every phase of a marked run, arrays of shape (phases, P)."""
    by_phase = [marks_of(run, name) for name in phases]
    return (
        np.array([[mark.avg_avail_cpu for mark in marks] for marks in by_phase]),
        np.array([[mark.avg_avail_bw for mark in marks] for marks in by_phase]),
    )


def check_marks(run: Run, phases: tuple[str, ...]) -> None:
    """Refuse a run that does not have exactly one mark for each process of each phase."""
    found = sorted((mark.phase, mark.process) for mark in run.marks)
    wanted = sorted((name, process) for name in phases for process in range(run.processors))
    if not phases or found != wanted:
        names = f"phases {', '.join(phases)}" if phases else "at least one phase"
        raise InputError(
            f"run of problem size {run.problem_size:g} on {run.processors} processors has {len(found)} phase marks, "
            f"expected one for each of its processes in {names}"
        )


def sum_of_phases(run: Run, phases: Iterable[str]) -> float:
    """Sum over the phases of the time of the slowest process (s)."""
    return sum(max(mark.execution_time for mark in run.marks if mark.phase == name) for name in phases)


def _summed(time: Floats, spread: Floats, state: PhasedState) -> tuple[Floats, Floats]:
    """Times and log spreads of phases, shape (phases, ...), to those of the run; phases err independently."""
    total = time.sum(axis=0)
    with np.errstate(invalid="ignore"):
        joint = np.sqrt(np.sum((time * spread) ** 2, axis=0)) / total
    return state.overhead * total, np.where(np.isfinite(joint), joint, spread.max(axis=0))
