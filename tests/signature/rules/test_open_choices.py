"""What runs leave open between two rules: the application by the other rule, and intervals that hold both."""

from __future__ import annotations

import pytest

from metasched.signature.equations.topologies import TOPOLOGIES, balanced
from metasched.signature.rules.expanding import sound
from metasched.signature.rules.fitting import fit
from metasched.signature.rules.open_choices import open_choices, other_applications
from metasched.signature.times.by_blocks import by_blocks
from metasched.signature.times.prediction import predictions
from metasched.signature.traces.trace import Trace, trace_of
from tests.signature.rules.test_open_partners import POWERS, Action, lines, run, started_prefix_sums, waited_each_time
from tests.signature.times.test_prediction import HERE

SUM: Action = ("allreduce", (1, 0, 0))


def rows_sent_on(n: int, last: int = 0) -> Trace:
    """Each process sends to the next one along the first side of a grid a part of a row; the other side is ``last``."""
    last = last or balanced(n, 2)[-1]
    size = 1_600_000 // last
    call: dict[int, Action] = {
        rank: ("sendRecv", (size, (rank + last) % n, size, (rank - last) % n, 6, 6)) for rank in range(n)
    }
    turns = {rank: [("compute", (1e7 / n,)), call[rank], ("allreduce", (1, 0, 0))] for rank in range(n)}
    return trace_of({rank: [("init", ()), *4 * turn, ("finalize", ())] for rank, turn in turns.items()})


def test_an_interval_holds_the_times_on_both_grids_that_square_runs_do_not_tell_apart() -> None:
    application = fit([rows_sent_on(n) for n in (4, 16, 64)]).application
    assert not open_choices(application, [256])
    (choice,) = open_choices(application, [128])
    other = choice.other(application)
    assert other is not None
    both = [lines(sound(each, 128)) for each in (application, other)]
    assert sorted(both) == sorted(lines(rows_sent_on(128, last)) for last in (8, 16))
    engines = [by_blocks(each, HERE) for each in (application, other)]
    measured = {n: engines[0](n).time for n in (4, 16, 64)}
    (alone,) = predictions(engines[0], "blocks", [128], measured, True)
    (found,) = predictions(engines[0], "blocks", [128], measured, True, others=engines[1:])
    times = [each(128).time for each in engines]
    assert max(times) > 1.2 * min(times)
    assert not all(alone.interval[0] <= time <= alone.interval[1] for time in times)
    assert all(found.interval[0] < time < found.interval[1] for time in times)
    assert (found.execution_time, found.phases) == (alone.execution_time, alone.phases)


def gone_round(n: int, turns: int) -> Trace:
    """So often each process hands on what it has round the ring, and all add up."""
    calls = {rank: [("sendRecv", (8, (rank + 1) % n, 8, (rank - 1) % n, 6, 6)), SUM] for rank in range(n)}
    return trace_of({rank: [("init", ()), *turns * each, ("finalize", ())] for rank, each in calls.items()})


@pytest.mark.parametrize(
    ("times", "more", "said"),
    [(1, 0, "P1 (grid 01) or doublings(n)"), (2, 1, "2 P1 + 1 (grid 01) or 2 doublings(n) + 1")],
)
def test_turns_are_open_where_a_side_is_as_long_as_processes_can_be_doubled(times: int, more: int, said: str) -> None:
    application = fit([gone_round(n, times * (n.bit_length() - 1) + more) for n in (6, 12, 24)]).application
    assert not open_choices(application, [24])
    (choice,) = open_choices(application, [48])
    assert f"whether loops run {said} times: the first is taken, a run of 5 processes would decide" in choice.line
    other = choice.other(application)
    assert other is not None
    found = [lines(sound(each, 48)) for each in (application, other)]
    assert found == [lines(gone_round(48, times * turns + more)) for turns in (TOPOLOGIES["grid 01"](48)[1], 5)]


def test_turns_are_open_where_half_the_processes_are_half_the_largest_power_of_two() -> None:
    application = fit([gone_round(n, n // 2) for n in (4, 9, 16)]).application
    assert not [each for each in open_choices(application, [64]) if "loops run" in each.line]
    (choice,) = (each for each in open_choices(application, [36]) if "loops run" in each.line)
    assert "loops run 0.5 power(n) (grid 01) or 0.5 n times" in choice.line
    assert choice.line.endswith("a run of 25 processes would decide")
    other = choice.other(application)
    assert other is not None
    assert lines(sound(other, 36)) == lines(gone_round(36, 18))


def a_quarter_on(n: int) -> Trace:
    """Each process hands on what it has to the one a quarter of all further round the ring."""
    calls: dict[int, Action] = {
        rank: ("sendRecv", (8, (rank + n // 4) % n, 8, (rank - n // 4) % n, 6, 6)) for rank in range(n)
    }
    return trace_of({rank: [("init", ()), call, SUM, ("finalize", ())] for rank, call in calls.items()})


def test_distances_are_open_where_a_quarter_of_the_processes_is_one_of_the_largest_power_of_two() -> None:
    application = fit([a_quarter_on(n) for n in (4, 9, 16)]).application
    assert not [each for each in open_choices(application, [64]) if "away" in each.line]
    (choice,) = (each for each in open_choices(application, [36]) if "away" in each.line)
    assert choice.line.endswith("0.25 power(n) or 0.25 n away: the first is taken, a run of 25 processes would decide")
    assert lines(sound(application, 36)) != lines(a_quarter_on(36))
    other = choice.other(application)
    assert other is not None
    assert lines(sound(other, 36)) == lines(a_quarter_on(36))


def test_turns_are_those_of_a_side_along_which_messages_go() -> None:
    runs = []
    for n in (6, 12, 24):
        rows, side = balanced(n, 2)
        call: dict[int, Action] = {
            rank: ("sendRecv", (8, (rank + side) % n, 8, (rank - side) % n, 6, 6)) for rank in range(rows * side)
        }
        runs.append(
            trace_of({rank: [("init", ()), *side * [each, SUM], ("finalize", ())] for rank, each in call.items()})
        )
    assert not open_choices(fit(runs).application)


def test_the_other_choice_of_waits_that_no_run_put_to_the_test_waits_for_messages_only() -> None:
    application = fit([run(waited_each_time, n) for n in POWERS]).application
    (choice,) = open_choices(application, [200])
    other = choice.other(application)
    assert other is not None
    found = [lines(sound(each, 200)) for each in (application, other)]
    assert found == [lines(run(each, 200)) for each in (waited_each_time, started_prefix_sums)]


def test_a_root_is_open_where_half_the_processes_are_half_the_largest_power_of_two() -> None:
    def sent_from_the_middle(n: int) -> Trace:
        return trace_of({rank: [("init", ()), ("bcast", (80, n // 2, 6)), ("finalize", ())] for rank in range(n)})

    application = fit([sent_from_the_middle(n) for n in (4, 9, 16)]).application
    assert not [each for each in open_choices(application, [32]) if "power(n)" in each.line]
    made = [lines(sound(each, 25)) for each in (application, *other_applications(application, [25]))]
    assert lines(sent_from_the_middle(25)) in made
    assert len(made) == 2


@pytest.mark.parametrize("piece", [1, 4])
def test_rounding_is_open_where_a_share_stands_beside_a_step(piece: int) -> None:
    def shared(n: int) -> Trace:
        sizes = (8 * (1000 // n), piece * (1000 // n))
        calls: list[Action] = [("bcast", (size, root, 6)) for root, size in enumerate(sizes)]
        return trace_of({rank: [("init", ()), *calls, ("finalize", ())] for rank in range(n)})

    application = fit([shared(n) for n in (2, 4, 8)]).application
    assert not open_choices(application, [8])
    assert any("rounded" in each.line for each in open_choices(application, [16]))


def test_a_share_of_all_processes_comes_before_one_of_all_but_the_first() -> None:
    def summed(n: int) -> Trace:
        calls: list[Action] = [("reduce", (100 // n, 0, 1, 6)), SUM]
        return trace_of({rank: [("init", ()), *4 * calls, ("finalize", ())] for rank in range(n)})

    application = fit([summed(n) for n in (4, 8, 16)]).application
    assert lines(sound(application, 32)) == lines(summed(32))
