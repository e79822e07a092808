"""Programs cut into parts at the collective operations of all processes, so that each part may have roles of its own.

Such operations come in the same order in all processes. The calls between two of them are a part, and a mark takes its
place; what remains is the same in all processes, however little they have in common in between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from metasched.signature.actions import AMONG_SOME, AMOUNTS, PART, PEERS, TURN, ActionTable, Shape
from metasched.signature.traces import Trace

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
    """

    outside: Trace
    inside: tuple[tuple[Ints, ...], ...]

    def together(self, marks: Sequence[int]) -> Trace:
        """The parts of some marks, one after another, each with another mark (``turn``) at its end."""
        table = self.outside.table
        turn = np.array([_mark(table, TURN)], dtype=np.int32)
        processes = [
            np.concatenate([each for mark in marks for each in (self.inside[mark][rank], turn)])
            if len(marks)
            else np.zeros(0, dtype=np.int32)
            for rank in range(len(self.outside.processes))
        ]
        return Trace(table, tuple(processes)).compact()


def collective(shapes: Sequence[Shape]) -> NDArray[np.bool_]:
    """Which calls are operations of all processes, with the start and the end of the run: a mask, shape (shapes,)."""
    names = [shape.name.lower() for shape in shapes]
    return np.array(
        [name not in PEERS and name not in OWN and not name.endswith(AMONG_SOME) for name in names], dtype=np.bool_
    )


def cut(trace: Trace) -> Cut | None:
    """Cut a trace at its collective operations; None where these differ from process to process.

    Computation alone, where all processes have it, is no part.

    Examples
    --------
    >>> from metasched.signature.traces import trace_of
    >>> one = [("init", ()), ("send", (1, 0, 8)), ("barrier", ())]
    >>> other = [("init", ()), ("recv", (0, 0, 8)), ("barrier", ())]
    >>> found = cut(trace_of({0: one, 1: other}))
    >>> [[found.outside.table.text(action) for action in each] for each in found.outside.processes]
    [['init', 'part', 'barrier'], ['init', 'part', 'barrier']]
    """
    table = ActionTable(
        [*trace.table.shapes],
        [*trace.table.shape],
        [*trace.table.numbers],
        dict(trace.table.lists),
        {shape: number for number, shape in enumerate(trace.table.shapes)},
    )
    part = _mark(table, PART)
    _mark(table, TURN)
    together = collective(trace.table.shapes)
    working = np.array([shape.name.lower() in AMOUNTS for shape in trace.table.shapes])
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
    pieces = [np.split(process, np.stack([here, here + 1], axis=1).ravel())
              for process, here in zip(trace.processes, at, strict=True)]  # fmt: skip
    inside: list[tuple[Ints, ...]] = []
    mark = np.array([part], dtype=np.int32)
    for place in range(0, len(pieces[0]), 2):
        here = [each[place] for each in pieces]
        first = shapes[here[0]].tobytes()
        alike = all(shapes[each].tobytes() == first for each in here)
        if not alike or not working[shapes[here[0]]].all():
            inside.append((*here,))
            for each in pieces:
                each[place] = mark
    outside = Trace(table, tuple(np.concatenate(each).astype(np.int32) for each in pieces))
    return Cut(outside, tuple(inside))


def _mark(table: ActionTable, name: str) -> int:
    """The number of a mark in a table."""
    for action in reversed(range(len(table.shape))):
        if table.shapes[table.shape[action]].name == name:
            return action
    return table.add(name, ())


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

    Examples
    --------
    >>> [each.tolist() for each in turns(np.array([5, 6, 0, 0, 7, 0]), 0)]
    [[5, 6], [], [7]]
    """
    ends = np.flatnonzero(process == turn)
    starts = np.concatenate([[0], ends[:-1] + 1]).astype(np.int64)
    return [process[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
