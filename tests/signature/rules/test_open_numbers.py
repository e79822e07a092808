"""Amounts of data that three runs tell by one term, and those that need two, which others of two may be as well."""

from __future__ import annotations

from collections.abc import Callable
from math import log2

import pytest

from metasched.signature.equations.expressions import Expression
from metasched.signature.equations.topologies import balanced
from metasched.signature.rules.attributes import Attribute
from metasched.signature.rules.expanding import lines, sound
from metasched.signature.rules.fitting import fit
from metasched.signature.rules.open_choices import open_rules
from metasched.signature.rules.open_numbers import other_numbers
from metasched.signature.traces.trace import Trace, trace_of

Action = tuple[str, tuple[float, ...]]
BYTE = 6
Size = Callable[[int, int], int]


def reduced(n: int, size: Size) -> Trace:
    """All processes reduce as much as each has, by the sides of a grid of two dimensions."""
    turn: list[Action] = [("compute", (1e8 / n,)), ("allreduce", (8 * size(*balanced(n, 2)), 1, BYTE))]
    return trace_of({rank: [("init", ()), *3 * turn, ("finalize", ())] for rank in range(n)})


def shifted(n: int, size: Size) -> Trace:
    """Each process sends to the next one in its row."""
    rows, columns = balanced(n, 2)
    calls: dict[int, Action] = {}
    for rank in range(n):
        row, at = divmod(rank, columns)
        to, back = (row * columns + (at + by) % columns for by in (1, -1))
        calls[rank] = ("sendRecv", (8 * size(rows, columns), to, 8 * size(rows, columns), back, BYTE, BYTE))
    return trace_of({rank: [("init", ()), *3 * [("compute", (1e8 / n,)), call], ("finalize", ())]
                     for rank, call in calls.items()})  # fmt: skip


TWO_TERMS: dict[str, Size] = {
    "with borders": lambda a, b: (960 // a + 2) * (960 // b + 2),
    "perimeter": lambda a, b: 2 * (960 // a) + 2 * (960 // b),
    "block and edge": lambda a, b: (960 // a) * (960 // b) + 3 * (960 // a),
    "sides": lambda a, b: 3 * a + 2 * b,
    "rounds": lambda a, b: 960 // (a * b) * int(log2(a * b)),
}


@pytest.mark.parametrize("name", TWO_TERMS)
@pytest.mark.parametrize("program", [reduced, shifted])
@pytest.mark.parametrize("counts", [(4, 8, 16), (8, 16, 32)])
def test_amounts_that_few_runs_tell_are_right_or_open(
    name: str, program: Callable[[int, Size], Trace], counts: tuple[int, ...]
) -> None:
    found = fit([program(n, TWO_TERMS[name]) for n in counts])
    for n in (2 * counts[-1], 4 * counts[-1]):
        right = [*lines(sound(found.application, n))] == [*lines(program(n, TWO_TERMS[name]))]
        assert right or found.ruled < 1.0 or [line for line in open_rules(found.application, [n]) if " from " in line]


ONE_TERM: dict[str, Size] = {
    "block": lambda a, b: (960 // a) * (960 // b),
    "edge": lambda a, b: 960 // b,
    "widest tile": lambda a, b: (960 // a) ** 2,
}


@pytest.mark.parametrize("name", ONE_TERM)
def test_amounts_of_one_term_in_the_grid_of_messages_are_right_and_not_open(name: str) -> None:
    found = fit([shifted(n, ONE_TERM[name]) for n in (8, 16, 32)])
    assert (found.ruled, found.unruled) == (1.0, {})
    assert not [line for line in open_rules(found.application) if "of sendRecv from" in line]
    for n in (64, 128):
        assert [*lines(sound(found.application, n))] == [*lines(shifted(n, ONE_TERM[name]))]


def test_tiles_as_wide_as_long_are_right_where_no_messages_tell_the_grid() -> None:
    # Two lengths of a side: a share of some length and something more would come to any two amounts.
    found = fit([reduced(n, ONE_TERM["widest tile"]) for n in (4, 8, 16)])
    for n in (32, 64):
        assert [*lines(sound(found.application, n))] == [*lines(reduced(n, ONE_TERM["widest tile"]))]


def test_a_fourth_run_decides_between_sums_of_two_terms() -> None:
    # 96 a + 64 b on 2 x 2, 4 x 2 and 4 x 4 processes.
    rule = Attribute("grid 01", expression=Expression(0.0, ((96.0, "P0"), (64.0, "P1"))))
    three, five = ({str(each) for each in other_numbers(rule, counts, ["grid 01"])}
                   for counts in ((4, 8, 16), (4, 6, 8, 16, 24)))  # fmt: skip
    assert len(three) > len(five)
