"""When a job moves: laws of the rule, and whole decisions on clusters whose loads are known."""

from __future__ import annotations

import contextlib
import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from known_model import Known

from metasched.placement.clusters.constraints import Constraints
from metasched.placement.clusters.queue_wait import QueueWait
from metasched.placement.clusters.state import ClusterState
from metasched.placement.loads.counted import Loads
from metasched.placement.moving.decision import Costs, Decision, Outlook, decide, done_until
from metasched.placement.moving.elsewhere import Mover, RunningAdvice, advise_running, vacated
from metasched.records import InputError, Settings

MODEL = Known(work=1.0, traffic=10.0)
TIMES = st.floats(1.0, 1e6)
FRACTIONS = st.floats(0.0, 0.9)
SECONDS = st.floats(0.0, 1e5)


@given(FRACTIONS, TIMES, TIMES, SECONDS)
def test_a_job_moves_only_where_it_is_done_sooner(done: float, here: float, there: float, cost: float) -> None:
    found = decide(done, Outlook(here, (0.9, 1.1)), Outlook(there, (0.9, 1.1)), Costs(cost))
    assert found.stay == pytest.approx((1 - done) * here)
    assert not found.move or (found.leave is not None and found.leave < found.stay)


@given(FRACTIONS, TIMES, TIMES, SECONDS, SECONDS)
def test_dearer_moves_are_never_made_where_cheaper_ones_are_not(
    done: float, here: float, there: float, cost: float, more: float
) -> None:
    cheap, dear = (decide(done, Outlook(here), Outlook(there), Costs(each)) for each in (cost, cost + more))
    assert cheap.move or not dear.move


@given(FRACTIONS, TIMES, TIMES, st.floats(0.1, 1.0), st.floats(0.1, 1.0))
def test_more_doubt_never_makes_a_job_move(done: float, here: float, there: float, one: float, two: float) -> None:
    low, high = sorted((one, two))
    sure, unsure = (
        decide(done, Outlook(here, (each, 1 / each)), Outlook(there, (each, 1 / each)), Costs(1.0), same_model=False)
        for each in (high, low)
    )
    assert sure.move or not unsure.move


def test_a_sure_gain_that_is_a_small_part_of_what_is_left_moves_no_job() -> None:
    found = decide(0.0, Outlook(1000.0), Outlook(600.0), Costs())
    assert (found.move, found.gain, found.doubt) == (False, 400.0, 0.0)
    assert found.why == "the move would save 40% of the remaining time, and is worthwhile from 50% on"
    assert decide(0.0, Outlook(1000.0), Outlook(450.0), Costs()).move


def test_a_model_of_another_platform_is_as_uncertain_as_its_upper_end() -> None:
    here, there = Outlook(1000.0), Outlook(400.0, (0.9, 1.5))
    assert decide(0.5, here, there, Costs(), same_model=False).doubt == pytest.approx(0.5 * 400.0 * 0.5)


@pytest.mark.parametrize(
    ("done", "low", "there", "same", "doubt"),
    [
        (0.2, 0.9, 400.0, True, 60.0),  # of 0.9 of all times 0.7 are left instead of 0.8
        (0.2, 0.5, 400.0, True, 300.0),
        (0.9, 0.95, 400.0, True, 30.0),
        (0.95, 0.9, 400.0, True, 30.0),  # less than what is done cannot be the whole
        (0.2, 0.9, 1200.0, True, 0.0),
        (0.2, 0.9, 400.0, False, math.hypot(60.0, 0.8 * 400.0 * 0.5)),
    ],
)
def test_a_gain_may_be_wrong_by_what_a_smaller_whole_leaves_of_it_and_by_the_other_model(
    done: float, low: float, there: float, same: bool, doubt: float
) -> None:
    found = decide(done, Outlook(1000.0, (low, 1.1)), Outlook(there, (0.9, 1.5)), Costs(), same_model=same)
    assert found.doubt == pytest.approx(doubt)


@pytest.mark.parametrize(
    ("there", "low", "costs", "ago", "why"),
    [
        (500.0, 1.0, (0.0,), None, "the move saves 500 s, more than"),  # exactly the least part of what is left
        (500.5, 1.0, (0.0,), None, "the move would save 50% of the remaining time"),
        (700.0, 0.0, (0.0,), None, "the move would save 300 s, less than its uncertainty of 300 s"),
        (1000.0, 1.0, (0.0,), None, "the move would cost 0 s more than it saves"),
        (300.0, 1.0, (10.0, 10.0, 10.0), 299.0, "it moved 299 s ago, and stays for at least 300 s"),
        (300.0, 1.0, (10.0, 10.0, 10.0), 300.0, "the move saves 11.2 min"),
    ],
)
def test_what_just_suffices_for_a_move_and_what_does_not(
    there: float, low: float, costs: tuple[float, ...], ago: float | None, why: str
) -> None:
    found = decide(0.0, Outlook(1000.0, (low, 1.0)), Outlook(there), Costs(*costs), moved_ago=ago)
    assert (found.move, found.why[: len(why)]) == (why.startswith("the move saves"), why)


def test_an_overdue_job_has_a_part_left_of_what_it_last_started_with() -> None:
    assert done_until(0.0, 1e6, 1.0) == 0.9
    assert done_until(0.5, 1e6, 1.0) == 0.95
    assert done_until(0.85, 10.0, 100.0) == pytest.approx(0.95)


@given(st.floats(0.0, 0.999), SECONDS, SECONDS, TIMES)
def test_a_job_is_never_less_done_than_before(before: float, elapsed: float, more: float, whole: float) -> None:
    found, later = (done_until(before, each, whole) for each in (elapsed, elapsed + more))
    assert before <= found <= later < 1.0


@pytest.mark.parametrize("cost", [-1.0, float("nan"), float("inf")])
def test_costs_that_cannot_be_are_refused(cost: float) -> None:
    with pytest.raises(InputError, match="transfer is"):
        Costs(transfer=cost)


NODES = ("n0", "n1", "n2", "n3")


def advised(state: ClusterState, *others: ClusterState, cost: float = 30.0, **job: object) -> RunningAdvice:
    mover = Mover(1000.0, state.name, ("n0", "n1"), (1, 1), **({"elapsed": 100.0, "dedicated": True} | job))  # type: ignore[arg-type]
    return advise_running(
        mover,
        [state, *others],
        {each.name: MODEL for each in (state, *others)},
        lambda name: Costs(restart=cost),
    )


def busy(cpu: float) -> ClusterState:
    return ClusterState.make("c", NODES, processors=[0, 0, 1, 1], available_cpu=[cpu, 1.0, 1.0, 1.0], age=1e6)


def test_a_job_on_a_busy_node_takes_another_one_and_keeps_what_is_good() -> None:
    found = advised(busy(0.1))
    assert found.decision.move
    assert found.placement is not None
    assert set(found.placement.resource_set.nodes) <= {"n1", "n2", "n3"}
    assert found.placement.resource_set.processors == 2


@pytest.mark.parametrize(("dedicated", "free"), [(True, 0), (False, 1)])
@pytest.mark.parametrize("cpu", [0.5, 0.2])
def test_the_jobs_own_load_is_none_for_it_where_loads_are_forecast_either(
    dedicated: bool, free: int, cpu: float
) -> None:
    """Its two nodes are half busy by the job itself, or more than that by others; forecasts say what is measured."""
    state = ClusterState.make("c", NODES, processors=[free, free, 1, 1], available_cpu=[cpu, cpu, 1.0, 1.0])
    job = Mover(1000.0, "c", ("n0", "n1"), (1, 1), elapsed=1000.0, dedicated=dedicated)

    def forecast(cluster: ClusterState, seconds: float) -> ClusterState:
        return replace(cluster, available_cpu=state.available_cpu[[state.nodes.index(name) for name in cluster.nodes]])

    now, later = (
        advise_running(job, [state], {"c": MODEL}, lambda name: Costs(restart=1.0), loads=loads)
        for loads in (None, Loads(forecast))
    )
    assert later == now
    assert now.available_cpu == pytest.approx(1.0 if cpu == 0.5 else 0.25)
    assert now.decision.move is (cpu < 0.5)


def test_loads_are_forecast_over_what_is_left_of_the_run() -> None:
    horizons: list[float] = []

    def forecast(cluster: ClusterState, seconds: float) -> ClusterState:
        horizons.append(seconds)
        return cluster

    job = Mover(1000.0, "c", ("n0", "n1"), (1, 1), elapsed=0.0, done=0.75)
    costs = Costs(restart=1.0)
    found = advise_running(job, [busy(0.1)], {"c": MODEL}, lambda name: costs, loads=Loads(forecast))
    assert found.placement is not None
    assert found.decision.done == 0.75
    left = 0.25 * found.placement.prediction.execution_time
    assert horizons[-1] == pytest.approx(left + 1.0, rel=0.15)


def test_a_job_at_the_best_place_stays() -> None:
    found = advised(busy(1.0))
    assert not found.decision.move
    assert found.decision.why == "it is already at the best place"


def test_a_wait_there_counts_in_full() -> None:
    home = ClusterState.make("c", NODES[:2], processors=0, available_cpu=0.2, age=1e6)
    free = ClusterState.make("d", ["m0", "m1"], queue_wait=QueueWait.always(0.0))
    late = replace(free, queue_wait=QueueWait.always(1e6))
    assert advised(home, free).decision.move
    assert not advised(home, late).decision.move
    soon = replace(free, queue_wait=QueueWait.always(50.0))
    none, some = advised(home, free).decision, advised(home, soon).decision
    assert none.leave is not None
    assert some.leave == pytest.approx(none.leave + 50.0)


def test_what_it_met_says_how_much_is_done() -> None:
    slow, fast = advised(busy(0.1), met_cpu=0.1), advised(busy(0.1), met_cpu=1.0)
    assert slow.decision.done < fast.decision.done


def test_a_job_may_not_take_fewer_processors_than_it_has() -> None:
    home = ClusterState.make("c", NODES[:2], processors=0, available_cpu=0.2)
    small = ClusterState.make("d", ["m0"])
    found = advised(home, small)
    assert found.placement is None or found.placement.resource_set.processors == 2


@pytest.mark.parametrize(
    ("settings", "processes", "nodes"),
    [
        (Settings(), 4, {"n2"}),
        (Settings(2), 4, {"n2", "n3"}),
        (Settings(None, 2), 2, {"n2"}),
        (Settings(1, 2), 2, {"n2", "n3"}),
    ],
)
def test_a_job_has_its_layout_also_where_it_moves(settings: Settings, processes: int, nodes: set[str]) -> None:
    state = ClusterState.make("c", NODES, processors=[0, 0, 4, 4], available_cpu=[0.05, 0.05, 1.0, 0.9])
    mover = Mover(1000.0, "c", ("n0", "n1"), (2, 2), 10.0, met_cpu=1.0, settings=settings)
    found = advise_running(mover, [state], {"c": MODEL}, lambda name: Costs())
    assert found.decision.move
    assert found.placement is not None
    sets = found.placement.resource_set
    assert (sets.processors, set(sets.nodes)) == (processes, nodes)
    here = MODEL.expect_many(1000.0, processes, found.available_cpu, found.available_bandwidth).item()
    assert found.decision.stay == pytest.approx((1.0 - found.decision.done) * here)


def test_unknown_places_are_refused() -> None:
    mover = Mover(1000.0, "c", ("x",), (1,), 1.0)
    with pytest.raises(InputError, match="node x of the job is not in cluster c"):
        advise_running(mover, [busy(0.5)], {"c": MODEL}, lambda name: Costs())
    with pytest.raises(InputError, match="cluster e of the job is not known"):
        advise_running(replace(mover, cluster="e"), [busy(0.5)], {"c": MODEL}, lambda name: Costs())
    with pytest.raises(InputError, match="one number for each"):
        Mover(1000.0, "c", ("x", "x"), (1, 1), 1.0)


def test_constraints_on_nodes_hold_and_counts_of_processors_do_not() -> None:
    mover = Mover(1000.0, "c", ("n0", "n1"), (1, 1), 100.0)
    found = advise_running(
        mover, [busy(0.05)], {"c": MODEL}, lambda name: Costs(),
        constraints=Constraints(max_processors=1, exclude="n3"),
    )  # fmt: skip
    assert found.placement is not None
    assert sorted(found.placement.resource_set.nodes) == ["n1", "n2"]
    assert np.isfinite(found.decision.stay)


SURE = (1.0, 1.0)


@pytest.mark.parametrize(
    ("done", "here", "there", "costs", "moved_ago", "same", "found"),
    [
        # What is left here and there, what is saved and what that may be wrong by.
        (0.0, Outlook(100.0), Outlook(100.0), Costs(), None, True,
         (False, 100.0, 100.0, 0.0, 0.0, "the move would cost 0 s more than it saves")),
        (0.5, Outlook(100.0), Outlook(40.0, SURE, 20.0), Costs(1.0, 2.0, 3.0), None, True,
         (False, 50.0, 46.0, 4.0, 0.0, "the move would save 8% of the remaining time, and is worthwhile from 50% on")),
        (0.5, Outlook(100.0), Outlook(400.0), Costs(), None, True,
         (False, 50.0, 200.0, -150.0, 0.0, "the move would cost 150 s more than it saves")),
        # Exactly half of what is left is worth it; a second less is not.
        (0.0, Outlook(1000.0), Outlook(500.0), Costs(), None, True,
         (True, 1000.0, 500.0, 500.0, 0.0, "the move saves 500 s, more than its uncertainty of 0 s")),
        (0.0, Outlook(1000.0), Outlook(501.0), Costs(), None, True,
         (False, 1000.0, 501.0, 499.0, 0.0,
          "the move would save 50% of the remaining time, and is worthwhile from 50% on")),
        # A gain that is as large as its doubt is too small.
        (0.0, Outlook(1000.0, (0.5, 2.0)), Outlook(200.0), Costs(400.0), None, True,
         (False, 1000.0, 600.0, 400.0, 400.0, "the move would save 400 s, less than its uncertainty of 400 s")),
        (0.75, Outlook(1000.0, (0.25, 2.0)), Outlook(200.0), Costs(), None, True,
         (False, 250.0, 50.0, 200.0, 200.0, "the move would save 200 s, less than its uncertainty of 200 s")),
        (0.25, Outlook(1000.0, (0.75, 2.0)), Outlook(200.0), Costs(), None, True,
         (True, 750.0, 150.0, 600.0, 200.0, "the move saves 10.0 min, more than its uncertainty of 200 s")),
        # Another model may be wrong by its own upper end as well.
        (0.5, Outlook(1000.0, (0.75, 2.0)), Outlook(160.0, (0.5, 3.0)), Costs(), None, False,
         (True, 500.0, 80.0, 420.0, np.hypot(210.0, 160.0),
          "the move saves 420 s, more than its uncertainty of 264 s")),
        # It rests for ten times what the move costs, and no longer.
        (0.0, Outlook(1000.0), Outlook(300.0), Costs(10.0, 10.0, 10.0), 299.0, True,
         (False, 1000.0, 330.0, 670.0, 0.0,
          "it moved 299 s ago, and stays for at least 300 s, ten times the cost of a move")),
        (0.0, Outlook(1000.0), Outlook(300.0), Costs(10.0, 10.0, 10.0), 300.0, True,
         (True, 1000.0, 330.0, 670.0, 0.0, "the move saves 11.2 min, more than its uncertainty of 0 s")),
        (0.25, Outlook(400.0), None, Costs(1.0), None, True,
         (False, 300.0, None, None, None, "there is nowhere else to go")),
    ],
)  # fmt: skip
def test_decisions_by_hand(
    done: float, here: Outlook, there: Outlook | None, costs: Costs, moved_ago: float | None, same: bool,
    found: tuple[bool, float, float | None, float | None, float | None, str],
) -> None:  # fmt: skip
    move, stay, leave, gain, doubt, why = found
    expected = Decision(move, done, stay, leave, gain, doubt and pytest.approx(doubt), costs, why)
    assert decide(done, here, there, costs, moved_ago=moved_ago, same_model=same) == expected


SIX: dict[str, Any] = {
    "problem_size": 9.0, "cluster": "c", "nodes": ("n0", "n1"), "processors": (1, 2), "elapsed": 60.0,
}  # fmt: skip
UNFIT = "nodes and processors of the job do not fit, expected one number for each of its nodes"


@pytest.mark.parametrize(
    ("changed", "refused"),
    [
        ({"nodes": (), "processors": ()}, UNFIT),
        ({"nodes": ("n0", "n0")}, UNFIT),
        ({"processors": (1,)}, UNFIT),
        ({"elapsed": -1.0}, "elapsed is -1, expected a number of seconds of at least 0"),
        ({"elapsed": float("inf")}, "elapsed is inf, expected a number of seconds of at least 0"),
        ({"elapsed": float("nan")}, "elapsed is nan, expected a number of seconds of at least 0"),
        ({"elapsed": 0.0}, ""),
        ({"done": -0.1}, "done is -0.1, expected a fraction in [0, 1)"),
        ({"done": 1.0}, "done is 1, expected a fraction in [0, 1)"),
        ({"done": 0.0}, ""),
    ],
)
def test_a_job_that_cannot_run_so_is_refused(changed: dict[str, Any], refused: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(refused)}$") if refused else contextlib.nullcontext():
        assert Mover(**SIX | changed).cluster == "c"


@pytest.mark.parametrize(
    ("dedicated", "free", "cpu", "age", "jobs", "found"),
    [
        (True, 0, 0.25, 570.0, 1, (3, 0.3333333, 0)),  # 3 of the 4 that compete are other processes: 3 / 3 of its own
        (True, 0, 0.25, 570.1, 1, (3, 0.25, 0)),  # it ran for less than 30 s when the node was measured
        (True, 1, 0.25, 0.0, 2, (4, 0.25, 1)),  # a processor was free: it kept nobody from working
        (True, 0, 1.0, 0.0, 0, (3, 1.0, 0)),
        (False, 4, 0.25, 0.0, 3, (4, 0.3076923, 2)),  # 3 processes on 4 processors: 4 - 3/4 compete
        (False, 0, 0.25, 0.0, 3, (0, 1.0, 2)),
    ],
)
def test_a_node_without_a_job_of_three_processes(
    dedicated: bool, free: int, cpu: float, age: float, jobs: int, found: tuple[int, float, int]
) -> None:
    state = ClusterState.make("c", ["n0", "n1"], processors=[free, 2], available_cpu=[cpu, 0.5], jobs=jobs, age=age)
    job = Mover(9.0, "c", ("n0", "elsewhere"), (3, 3), elapsed=600.0, dedicated=dedicated)
    without = vacated(state, job)
    processors, expected, left = found
    assert without.processors.tolist() == [processors, 2]
    assert without.available_cpu.tolist() == pytest.approx([expected, 0.5], rel=1e-6)
    assert without.jobs.tolist() == [left, jobs]


def test_where_nothing_else_fits_the_job_stays_and_is_told_why() -> None:
    found = advised(ClusterState.make("c", NODES[:2], processors=0, available_cpu=0.2))
    assert found.decision.why == "it is already at the best place"
    alone = Mover(1000.0, "c", ("n0",), (1,), 100.0)
    state = ClusterState.make("c", ["n0"], processors=0, available_cpu=0.5)
    asked = Constraints(exclude="n0")
    found = advise_running(alone, [state], {"c": MODEL}, lambda name: Costs(), constraints=asked)
    assert (found.decision.why, found.placement, found.decision.gain) == ("there is nowhere else to go", None, None)
    assert (found.available_cpu, found.warnings[-1:]) != (0.0, ())


@pytest.mark.parametrize("work", [0.0, float("inf"), float("nan")])
def test_a_model_that_tells_no_time_is_refused(work: float) -> None:
    mover = Mover(1000.0, "c", ("n0", "n1"), (1, 1), 100.0)
    with pytest.raises(InputError, match=r"^the model is not defined for 2 processors on c$"):
        advise_running(mover, [busy(0.5)], {"c": Known(work=work, traffic=0.0)}, lambda name: Costs())
