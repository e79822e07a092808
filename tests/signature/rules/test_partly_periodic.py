"""Exchanges with neighbours in grids that go round along some sides, but not along others."""

from __future__ import annotations

from itertools import product
from math import prod

import pytest

from metasched.signature.equations.topologies import balanced
from metasched.signature.rules.expanding import lines, sound
from metasched.signature.rules.fitting import fit
from metasched.signature.rules.open_choices import open_rules
from metasched.signature.traces.trace import Trace, trace_of

Action = tuple[str, tuple[float, ...]]
BYTE = 6


def halo(n: int, around: tuple[bool, ...], corners: bool, paired: bool, order: int = 1) -> Trace:
    """Processes receive and send faces of a block of data, in pairs or all receives first, perhaps corners too."""
    lengths = (96, 192, 384)[: len(around)]
    sides = balanced(n, len(around))[::order]
    ranks = {place: rank for rank, place in enumerate(product(*map(range, sides)))}
    ways = [way for way in product((-1, 0, 1), repeat=len(around)) if corners or sum(map(abs, way)) == 1]

    def turn(at: tuple[int, ...]) -> list[Action]:
        pairs: list[list[Action]] = []
        for way in filter(any, ways):
            to = [place + by for place, by in zip(at, way, strict=True)]
            to = [place % side if ring else place for place, side, ring in zip(to, sides, around, strict=True)]
            if (peer := ranks.get(tuple(to))) is not None:
                size = 8 * prod(
                    1 if by else length // side for by, length, side in zip(way, lengths, sides, strict=True)
                )
                pairs.append([("irecv", (peer, 5, size, BYTE)), ("isend", (peer, 5, size, BYTE))])
        calls = [call for pair in (pairs if paired else zip(*pairs, strict=True)) for call in pair]
        return [*calls, ("waitall", (len(calls),)), ("compute", (1e8 / n,))]

    return trace_of({rank: [("init", ()), *3 * turn(at), ("finalize", ())] for at, rank in ranks.items()})


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("corners", [True, False])
@pytest.mark.parametrize(
    ("around", "counts", "order"),
    [
        ((True, False, False), (8, 16, 32), 1),
        ((True, True, False), (16, 32, 64), 1),
        ((False, False, True), (8, 16, 32), -1),
        ((False, True), (8, 16, 32), 1),
    ],
)
def test_calls_are_right_where_some_sides_go_round(
    around: tuple[bool, ...], counts: tuple[int, ...], order: int, corners: bool, paired: bool
) -> None:
    # In the smaller runs a side that goes round has two processes: the neighbours on both sides are one.
    found = fit([halo(n, around, corners, paired, order) for n in counts])
    assert (found.ruled, found.unruled) == (1.0, {})
    for n in (2 * counts[-1], 4 * counts[-1]):
        assert [*lines(sound(found.application, n))] == [*lines(halo(n, around, corners, paired, order))]


@pytest.mark.parametrize("around", [(False, False, True), (True, False, True)])
def test_a_side_that_goes_round_and_is_two_long_in_all_runs_is_open(around: tuple[bool, ...]) -> None:
    # 8, 16 and 32 processes have two along the last side; as many messages go there as two neighbours get elsewhere.
    found = fit([halo(n, around, corners=False, paired=False) for n in (8, 16, 32)])
    assert found.ruled == 1.0
    assert [line for line in open_rules(found.application, [64]) if "which way round partners are" in line]
