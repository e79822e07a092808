"""One phase, whose time is that of its slowest process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from metasched.arrays import Floats
from metasched.predictors.phases.profile import WorkProfile
from metasched.predictors.robust.learning import REVISIT
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.records import PhaseMark, Run

#: Runs of processes between two searches for their model: there are several in a run of the application.
PROCESS_REVISIT = 8 * REVISIT


@dataclass(frozen=True)
class PhaseModel:
    """Models of one phase.

    Parameters
    ----------
    name : of the phase.
    slowest : predicts the phase from the minima over its processes.
    processes : Eq. (4), where the processes work each for itself: predicts one process from its own loads and work.
    profile : of the work over the processes.
    """

    name: str
    slowest: RobustPredictor
    processes: RobustPredictor | None
    profile: WorkProfile

    @classmethod
    def fit(cls, name: str, runs: Sequence[Run]) -> PhaseModel:
        """Learn a phase from marked runs of one application on one cluster."""
        marks = [marks_of(run, name) for run in runs]
        profile = WorkProfile.of(marks)
        first = runs[0]
        slowest = RobustPredictor(first.application, first.cluster)
        slowest.fit(phase_run(run, own) for run, own in zip(runs, marks, strict=True))
        processes = None
        if profile.explains(marks):
            processes = RobustPredictor(first.application, first.cluster, revisit=PROCESS_REVISIT)
            processes.fit(
                process for run, own in zip(runs, marks, strict=True) for process in process_runs(run, own, profile)
            )
        return cls(name, slowest, processes, profile)

    def learn(self, run: Run) -> None:
        """Take one more marked run into account."""
        marks = marks_of(run, self.name)
        self.slowest.learn(phase_run(run, marks))
        if self.processes is not None:
            for process in process_runs(run, marks, self.profile):
                self.processes.learn(process)

    def settle(self) -> None:
        """Wait for searches that are running."""
        self.slowest.settle()
        if self.processes is not None:
            self.processes.settle()

    def expected(self, problem_size: float, cpu: Floats, bw: Floats) -> tuple[float, float]:
        """Time of the phase and spread of its logarithm, from the loads of every process, arrays of shape (P,).

        Parameters
        ----------
        problem_size : N.
        cpu : available CPU of each process, shape (P,), a share of one processor.
        bw : available bandwidth of each process, shape (P,) (Mbit/s).
        """
        count = len(cpu)
        if self.processes is None:
            where = np.array([[problem_size], [count], [cpu.min()], [bw.min()]], dtype=np.float64)
            log_time, spread = self.slowest.state.predict(*where)
            return float(np.exp(log_time.item())), float(spread.item())
        effective = self.profile.effective_cpu(cpu, np.arange(count), count)
        each = np.ones(count)
        log_time, spread = self.processes.state.predict(problem_size * each, count * each, effective, bw)
        last = int(np.argmax(log_time))
        return float(np.exp(log_time[last])), float(spread[last])


def marks_of(run: Run, phase: str) -> tuple[PhaseMark, ...]:
    """Marks of one phase of a run, in the order of processes."""
    return tuple(sorted((mark for mark in run.marks if mark.phase == phase), key=lambda mark: mark.process))


def phase_run(run: Run, marks: Sequence[PhaseMark]) -> Run:
    """A phase as a run of its own: the minima over its processes, and the time of the slowest."""
    return Run(
        run.application,
        run.cluster,
        run.problem_size,
        run.processors,
        min(mark.avg_avail_cpu for mark in marks),
        min(mark.avg_avail_bw for mark in marks),
        max(mark.execution_time for mark in marks),
    )


def process_runs(run: Run, marks: Sequence[PhaseMark], profile: WorkProfile) -> list[Run]:
    """Every process of a phase as a run of its own, with the CPU that it has for each unit of work."""
    cpu = np.array([mark.avg_avail_cpu for mark in marks])
    effective = profile.effective_cpu(cpu, np.array([mark.process for mark in marks]), len(marks))
    return [
        Run(
            run.application,
            run.cluster,
            run.problem_size,
            run.processors,
            float(own),
            mark.avg_avail_bw,
            mark.execution_time,
        )
        for own, mark in zip(effective, marks, strict=True)
    ]
