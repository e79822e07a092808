"""Rules that hold in all runs and in no larger one: the part that they explain is said to follow none."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from itertools import product

import pytest

from metasched.signature.equations.topologies import balanced
from metasched.signature.rules.expanding import expanded, lines, sound
from metasched.signature.rules.fitting import fit
from metasched.signature.traces.trace import Trace, trace_of

Action = tuple[str, tuple[float, ...]]
Program = Callable[[int, int], list[Action]]


def from_anywhere(rank: int, n: int) -> list[Action]:
    """A broadcast along a binomial tree that starts at a process drawn by lot."""
    root = random.Random(n).randrange(1, n)
    place = (rank - root) % n
    found: list[Action] = []
    bit = 1
    while bit < n and not place & bit:
        bit *= 2
    if place:
        found.append(("recv", ((rank - bit) % n, 1, 4000, 6)))
    while (bit := bit // 2) > 0:
        found += [("send", ((rank + bit) % n, 1, 4000, 6))] * (place + bit < n)
    return found


def leaders(size: int) -> Program:
    """In groups of processes, the others give their first one what they have; those give it to the first of all."""

    def program(rank: int, n: int) -> list[Action]:
        if rank % size:
            return [("send", (rank - rank % size, 1, 500, 6))]
        own: list[Action] = [("recv", (rank + other, 1, 500, 6)) for other in range(1, size)]
        if rank:
            return [*own, ("send", (0, 2, 2000, 6))]
        return own + [("recv", (other, 2, 2000, 6)) for other in range(size, n, size)]

    return program


def run(program: Program, n: int) -> Trace:
    """Four turns with some work and a sum."""
    turns = {rank: [("compute", (1e8 / n,)), *program(rank, n), ("allreduce", (1, 0, 0))] for rank in range(n)}
    return trace_of({rank: [("init", ()), *4 * turn, ("finalize", ())] for rank, turn in turns.items()})


@pytest.mark.parametrize("counts", [(16, 32, 64), (12, 24, 48)])
def test_rules_whose_messages_lack_an_end_in_larger_runs_are_none(counts: tuple[int, ...]) -> None:
    found = fit([run(from_anywhere, n) for n in counts])
    assert {each.where for each in found.irregular} <= {"between init and allreduce", "between allreduce and allreduce"}
    assert found.irregular
    assert found.ruled < 0.7
    assert len(sound(found.application, 4 * counts[-1]).processes) == 4 * counts[-1]


@pytest.mark.parametrize(("size", "counts"), [(4, (12, 24, 48)), (8, (16, 32, 64)), (4, (16, 32, 64))])
def test_roles_that_explain_larger_runs_are_taken_instead(size: int, counts: tuple[int, ...]) -> None:
    # Other grids tell the groups apart in these runs, too, but their sides are others in larger ones.
    program, larger = leaders(size), 4 * counts[-1]
    found = fit([run(program, n) for n in counts])
    assert (found.ruled, found.unruled) == (1.0, {})
    made, true = sound(found.application, larger), run(program, larger)
    assert [[*map(made.table.text, process.tolist())] for process in made.processes] == [
        [*map(true.table.text, process.tolist())] for process in true.processes
    ]


def test_roles_that_only_some_counts_have_stay_roles() -> None:
    def swapped(rank: int, n: int) -> list[Action]:
        partner = rank + 1 if rank % 2 == 0 else rank - 1
        return [("sendRecv", (64, partner, 64, partner, 6, 6))] if partner < n else []

    # Of an odd number of processes the last has no partner, and no run was of an even one.
    found = fit([run(swapped, n) for n in (11, 23, 47)])
    assert found.ruled == 1.0
    assert [*map(len, sound(found.application, 99).processes)] == [14] * 98 + [10]


def halo(rank: int, n: int, apart: int) -> list[Action]:
    """Messages to neighbours in three dimensions, along so many of them at once, those of one call without tags."""
    sides = balanced(n, 3)
    places = [*product(*map(range, sides))]
    found: list[Action] = []
    for way in product((-1, 0, 1), repeat=3):
        to = tuple(place + by for place, by in zip(places[rank], way, strict=True))
        if 0 < sum(map(abs, way)) <= apart and to in places:
            found.append(("sendRecv", (80, places.index(to), 80, places.index(to), 6, 6)))
    return found


def test_roles_that_no_three_runs_show_are_not_believed() -> None:
    # Four columns tell the processes of these runs apart as three sides do, but none stands at one place in all runs.
    program = partial(halo, apart=2)
    found = fit([run(program, n) for n in (4, 8, 16)])
    right = [*lines(expanded(found.application, 32))] == [*lines(run(program, 32))]
    assert right or [each.calls for each in found.irregular if "sendRecv" in each.calls]
    assert right or found.ruled < 0.2
