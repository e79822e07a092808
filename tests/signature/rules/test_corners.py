"""Exchanges with all neighbours of a grid, corners included: messages of a cell, of an edge and of a face."""

from __future__ import annotations

from functools import partial
from itertools import chain, product
from math import prod

import pytest

from metasched.signature.equations.topologies import balanced
from metasched.signature.rules.expanding import sound
from metasched.signature.rules.fitting import fit
from metasched.signature.traces.trace import Trace, trace_of

Action = tuple[str, tuple[float, ...]]
EDGE = 192


def exchanged(n: int, dimensions: int, around: bool | tuple[bool, ...], tagged: bool = False, steps: int = 3) -> Trace:
    """Each process receives from all neighbours in a cube of data, and then sends to all of them.

    Where directions have tags, the last side of the grid is the longest; ``around`` may say which sides go round.
    """
    round_ = around if isinstance(around, tuple) else (around,) * dimensions
    sides = balanced(n, dimensions)[:: -1 if tagged else 1]
    places = [*product(*(range(side) for side in sides))]

    def messages(at: tuple[int, ...]) -> list[tuple[int, int, int]]:
        found = []
        for tag, way in enumerate(product((-1, 0, 1), repeat=dimensions)):
            to = [place + by for place, by in zip(at, way, strict=True)]
            to = [place % side if ring else place for place, side, ring in zip(to, sides, round_, strict=True)]
            if any(way) and tuple(to) in places:
                size = 8 * prod(1 if by else EDGE // side for by, side in zip(way, sides, strict=True))
                found.append((places.index(tuple(to)), tag if tagged else 5, size))
        return found

    def actions(at: tuple[int, ...]) -> list[Action]:
        back = 3**dimensions - 1
        received = [(peer, back - tag if tagged else tag, size) for peer, tag, size in messages(at)]
        calls: list[Action] = [("irecv", (*message, 6)) for message in received]
        calls += [("isend", (*message, 6)) for message in messages(at)]
        turn: list[Action] = [("compute", (1e8 / n,)), *calls, ("waitall", (len(calls),))]
        return [("init", ()), *steps * turn, ("finalize", ())]

    return trace_of({rank: actions(at) for rank, at in enumerate(places)})


def texts(trace: Trace) -> list[list[str]]:
    """All actions of all processes, as they are written."""
    return [[trace.table.text(action) for action in process.tolist()] for process in trace.processes]


# In three dimensions the first side is four processes long in all runs, but not in those that are predicted.
@pytest.mark.parametrize(("dimensions", "counts"), [(2, (16, 32, 64)), (3, (16, 32, 64)), (2, (16, 36, 64))])
@pytest.mark.parametrize("around", [True, False])
def test_messages_to_corners_are_right_where_sides_are_longer(
    dimensions: int, counts: tuple[int, ...], around: bool
) -> None:
    found = fit([exchanged(n, dimensions, around) for n in counts])
    assert (found.ruled, found.unruled) == (1.0, {})
    for n in (144,) if 36 in counts else (128, 256):
        assert texts(sound(found.application, n)) == texts(exchanged(n, dimensions, around))


def test_messages_with_a_tag_for_each_direction_are_right_where_sides_are_longer() -> None:
    # Calls that differ in their tags are no loop: each direction is learned by itself.
    found = fit([exchanged(n, 3, around=False, tagged=True) for n in (16, 32, 64)])
    assert (found.ruled, found.unruled) == (1.0, {})
    assert texts(sound(found.application, 128)) == texts(exchanged(128, 3, around=False, tagged=True))


@pytest.mark.parametrize("tagged", [False, True])
@pytest.mark.parametrize("counts", [(8, 16, 32), (4, 8, 16)])
def test_messages_to_corners_are_right_where_no_process_has_both_neighbours_along_a_side(
    counts: tuple[int, ...], tagged: bool
) -> None:
    # Four processes are one long along a side: their runs lack the calls to all neighbours there.
    found = fit([exchanged(n, 3, around=False, tagged=tagged) for n in counts])
    assert (found.ruled, found.unruled) == (1.0, {})
    for n in (2 * counts[-1], 4 * counts[-1]):
        assert texts(sound(found.application, n)) == texts(exchanged(n, 3, around=False, tagged=tagged))


def with_edges(n: int, lengths: tuple[int, int, int], paired: bool) -> Trace:
    """Messages to all that are next along one side or two, each received and then sent, or first all received."""
    sides = balanced(n, 3)
    ranks = {place: rank for rank, place in enumerate(product(*map(range, sides)))}

    def turn(at: tuple[int, ...]) -> list[Action]:
        ways = [way for way in product((-1, 0, 1), repeat=3) if 0 < sum(map(abs, way)) <= 2]
        messages = []
        for way in ways:
            to = ranks.get(tuple(place + by for place, by in zip(at, way, strict=True)))
            size = 8 * prod(1 if by else length // side for by, length, side in zip(way, lengths, sides, strict=True))
            messages += [(to, 3, size, 6)] if to is not None else []
        calls: list[list[Action]] = [[("irecv", each), ("isend", each)] for each in messages]
        names = [*chain.from_iterable(calls)] if paired else [*chain.from_iterable(zip(*calls, strict=True))]
        return [("compute", (1e8 / n,)), *names, ("waitall", (len(names),))]

    return trace_of({rank: [("init", ()), *3 * turn(at), ("finalize", ())] for at, rank in ranks.items()})


@pytest.mark.parametrize("paired", [True, False])
def test_edges_that_are_as_long_in_all_runs_follow_those_along_other_sides(paired: bool) -> None:
    # 8, 16 and 32 processes are 2, 2, 2, 4, 2, 2 and 4, 4, 2: what is sent along both of the first two never changes.
    lengths = (576, 192, 384)
    found = fit([with_edges(n, lengths, paired) for n in (8, 16, 32)])
    assert (found.ruled, found.unruled) == (1.0, {})
    for n in (64, 128):
        assert texts(sound(found.application, n)) == texts(with_edges(n, lengths, paired))


def one_after_another(n: int) -> Trace:
    """Each process exchanges with one neighbour after another, corners included, pieces of an edge or of a cell."""
    sides = balanced(n, 2)
    places = [*product(*map(range, sides))]

    def turn(rank: int) -> list[Action]:
        calls: list[Action] = []
        for way in product((-1, 0, 1), repeat=2):
            size = 8 * prod(1 if by else 48 // side for by, side in zip(way, sides, strict=True))
            for name, sign in (("irecv", -1), ("isend", 1)):
                peer = tuple(at + sign * by for at, by in zip(places[rank], way, strict=True))
                calls += [(name, (places.index(peer), 7, size, 6))] if any(way) and peer in places else []
        return [*calls, ("waitall", (len(calls),)), ("compute", (1e7 / n,))]

    return trace_of({rank: [("init", ()), *turn(rank), ("finalize", ())] for rank in range(n)})


def test_sizes_that_differ_at_every_second_neighbour_are_told_by_their_directions() -> None:
    # Of three messages upwards those to the corners are alike: a rule of every second step, as long as in few runs.
    found = fit([one_after_another(n) for n in (8, 16, 32)])
    assert (found.ruled, found.unruled) == (1.0, {})
    for n in (64, 128):
        assert texts(sound(found.application, n)) == texts(one_after_another(n))


def test_messages_round_two_sides_are_right_where_the_next_rank_is_a_row_and_a_step_away() -> None:
    # At the end of a row that goes round, the next rank is the neighbour across a corner.
    program = partial(exchanged, dimensions=3, around=(True, False, True))
    found = fit([program(n) for n in (12, 24, 48)])
    assert (found.ruled, found.unruled) == (1.0, {})
    assert texts(sound(found.application, 96)) == texts(program(96))
