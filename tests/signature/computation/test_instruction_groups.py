"""Computation that differs by rank within a role: groups keep their place as n grows, the rest is named."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasched.records import InputError
from metasched.signature.computation.instruction_groups import ALIKE, Placement, grouped, placed
from metasched.signature.computation.instruction_table import drifting, instruction_table
from metasched.signature.rules.application import Application
from metasched.signature.rules.expanding import expanded
from metasched.signature.rules.fits import Fit
from metasched.signature.rules.fitting import fit
from metasched.signature.traces.phases import Machine
from metasched.signature.traces.trace import Trace, trace_of

COUNTS = (16, 32, 64)
Amount = Callable[[int, int], float]


def run_of(amount: Amount, n: int) -> Trace:
    turns = {rank: [("compute", (float(f"{amount(rank, n):.6g}"),)), ("allreduce", (1, 0, 0))] for rank in range(n)}
    return trace_of({rank: [("init", ()), *(10 * turns[rank]), ("finalize", ())] for rank in range(n)})


def rules_of(amount: Amount, timed: bool = False) -> Fit:
    return fit([run_of(amount, n) for n in COUNTS], timed)


def amounts_of(trace: Trace) -> list[float]:
    return [trace.table.numbers[int(process[1])][0] for process in trace.processes]


def uneven(rank: int, n: int) -> float:
    """Some amount between half and one and a half of the mean, another one in each process of each run."""
    return float(np.random.default_rng([n, rank]).uniform(0.5, 1.5)) * 1e9 / n


@pytest.mark.parametrize(
    "amount",
    [
        lambda rank, n: (3e9 if rank < n // 4 else 1e9) / n,
        lambda rank, n: (9e9 if rank == 0 else 1e9) / n,
        lambda rank, n: (5e9 if rank >= n - 2 else 1e9) / n,
        lambda rank, n: (3e9 if rank % 4 == 0 else 1e9) / n,
        lambda rank, n: 2e6 if 3 * rank < n else 1e9 / n,
    ],
    ids=["a quarter", "the first", "the last two", "one of four", "a third that stays"],
)
@pytest.mark.parametrize("timed", [False, True])
def test_groups_of_processes_keep_their_place(amount: Amount, timed: bool) -> None:
    found = rules_of(amount, timed)
    assert (found.ruled, found.unruled) == (1.0, {})
    for n in (128, 240):
        assert amounts_of(expanded(found.application, n)) == pytest.approx(amounts_of(run_of(amount, n)), rel=1e-3)


def test_amounts_that_grow_along_the_ranks_do_so_at_any_count() -> None:
    found = rules_of(lambda rank, n: (1.0 + rank / n) * 1e9 / n)
    assert found.ruled == 1.0
    made = amounts_of(expanded(found.application, 256))
    assert made == pytest.approx([(1.0 + rank / 256) * 1e9 / 256 for rank in range(256)], rel=0.05)


def test_amounts_without_rule_are_named_with_their_share_of_the_time() -> None:
    found = rules_of(uneven)
    assert found.unruled == {"compute": pytest.approx(5 / 11, rel=0.05)}
    assert found.times["compute"] > 0.9
    assert found.ruled == pytest.approx(6 / 11, rel=0.05)


def test_amounts_without_rule_keep_their_mean_and_spread() -> None:
    made = 256 / 1e9 * np.array(amounts_of(expanded(rules_of(uneven).application, 256)))
    assert made.mean() == pytest.approx(1.0, rel=0.05)
    assert made.std() == pytest.approx(1.0 / np.sqrt(12), rel=0.15)


def test_groups_come_back_from_their_document() -> None:
    rules = rules_of(lambda rank, n: (3e9 if rank < n // 4 else 1e9) / n).application
    again = Application.of(rules.as_dict())
    assert amounts_of(expanded(again, 128)) == amounts_of(expanded(rules, 128))


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "else"},
        {"topology": "none"},
        {"dimension": 1},
        {"groups": [2, 0]},
        {"groups": []},
        {"ends": []},
        {"ends": 3},
    ],
)
def test_placements_of_another_form_are_refused(change: dict[str, object]) -> None:
    sound = placed({n: np.arange(n) // (n // 2) for n in COUNTS}, {n: np.arange(n) for n in COUNTS}, ["line"])
    assert sound is not None
    assert Placement.of(sound.as_dict(), 2) == sound
    with pytest.raises(InputError, match="placement"):
        Placement.of({**sound.as_dict(), **change}, 2)


@given(st.lists(st.floats(1.0, 1e6), min_size=1, max_size=40))
def test_processes_of_a_group_are_alike(amounts: list[float]) -> None:
    of = np.array(amounts)
    groups = grouped(of)
    ranges = [of[groups == group] for group in range(int(groups.max()) + 1)]
    assert all(each.min() >= ALIKE * each.max() for each in ranges)
    assert all(one.max() < other.min() for one, other in pairwise(ranges))


def test_the_table_has_the_groups_of_each_phase_and_says_what_drifts() -> None:
    amount: Amount = lambda rank, n: (3e9 if rank < n // 4 else 1e9) / n  # noqa: E731
    rules = rules_of(amount).application
    rows = [row for row in instruction_table(expanded(rules, 128), Machine()) if row.weight > 1]
    assert [(row.processes, row.first) for row in rows] == [(96, 32), (32, 0)]
    assert [row.total for row in rows] == pytest.approx([10 * 1e9 * 96 / 128, 10 * 3e9 * 32 / 128], rel=1e-3)
    tables = {n: instruction_table(run_of(amount, n), Machine()) for n in COUNTS}
    assert drifting(tables) == []
    grown = {n: instruction_table(run_of(lambda rank, n: 1e6, n), Machine()) for n in COUNTS}
    assert [phase for phase, _, _ in drifting(grown)] == [row.phase for row in grown[16]]
