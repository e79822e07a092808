"""Rules that hold in all runs and in no larger one: the part that they explain is said to follow none."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from metasched.signature.rules.expanding import sound
from metasched.signature.rules.fitting import fit
from metasched.signature.traces.trace import Trace, trace_of

Action = tuple[str, tuple[float, ...]]
Program = Callable[[int, int], list[Action]]


def from_the_fourth(rank: int, n: int) -> list[Action]:
    """A broadcast along a binomial tree that starts at process 3."""
    place = (rank - 3) % n
    found: list[Action] = []
    bit = 1
    while bit < n and not place & bit:
        bit *= 2
    if place:
        found.append(("recv", ((rank - bit) % n, 1, 4000, 6)))
    while (bit := bit // 2) > 0:
        found += [("send", ((rank + bit) % n, 1, 4000, 6))] * (place + bit < n)
    return found


def leaders(rank: int, n: int) -> list[Action]:
    """Four processes each give a leader what they have; the leaders give it to the first of them."""
    if rank % 4:
        return [("send", (rank - rank % 4, 1, 500, 6))]
    own: list[Action] = [("recv", (rank + other, 1, 500, 6)) for other in (1, 2, 3)]
    if rank:
        return [*own, ("send", (0, 2, 2000, 6))]
    return own + [("recv", (other, 2, 2000, 6)) for other in range(4, n, 4)]


def run(program: Program, n: int) -> Trace:
    """Four turns with some work and a sum."""
    turns = {rank: [("compute", (1e8 / n,)), *program(rank, n), ("allreduce", (1, 0, 0))] for rank in range(n)}
    return trace_of({rank: [("init", ()), *4 * turn, ("finalize", ())] for rank, turn in turns.items()})


@pytest.mark.parametrize("counts", [(16, 32, 64), (12, 24, 48)])
@pytest.mark.parametrize("program", [from_the_fourth, leaders])
def test_rules_whose_messages_lack_an_end_in_larger_runs_are_none(program: Program, counts: tuple[int, ...]) -> None:
    found = fit([run(program, n) for n in counts])
    assert {each.where for each in found.irregular} <= {"between init and allreduce", "between allreduce and allreduce"}
    assert found.irregular
    assert found.ruled < 0.7
    assert len(sound(found.application, 4 * counts[-1]).processes) == 4 * counts[-1]


def test_roles_that_only_some_counts_have_stay_roles() -> None:
    def swapped(rank: int, n: int) -> list[Action]:
        partner = rank + 1 if rank % 2 == 0 else rank - 1
        return [("sendRecv", (64, partner, 64, partner, 6, 6))] if partner < n else []

    # Of an odd number of processes the last has no partner, and no run was of an even one.
    found = fit([run(swapped, n) for n in (11, 23, 47)])
    assert found.ruled == 1.0
    assert [*map(len, sound(found.application, 99).processes)] == [14] * 98 + [10]
