"""Programs whose calls depend on how long each side of their grid is, as those of molecular dynamics do."""

from __future__ import annotations

import numpy as np
import pytest

from metasched.signature.equations.topologies import TOPOLOGIES, coordinates
from metasched.signature.rules.expanding import expanded
from metasched.signature.rules.fitting import fit
from metasched.signature.traces.trace import Trace, trace_of

Action = tuple[str, tuple[float, ...]]
LENGTH = 240


def _rank(place: list[int], sides: tuple[int, ...]) -> int:
    found = 0
    for at, side in zip(place, sides, strict=True):
        found = found * side + at % side
    return found


def _exchange(place: list[int], side: int, sides: tuple[int, ...], size: int) -> list[Action]:
    """Whoever leaves goes to the neighbours, once where both are the same one, not at all where there is none."""
    mine = _rank(place, sides)

    def there(by: int) -> int:
        return _rank([at + by * (axis == side) for axis, at in enumerate(place)], sides)

    actions: list[Action] = []
    ways = (-1, 1)[: min(sides[side], 3) - 1]
    for way in ways:
        actions.append(("sendRecv", (4, there(way), 4, there(-way), -1, -1)))
    for way in ways:
        to, of = there(way), there(-way)
        actions += [("irecv", (of, 0, size, -1)), ("send", (to, 0, size, -1)), ("wait", (of, mine, 0))]
    return actions


def _halo(place: list[int], side: int, sides: tuple[int, ...], size: int, room: int = 0) -> list[Action]:
    """Both faces across a side go to the neighbours, though both may be the same one.

    Buffers have the size of the face, or room for more.
    """
    mine = _rank(place, sides)
    actions: list[Action] = []
    for way in (-1, 1) if sides[side] > 1 else ():
        to = _rank([at + way * (axis == side) for axis, at in enumerate(place)], sides)
        of = _rank([at - way * (axis == side) for axis, at in enumerate(place)], sides)
        actions += [("irecv", (of, 0, room or size, -1)), ("send", (to, 0, size, -1)), ("wait", (of, mine, 0))]
    return actions


def particles(n: int, grid: str, fixed_size: bool = False, room: int = 0) -> Trace:
    """Ten turns: forces go forth along all sides and back in the other order; now and then particles move house."""
    sides = TOPOLOGIES[grid](n)
    dimensions = range(len(sides))

    def face(side: int) -> int:
        return 8 if fixed_size else 8 * int(np.prod([LENGTH // each for at, each in enumerate(sides) if at != side]))

    def actions(rank: int) -> list[Action]:
        place = [int(each[0]) for each in coordinates(np.array([rank]), sides)]
        forth = [each for side in dimensions for each in _halo(place, side, sides, face(side), room)]
        back = [each for side in reversed(dimensions) for each in _halo(place, side, sides, face(side), room)]
        moved = [each for side in dimensions for each in _exchange(place, side, sides, 40)]
        turn = [*(3 * (forth + back)), *moved, *forth, *back, ("allreduce", (1, 0, -1))]
        return [("init", ()), ("bcast", (4, 0, -1)), *(4 * turn), ("finalize", ())]

    return trace_of({rank: actions(rank) for rank in range(n)})


def _texts(trace: Trace) -> list[list[str]]:
    return [[trace.table.text(action) for action in process.tolist()] for process in trace.processes]


@pytest.mark.parametrize(
    ("grid", "counts", "larger"),
    [
        ("grid 210", (4, 8, 16), (32, 64, 96)),
        ("grid 012", (4, 8, 16), (32, 64, 128)),
        ("grid 012", (8, 12, 24), (36, 100)),
        ("grid 01", (4, 8, 16), (12, 64, 100)),
    ],
)
def test_what_longer_sides_do_another_side_shows(grid: str, counts: tuple[int, ...], larger: tuple[int, ...]) -> None:
    found = fit([particles(n, grid) for n in counts])
    assert found.ruled == 1.0
    for n in larger:
        assert _texts(expanded(found.application, n)) == _texts(particles(n, grid))


def test_messages_along_short_sides_go_the_ways_of_those_along_long_ones() -> None:
    # Whether a message was sent that is as long as the buffer that one is received in does not tell its way.
    found = fit([particles(n, "grid 210", fixed_size=True, room=4096) for n in (4, 8, 16)])
    assert found.ruled == 1.0
    for n in (32, 64):
        assert _texts(expanded(found.application, n)) == _texts(particles(n, "grid 210", fixed_size=True, room=4096))


def test_a_side_of_one_process_sends_nothing() -> None:
    rules = fit([particles(n, "grid 210", fixed_size=True) for n in (4, 8, 16)]).application
    assert _texts(expanded(rules, 2)) == _texts(particles(2, "grid 210", fixed_size=True))


def doubling(n: int) -> Trace:
    """A pipeline down the columns of a grid, and then what is doubled at each step over the bits of the rank."""
    cols = 1
    while 4 * cols * cols <= n:
        cols *= 2
    actions: dict[int, list[tuple[str, tuple[float, ...]]]] = {}
    for rank in range(n):
        body: list[tuple[str, tuple[float, ...]]] = []
        for tag in range(2):
            body += [("recv", (rank - cols, tag, 512, -1))] if rank >= cols else []
            body += [("compute", (1e6 / n,))]
            body += [("send", (rank + cols, tag, 512, -1))] if rank + cols < n else []
        for bit in range(n.bit_length() - 1):
            other = rank ^ (1 << bit)
            body.append(("sendRecv", (8 << bit, other, 8 << bit, other, -1, -1)))
        actions[rank] = [("init", ()), *(body * 3), ("barrier", ()), ("finalize", ())]
    return trace_of(actions)


def test_steps_over_the_bits_of_a_rank_beside_other_messages_are_no_sides_of_a_grid() -> None:
    made, true = expanded(fit([doubling(n) for n in (8, 16, 32)]).application, 64), doubling(64)
    found, expected = ([[each.table.text(action) for action in one] for one in each.processes] for each in (made, true))
    assert found == expected
