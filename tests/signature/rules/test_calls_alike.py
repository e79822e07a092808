"""Loops whose calls differ in their numbers only: levels, several calls in a round, layers of a grid, pencils."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from metasched.signature.rules.expanding import expanded, lines
from metasched.signature.rules.fitting import fit
from metasched.signature.traces.trace import Trace, trace_of

Action = tuple[str, tuple[float, ...]]


def levels(n: int) -> Trace:
    """V-cycles around a grid: faces of both sides on each level, first finer and then coarser ones."""
    rows = 2 ** (math.frexp(n)[1] // 2)
    columns = n // rows

    def actions(rank: int) -> list[Action]:
        at, place = divmod(rank, columns)
        found: list[Action] = [("init", ())]
        for _ in range(2):
            for level in (0, 1, 2, 3, 2, 1, 0):
                for to, of, side in (
                    ((at + 1) % rows * columns + place, (at - 1) % rows * columns + place, columns),
                    (at * columns + (place + 1) % columns, at * columns + (place - 1) % columns, rows),
                ):
                    size = (512 >> level) // side
                    ends = [("irecv", of, 1), ("irecv", to, 2), ("isend", to, 1), ("isend", of, 2)]
                    found += [(name, (peer, tag, size, -1)) for name, peer, tag in ends]
                    found.append(("waitall", (4,)))
                found.append(("compute", (9600 / n,)))
            found.append(("allreduce", (1, 0, -1)))
        return [*found, ("finalize", ())]

    return trace_of([actions(rank) for rank in range(n)])


def routers(n: int) -> Trace:
    """In each round first how much is exchanged, in numbers of another kind, and then that."""

    def actions(rank: int) -> list[Action]:
        found: list[Action] = [("init", ())]
        for _ in range(4):
            half = n // 2
            while half:
                found.append(("sendRecv", (1, rank ^ half, 1, rank ^ half, 1, 1)))
                found.append(("sendRecv", (10 * half, rank ^ half, 10 * half, rank ^ half, 0, 0)))
                half //= 2
            found.append(("allreduce", (1, 0, 0)))
        return [*found, ("finalize", ())]

    return trace_of([actions(rank) for rank in range(n)])


def layers(n: int) -> Trace:
    """Two layers of squares, in each of which half of the rows and columns go round (2.5-D multiplication)."""
    side = math.isqrt(n // 2)

    def actions(rank: int) -> list[Action]:
        layer, (at, place) = rank // side**2 * side**2, divmod(rank % side**2, side)
        size = (480 // side) ** 2
        found: list[Action] = [("init", ()), ("bcast", (size, 0, 0))]
        for _ in range(side // 2):
            found.append(("compute", (1e6 / n,)))
            to, of = ((at * side + (place + by) % side) + layer for by in (1, -1))
            found.append(("sendRecv", (size, to, size, of, 0, 0)))
            to, of = (((at + by) % side * side + place) + layer for by in (1, -1))
            found.append(("sendRecv", (size, to, size, of, 0, 0)))
        return [*found, ("finalize", ())]

    return trace_of([actions(rank) for rank in range(n)])


def pencils(n: int) -> Trace:
    """Blocks of a process, rounded down, that are cut once more for each other process of its row or its column."""
    side = math.isqrt(n)

    def actions(rank: int) -> list[Action]:
        at, place = divmod(rank, side)
        size = 65_536 // n // side
        found: list[Action] = [("init", ())]
        for _ in range(3):
            found.append(("compute", (1e6 / n,)))
            for by in range(1, side):
                to, of = (at * side + (place + way) % side for way in (by, -by))
                found.append(("sendRecv", (size, to, size, of, 0, 0)))
            found.append(("compute", (1e6 / n,)))
            for by in range(1, side):
                to, of = ((at + way) % side * side + place for way in (by, -by))
                found.append(("sendRecv", (size, to, size, of, 0, 0)))
        return [*found, ("finalize", ())]

    return trace_of([actions(rank) for rank in range(n)])


def gradient(n: int) -> Trace:
    """Butterflies in rows, an exchange with the twin across a diagonal, and butterflies among all processes."""
    rows = 2 ** (math.frexp(n)[1] // 2 - (math.frexp(n)[1] % 2 == 0))
    columns = n // rows

    def actions(rank: int) -> list[Action]:
        row, column = divmod(rank, columns)
        twin = column * rows + row
        if columns > rows:
            twin = (rank // 2 % rows * rows + rank // 2 // rows) * 2 + rank % 2
        found: list[Action] = [("init", ())]
        for _ in range(4):
            found.append(("compute", (6e8 / n,)))
            for bit in range(columns.bit_length() - 1):
                peer = row * columns + (column ^ 1 << bit)
                found.append(("sendRecv", (90_000 // rows, peer, 90_000 // rows, peer, 0, 0)))
            found += [("irecv", (twin, 4, 90_000 // columns, 0)), ("send", (twin, 4, 90_000 // columns, 0))]
            found += [("wait", (twin, rank, 4)), ("compute", (2e7 / n,))]
            for bit in range(n.bit_length() - 1):
                peer = rank ^ 1 << bit
                found += [("irecv", (peer, 5, 1, 0)), ("send", (peer, 5, 1, 0)), ("wait", (peer, rank, 5))]
        return [*found, ("finalize", ())]

    return trace_of([actions(rank) for rank in range(n)])


@pytest.mark.parametrize(
    ("program", "counts", "larger"),
    [
        (levels, (4, 8, 16), (32, 64, 256)),
        (routers, (4, 8, 16), (32, 128)),
        # Sides of three of 32 and 72 processes may be as long as those of layers, and those of 200 not.
        (layers, (8, 32, 72), (128, 200)),
        # 65,536 is divided evenly among 16 and 64 processes, and not among the others.
        (pencils, (16, 36, 64), (81, 144)),
        # The grid of the twins has sides of which several together are the rounds of these runs, and not of others.
        (gradient, (16, 32, 64), (128, 256)),
    ],
)
def test_each_call_of_a_round_has_the_rule_of_its_own(
    program: Callable[[int], Trace], counts: tuple[int, ...], larger: tuple[int, ...]
) -> None:
    found = fit([program(n) for n in counts])
    assert found.ruled == 1.0
    assert [[*lines(expanded(found.application, n))] for n in larger] == [[*lines(program(n))] for n in larger]
