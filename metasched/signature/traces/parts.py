"""Programs cut into parts at the collective operations of all processes, so that each part may have roles of its own.

Such operations come in the same order in all processes. The calls between two of them are a part, and a mark takes its
place; what remains is the same in all processes, however little they have in common in between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from metasched.arrays import Flags
from metasched.signature.traces.actions import AMONG_SOME, AMOUNTS, PART, PEERS, TURN, ActionTable, Shape
from metasched.signature.traces.trace import Trace

Ints = NDArray[np.int32]

#: Calls without a partner that concern nobody else; those with one are no collective operations either.
OWN = ("waitall", "waitany", "testany", PART, TURN, *AMOUNTS)


@dataclass(frozen=True)
class Cut:
    """A trace without the calls between collective operations.

    Parameters
    ----------
    outside : what all processes do together, with a mark (``part``) for each part.
    inside : of each mark in order, what each process does there.
    turn : the number of the mark at the end of a turn.
    """

    outside: Trace
    inside: tuple[tuple[Ints, ...], ...]
    turn: int

    def together(self, marks: Sequence[int]) -> Trace:
        """The parts of some marks, one after another, each with another mark (``turn``) at its end."""
        turn = np.array([self.turn], dtype=np.int32)
        processes = [
            np.concatenate([each for mark in marks for each in (self.inside[mark][rank], turn)])
            if len(marks)
            else np.zeros(0, dtype=np.int32)
            for rank in range(len(self.outside.processes))
        ]
        return Trace(self.outside.table, tuple(processes)).compact()


def collective(shapes: Sequence[Shape]) -> Flags:
    """Which calls are operations of all processes, with the start and the end of the run: a mask, shape (shapes,)."""
    names = [shape.name.lower() for shape in shapes]
    return np.array(
        [name not in PEERS and name not in OWN and not name.endswith(AMONG_SOME) for name in names], dtype=np.bool_
    )


def cut(trace: Trace, between: dict[tuple[str, str], int] | None = None) -> Cut | None:
    """Cut a trace at its collective operations; None where these differ from process to process.

    Whatever a run does between two of them, also nothing, is a part: another run may do more there.

    Parameters
    ----------
    between : numbers of marks by the operations before and after the part; new ones are added.

    Examples
    --------
    >>> from metasched.signature.traces.trace import trace_of
    >>> one = [("init", ()), ("send", (1, 0, 8)), ("barrier", ())]
    >>> other = [("init", ()), ("recv", (0, 0, 8)), ("barrier", ())]
    >>> found = cut(trace_of({0: one, 1: other}))
    >>> [found.outside.table.text(action) for action in found.outside.processes[1]]
    ['part 0', 'init', 'part 1', 'barrier', 'part 2']
    """
    between = {} if between is None else between
    table = ActionTable(
        [*trace.table.shapes],
        [*trace.table.shape],
        [*trace.table.numbers],
        dict(trace.table.lists),
        {shape: number for number, shape in enumerate(trace.table.shapes)},
    )
    turn = table.add(TURN, ())
    together = collective(trace.table.shapes)
    shapes = trace.shapes
    at = [np.flatnonzero(together[shapes[process]]) for process in trace.processes]
    if not at or not at[0].size:
        return None
    order = shapes[trace.processes[0][at[0]]]
    if any(
        not np.array_equal(shapes[process[here]], order)
        for process, here in zip(trace.processes, at, strict=True)
    ):  # fmt: skip
        return None
    names = ["", *(trace.table.shapes[shape].name for shape in order.tolist()), ""]
    numbers = [between.setdefault(both, len(between)) for both in pairwise(names)]
    actions = {number: table.add(PART, (number,)) for number in {*numbers}}
    marks = np.array([actions[number] for number in numbers], dtype=np.int32)
    outside, pieces = [], []
    for process, here in zip(trace.processes, at, strict=True):
        whole = np.empty(2 * here.size + 1, dtype=np.int32)
        whole[::2], whole[1::2] = marks, process[here]
        outside.append(whole)
        pieces.append(np.split(process, np.stack([here, here + 1], axis=1).ravel())[::2])
    return Cut(Trace(table, tuple(outside)), tuple(zip(*pieces, strict=True)), turn)


def spliced(outside: Ints, marks: Mapping[int, Sequence[Ints]]) -> Ints:
    """What a process does, with its parts put in the places of their marks.

    Parameters
    ----------
    outside : of the process.
    marks : by place in it, what to put there.

    Examples
    --------
    >>> spliced(np.array([1, 9, 2, 9]), {1: [np.array([5, 6])], 3: []}).tolist()
    [1, 5, 6, 2]
    """
    pieces: list[Ints] = []
    done = 0
    for place in sorted(marks):
        pieces += [outside[done:place], *marks[place]]
        done = place + 1
    return np.concatenate([*pieces, outside[done:]])


def turns(process: Ints, turn: int) -> list[Ints]:
    """A process's actions between the marks at the ends of turns.

    >>> [each.tolist() for each in turns(np.array([5, 6, 0, 0, 7, 0]), 0)]
    [[5, 6], [], [7]]
    >>> turns(np.array([5, 6]), 0)
    []
    """
    ends = np.flatnonzero(process == turn)
    starts = np.concatenate([[0], ends + 1])[: ends.size].astype(np.int64)
    return [process[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
