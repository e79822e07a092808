"""Grids whose sides are two processes long at most in all runs: the neighbours on both sides are one process."""

from __future__ import annotations

from itertools import product
from math import prod

import pytest

from metasched.signature.equations.topologies import balanced
from metasched.signature.rules.expanding import sound
from metasched.signature.rules.fitting import fit
from metasched.signature.rules.open_choices import open_choices, other_applications
from metasched.signature.traces.trace import Trace, trace_of
from tests.signature.rules.test_corners import texts

Action = tuple[str, tuple[float, ...]]
Way = tuple[int, ...]
FACES = ((1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1))
CORNERS = tuple(way for way in product((-1, 0, 1), repeat=2) if any(way))


def torus(n: int, ways: tuple[Way, ...], tagged: bool = True) -> Trace:
    """Each process exchanges faces of its block with its neighbours round all sides, one direction after another."""
    sides = balanced(n, len(ways[0]))
    places = [*product(*map(range, sides))]

    def beside(rank: int, way: Way, by: int) -> int:
        to = tuple((at + by * step) % side for at, step, side in zip(places[rank], way, sides, strict=True))
        return places.index(to)

    def size(way: Way) -> int:
        return 8 * prod(96 // side for step, side in zip(way, sides, strict=True) if not step)

    def turn(rank: int) -> list[Action]:
        if not tagged:
            both = [(beside(rank, way, 1), beside(rank, way, -1), size(way)) for way in ways]
            return [("sendRecv", (of, to, of, back, 6, 6)) for to, back, of in both]
        calls: list[Action] = [
            (name, (beside(rank, way, by), tag, size(way), 6))
            for name, by in (("irecv", -1), ("isend", 1))
            for tag, way in enumerate(ways)
        ]
        return [*calls, ("waitall", (len(calls),))]

    turns = {rank: [("compute", (1e8 / n,)), *turn(rank)] for rank in range(n)}
    return trace_of({rank: [("init", ()), *3 * own, ("finalize", ())] for rank, own in turns.items()})


@pytest.mark.parametrize(
    ("counts", "ways", "tagged"),
    [
        ((2, 4, 8), CORNERS, True),
        ((2, 4, 8), ((0, -1), (-1, 0)), False),
        ((2, 4, 8), ((1, 0), (-1, 0), (0, 1), (0, -1)), False),
        ((4, 8, 16), FACES, True),
        ((8, 16, 32), FACES, True),
        ((8, 16, 32), FACES, False),
    ],
)
def test_ways_round_short_sides_are_as_round_long_ones_and_said_to_be_open(
    counts: tuple[int, ...], ways: tuple[Way, ...], tagged: bool
) -> None:
    found = fit([torus(n, ways, tagged) for n in counts])
    assert (found.ruled, found.unruled) == (1.0, {})
    larger = 64
    assert texts(sound(found.application, larger)) == texts(torus(larger, ways, tagged))
    said = [each for each in open_choices(found.application, [larger]) if "which way round" in each.line]
    assert len(said) == 1
    other = said[0].other(found.application)
    assert other is not None
    # The other choice has both ends of all messages, too, and the runs do not tell it from the first.
    assert texts(sound(other, larger)) != texts(torus(larger, ways, tagged))
    for n in counts:
        assert texts(sound(other, n)) == texts(torus(n, ways, tagged))


def test_ways_that_a_run_shows_are_not_open() -> None:
    found = fit([torus(n, CORNERS) for n in (4, 8, 16)])
    assert found.ruled == 1.0
    assert not [each for each in open_choices(found.application) if "which way round" in each.line]
    assert texts(sound(found.application, 64)) == texts(torus(64, CORNERS))


def test_a_partner_as_far_away_as_the_shortest_side_is_long() -> None:
    ways = tuple((by, 0) for by in (-2, -1, 1, 2)) + tuple((0, by) for by in (-2, -1, 1, 2))
    # Sides of 2, 3, 4 and 3, 4, 5 processes: two along the shortest lead back to the process itself.
    found = fit([torus(n, ways) for n in (6, 12, 20)])
    assert (found.ruled, found.unruled) == (1.0, {})
    assert texts(sound(found.application, 48)) == texts(torus(48, ways))


def twice_at_most(n: int) -> Trace:
    """Exchanges with the processes whose numbers differ in one of the first two bits, as far as they are there."""
    calls = {
        rank: [("sendRecv", (64, rank ^ bit, 64, rank ^ bit, 6, 6)) for bit in (1, 2) if rank ^ bit < n]
        for rank in range(n)
    }
    return trace_of(
        {rank: [("init", ()), *own, ("allreduce", (8, 1, 6)), ("finalize", ())] for rank, own in calls.items()}
    )


def test_loops_along_a_side_that_is_two_long_at_most_may_run_twice() -> None:
    application = fit([twice_at_most(n) for n in (2, 4, 8)]).application
    assert not open_choices(application, [8])
    made = [texts(sound(each, 16)) for each in (application, *other_applications(application, [16]))]
    assert texts(twice_at_most(16)) in made
    assert open_choices(application, [16])
