"""Exchanges with neighbours in grids that do not go round, learned where sides are one or two processes long."""

from __future__ import annotations

import random
from itertools import product
from math import prod

import pytest

from metasched.signature.equations.topologies import balanced
from metasched.signature.rules.expanding import expanded, lines
from metasched.signature.rules.fitting import fit
from metasched.signature.rules.open_choices import open_rules
from metasched.signature.traces.trace import Trace, trace_of

Action = tuple[str, tuple[float, ...]]
BYTE = 6


class Halo:
    """A program that sends the faces of a block of data to its neighbours.

    Parameters
    ----------
    style : whether processes exchange along one side after another, all at once, shift one way after another, receive
        and send in pairs, exchange in single calls, or send before they receive.
    lengths : of the data along each side.
    order : 1 where the first side of the grid is the longest, -1 where the last one is.
    tags : whether there is one tag, or one for each side or way.
    """

    def __init__(
        self, style: str, lengths: tuple[int, ...], order: int = 1, tags: str = "one", ways: tuple[int, int] = (-1, 1),
        fields: int = 1,
    ) -> None:  # fmt: skip
        self.style, self.lengths, self.order = style, lengths, order
        self.tags, self.ways, self.fields = tags, ways, fields

    def run(self, n: int) -> Trace:
        sides = balanced(n, len(self.lengths))[:: self.order]
        ranks = {place: rank for rank, place in enumerate(product(*map(range, sides)))}
        turns = {rank: self._turn(place, sides, ranks) for place, rank in ranks.items()}
        return trace_of({rank: [("init", ()), *3 * turn, ("finalize", ())] for rank, turn in turns.items()})

    def _turn(self, at: tuple[int, ...], sides: tuple[int, ...], ranks: dict[tuple[int, ...], int]) -> list[Action]:
        dimensions = range(len(sides))

        def message(name: str, side: int, way: int, along: int, field: int) -> list[Action]:
            to = ranks.get(tuple(place + way * (one == side) for one, place in enumerate(at)))
            size = 8 * prod(self.lengths[one] // sides[one] for one in dimensions if one != side)
            tag = {"one": 7, "sides": side, "ways": 2 * side + (along > 0)}[self.tags] + 10 * field
            if to is None:
                return []
            return [(name, (size, to, size, to, BYTE, BYTE) if name == "sendRecv" else (to, tag, size, BYTE))]

        def waited(calls: list[Action]) -> list[Action]:
            return [*calls, ("waitall", (len(calls),))] if calls else []

        every = [*product(dimensions, self.ways)]
        groups = {"each": [[(side, way) for way in self.ways] for side in dimensions], "once": [every]}
        turn: list[Action] = [("compute", (1e8 / len(ranks),))]
        for group in groups.get(self.style, ()):
            names = (("irecv", -1), ("isend", 1))
            turn += waited([call for name, to in names for field in range(self.fields) for side, way in group
                            for call in message(name, side, way, to * way, field)])  # fmt: skip
        if self.style == "shifts":
            for side, way in every:
                turn += waited(message("irecv", side, -way, way, 0) + message("isend", side, way, way, 0))
        elif self.style == "pairs":
            turn += waited([call for side, way in every for field in range(self.fields)
                            for call in (*message("irecv", side, way, -way, field),
                                         *message("isend", side, way, way, field))])  # fmt: skip
        elif self.style in ("sendRecv", "send"):
            turn += [call for side, way in every for call in message(self.style, side, way, way, 0)]
            if self.style == "send":
                turn += [call for side, way in every for call in message("recv", side, way, -way, 0)]
        return [*turn, ("allreduce", (1, 1, BYTE))]


STYLES = ("each", "once", "shifts", "pairs", "sendRecv", "send")


def right(halo: Halo, counts: tuple[int, ...], larger: tuple[int, ...]) -> bool:
    found = fit([halo.run(n) for n in counts])
    return found.ruled == 1.0 and all([*lines(expanded(found.application, n))] == [*lines(halo.run(n))] for n in larger)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(("counts", "order"), [((4, 8, 16), -1), ((8, 16, 32), 1), ((8, 16, 32), -1)])
def test_faces_of_halos_are_right_where_sides_are_longer(style: str, counts: tuple[int, ...], order: int) -> None:
    assert right(Halo(style, (192, 192, 192), order), counts, (2 * counts[-1], 4 * counts[-1], 8 * counts[-1]))


@pytest.mark.parametrize("tags", ["sides", "ways"])
@pytest.mark.parametrize("style", ["each", "shifts"])
def test_the_order_of_calls_is_that_along_other_sides_whatever_their_tags(style: str, tags: str) -> None:
    assert right(Halo(style, (192, 384, 96), -1, tags, ways=(1, -1), fields=2), (8, 16, 32), (64, 128))


def test_faces_of_which_a_block_has_several_pieces_are_no_share_along_the_way() -> None:
    # 4 and 16 processes of 2, 2, 1 and of 4, 2, 2: half as much could be a share along the first side.
    assert right(Halo("shifts", (384, 192, 576), 1, "sides"), (4, 16, 32), (64, 128))


def test_several_messages_to_one_neighbour_keep_their_order_where_their_tags_differ_from_run_to_run() -> None:
    assert right(Halo("pairs", (192, 96, 384), -1, "ways", ways=(1, -1), fields=2), (4, 8, 16, 32), (64, 128))


def test_grids_whose_last_side_is_the_longest_are_found_among_many_others() -> None:
    # 12, 24 and 48 processes allow 29 different grids.
    assert right(Halo("shifts", (192, 384, 576), -1), (12, 24, 48), (96,))


def drawn(seed: int) -> tuple[Halo, tuple[int, ...]]:
    source = random.Random(seed)
    counts = source.choice([(4, 8, 16), (8, 16, 32), (4, 16, 32), (8, 24, 48), (12, 24, 48)])
    lengths = tuple(source.choice((96, 192, 384, 576)) for _ in range(source.choice((2, 3, 3))))
    ways = source.choice([(-1, 1), (1, -1)])
    tags, fields = source.choice(("one", "sides", "ways")), source.choice((1, 2))
    return Halo(source.choice(STYLES), lengths, source.choice((1, -1)), tags, ways, fields), counts


@pytest.mark.parametrize("seed", range(8))
def test_drawn_halos_are_right_where_sides_are_longer(seed: int) -> None:
    halo, counts = drawn(seed)
    assert right(halo, counts, (2 * counts[-1], 4 * counts[-1]))


@pytest.mark.parametrize("style", ["each", "once", "send"])
def test_partners_that_differ_in_one_bit_may_be_neighbours_in_a_grid(style: str) -> None:
    # With sides of two at most, the three calls could be those of a hypercube as well.
    found = fit([Halo(style, (192, 192, 192)).run(n) for n in (2, 4, 8)])
    assert [line for line in open_rules(found.application) if "a run of 16 processes would decide" in line]


def hypercube(n: int) -> Trace:
    """Each process exchanges with those that differ from it in one bit."""
    turns: dict[int, list[Action]] = {
        rank: [
            ("sendRecv", (64, rank ^ 1 << bit, 64, rank ^ 1 << bit, BYTE, BYTE)) for bit in range(n.bit_length() - 1)
        ]
        for rank in range(n)
    }
    return trace_of({rank: [("init", ()), *3 * turn, ("finalize", ())] for rank, turn in turns.items()})


def test_partners_that_differ_in_one_bit_are_no_neighbours_where_there_are_four_bits() -> None:
    assert open_rules(fit([hypercube(n) for n in (4, 8, 16)]).application) == []


def test_neighbours_at_corners_stay_named_where_no_run_shows_the_order_of_calls() -> None:
    def run(n: int) -> Trace:
        sides = balanced(n, 3)
        ranks = {place: rank for rank, place in enumerate(product(*map(range, sides)))}
        turns: dict[int, list[Action]] = {
            rank: [("sendRecv", (80, ranks[to], 80, ranks[to], BYTE, BYTE)) for way in product((-1, 0, 1), repeat=3)
                   if any(way) and (to := tuple(one + by for one, by in zip(at, way, strict=True))) in ranks]
            for at, rank in ranks.items()
        }  # fmt: skip
        return trace_of({rank: [("init", ()), *3 * turn, ("finalize", ())] for rank, turn in turns.items()})

    found = fit([run(n) for n in (4, 8, 16)])
    same = all([*lines(expanded(found.application, n))] == [*lines(run(n))] for n in (32, 64))
    assert same or found.ruled < 1.0
