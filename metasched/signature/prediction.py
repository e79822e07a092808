"""The time of a run on more processes: by blocks of hardware, phase by phase, with an interval from rehearsal.

Eq. 6: the time is the sum over phases of the time of one execution, in the process that ends last, times the weight.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metasched.blocks.entry import Entry
from metasched.records import InputError
from metasched.signature.application import Application
from metasched.signature.clocks import Clocks, run
from metasched.signature.exchanges import exchanges
from metasched.signature.expanding import Sample, sampled
from metasched.signature.phases import located
from metasched.simulation.outcome import concluded
from metasched.simulation.system import Network, Nodes, Placement, System

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

#: Actions of all processes that clocks run through; longer loops are sampled, each in at least this many turns.
MOST_ACTIONS, FEWEST_TURNS = 1_000_000, 16
#: Level of intervals, and how many standard deviations it is on either side.
LEVEL, DEVIATIONS = 0.90, 1.645
#: Errors (standard deviations of the logarithm) that an engine is taken to have: at least, and where no run is timed.
LEAST = {"blocks": 0.02, "replay": 0.005}
UNKNOWN = {"blocks": 0.15, "replay": 0.05}
#: By how much runs may correct what blocks say of communication.
CORRECTION = (0.5, 2.0)
LABEL = "process"


@dataclass(frozen=True, slots=True)
class PhaseTime:
    """One execution of a phase in the process that ends last (s): the whole, computation, communication."""

    phase: int
    weight: int
    time: float
    computation: float
    communication: float


@dataclass(frozen=True)
class Timed:
    """What an engine says: seconds, phase by phase; energy (J) and the chance to finish where they are known."""

    phases: tuple[PhaseTime, ...]
    energy: float = math.nan
    success: float = math.nan
    warnings: tuple[str, ...] = ()

    @property
    def computation(self) -> float:
        """Seconds of computation."""
        return sum(each.weight * each.computation for each in self.phases)

    @property
    def communication(self) -> float:
        """Seconds in calls."""
        return sum(each.weight * each.communication for each in self.phases)


@dataclass(frozen=True)
class Prediction:
    """The answer for one number of processes."""

    processes: int
    execution_time: float
    interval: tuple[float, float]
    engine: str
    phases: tuple[PhaseTime, ...]
    energy: float = math.nan
    success: float = math.nan
    warnings: tuple[str, ...] = field(default=())

    def as_dict(self) -> dict[str, Any]:
        """The prediction as a document."""
        low, high = self.interval
        document: dict[str, Any] = {
            "processes": self.processes,
            "execution_time": self.execution_time,
            "interval": {"low": low, "high": high, "level": LEVEL},
            "engine": self.engine,
            "phases": [asdict(each) for each in self.phases],
        }
        if math.isfinite(self.energy):
            document["energy"] = self.energy
        if math.isfinite(self.success):
            document["success"] = self.success
        return document


#: Seconds at a number of processes.
Engine = Callable[[int], Timed]


def predictions(
    engine: Engine, name: str, counts: Sequence[int], measured: Mapping[int, float], corrected: bool
) -> list[Prediction]:
    """Predict numbers of processes, after a rehearsal on those that were timed.

    Parameters
    ----------
    engine, name : what tells times, ``blocks`` or ``replay``.
    counts : what is asked for.
    measured : execution times of runs (s), by number of processes.
    corrected : whether runs correct the engine's communication.
    """
    timed = {count: engine(count) for count in sorted({*measured, *counts})}
    learned = sorted(measured)
    factor, error = 1.0, UNKNOWN[name]
    warnings: tuple[str, ...] = ()
    if learned:
        factor = _factor([timed[n] for n in learned], [measured[n] for n in learned]) if corrected else 1.0
        # The rehearsal: the largest run, from the smaller ones alone.
        *some, last = learned
        before = _factor([timed[n] for n in some], [measured[n] for n in some]) if corrected and some else 1.0
        misses = [_miss(timed[last], before, measured[last])]
        misses += [_miss(timed[n], factor, measured[n]) for n in some]
        error = max(LEAST[name], *misses)
    else:
        warnings = ("no run was timed: the interval is that of the engine in general",)
    found = []
    for count in counts:
        told = timed[count]
        phases = tuple(
            PhaseTime(
                each.phase,
                each.weight,
                each.computation + factor * each.communication,
                each.computation,
                factor * each.communication,
            )
            for each in told.phases
        )
        time = sum(each.weight * each.time for each in phases)
        # Every doubling beyond what was seen adds as much doubt as the rehearsal showed.
        beyond = max(math.log2(count / learned[-1]), 0.0) if learned else 0.0
        width = math.exp(DEVIATIONS * error * math.sqrt(1.0 + beyond))
        found.append(
            Prediction(
                count,
                time,
                (time / width, time * width),
                name,
                phases,
                told.energy,
                told.success,
                (*told.warnings, *warnings),
            )
        )
    return found


def _miss(timed: Timed, factor: float, measured: float) -> float:
    return abs(math.log(max(timed.computation + factor * timed.communication, 1e-30) / measured))


def _factor(timed: Sequence[Timed], measured: Sequence[float]) -> float:
    """By what communication is multiplied, so that relative errors are least; 1 where it is no part of the time."""
    shares = np.array([each.communication / m for each, m in zip(timed, measured, strict=True)])
    left = np.array([(m - each.computation) / m for each, m in zip(timed, measured, strict=True)])
    # One more run, at 1, of an error of 0.5 %: what hardly communicates says nothing.
    doubt = 0.005**2
    factor = (float(shares @ left) + doubt) / (float(shares @ shares) + doubt)
    return min(max(factor, CORRECTION[0]), CORRECTION[1])


@dataclass(frozen=True)
class Hardware:
    """Where an application runs: a device and a network by their entries, processes on each node."""

    device: Entry
    network: Entry
    per_node: int = 1

    def placement(self, count: int) -> Placement:
        """So many processes on as many nodes as they need."""
        nodes = Nodes("node", -(-count // self.per_node), "network", self.device, {LABEL: self.per_node})
        return Placement(System(self.device.name, (Network("network", self.network),), (nodes,)), {LABEL: count})


def by_blocks(application: Application, hardware: Hardware) -> Engine:
    """An engine that runs the application's phases on blocks of hardware."""

    def engine(count: int) -> Timed:
        placement = hardware.placement(count)
        leaves = max(len(role.program.leaves) for role in application.roles.values())
        longest = max(MOST_ACTIONS // (count * leaves), FEWEST_TURNS)
        try:
            whole = _timed(sampled(application, count, longest), placement)
            if whole.sampled:
                whole = _extended(whole, _timed(sampled(application, count, longest // 2), placement))
        except _UnmatchedError:
            # Turns of different loops belong together.
            whole = _timed(sampled(application, count, 0), placement, final=True)
        clocks = whole.clocks
        last = int(np.argmax(clocks.end))
        outcome = concluded(
            placement.system, placement, {LABEL: clocks.end}, {LABEL: np.asarray(clocks.computing.sum(axis=1))}
        )
        phases = tuple(
            PhaseTime(phase, weight, (work + wait) / weight, work / weight, wait / weight)
            for phase, (weight, work, wait) in enumerate(
                zip(
                    whole.weights.tolist(),
                    clocks.computing[last].tolist(),
                    clocks.waiting[last].tolist(),
                    strict=True,
                )
            )
        )
        return Timed(phases, outcome.energy, outcome.success)

    return engine


class _UnmatchedError(Exception):
    """The turns that were sampled do not belong together."""


@dataclass(frozen=True)
class _Run:
    """Clocks of a sample; ``executed`` is how often each phase ran in it, of its weight."""

    clocks: Clocks
    weights: Ints
    executed: Floats

    @property
    def sampled(self) -> bool:
        return bool(np.any(self.executed < self.weights - 1e-9))


def phases_of_sample(sample: Sample) -> tuple[Ints, Floats, Ints]:
    """The weight of each phase, how often it is executed in the sample, and the phase of each event."""
    weights, places = located([shapes for shapes, _ in sample.programs])
    kept = [where[chosen] for where, (_, chosen) in zip(places, sample.programs, strict=True)]
    fullest = max(range(len(places)), key=lambda role: places[role].size)
    all_of, some_of = (np.bincount(each, minlength=weights.size) for each in (places[fullest], kept[fullest]))
    executed = weights * some_of / np.maximum(all_of, 1)
    events = np.concatenate([kept[role] for role in sample.roles]) if sample.roles else np.zeros(0, dtype=np.int64)
    return weights, executed, events


def _timed(sample: Sample, placement: Placement, final: bool = False) -> _Run:
    weights, executed, phases = phases_of_sample(sample)
    try:
        return _Run(run(sample.trace, exchanges(sample.trace), phases, LABEL, placement), weights, executed)
    except InputError:
        if final:
            raise
        raise _UnmatchedError from None


def _extended(some: _Run, fewer: _Run) -> _Run:
    """What the turns that were left out add, by what the last of those that were run added."""
    gained = some.executed - fewer.executed
    missing = some.weights - some.executed
    factor = np.where(gained > 1e-9, missing / np.maximum(gained, 1e-9), 0.0)
    computing, waiting = (
        more + np.maximum(more - less, 0.0) * factor
        for more, less in (
            (some.clocks.computing, fewer.clocks.computing),
            (some.clocks.waiting, fewer.clocks.waiting),
        )
    )
    added = (computing - some.clocks.computing + waiting - some.clocks.waiting).sum(axis=1)
    return _Run(Clocks(some.clocks.end + added, computing, waiting), some.weights, some.weights.astype(np.float64))
