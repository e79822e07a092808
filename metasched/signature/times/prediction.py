"""The time of a run on more processes: by blocks of hardware, phase by phase, with an interval from rehearsal.

Eq. 6: the time is the sum over phases of the time of one execution, in the process that ends last, times the weight.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metasched.blocks.entry import Entry, Kind, Quantity
from metasched.plain_numbers import number_of
from metasched.records import InputError
from metasched.signature.rules.application import Application
from metasched.signature.rules.expanding import Sample, sampled
from metasched.signature.times.clocks import Clocks, run
from metasched.signature.times.costs import BlockCosts, Costs
from metasched.signature.traces.exchanges import exchanges
from metasched.signature.traces.phases import Machine, located
from metasched.simulation.outcome import concluded
from metasched.simulation.system import Network, Nodes, Placement, Slowed, System

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

#: Actions of all processes that clocks run through; longer loops are sampled, each in at least this many turns.
MOST_ACTIONS, FEWEST_TURNS = 1_000_000, 16
#: Level of intervals.
LEVEL = 0.90


@dataclass(frozen=True, slots=True)
class Doubt:
    """How far an engine's times may be off at the level of intervals.

    Parameters
    ----------
    whole, messages : in the logarithm of the whole, and as a share of what messages take.
    grown, power : beyond the largest run it is at least ``grown`` times a power of the doublings, counted from 1 there.
    """

    whole: float
    messages: float
    grown: float = 1.0
    power: float = 1.0

    def of(self, timed: Timed, factor: float) -> float:
        """How far the logarithm of a time may be off: computation is known, communication by blocks less so."""
        return math.hypot(self.whole, self.messages * factor * timed.carrying / _time(timed, factor))

    def beyond(self, doublings: float) -> float:
        """How many times as far a time may be off, by how many doublings it is beyond the largest run."""
        return max(1.0, self.grown * math.pow(1.0 + doublings, self.power))


#: Calibrated on the programs of ``benchmarks/signature/design.py``, none of which is judged; but for replays, whose
#: truth is a replay there. Blocks are rehearsed on every traced run, and few misses are as large as the largest.
DOUBT = {"blocks": Doubt(0.004, 0.08, 0.37, 1.5), "replay": Doubt(0.004, 0.0), "synthetic": Doubt(0.004, 0.01)}
#: The same where no run is timed, so that the speed of computation is not known either.
UNKNOWN = {"blocks": Doubt(0.25, 0.66), "replay": Doubt(0.08, 0.0), "synthetic": Doubt(0.08, 0.66)}
#: By how much runs may correct what blocks say of messages.
CORRECTION = (0.5, 2.0)
#: A run that took so many times as long as predicted, or as short, ran on another machine than the engine describes.
STRANGE = 2.0
#: Bytes of messages whose times tell the bandwidth of a link.
LONG = (2.0**20, 2.0**21)
LABEL = "process"
#: How much slower computation is made to see what waits for it.
SLOWER = 1.0 + 2.0**-6
#: Share of the time within which processes end together.
TOGETHER = 0.001
#: Share of the instructions from which a warning says that no point reaches a phase.
REACHED = 0.05


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
    """The result of an engine.

    Parameters
    ----------
    phases : the time of each.
    messages : of each phase, what messages themselves take of one execution (s), without waits for the computation of
        others; empty where an engine does not tell them from other time in calls.
    energy, success : energy (J) and probability of completion, if they are known.
    warnings : what a user should know, one clause each.
    """

    phases: tuple[PhaseTime, ...]
    messages: tuple[float, ...] = ()
    energy: float = math.nan
    success: float = math.nan
    warnings: tuple[str, ...] = ()

    @property
    def time(self) -> float:
        """Time that the whole run takes (s)."""
        return sum(each.weight * (each.computation + each.communication) for each in self.phases)

    @property
    def carrying(self) -> float:
        """Time that the whole run takes for messages themselves (s)."""
        return sum(each.weight * taken for each, taken in self.of_messages)

    @property
    def of_messages(self) -> Iterator[tuple[PhaseTime, float]]:
        """Each phase, with what messages take of one execution (s)."""
        return zip(self.phases, self.messages or (each.communication for each in self.phases), strict=True)


@dataclass(frozen=True)
class Prediction:
    """The predicted time for one number of processes.

    Parameters
    ----------
    processes : the number.
    execution_time, interval : how long it takes (s), and between what.
    engine : what computed it.
    phases : the time of each.
    energy : of all nodes (J); NaN where it is not known.
    success : probability that no node fails; NaN where it is not known.
    warnings : what a user should know, one clause each.
    """

    processes: int
    execution_time: float
    interval: tuple[float, float]
    engine: str
    phases: tuple[PhaseTime, ...]
    energy: float = math.nan
    success: float = math.nan
    warnings: tuple[str, ...] = field(default=())

    def as_dict(self) -> dict[str, Any]:
        """The prediction by name of each figure, times in s, as ``--json`` prints it."""
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
    engine, name : what tells times, ``blocks``, ``replay`` or ``synthetic``.
    counts : what is asked for.
    measured : execution times of runs (s), by number of processes.
    corrected : whether runs correct what the engine says of messages.
    """
    timed = {count: engine(count) for count in sorted({*measured, *counts})}
    learned = sorted(measured)
    factor, worse, most = 1.0, 1.0, 0.0
    doubt = DOUBT[name] if learned else UNKNOWN[name]
    warnings: tuple[str, ...] = ()
    if learned:
        factor = _factor([timed[n] for n in learned], [measured[n] for n in learned]) if corrected else 1.0
        # The rehearsal: the largest run, from the smaller ones alone.
        *some, last = learned
        before = _factor([timed[n] for n in some], [measured[n] for n in some]) if corrected and some else 1.0
        rehearsed = [(last, before), *((n, factor) for n in some)]
        misses = {n: _miss(timed[n], by, measured[n]) for n, by in rehearsed}
        worse = max(1.0, *(misses[n] / doubt.of(timed[n], by) for n, by in rehearsed))
        most, at = max((miss, n) for n, miss in misses.items())
        if most > math.log(STRANGE):
            ratio = measured[at] / _time(timed[at], dict(rehearsed)[at])
            warnings = (
                f"the run on {number_of(at, 'process', 'processes')} took {ratio:.3g} times as long as predicted: was "
                "it on such hardware, with a processor for each process?",
            )
    else:
        warnings = ("no timed run was predicted to compare: the interval is that of the engine in general",)
    found = []
    for count in counts:
        of_count = timed[count]
        phases = tuple(
            PhaseTime(
                each.phase,
                each.weight,
                each.computation + each.communication + (factor - 1.0) * taken,
                each.computation,
                each.communication + (factor - 1.0) * taken,
            )
            for each, taken in of_count.of_messages
        )
        time = sum(each.weight * each.time for each in phases)
        beyond = max(math.log2(count / learned[-1]), 0.0) if learned else 0.0
        # Another machine is as much another one for more processes: its miss does not grow with them.
        strange = most + math.log(STRANGE) * (1.0 + beyond)
        width = math.exp(min(worse * doubt.of(of_count, factor) * doubt.beyond(beyond), strange))
        found.append(
            Prediction(
                count,
                time,
                (time / width, time * width),
                name,
                phases,
                of_count.energy,
                of_count.success,
                (*of_count.warnings, *warnings),
            )
        )
    return found


def _time(timed: Timed, factor: float) -> float:
    return max(timed.time + (factor - 1.0) * timed.carrying, 1e-30)


def _miss(timed: Timed, factor: float, measured: float) -> float:
    return abs(math.log(_time(timed, factor) / measured))


def _factor(timed: Sequence[Timed], measured: Sequence[float]) -> float:
    """The factor of messages with the smallest relative errors; 1 if they take no time."""
    shares = np.array([each.carrying / m for each, m in zip(timed, measured, strict=True)])
    left = np.array([(m - each.time + each.carrying) / m for each, m in zip(timed, measured, strict=True)])
    # One more run, at 1, of an error of 0.5 %: what hardly communicates says nothing.
    doubt = 0.005**2
    factor = (float(shares @ left) + doubt) / (float(shares @ shares) + doubt)
    return min(max(factor, CORRECTION[0]), CORRECTION[1])


@dataclass(frozen=True)
class Hardware:
    """Where an application runs.

    Parameters
    ----------
    device, network : their entries.
    per_node : processes on each node.
    computing, sending : how many times as long an instruction and a byte take as the entries say.
    """

    device: Entry
    network: Entry
    per_node: int = 1
    computing: float = 1.0
    sending: float = 1.0

    def placement(self, count: int) -> Placement:
        """The placement of ``count`` processes on the nodes that they need."""
        nodes = Nodes("node", -(-count // self.per_node), "network", self.device, {LABEL: self.per_node})
        system = System(self.device.name, (Network("network", self.network),), (nodes,))
        return Slowed(system, {LABEL: count}, self.computing, self.sending)

    @property
    def bandwidth(self) -> float:
        """The bandwidth of a link (Mbit/s), from the time of long messages."""
        placement = replace(self, per_node=1, sending=1.0).placement(2)
        here, there = np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64)
        shorter, longer = (float(np.max(placement.message(here, there, size))) for size in LONG)
        return 8e-6 * (LONG[1] - LONG[0]) / max(longer - shorter, 1e-30)


def assumed() -> Hardware:
    """The nominal machine (``Machine``) that times are computed for if the real one is unknown."""
    machine = Machine()
    values = {
        "speed": Quantity(machine.speed, "flop/s", "assumed"),
        "bandwidth": Quantity(machine.bandwidth, "B/s", "assumed"),
        "latency": Quantity(machine.latency, "s", "assumed"),
    }
    entry = Entry("assumed", Kind.cluster, "an assumed machine", values)
    return Hardware(entry, entry)


def apart(application: Application, hardware: Hardware, count: int) -> Floats:
    """What the time of each phase is made of: an array of shape (phases, 3), computation, latencies, bytes (s).

    The time is homogeneous in the three, so each part is what it adds when it takes twice as long: waiting for the
    computation of others is computation.
    """
    once, computing, sending = (
        np.array([each.weight * each.time for each in of_count.phases])
        for of_count in _timed_on(
            application, count, (hardware, replace(hardware, computing=2.0), replace(hardware, sending=2.0))
        )
    )
    work, bytes_ = np.maximum(computing - once, 0.0), np.maximum(sending - once, 0.0)
    # Which process ends last may change, and with it what a phase takes there: the sum is that of the whole run.
    over = np.maximum((work + bytes_).sum() / max(once.sum(), 1e-30), 1.0)
    work, bytes_ = work / over, bytes_ / over
    left = max(once.sum() - work.sum() - bytes_.sum(), 0.0)
    waits = np.maximum(once - work - bytes_, 0.0)
    return np.stack([work, waits * (left / waits.sum() if waits.sum() else 0.0), bytes_], axis=1)


def by_blocks(application: Application, hardware: Hardware) -> Engine:
    """An engine that runs the application's phases on blocks of hardware."""
    slower = replace(hardware, computing=SLOWER * hardware.computing)

    def timed(count: int) -> Timed:
        once, slowed = _timed_on(application, count, (hardware, slower))
        return replace(once, messages=tuple(_taken(*both) for both in zip(once.phases, slowed.phases, strict=True)))

    return timed


def _taken(once: PhaseTime, slowed: PhaseTime) -> float:
    """What messages take of a phase (s): what does not grow with the time that computation takes."""
    work = (slowed.time - once.time) / (SLOWER - 1.0)
    return min(max(once.time - work, 0.0), once.communication)


def _timed_on(application: Application, count: int, machines: Sequence[Hardware]) -> list[Timed]:
    """The times by blocks for ``count`` processes on each of several machines."""
    placements = [each.placement(count) for each in machines]
    costs = [BlockCosts(each, LABEL) for each in placements]
    runs = composed(application, count, lambda _: costs)
    return [_timed(one, placement) for one, placement in zip(runs, placements, strict=True)]


def _timed(whole: ClockedRun, placement: Placement) -> Timed:
    clocks = whole.clocks
    outcome = concluded(
        placement.system, placement, {LABEL: clocks.end}, {LABEL: np.asarray(clocks.computing.sum(axis=1))}
    )
    return Timed(whole.phases, energy=outcome.energy, success=outcome.success, warnings=whole.warnings)


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


class _UnmatchedError(Exception):
    """Raised when the sampled iterations do not form complete exchanges of messages."""


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


def phases_in_last(computing: Floats, waiting: Floats, executed: Floats | Ints, weights: Ints) -> tuple[PhaseTime, ...]:
    """Phases in the process that ends last: of those that end within :data:`TOGETHER` of it, in the first.

    Where processes end together, which is the last one depends on rounding, but not what each phase takes in it.

    Parameters
    ----------
    computing, waiting : arrays of shape (processes, phases), seconds.
    executed, weights : how often each phase was run, and how often the application runs it.
    """
    ends = (computing + waiting).sum(axis=1)
    last = int(np.argmax(ends >= (1.0 - TOGETHER) * ends.max()))
    times = (
        np.maximum(executed, np.finfo(np.float64).tiny) * max(float(ends[last]), 1e-30) / max(float(ends.max()), 1e-30)
    )
    seen = zip(weights.tolist(), (computing[last] / times).tolist(), (waiting[last] / times).tolist(), strict=True)
    return tuple(PhaseTime(phase, weight, work + wait, work, wait) for phase, (weight, work, wait) in enumerate(seen))


def phases_of_sample(sample: Sample) -> tuple[Ints, Floats, Ints]:
    """The weight of each phase, how often it is executed in the sample, and the phase of each event."""
    weights, places = located([shapes for shapes, _ in sample.programs])
    kept = [where[chosen] for where, (_, chosen) in zip(places, sample.programs, strict=True)]
    fullest = max(range(len(places)), key=lambda role: places[role].size)
    all_of, some_of = (np.bincount(each, minlength=weights.size) for each in (places[fullest], kept[fullest]))
    executed = weights * some_of / np.maximum(all_of, 1)
    events = np.concatenate([kept[role] for role in sample.roles]) if sample.roles else np.zeros(0, dtype=np.int64)
    return weights, executed, events


def _clocked(
    application: Application, sample: Sample, costs_of: Callable[[Sample], Sequence[Costs]], final: bool = False
) -> list[ClockedRun]:
    weights, executed, phases = phases_of_sample(sample)
    pace, warnings = _pace(application, sample, executed, phases)
    try:
        found = exchanges(sample.trace)
        clocks = run(sample.trace, found, phases, costs_of(sample), pace)
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
        for more, less in (
            (some.clocks.computing, fewer.clocks.computing),
            (some.clocks.waiting, fewer.clocks.waiting),
        )
    )
    added = (computing - some.clocks.computing + waiting - some.clocks.waiting).sum(axis=1)
    return ClockedRun(
        Clocks(some.clocks.end + added, computing, waiting),
        some.weights,
        some.weights.astype(np.float64),
        some.warnings,
    )
