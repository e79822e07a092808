"""Ranks counted from another process than process 0, as programs do whose trees or chains start at any process."""

from __future__ import annotations

import numpy as np

from metasched.arrays import Floats
from metasched.signature.traces.actions import ActionTable, Shape
from metasched.signature.traces.trace import Trace, copied


def turned_by(shape: Shape, columns: list[Floats], by: int, count: int) -> list[Floats]:
    """The numbers of actions of a shape, with partners so many ranks further round all processes.

    >>> turned_by(Shape("send", 2), [np.array([3.0, -333.0]), np.array([7.0])], 2, 4)
    [array([   1., -333.]), array([7.])]
    """
    return [
        np.where(column >= 0, np.mod(column + by, count), column) if by and place in shape.peers else column
        for place, column in enumerate(columns)
    ]


def counted_from(trace: Trace, first: int) -> Trace:
    """The trace with the ranks counted from a process, round all of them; roots of collective operations stay.

    >>> from metasched.signature.traces.trace import trace_of
    >>> made = counted_from(trace_of({0: [("recv", (1, 7, 8, 6))], 1: [("send", (0, 7, 8, 6))]}), 1)
    >>> [made.table.text(action) for process in made.processes for action in process]
    ['send 1 7 8 6', 'recv 0 7 8 6']
    """
    count, table = len(trace.processes), ActionTable()
    for action, of in enumerate(trace.table.shape):
        copied(table, trace.table, action)
        columns = [np.array([each]) for each in trace.table.numbers[action]]
        turned = turned_by(trace.table.shapes[of], columns, -first, count)
        table.numbers[action] = tuple(float(each[0]) for each in turned)
    return Trace(table, (*trace.processes[first:], *trace.processes[:first]))
