"""What all processes of a run that ended early have done together, where each is known up to a moment of its own."""

from __future__ import annotations

from collections import deque

import numpy as np

from metasched.arrays import Ints
from metasched.records import InputError
from metasched.signature.traces.parts import collective
from metasched.signature.traces.trace import Trace, ends_of


def common_beginning(trace: Trace) -> Trace:
    """The longest beginning of all processes in which all messages have both ends, and operations of all take place.

    Receives from any source name no sender; where there are some, messages that nobody receives are left in.

    Raises
    ------
    InputError : when the processes have nothing in common.

    Examples
    --------
    >>> from metasched.signature.traces.trace import trace_of
    >>> step = [("send", (1, 0, 8, 0)), ("barrier", ())]
    >>> made = common_beginning(trace_of({0: 3 * step, 1: [("recv", (0, 0, 8, 0)), ("barrier", ())]}))
    >>> [each.size for each in made.processes]
    [2, 2]
    """
    together = collective(trace.table.shapes)[trace.shapes]
    meetings = [np.flatnonzero(together[process]) for process in trace.processes]
    met = min(each.size for each in meetings)
    kept = [
        int(at[met]) if at.size > met else process.size for at, process in zip(meetings, trace.processes, strict=True)
    ]
    ends, anywhere = ends_of(trace.table)
    pairs: dict[tuple[int, int], dict[int, Ints]] = {}
    for rank, process in enumerate(trace.processes):
        found: dict[tuple[int, int], list[Ints]] = {}
        for action in np.unique(process).tolist():
            for peer, sign in ends[action]:
                if peer < len(kept):
                    found.setdefault((peer, sign), []).append(np.flatnonzero(process == action))
        for (peer, sign), places in found.items():
            pair = (rank, peer) if sign > 0 else (peer, rank)
            pairs.setdefault(pair, {})[sign] = np.sort(np.concatenate(places))
    of: dict[int, list[tuple[int, int]]] = {}
    for pair in pairs:
        for rank in {*pair}:
            of.setdefault(rank, []).append(pair)
    nowhere = np.zeros(0, dtype=np.int64)
    open_ = deque(pairs)
    while open_:
        pair = open_.popleft()
        sent, received = (pairs[pair].get(sign, nowhere) for sign in (1, -1))
        many = [int(np.searchsorted(places, kept[rank])) for rank, places in zip(pair, (sent, received), strict=True)]
        if many[0] == many[1] or (anywhere and many[0] > many[1]):
            continue
        rank, more = (pair[0], sent) if many[0] > many[1] else (pair[1], received)
        kept[rank] = int(more[min(many)])
        # What it met the others in, and its other messages, may now be missing.
        met = int(np.searchsorted(meetings[rank], kept[rank]))
        for other, at in enumerate(meetings):
            if at.size > met and at[met] < kept[other]:
                kept[other] = int(at[met])
                open_ += of.get(other, ())
        open_ += of[rank]
    if not any(kept):
        raise InputError("its processes were cut short before they had done anything together")
    return Trace(trace.table, tuple(process[:end] for process, end in zip(trace.processes, kept, strict=True)))
