"""What the ranker answers: order, constraints, reasons, and what it says when nothing fits."""

from __future__ import annotations

import math
import re
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from known_model import Known

from metasched.placement.clusters.constraints import Constraints
from metasched.placement.clusters.queue_wait import QueueWait
from metasched.placement.clusters.state import ClusterState
from metasched.placement.clusters.switch_tree import Topology
from metasched.placement.loads.counted import Loads
from metasched.placement.loads.forecast import RecordedLoads
from metasched.placement.ranking import ranker
from metasched.placement.ranking.objective import Objective
from metasched.placement.ranking.query import InfeasibleError, Question, Ranking
from metasched.placement.ranking.ranker import rank as rank_by
from metasched.placement.search.exact_search import Scope
from metasched.predictors.formulas.published import PublishedPredictor
from metasched.records import InputError, Run


def rank(clusters, predictors, problem_size, **asked) -> Ranking:
    return rank_by(clusters, predictors, Question(problem_size, **asked))


def cluster(name="east", cpus=(1.0, 1.0, 0.5, 0.5), topology=None, queue_wait=0.0, **node) -> ClusterState:
    nodes = [f"{name}{index}" for index in range(len(cpus))]
    wait = QueueWait.always(queue_wait)
    return ClusterState.make(name, nodes, available_cpu=cpus, network=topology, queue_wait=wait, **node)


def test_placements_come_in_the_order_of_completion() -> None:
    ranking = rank([cluster(), cluster("west", queue_wait=5.0)], Known(), 1.0, top=8)
    completions = [placement.completion for placement in ranking.placements]
    assert completions == sorted(completions)
    assert ranking.compared == len(ranking.placements) == 8


def test_loaded_nodes_are_left_out_when_they_would_hold_the_others_back() -> None:
    best = rank([cluster()], Known(traffic=100.0), 1.0).placements[0]
    assert best.resource_set.nodes == ("east0", "east1")
    assert best.resource_set.available_cpu == 1.0


def test_a_narrow_uplink_keeps_a_job_in_one_rack() -> None:
    racks = Topology(("r1", "r2", "top"), np.array([2, 2, -1]), np.array([1000.0, 1.0, np.inf]), np.array([0, 0, 1, 1]))
    best = rank([cluster(cpus=(0.9, 0.9, 1.0, 0.9), topology=racks)], Known(), 1.0).placements[0]
    assert best.resource_set.nodes == ("east0", "east1")
    assert best.resource_set.available_bandwidth == 1000


def test_intervals_risks_and_the_curve_include_the_doubt_about_forecast_loads() -> None:
    state, exact = cluster(cpus=(0.9, 0.9)), Known(traffic=0.0, spread=1e-9)
    busy = np.where(np.arange(100) % 20 < 10, 0.9, 0.3)[:, None] * np.ones(2)
    recorded = RecordedLoads(np.arange(0.0, 1000.0, 10.0), state.nodes, busy, np.full((100, 2), 50.0), now=990.0)
    sure = rank([state], exact, 1.0).placements[0].prediction
    assert sure.interval.high == pytest.approx(sure.interval.low)
    ranking = rank([state], exact, 1.0, loads=Loads(recorded))
    assert len(ranking.placements) == len(ranking.costs) == ranking.curve.processors.size == 2
    ends = {}
    for placement, costs in zip(ranking.placements, ranking.costs, strict=True):
        found = placement.prediction
        assert found.interval.low < 0.95 * found.execution_time < 0.9 * found.interval.high
        assert costs["risk"] == pytest.approx(found.interval.high)
        ends[placement.resource_set.processors] = found.interval.low, found.interval.high
    low, high = ranking.curve.low, ranking.curve.high
    assert [*zip(low, high, strict=True)] == [pytest.approx(ends[count]) for count in ranking.curve.processors]


def test_a_long_wait_sends_the_job_to_the_slower_cluster() -> None:
    slow, fast = cluster("slow", cpus=(0.5, 0.5)), cluster("fast", cpus=(1.0, 1.0), queue_wait=1000.0)
    best = rank([slow, fast], Known(), 1.0).placements[0]
    assert best.resource_set.cluster == "slow"
    assert "a wait of 1000 instead of 0 s" in rank([slow, fast], Known(), 1.0, top=4).placements[2].reason


def test_each_cluster_is_predicted_by_its_own_model() -> None:
    both = [cluster("a"), cluster("b")]
    best = rank(both, {"a": Known(work=100.0), "b": Known(work=10.0)}, 1.0).placements[0]
    assert best.resource_set.cluster == "b"
    only = rank(both, {"a": Known()}, 1.0)
    assert {placement.resource_set.cluster for placement in only.placements} == {"a"}
    assert only.ruled_out["b"] == {"no model of the application there": 4}


def test_the_curve_has_the_best_for_every_number_of_processors() -> None:
    ranking = rank([cluster()], Known(traffic=0.0), 1.0, scope="processors")
    assert ranking.curve.processors.tolist() == [1, 2, 3, 4]
    assert ranking.curve.execution_time == pytest.approx([100.0, 50.0, 100 / 1.5, 50.0])


def test_of_very_many_numbers_of_processors_some_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"problem_size": 1.0, "constraints": Constraints(least_efficiency=0.0), "scope": "processors", "top": 3}
    large = cluster(cpus=(1.0, 0.9, 0.8), processors=400)
    whole = rank([large], Known(traffic=500.0), **asked)
    monkeypatch.setattr(ranker, "MOST_LISTED", 50)
    found = rank([large], Known(traffic=500.0), **asked)
    assert found.placements == whole.placements
    listed = found.curve.processors
    assert whole.curve.processors.tolist() == [*range(1, 1201)]
    assert 50 < listed.size < 75
    fastest = int(whole.curve.completion.argmin()) + 1
    advised = {each.resource_set.processors for each in found.placements}
    assert {1, 1200, fastest, *advised, *(1 << power for power in range(11))} <= set(listed.tolist())
    assert np.diff(listed).max() < 0.2 * 1200
    for column in ("execution_time", "low", "high", "completion"):
        assert getattr(found.curve, column).tolist() == getattr(whole.curve, column)[listed - 1].tolist()


def test_constraints_are_kept() -> None:
    mixed = cluster(processors=2)
    ranking = rank([mixed], Known(), 1.0, constraints=Constraints(processors=(3, 5), exclude="east0"))
    assert {placement.resource_set.processors for placement in ranking.placements} == {3, 5}
    assert all("east0" not in placement.resource_set.nodes for placement in ranking.placements)
    spread = rank([mixed], Known(), 1.0, constraints=Constraints(processors=(4,), per_node=1)).placements[0]
    assert len(spread.resource_set.nodes) == 4


def test_no_feasible_set_names_the_demand_and_the_number_of_nodes_it_rules_out() -> None:
    demands = Constraints(memory=1000.0, features=("gpu",), min_processors=2)
    with pytest.raises(
        InfeasibleError, match=r"east \(4 nodes\): 4 ruled out \(memory of 1000 MB\), 4 ruled out \(feature gpu\)"
    ):
        rank([cluster()], Known(), 1.0, constraints=demands)
    with pytest.raises(InfeasibleError, match="for 64 processors, at most 4 are left together"):
        rank([cluster()], Known(), 1.0, constraints=Constraints(processors=(64,)))


def test_an_efficiency_floor_does_not_double_the_processors_for_little() -> None:
    even = cluster(cpus=(1.0,) * 8)
    fastest = rank([even], Known(traffic=500.0), 1.0).placements[0].resource_set.processors
    frugal = rank([even], Known(traffic=500.0), 1.0, objective=Objective(saving=0.45)).placements[0]
    assert frugal.resource_set.processors < fastest


@given(st.integers(0, 100_000))
def test_the_floor_of_efficiency_is_that_of_all_sets_tried(seed: int) -> None:
    """Every set of every cluster, by brute force: the earliest of those at or above the floor is found."""
    draw = np.random.default_rng(seed)
    clusters = [
        cluster(name, tuple(draw.uniform(0.1, 1.0, 5)), queue_wait=float(draw.choice([0.0, 30.0])),
                available_bandwidth=draw.uniform(10, 1000, 5))
        for name in ("a", "b")
    ]  # fmt: skip
    model, least, fewest = (
        Known(traffic=float(draw.uniform(0, 3000))),
        float(draw.uniform(0, 1)),
        int(draw.integers(1, 4)),
    )
    completions = []
    for each in clusters:
        tried = [np.array(nodes) for p in range(fewest, 6) for nodes in combinations(range(5), p)]
        count = np.array([nodes.size for nodes in tried])
        cpu = [each.available_cpu[nodes].min() for nodes in tried]
        width = [each.network.bandwidth(each.available_bandwidth, nodes) for nodes in tried]
        time = model.predict_many(1.0, count, cpu, width).execution_time
        efficiency = fewest * time[count == fewest].min() / (count * time)
        completions += list((time + each.queue_wait.at(count))[efficiency >= least])
    asked = Constraints(min_processors=fewest, least_efficiency=least)
    scopes: tuple[Scope, ...] = ("top", "processors", "all")
    found = [rank(clusters, model, 1.0, constraints=asked, scope=scope).placements[0].completion for scope in scopes]
    assert found == pytest.approx([min(completions)] * len(scopes))
    front = rank(clusters, model, 1.0, constraints=asked, pareto=True).placements
    assert min(each.completion for each in front) == pytest.approx(min(completions))


def test_the_floor_holds_unless_a_number_is_asked_for() -> None:
    even = cluster(cpus=(1.0,) * 32)
    model = Known(traffic=2000.0)
    anything = rank([even], model, 1.0, constraints=Constraints(least_efficiency=0.0)).placements[0]
    floored = rank([even], model, 1.0)
    assert anything.resource_set.processors == 32 > floored.placements[0].resource_set.processors
    assert floored.curve.processors.tolist() == list(range(1, 33))
    asked = rank([even], model, 1.0, constraints=Constraints(processors=(32,))).placements
    assert [each.resource_set.processors for each in asked] == [32]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 100_000), st.integers(1, 12))
def test_the_first_placements_are_the_same_however_far_the_search_is_exact(seed: int, top: int) -> None:
    """A set is found at each switch above it, and counts once."""
    draw = np.random.default_rng(seed)
    size, names = int(draw.integers(8, 40)), ("rack", "row", "room", "site", "top")
    above = np.append(np.arange(1, len(names)), -1)
    tree = Topology(names, above, np.where(above < 0, np.inf, 2000.0), np.zeros(size, np.int64))
    state = cluster(cpus=draw.uniform(0.2, 1.0, size), topology=tree, processors=draw.integers(1, 4, size),
                    available_bandwidth=draw.uniform(10, 1000, size))  # fmt: skip
    model, any_set = Known(traffic=float(draw.choice([10.0, 1000.0, 10_000.0]))), Constraints(least_efficiency=0.0)
    scopes: tuple[Scope, ...] = ("all", "processors", "top")
    every, *found = (
        [each.completion for each in rank([state], model, 1.0, constraints=any_set, scope=scope, top=top).placements]
        for scope in scopes
    )
    assert found == [pytest.approx(every)] * 2


def test_reasons_compare_with_the_best_and_the_next() -> None:
    first, second, *_ = rank([cluster()], Known(traffic=0.0), 1.0, top=3).placements
    assert first.reason.startswith("best; the next is as fast")
    assert "processors instead of" in second.reason or second.reason.startswith("as fast")
    few = rank([cluster(cpus=(0.5, 0.5))], Known(traffic=0.0), 1.0, top=2).placements
    assert few[1].reason.endswith(": 1 processor instead of 2")


def test_a_slower_cluster_is_not_put_down_to_a_little_less_cpu() -> None:
    both = [cluster("a", cpus=(0.9,)), cluster("b", cpus=(0.89,))]
    apart = {"a": Known(work=10.0, traffic=0.0), "b": Known(work=100.0, traffic=0.0)}
    first, second = rank(both, apart, 1.0).placements
    assert first.reason == "best; the next is 911.2% slower: another cluster's model"
    assert second.reason == "911.2% slower: another cluster's model"
    first, second = rank(both, Known(traffic=0.0), 1.0).placements
    assert second.reason == "1.1% slower: available CPU 0.89 instead of 0.90"


@pytest.mark.parametrize("problem_size", [0.0, -1.0, float("nan"), float("inf")])
def test_a_problem_size_that_is_none_is_refused(problem_size) -> None:
    with pytest.raises(InputError, match="problem_size"):
        rank([cluster()], Known(), problem_size)


def test_a_ranking_warns_of_its_best_placements_and_each_placement_of_itself() -> None:
    conditions = [(n, p, cpu) for n in range(100, 900, 100) for p in (1, 2, 4) for cpu in (0.5, 1.0)]
    runs = [Run("a", "c", n, p, cpu, 90.0, 0.01 * n / (cpu * p)) for n, p, cpu in conditions]
    model = PublishedPredictor("a", "c").fit(runs)
    clusters = [ClusterState.make(name, [f"{name}{k}" for k in range(16)], available_bandwidth=90.0) for name in "cd"]
    ranking = rank_by(clusters, {"c": model, "d": model}, Question(500.0, top=6))
    far = [line for line in ranking.warnings if "more than twice the most learned" in line]
    counts = [each.resource_set.processors for each in ranking.placements]
    assert far == [f"{counts[0]} processors are more than twice the most learned (4)"]
    assert all(f"{count} processors are" in each.prediction.warnings[-1]
               for count, each in zip(counts, ranking.placements, strict=True))  # fmt: skip


LIMITS = {
    "max_slowdown": ((0.0, 1000.0), (-0.001, 1000.5), "a number from 0 to 1000"),
    "power_cap": ((1e-9, 1e308), (0.0, math.inf), "a finite number of watts above 0"),
    "problem_size": ((1e-9, 1e308), (0.0, math.inf, math.nan), "a finite number above 0"),
    "top": ((1, 2), (0,), "a whole number of at least 1"),
    "level": ((1e-9, 1.0 - 1e-9), (0.0, 1.0), "a number between 0 and 1"),
    "tolerance": ((0.0, 1.0 - 1e-9), (-1e-9, 1.0), "a number in [0, 1)"),
}


@pytest.mark.parametrize(("name", "value"), [(name, each) for name, limits in LIMITS.items() for each in limits[0]])
def test_a_question_takes_what_lies_within_its_limits(name: str, value: float) -> None:
    assert getattr(Question(**({"problem_size": 9.0} | {name: value})), name) == value  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "value"), [(name, each) for name, limits in LIMITS.items() for each in limits[1]])
def test_a_question_beyond_a_limit_is_refused(name: str, value: float) -> None:
    with pytest.raises(InputError, match=rf"^{name} is .*, expected {re.escape(LIMITS[name][2])}$"):
        Question(**({"problem_size": 9.0} | {name: value}))  # type: ignore[arg-type]
