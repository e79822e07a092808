"""Phases of a run: repeated segments of calls that all processes share, with their weights (section 3.1).

A phase is a stretch of actions without a loop inside it, at one place of the program that folding a process's actions
shows; its weight is how often the loops around it run it. Traces without times are weighed by a nominal machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metasched.arrays import Floats, Ints
from metasched.signature.traces.actions import NO_CALLS
from metasched.signature.traces.folding import Loop, Node, folded, unfolded
from metasched.signature.traces.trace import Trace

#: Share of the time that the relevant phases cover at least.
COVERED = 0.95
#: What it costs to put one more stretch of a process into a phase, and one that extends over another part of the run,
#: in units of the logarithm of how often it is run, which counts up to 1.
SHARED, ELSEWHERE = 0.01, 3.0


@dataclass(frozen=True, slots=True)
class Machine:
    """A nominal machine for traces without times: flops/s, bytes/s, and seconds of each call."""

    speed: float = 1e9
    bandwidth: float = 1.25e8
    latency: float = 5e-5

    def seconds(self, trace: Trace) -> Floats:
        """Seconds of each action of a trace's table, an array of shape (actions,)."""
        table = trace.table
        actions = range(len(table.shape))
        flops = np.array([table.instructions(action) for action in actions])
        bytes_ = np.array([table.volume(action) for action in actions])
        calls = np.array([table.shapes[shape].name not in NO_CALLS for shape in table.shape])
        return np.asarray(flops / self.speed + bytes_ / self.bandwidth + calls * self.latency)


@dataclass(frozen=True, slots=True)
class Phase:
    """A phase.

    Parameters
    ----------
    phase : its number, in the order of the program.
    weight : how often it is run.
    share : of the time of all processes.
    time : of one execution (s), in the process that spends most in it.
    instructions, bytes : of one execution and process, on average.
    events : actions of one execution, in the process that has most.
    relevant : whether it is among those that together cover 95 % of the time.
    """

    phase: int
    weight: int
    share: float
    time: float
    instructions: float
    bytes: float
    events: float
    relevant: bool

    def as_dict(self) -> dict[str, Any]:
        """The phase as the document of a signature has it."""
        return asdict(self)


@dataclass(frozen=True)
class Phases:
    """The phases of a run.

    Parameters
    ----------
    phases : in the order of the program.
    coverage : share of the time that the relevant ones cover.
    duration : of the process that takes longest (s).
    """

    phases: tuple[Phase, ...]
    coverage: float
    duration: float


def _segments(nodes: Sequence[Node], times: int, found: list[tuple[int, list[int]]]) -> list[Node]:
    """Stretches without a loop, each with how often it is run; the nodes with the stretch's number for each action."""
    numbered: list[Node] = []
    open_segment = -1
    for node in nodes:
        if isinstance(node, Loop) and not (len(node.body) == 1 and isinstance(node.body[0], int)):
            open_segment = -1
            numbered.append(Loop(node.count, tuple(_segments(node.body, times * node.count, found))))
            continue
        if open_segment < 0:
            open_segment = len(found)
            found.append((times, []))
        # A call repeated by itself is no loop of its own: two, three or four neighbours.
        only = node.body[0] if isinstance(node, Loop) else node
        found[open_segment][1].append(only if isinstance(only, int) else -1)
        numbered.append(Loop(node.count, (open_segment,)) if isinstance(node, Loop) else open_segment)
    return numbered


def summed(trace: Trace, columns: Sequence[Floats]) -> tuple[Ints, Floats]:
    """Weights of the phases; sums of columns over the actions of each, an array of shape (columns, processes, phases).

    Parameters
    ----------
    columns : arrays of shape (actions,), what each action of the trace's table counts with.
    """
    shapes = trace.shapes
    classes: dict[bytes, list[int]] = {}
    for rank, process in enumerate(trace.processes):
        classes.setdefault(shapes[process].tobytes(), []).append(rank)
    weights, places = located([shapes[trace.processes[ranks[0]]] for ranks in classes.values()])
    sums = np.zeros((len(columns), len(trace.processes), weights.size))
    for ranks, phases in zip(classes.values(), places, strict=True):
        for rank in ranks:
            process = trace.processes[rank]
            for row, values in enumerate(columns):
                sums[row, rank] = np.bincount(phases, values[process], weights.size)
    return weights, sums


def worked(trace: Trace, durations: Sequence[float], relevant: Sequence[int], machine: Machine) -> Floats:
    """Seconds that each process works in each relevant phase of a recorded run, before it has to wait for others.

    Computation is as recorded. Of the time in calls a process waits the rest of; the process that spends least in them
    hardly waits, and what it spends is shared among all calls by what the nominal machine would take for them. Phases
    that are not relevant belong to the relevant one before them, or to the first.

    Parameters
    ----------
    trace : instructions are nanoseconds.
    durations : of each process (s).
    relevant : phases, ascending.

    Returns
    -------
    Array of shape (relevant phases, processes).

    Examples
    --------
    >>> from metasched.signature.traces.trace import trace_of
    >>> step = [("compute", (1e6,)), ("barrier", ())]
    >>> whole = [("init", ()), *(step * 10), ("finalize", ())]
    >>> worked(trace_of({0: whole, 1: whole}), [0.012, 0.011], [1], Machine()).round(6).tolist()
    [[0.011, 0.011]]
    """
    table = trace.table
    flops = np.array([table.instructions(action) for action in range(len(table.shape))])
    weights, sums = summed(trace, (1e-9 * flops, machine.seconds(trace) - flops / machine.speed))
    computing, calls = sums
    left = max(float(np.min(np.asarray(durations) - computing.sum(axis=1))), 0.0)
    whole = np.maximum(calls.sum(axis=1, keepdims=True), 1e-30)
    seconds = computing + left * calls / whole
    belongs = np.maximum(np.searchsorted(relevant, np.arange(weights.size), side="right") - 1, 0)
    return np.stack([seconds[:, belongs == place].sum(axis=1) for place in range(len(relevant))])


def phases_of(trace: Trace, machine: Machine, timed: Trace | None = None) -> Phases:
    """The phases of a trace.

    Parameters
    ----------
    timed : the same actions with nanoseconds in place of instructions, where both are known; computation then takes
        these, not what the machine would.

    Examples
    --------
    >>> from metasched.signature.traces.trace import trace_of
    >>> step = [("compute", (1e6,)), ("allreduce", (1, 0, 0))]
    >>> whole = [("init", ()), *(step * 10), ("finalize", ())]
    >>> found = phases_of(trace_of({0: whole, 1: whole}), Machine())
    >>> [(each.phase, each.weight, each.relevant) for each in found.phases], found.coverage > 0.95
    ([(0, 1, False), (1, 10, True), (2, 1, False)], True)
    """
    table = trace.table
    actions = range(len(table.shape))
    flops = np.array([table.instructions(action) for action in actions])
    volumes = np.array([table.volume(action) for action in actions])
    weights, sums = summed(trace, (machine.seconds(trace), flops, volumes, np.ones(len(table.shape))))
    if timed is not None:
        sums[0] = summed(timed, (replace(machine, speed=1e9).seconds(timed),))[1][0]
    total = float(sums[0].sum()) or 1.0
    shares = sums[0].sum(axis=0) / total
    order = np.argsort(-shares, kind="stable")
    needed = int(np.searchsorted(np.cumsum(shares[order]), COVERED - 1e-12)) + 1
    relevant = {*order[:needed].tolist()}
    most, mean = sums.max(axis=1) / weights, sums.mean(axis=1) / weights
    listed = tuple(
        Phase(
            phase,
            int(weights[phase]),
            float(shares[phase]),
            float(most[0, phase]),
            float(mean[1, phase]),
            float(mean[2, phase]),
            float(most[3, phase]),
            phase in relevant,
        )
        for phase in range(weights.size)
    )
    return Phases(listed, float(shares[order[:needed]].sum()), float(sums[0].sum(axis=1).max()))


def located(programs: Sequence[NDArray[np.integer[Any]]]) -> tuple[Ints, list[Ints]]:
    """The phases of a run by the shapes of what its processes do, one program for all processes that do the same.

    Returns
    -------
    weights, places : how often each phase runs, an array of shape (phases,); of each program, the phase of each action.

    Examples
    --------
    >>> weights, places = located([np.array([7, 1, 2, 1, 2, 9]), np.array([7, 1, 1, 9])])
    >>> weights.tolist(), [each.tolist() for each in places]
    ([1, 2, 1], [[0, 1, 1, 1, 1, 2], [1, 1, 1, 1]])
    """
    parts = []
    for shapes in programs:
        found: list[tuple[int, list[int]]] = []
        numbered = _segments(folded(np.asarray(shapes, dtype=np.int64)), 1, found)
        parts.append((found, unfolded(numbered)))
    # The process with most actions has every phase; the others' are put beside its own by weight, order and extent.
    stretches = [(np.array([weight for weight, _ in found]), _extents(segments)) for found, segments in parts]
    fullest = max(range(len(parts)), key=lambda place: parts[place][1].size)
    return stretches[fullest][0], [
        segments if place == fullest else _beside(stretches[place], stretches[fullest])[segments]
        for place, (_, segments) in enumerate(parts)
    ]


def _extents(segments: Ints) -> Floats:
    """Where each stretch begins and ends, as shares of what a process does; an array of shape (2, stretches).

    >>> _extents(np.array([0, 1, 1, 2, 1])).tolist()
    [[0.0, 0.2, 0.6], [0.2, 1.0, 0.8]]
    """
    _, first = np.unique(segments, return_index=True)
    _, last = np.unique(segments[::-1], return_index=True)
    return np.stack([first, segments.size - last]) / max(segments.size, 1)


def _beside(stretches: tuple[Ints, Floats], phases: tuple[Ints, Floats]) -> Ints:
    """Which phase of the fullest process each stretch of another one belongs to.

    They stay in order, and extend over the same part of the run, and are run as often, as nearly as that allows: where
    a border has three equal calls in a row, which are a loop, others may have four; a worker has a part of its master's
    turns. Several stretches may belong to one phase.

    Parameters
    ----------
    stretches, phases : of each how often it is run, and its extent.

    Examples
    --------
    >>> everywhere = np.array([[0.0] * 5, [1.0] * 5])
    >>> [_beside((np.array(one), everywhere[:, : len(one)]), (np.array([1, 20, 60, 20, 4]), everywhere)).tolist()
    ...  for one in ((1, 80, 20, 4), (1, 20, 60, 20, 4), (20, 4, 4), (1, 4))]
    [[0, 2, 3, 4], [0, 1, 2, 3, 4], [1, 4, 4], [0, 4]]
    """
    (often, (begin, end)), (weights, (start, stop)) = stretches, phases
    common = np.maximum(np.minimum(end[:, None], stop) - np.maximum(begin[:, None], start), 0.0)
    either = np.maximum(end[:, None], stop) - np.minimum(begin[:, None], start)
    # What it costs at least to have put all stretches up to one into phases, and that one into each of them.
    costs = np.minimum(np.abs(np.log(often)[:, None] - np.log(weights)), 1.0) + ELSEWHERE * (1.0 - common / either)
    for row in range(1, often.size):
        before = np.minimum.accumulate(costs[row - 1])
        costs[row] += np.minimum(np.concatenate([[np.inf], before[:-1]]), costs[row - 1] + SHARED)
    places = np.zeros(often.size, dtype=np.int64)
    if often.size:
        places[-1] = np.argmin(costs[-1])
    for row in range(often.size - 1, 0, -1):
        before = costs[row - 1, : places[row] + 1].copy()
        before[-1] += SHARED
        places[row - 1] = np.argmin(before)
    return places
