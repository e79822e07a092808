"""Messages that are started together, and waits for several, put in order by partner.

Between calls that block, the order in which messages are started means nothing, but that those with one partner and one
tag stay in order. Programs that keep their messages in hash tables start them in another order at every turn.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from metasched.signature.traces.actions import AMOUNTS
from metasched.signature.traces.trace import Trace

#: Calls that start a message, by what may take whose place.
STARTED = {"irecv": 1, "isend": 2, "issend": 3, "ibsend": 4}
#: The same of waits, and of what belongs to no such batch.
WAITED, OTHER = 5, 0


def opened(name: str) -> int:
    """How many requests a call opens, -1 where it waits for one; a ``waitall`` ends all that are open.

    >>> opened("isend"), opened("wait"), opened("send")
    (1, -1, 0)
    """
    return (name in STARTED) - (name == "wait")


def put_in_order(traces: Sequence[Trace]) -> list[Trace] | None:
    """Traces with their messages in order, see :func:`in_order`; None where these are so in all of them."""
    made = [in_order(trace) for trace in traces]
    pairs = zip(traces, made, strict=True)
    alike = all(np.array_equal(*each) for both in pairs for each in zip(*(one.processes for one in both), strict=True))
    return None if alike else made


def in_order(trace: Trace) -> Trace:
    """The trace with messages in order of the distance to their partner, then of their tag, in each batch.

    >>> from metasched.signature.traces.trace import trace_of
    >>> first = [("isend", (1, 7, 8)), ("isend", (1, 3, 8)), ("barrier", ()), ("isend", (1, 1, 8))]
    >>> made = in_order(trace_of({0: first, 1: []}))
    >>> [made.table.text(action) for action in made.processes[0]]
    ['isend 1 3 8', 'isend 1 7 8', 'barrier', 'isend 1 1 8']
    """
    table, count = trace.table, len(trace.processes)
    many = len(table.shape)
    kinds, to, back, tags = (np.zeros(many, dtype=np.int64) for _ in range(4))
    amounts = np.zeros(many, dtype=bool)
    for action, shape in enumerate(table.shape):
        name, numbers = table.shapes[shape].name.lower(), table.numbers[action]
        amounts[action] = name in AMOUNTS
        if name in STARTED and len(numbers) > 1:
            kinds[action], to[action], back[action], tags[action] = STARTED[name], numbers[0], numbers[0], numbers[1]
        elif name == "wait" and len(numbers) == 3:
            kinds[action], back[action], to[action], tags[action] = WAITED, *numbers
    processes = []
    for rank, process in enumerate(trace.processes):
        calls = np.flatnonzero(~amounts[process])
        done = process[calls]
        kind = kinds[done]
        started = (kind > OTHER) & (kind < WAITED)
        # Starts and waits are batches of their own; any other call ends one.
        ends = (started[1:] != started[:-1]) | (kind[1:] == OTHER) | (kind[:-1] == OTHER)
        batch = np.cumsum(np.concatenate([np.zeros(1, dtype=bool), ends]))[: kind.size]
        sends = (kind == WAITED) & (back[done] == rank)
        distance = np.mod(np.where(sends | started, to[done], back[done]) - rank + count // 2, count) - count // 2
        place = np.arange(done.size)
        moved = np.flatnonzero(kind > OTHER)
        slots = moved[np.lexsort((place[moved], kind[moved], batch[moved]))]
        order = moved[np.lexsort(tuple(key[moved] for key in (place, tags[done], distance, sends, kind, batch)))]
        made = done.copy()
        made[slots] = done[order]
        whole = process.copy()
        whole[calls] = made
        processes.append(whole)
    return Trace(table, tuple(processes))
