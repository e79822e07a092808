"""Which run a full window gives up: beside the rule, spelled out with lists."""

from __future__ import annotations

import math
import pickle
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasched.predictors.memory.window import RunWindow, measured, observations
from metasched.records import Run


def run(n: float, p: int = 1, user: str = "", time: float = 1.0) -> Run:
    return Run("a", "c", n, p, 1.0, 90.0, time, extra={"user": user} if user else {})


def apart(one: Run, other: Run) -> float:
    """How many times as large the larger of two is."""
    small, large = sorted((one.problem_size, other.problem_size))
    return large / small


def by_the_rule(runs: list[Run], capacity: int) -> list[Run]:
    """Whoever has most runs gives one up, of the processor count of which there are most.

    In turn the oldest, and of the older half the one whose size has the nearest other.
    """
    kept: list[Run] = []
    for number, new in enumerate(runs, 1):
        kept.append(new)
        if len(kept) <= capacity:
            continue
        users = Counter(each.user for each in kept)
        often = [user for user, count in users.items() if count == max(users.values())]
        assert len(often) == 1, "made so that no two users have as many"
        counts = Counter(each.processors for each in kept if each.user == often[0])
        most = [count for count, many in counts.items() if many == max(counts.values())]
        assert len(most) == 1, "nor two processor counts"
        share = [each for each in kept if (each.user, each.processors) == (often[0], most[0])]
        gone = share[0]
        if number % 2 == 0:
            near = {
                id(each): min((apart(each, other) for other in share if other is not each), default=math.inf)
                for each in share
            }
            gone = min(share[: max(1, len(share) // 2)], key=lambda each: near[id(each)])
        kept = [each for each in kept if each is not gone]
    return kept


@given(st.lists(st.floats(100.0, 1e4), min_size=1, max_size=40, unique=True), st.integers(1, 12))
def test_of_runs_alike_the_oldest_and_the_most_crowded_go_in_turn(sizes: list[float], capacity: int) -> None:
    runs = [run(size) for size in sizes]
    assert [each.problem_size for each in RunWindow(runs, capacity)] == [
        each.problem_size for each in by_the_rule(runs, capacity)
    ]


def test_who_has_most_runs_gives_up_and_of_the_processors_with_most() -> None:
    """Five of ann's, of which three on two processors; two of bob's."""
    runs = [run(100.0 * k, p, user) for k, (p, user) in enumerate(
        [(2, "ann"), (1, "ann"), (2, "bob"), (2, "ann"), (2, "bob"), (2, "ann"), (4, "ann")], 1
    )]  # fmt: skip
    window = RunWindow(runs, 6)
    assert [each.problem_size for each in window] == [200.0, 300.0, 400.0, 500.0, 600.0, 700.0]
    assert window.users == {"ann", "bob"}
    assert (len(window), window.seen) == (6, 7)
    assert [each.problem_size for each in RunWindow([*runs, run(800.0, 2, "ann")], 6)] == [
        200.0, 300.0, 500.0, 600.0, 700.0, 800.0,
    ]  # fmt: skip
    window = RunWindow([run(1.0, 1, "bob"), *(run(9.0, 1, "ann") for _ in range(3))], 2)
    assert window.users == {"bob", "ann"}
    assert RunWindow([run(1.0, 1, "bob"), run(2.0, 1, "ann")], 1).users in ({"ann"}, {"bob"})


@pytest.mark.parametrize(("seen", "counted"), [(0, 2), (1, 2), (2, 2), (9, 9)])
def test_runs_that_were_seen_before_count(seen: int, counted: int) -> None:
    window = RunWindow([run(1.0), run(2.0)], seen=seen)
    assert window.seen == counted
    window.add(run(3.0))
    assert window.seen == counted + 1


def test_runs_before_a_number_are_slowed_down() -> None:
    window = RunWindow([run(float(k), p, time=10.0) for k, p in enumerate((1, 2, 1, 2), 1)], seen=10)
    window.slow_down(1.5, before=8)
    assert [each.execution_time for each in window] == [15.0, 15.0, 10.0, 10.0]
    window.slow_down(2.0, before=6)
    assert [each.execution_time for each in window] == [15.0, 15.0, 10.0, 10.0]


def test_columns_of_runs_have_idle_loads_where_none_was_measured_or_say_so() -> None:
    runs = [run(100.0, 2, time=7.0), Run("a", "c", 200.0, 4, math.nan, math.nan, 9.0)]
    filled, plain = observations(runs), measured(runs)
    for found in (filled, plain):
        assert (found.problem_size.tolist(), found.processors.tolist(), found.time.tolist()) == (
            [100.0, 200.0], [2, 4], [7.0, 9.0],
        )  # fmt: skip
    assert (filled.cpu.tolist(), filled.bw.tolist()) == ([1.0, 1.0], [90.0, 1000.0])
    assert (plain.cpu[0], plain.bw[0]) == (1.0, 90.0)
    assert math.isnan(plain.cpu[1])
    assert math.isnan(plain.bw[1])
    assert len(observations([])) == len(measured([])) == 0


def test_a_window_holds_no_more_after_many_users_than_after_few() -> None:
    sizes = []
    for users in (20, 2000):
        window = RunWindow(capacity=8)
        for number in range(users):
            window.add(run(9.0, user=f"u{number}"))
        assert window.users == {each.user for each in window}
        sizes.append(len(pickle.dumps(window)))
    assert sizes[1] < 1.1 * sizes[0]
