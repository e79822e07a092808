"""Programs whose processes make the calls whose partner exists, in so many turns that their runs have many actions.

Their runs are completed before rules are sought, and each process's own sequence of calls is long.
"""

from __future__ import annotations

from collections.abc import Callable

from metasched.signature.equations.topologies import balanced
from metasched.signature.traces.trace import Trace, trace_of

Action = tuple[str, tuple[float, ...]]
#: The messages of a process in one turn, by its rank and the number of processes.
Turn = Callable[[int, int], list[Action]]

COUNTS, EVENTS = (12, 24, 48), 1_000_000
DOUBLE = 0


def _prefix_sums(rank: int, n: int) -> list[Action]:
    """The sums of Hillis and Steele: messages over 1, 2, 4, ... processes."""
    found: list[Action] = []
    for far in (1 << bit for bit in range((n - 1).bit_length())):
        found += [("send", (rank + far, 1, 100, DOUBLE))] * (rank + far < n)
        found += [("recv", (rank - far, 1, 100, DOUBLE))] * (rank >= far)
    return found


def _heap(rank: int, n: int) -> list[Action]:
    """A reduction along a tree in which process r has the children 2 r + 1 and 2 r + 2."""
    found: list[Action] = [("recv", (child, 1, 100, DOUBLE)) for child in (2 * rank + 1, 2 * rank + 2) if child < n]
    return found + [("send", ((rank - 1) // 2, 1, 100, DOUBLE))] * (rank > 0)


def _far_halo(rank: int, n: int) -> list[Action]:
    """A halo of two cells on a grid with borders: messages to the next process and to the one after it."""
    rows, columns = balanced(n, 2)
    row, column = divmod(rank, columns)
    ways = [(by, 0) for by in (-2, -1, 1, 2)] + [(0, by) for by in (-2, -1, 1, 2)]
    places = [(row + down, column + along) for down, along in ways]
    there = [one * columns + other for one, other in places if 0 <= one < rows and 0 <= other < columns]
    found: list[Action] = [("irecv", (peer, 1, 80, DOUBLE)) for peer in there]
    found += [("isend", (peer, 1, 80, DOUBLE)) for peer in there]
    return [*found, ("waitall", (2 * len(there),))]


PROGRAMS: dict[str, Turn] = {
    "prefix sums, many turns": _prefix_sums,
    "heap, many turns": _heap,
    "halo of two cells, many turns": _far_halo,
}


def traces(turn: Turn) -> list[Trace]:
    """The runs on few processes, which together have about a million actions."""
    once = sum(len(turn(rank, n)) + 2 for n in COUNTS for rank in range(n))
    return [_trace(turn, n, EVENTS // once) for n in COUNTS]


def _trace(turn: Turn, n: int, times: int) -> Trace:
    each = {rank: [("compute", (1e8 / n,)), *turn(rank, n), ("allreduce", (1, 0, 0))] for rank in range(n)}
    return trace_of({rank: [("init", ()), *times * actions, ("finalize", ())] for rank, actions in each.items()})
