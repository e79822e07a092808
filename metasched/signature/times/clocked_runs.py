"""The phases of an application on simulated clocks; of long loops a sample, what is left out multiplied."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from metasched.arrays import Floats, Ints
from metasched.records import InputError
from metasched.signature.rules.application import Application
from metasched.signature.rules.expanding import Sample, sampled
from metasched.signature.times.clocks import Clocks, run
from metasched.signature.times.costs import Costs
from metasched.signature.times.stretches import operations_once
from metasched.signature.times.timed import PhaseTime, phases_in_last
from metasched.signature.traces.phases import located

#: Actions of all processes that clocks run through; longer loops are sampled, each in at least this many turns.
MOST_ACTIONS, FEWEST_TURNS = 1_000_000, 16
#: Share of the instructions from which a warning says that no point reaches a phase.
REACHED = 0.05


@dataclass(frozen=True)
class ClockedRun:
    """Clocks of a sample; ``executed`` is how often each phase ran in it, of its weight."""

    clocks: Clocks
    weights: Ints
    executed: Floats
    warnings: tuple[str, ...]

    @property
    def phases(self) -> tuple[PhaseTime, ...]:
        """Phases in the process that ends last (Eq. 6)."""
        return phases_in_last(self.clocks.computing, self.clocks.waiting, self.weights, self.weights)

    @property
    def sampled(self) -> bool:
        """Whether turns of loops were left out."""
        return bool(np.any(self.executed < self.weights - 1e-9))


class _UnmatchedError(Exception):
    """Raised when the sampled iterations do not form complete exchanges of messages."""


def longest_of(application: Application, count: int) -> int:
    """The number of iterations of a loop that clocks can simulate for ``count`` processes."""
    leaves = max(len(role.program.leaves) for role in application.roles.values())
    return max(MOST_ACTIONS // (count * leaves), FEWEST_TURNS)


def composed(application: Application, count: int, costs_of: Callable[[Sample], Sequence[Costs]]) -> list[ClockedRun]:
    """Run the phases of an application on clocks; long loops in part, what is left out multiplied.

    Parameters
    ----------
    application, count : what, on how many processes.
    costs_of : what the actions of a sample cost, on each of several machines.
    """
    longest = longest_of(application, count)
    try:
        runs = _clocked(application, sampled(application, count, longest), costs_of)
        if runs[0].sampled:
            fewer = _clocked(application, sampled(application, count, longest // 2), costs_of)
            runs = [_extended(*both) for both in zip(runs, fewer, strict=True)]
    except _UnmatchedError:
        # Turns of different loops belong together.
        runs = _clocked(application, sampled(application, count, 0), costs_of, final=True)
    return runs


def phases_of_sample(sample: Sample) -> tuple[Ints, Floats, Ints, Ints]:
    """The weight of each phase, and how often it is executed in the sample; the phase of each event, and its place.

    The place is which event of an execution of the phase it is.
    """
    weights, phases = located([shapes for shapes, _ in sample.programs])
    kept = []
    for of, (_, chosen) in zip(phases, sample.programs, strict=True):
        many = np.bincount(of, minlength=weights.size)
        order = np.argsort(of, kind="stable")
        within = np.zeros(of.size, dtype=np.int64)
        within[order] = np.arange(of.size) - np.repeat(np.cumsum(many) - many, many)
        execution = np.maximum(np.rint(many / weights).astype(np.int64), 1)
        kept.append(np.stack([of, within % execution[of]])[:, chosen])
    fullest = max(range(len(phases)), key=lambda role: phases[role].size)
    all_of, some_of = (np.bincount(each, minlength=weights.size) for each in (phases[fullest], kept[fullest][0]))
    executed = weights * some_of / np.maximum(all_of, 1)
    none = np.zeros((2, 0), dtype=np.int64)
    of_events, places = np.concatenate([none, *(kept[role] for role in sample.roles)], axis=1)
    return weights, executed, of_events, places


def _clocked(
    application: Application, sample: Sample, costs_of: Callable[[Sample], Sequence[Costs]], final: bool = False
) -> list[ClockedRun]:
    weights, executed, phases, places = phases_of_sample(sample)
    pace, warnings = _pace(application, sample, executed, phases)
    try:
        found, times = operations_once(sample.trace, phases * (places.max(initial=0) + 1) + places)
        clocks = run(sample.trace, found, phases, costs_of(sample), pace, times)
        return [ClockedRun(each, weights, executed, warnings) for each in clocks]
    except InputError:
        if final:
            raise
        raise _UnmatchedError from None


def _pace(
    application: Application, sample: Sample, executed: Floats, phases: Ints
) -> tuple[Floats | None, tuple[str, ...]]:
    """Seconds of an instruction by measurable points, an array of shape (processes, phases); what they do not reach."""
    if not application.paces:
        return None, ()
    trace = sample.trace
    count = len(trace.processes)
    if len(application.paces) != executed.size:
        line = f"points were measured for {len(application.paces)} phases, a run of {count} has {executed.size}"
        return None, (f"{line}: the hardware's speed is used",)
    work = np.array([trace.table.instructions(each) for each in range(len(trace.table.shape))])
    first = np.concatenate([[0], np.cumsum([each.size for each in trace.processes])])
    pace = np.zeros((count, executed.size))
    warnings = []
    once = np.stack(
        [
            np.bincount(phases[first[rank] : first[rank + 1]], work[actions], executed.size)
            for rank, actions in enumerate(trace.processes)
        ]
    ) / np.maximum(executed, np.finfo(np.float64).tiny)
    shares = once.sum(axis=0) * executed
    for phase, each in enumerate(application.paces):
        if each is None:
            continue
        pace[:, phase] = np.where(once[:, phase] > 0.0, each(once[:, phase]), 0.0)
        mean = float(once[:, phase].mean())
        if shares[phase] >= REACHED * shares.sum() and not each.reaches(mean):
            warnings.append(
                f"a run of {count} has {mean:.4g} instructions in phase {phase}, points were measured from "
                f"{each.instructions[0]:.4g} to {each.instructions[-1]:.4g}: the nearest is used"
            )
    return pace, tuple(warnings)


def _extended(some: ClockedRun, fewer: ClockedRun) -> ClockedRun:
    """The time of the iterations left out, extrapolated from the last simulated ones."""
    gained = some.executed - fewer.executed
    missing = some.weights - some.executed
    factor = np.where(gained > 1e-9, missing / np.maximum(gained, 1e-9), 0.0)
    computing, waiting = (
        more + np.maximum(more - less, 0.0) * factor
        for more, less in ((some.clocks.computing, fewer.clocks.computing), (some.clocks.waiting, fewer.clocks.waiting))
    )
    return ClockedRun(Clocks(computing, waiting), some.weights, some.weights.astype(np.float64), some.warnings)
