"""Roots of operations in the rows and columns of a grid, which change from step to step of a loop."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from metasched.signature.equations.topologies import balanced
from metasched.signature.rules.expanding import expanded
from metasched.signature.rules.fitting import fit
from metasched.signature.rules.open_choices import open_choices
from metasched.signature.traces.trace import Trace, trace_of
from tests.signature.rules.test_open_partners import lines

#: The place of a root in a row or column, by the step, of how many, and the length.
Root = Callable[[int, int, int], int]


def block_owner(step: int, steps: int, length: int) -> int:
    """Steps are dealt out in blocks, as the panels of a matrix in SUMMA."""
    return step * length // steps


def anywhere(step: int, steps: int, length: int) -> int:
    return (step * step + step // 3) % length


def multiplied(n: int, steps: int, root: Root, both: bool = True) -> Trace:
    """In each step the owner of a panel sends it along its row, and along its column."""
    rows, columns = balanced(n, 2)
    actions: dict[int, list[tuple[str, tuple[float, ...]]]] = {}
    for rank in range(n):
        row, column = divmod(rank, columns)
        made: list[tuple[str, tuple[float, ...]]] = [("init", ())]
        for step in range(steps):
            made.append(("bcast_on", (columns, 9600, row * columns + root(step, steps, columns), 6)))
            if both:
                made.append(("bcast_on", (rows, 4800, root(step, steps, rows) * columns + column, 6)))
        actions[rank] = [*made, ("finalize", ())]
    return trace_of(actions)


@pytest.mark.parametrize("both", [True, False])
def test_roots_are_the_owners_of_blocks_along_sides_that_are_longer_than_in_any_run(both: bool) -> None:
    application = fit([multiplied(n, 24, block_owner, both) for n in (4, 8, 16)]).application
    for n in (32, 64):
        assert lines(expanded(application, n)) == lines(multiplied(n, 24, block_owner, both))
    assert not any("steps of a loop" in choice.line for choice in open_choices(application, [64]))


def test_roots_that_follow_a_rule_of_each_step_are_open_along_sides_of_another_length() -> None:
    application = fit([multiplied(n, 10, anywhere, False) for n in (4, 8, 16)]).application
    assert lines(expanded(application, 16)) == lines(multiplied(16, 10, anywhere, False))
    assert lines(expanded(application, 64)) != lines(multiplied(64, 10, anywhere, False))
    assert [choice.line for choice in open_choices(application, [64])] == [
        "the runs do not tell which places along side 1 of grid 01 the steps of a loop are about where it is not "
        "2 or 4 long, a run of 9 processes would decide"
    ]
    assert open_choices(application, [16]) == []
