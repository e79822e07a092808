"""Runs whose actions are numbered alike, and which ranks of each have a role."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from metasched.arrays import Floats, Ints
from metasched.signature.equations.topologies import TOPOLOGIES, coordinates
from metasched.signature.rules.roles import Cell, cells
from metasched.signature.traces.actions import PART, PEERS, Shape
from metasched.signature.traces.phases import Machine
from metasched.signature.traces.trace import Trace, ends_of

#: Where the tag stands among the numbers of an action, and that of a mark; how many different ones tell places of a
#: program apart.
TAGS = {name: 1 for name, places in PEERS.items() if places == (0,)} | {"wait": 2, PART: 0}
MOST_TAGS = 32
#: Sides of grids whose processes are neighbours: four of two processes make neighbours of all.
MOST_SIDES = 3


class NumberedRun:
    """A trace with its shapes numbered as all traces number them."""

    def __init__(self, trace: Trace, shapes: dict[tuple[Shape, float], int], tagged: set[Shape]) -> None:
        self.trace, self.count = trace, len(trace.processes)
        table = trace.table
        keys = [
            (
                table.shapes[shape],
                numbers[TAGS[table.shapes[shape].name.lower()]] if table.shapes[shape] in tagged else 0.0,
            )
            for shape, numbers in zip(table.shape, table.numbers, strict=True)
        ]
        shape_of = np.array([shapes.setdefault(key, len(shapes)) for key in keys], dtype=np.int64)
        self.shape_of = shape_of
        self.seconds = Machine().seconds(trace)
        #: Which actions no process makes: null communications that complete a program.
        self.missing = np.zeros(len(table.shape), dtype=np.bool_)
        self.classes = np.zeros(self.count, dtype=np.int64)
        known: dict[bytes, int] = {}
        self.sequences: list[Ints] = []
        for rank, actions in enumerate(trace.processes):
            sequence = shape_of[actions]
            key = sequence.tobytes()
            if key not in known:
                known[key] = len(self.sequences)
                self.sequences.append(sequence)
            self.classes[rank] = known[key]
        self._columns: dict[tuple[int, int], Floats] = {}

    @cached_property
    def pairs(self) -> tuple[Ints, Ints]:
        """Processes and their partners, each pair once."""
        ends, _ = ends_of(self.trace.table)
        found = {
            (rank, peer)
            for rank, actions in enumerate(self.trace.processes)
            for action in np.unique(actions).tolist()
            for peer, _ in ends[action]
        }
        return tuple(np.array(sorted(found), dtype=np.int64).reshape(-1, 2).T)  # type: ignore[return-value]

    def column(self, shape: int, place: int) -> Floats:
        """One number of all actions of a shape, by the action's number in the table."""
        if (shape, place) not in self._columns:
            values = np.full(len(self.trace.table.shape), np.nan)
            chosen = np.flatnonzero(self.shape_of == shape)
            values[chosen] = [self.trace.table.numbers[action][place] for action in chosen.tolist()]
            self._columns[shape, place] = values
        return self._columns[shape, place]


def grid_of_neighbours(runs: Sequence[NumberedRun], topologies: Sequence[str]) -> str:
    """The first grid in which all partners are neighbours, round its sides too; none where they are so on a line.

    Examples
    --------
    >>> from metasched.signature.traces.trace import trace_of
    >>> def below(row):
    ...     return trace_of({r: [("send", ((r + row) % (4 * row), 1, 8, 6))] for r in range(4 * row)})
    >>> grid_of_neighbours([NumberedRun(below(row), {}, set()) for row in (2, 3)], ["line", "grid 10", "grid 01"])
    'grid 01'
    """
    for topology in topologies:
        sides = [TOPOLOGIES[topology](run.count) for run in runs]
        if len(sides[0]) <= MOST_SIDES and max(sides[-1]) > 2 and all(map(_beside, runs, sides)):
            return "" if topology == "line" else topology
    return ""


def _beside(run: NumberedRun, sides: tuple[int, ...]) -> bool:
    """Whether all partners of a run are neighbours along the sides of a grid, in directions that all processes have."""
    own, other = (coordinates(ranks, sides) for ranks in run.pairs)
    ways = [(to - at) % side for at, to, side in zip(own, other, sides, strict=True)]
    if not all(bool(np.all(np.isin(way, (0, 1 % side, side - 1)))) for way, side in zip(ways, sides, strict=True)):
        return False
    found, many = np.unique(np.stack(ways), axis=1, return_counts=True)
    # Along a side of two the one neighbour is there for both; at the end of a longer one there may be none.
    length = np.array(sides)[:, None]
    return bool(np.all(many >= np.prod(length - ((found > 0) & (length > 2)), axis=0)))


def whole_of(runs: Sequence[NumberedRun]) -> Floats:
    """Actions of all runs, and their seconds."""
    seconds = sum(float(run.seconds[actions].sum()) for run in runs for actions in run.trace.processes)
    return np.array([sum(run.trace.events for run in runs), seconds or 1.0])


def tagged_shapes(traces: Sequence[Trace]) -> set[Shape]:
    """Shapes whose messages have the same few tags in every run: a tag then tells places of the program apart."""
    tags: dict[Shape, list[set[float]]] = {}
    for place, trace in enumerate(traces):
        table = trace.table
        for shape, numbers in zip(table.shape, table.numbers, strict=True):
            at = TAGS.get(table.shapes[shape].name.lower(), -1)
            if 0 <= at < len(numbers):
                tags.setdefault(table.shapes[shape], [set() for _ in traces])[place].add(numbers[at])
    return {shape for shape, of in tags.items() if all(each == of[0] for each in of) and len(of[0]) <= MOST_TAGS}


def ranks_seen(runs: Sequence[NumberedRun], features: str, topology: str) -> dict[Cell, dict[int, Ints]] | None:
    """The ranks of each cell at each count; None where processes of one cell make different calls."""
    found: dict[Cell, dict[int, list[int]]] = {}
    for place, run in enumerate(runs):
        classes: dict[Cell, int] = {}
        for rank, cell in enumerate(cells(features, topology, run.count)):
            if classes.setdefault(cell, int(run.classes[rank])) != run.classes[rank]:
                return None
            found.setdefault(cell, {}).setdefault(place, []).append(rank)
    return {cell: {place: np.array(ranks) for place, ranks in of.items()} for cell, of in found.items()}


def by_children(runs: Sequence[NumberedRun], tree: str) -> tuple[list[NumberedRun], dict[Cell, dict[int, Ints]]] | None:
    """Runs, each once for every number of children that processes have in a tree, and the ranks of each there.

    Parameters
    ----------
    runs : of all numbers of processes.
    tree : one of :data:`metasched.signature.rules.roles.TREES`.

    Returns
    -------
    The runs, and for the first process and for all others their ranks in each run, by its place in the list. None where
    all processes make the same calls, or processes with as many children make different ones.
    """
    if ranks_seen(runs, "begins", "line") is not None:
        return None
    several: list[NumberedRun] = []
    found: dict[Cell, dict[int, Ints]] = {}
    for run in runs:
        apart = ranks_seen([run], f"begins+{tree}", "line")
        if apart is None:
            return None
        for (begin, _), ranks in apart.items():
            found.setdefault((begin,), {})[len(several)] = ranks[0]
            several.append(run)
    return several, found


def spread(size: int, most: int) -> Ints:
    """Evenly spread numbers below ``size``, with the first and the last."""
    if size <= most:
        return np.arange(size)
    third = most // 3
    middle = np.linspace(third, size - third - 1, most - 2 * third).astype(int)
    return np.unique(np.concatenate([np.arange(third), middle, np.arange(size - third, size)]))
