"""Contention, objectives, the Pareto front, ties and forecasts: what moves the choice."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from known_model import Known

from metasched.blocks.power import of_processors
from metasched.placement.clusters.constraints import Constraints
from metasched.placement.clusters.state import ClusterState
from metasched.placement.loads.counted import Loads
from metasched.placement.ranking.contention import Shared
from metasched.placement.ranking.objective import Objective, Terms
from metasched.placement.ranking.pareto_front import front
from metasched.placement.ranking.query import Question
from metasched.placement.ranking.ranker import rank
from metasched.records import InputError


def nodes(count=4, **columns) -> ClusterState:
    return ClusterState.make("c", [f"n{index}" for index in range(count)], **columns)


@dataclass(frozen=True)
class EveryShareHurts:
    """Each job on a node adds a half to the slowdown of whoever joins it, and loses as much itself."""

    def effects(self, cluster, predictor, shares, execution_time):
        met = np.array([cluster.jobs[share.nodes].max() for share in shares])
        lost = np.array([cluster.jobs[share.nodes].sum() for share in shares]) * 0.5 * execution_time
        return Shared(1.0 + 0.5 * met, lost)


def test_contention_sends_the_job_to_slightly_slower_nodes_without_jobs() -> None:
    state = nodes(available_cpu=[1.0, 1.0, 0.9, 0.9], jobs=[1, 1, 0, 0])
    alone = rank([state], Known(traffic=30000.0), Question(1.0))
    shared = rank([state], Known(traffic=30000.0), Question(1.0, contention=EveryShareHurts()))
    assert alone.placements[0].resource_set.nodes == ("n0", "n1")
    assert shared.placements[0].resource_set.nodes == ("n2", "n3")
    assert shared.placements[0].slowdown == 1.0
    assert 0 < shared.gap < 0.2
    slowed = next(each for each in shared.placements if "n0" in each.resource_set.nodes)
    assert slowed.slowdown == 1.5


def test_harm_to_others_counts_when_it_has_a_weight() -> None:
    state = nodes(2, available_cpu=[1.0, 0.5], jobs=[1, 0])
    asked = Question(1.0, contention=EveryShareHurts())
    selfish = rank([state], Known(), asked).placements[0].resource_set
    kind = rank([state], Known(), replace(asked, objective=Objective(harm=10.0))).placements[0].resource_set
    assert "n0" in selfish.nodes
    assert kind.nodes == ("n1",)


def test_harm_alone_can_count_and_where_some_is_unavoidable_nothing_is_proven() -> None:
    asked = Question(1.0, Constraints(processors=(1, 2)), Objective(time=0.0, harm=1.0), EveryShareHurts(), top=9)
    some, every = (rank([nodes(3, jobs=jobs)], Known(traffic=0.0), asked) for jobs in ([1, 0, 0], [1, 1, 1]))
    assert some.placements[0].resource_set.nodes == ("n1",)
    assert (some.costs[0]["harm"], some.gap) == (0.0, 0.0)
    assert every.costs[0]["harm"] > 0.0
    assert every.gap == math.inf


def test_what_is_below_the_floor_is_left_out_where_harm_alone_counts() -> None:
    asked = Question(1.0, Constraints(least_efficiency=0.5), Objective(time=0.0, harm=1.0), top=99)
    placements = rank([nodes(8)], Known(traffic=4000.0), asked).placements
    time = {each.resource_set.processors: each.prediction.execution_time for each in placements}
    assert len(time) < 8
    assert all(time[1] / (p * seconds) >= 0.5 for p, seconds in time.items())


def test_weights_of_core_hours_and_energy_ask_for_fewer_processors() -> None:
    state = nodes(8, available_cpu=1.0)
    state = replace(state, hardware=of_processors(100.0))
    fast = rank([state], Known(traffic=300.0), Question(1.0)).placements[0].resource_set.processors
    for weights in ({"core_hours": 1e5}, {"energy": 1.0}):
        frugal = rank([state], Known(traffic=300.0), Question(1.0, objective=Objective(**weights))).placements[0]
        assert frugal.resource_set.processors < fast


@pytest.mark.parametrize("weights", [{}, {"core_hours": 1.0}, {"time": 0.0, "risk": 1.0}])
def test_the_front_holds_the_best_where_more_processors_must_save_something(weights: dict[str, float]) -> None:
    asked = Question(1.0, objective=Objective(**weights, saving=0.4), pareto=True)
    every, front = (rank([nodes(8)], Known(traffic=10_000.0), replace(asked, pareto=only)) for only in (False, True))
    assert front.placements[0].resource_set == every.placements[0].resource_set
    assert front.gap == 0.0


def test_the_front_trades_time_for_core_hours() -> None:
    ranking = rank(
        [nodes(8)], Known(traffic=300.0), Question(1.0, objective=Objective(core_hours=1.0), pareto=True, top=20)
    )
    times = [costs["time"] for costs in ranking.costs]
    hours = [costs["core_hours"] for costs in ranking.costs]
    order = np.argsort(times)
    assert np.all(np.diff(np.array(hours)[order]) < 0)
    assert len(times) > 2


@given(st.lists(st.tuples(*[st.integers(0, 4)] * 3), min_size=1, max_size=12))
def test_the_front_is_that_of_comparing_every_two(rows) -> None:
    costs = np.array(rows, dtype=float)
    expected = {
        tuple(row)
        for row in costs.tolist()
        if not any(np.all(other <= row) and np.any(other < np.array(row)) for other in costs)
    }
    kept = costs[front(costs)]
    assert {tuple(row) for row in kept.tolist()} == expected
    assert len(kept) == len(expected)


@given(st.lists(st.floats(1, 100), min_size=3, max_size=3), st.floats(0.0, 0.9))
def test_the_efficiency_floor_is_an_order_that_does_not_depend_on_who_is_asked_first(times, saving) -> None:
    processors = [2, 4, 8]
    score = Objective(saving=saving).score(Terms.of(times, times, processors=processors), processors)
    for first, second in ((0, 1), (1, 2)):
        floor = times[first] * (1 - saving)
        assert score[second] < score[first] or times[second] >= floor * (1 - 1e-9)
        assert score[second] > score[first] or times[second] <= floor * (1 + 1e-9)


@pytest.mark.parametrize(
    ("weights", "line"),
    [
        ({"time": 0.0}, "all weights of the objective are 0"),
        ({"risk": -1.0}, "weight of risk is -1.0, expected a finite number of at least 0"),
        ({"saving": 1.0}, r"saving is 1.0, expected a number in \[0, 1\)"),
    ],
)
def test_an_objective_that_is_none_is_refused(weights, line) -> None:
    with pytest.raises(InputError, match=line):
        Objective(**weights)


def test_equal_placements_come_in_the_same_order_or_in_turn() -> None:
    state = nodes(20)
    asked = Question(1.0, top=1)

    def first(**changes):
        return rank([state], Known(traffic=1e6), replace(asked, **changes)).placements[0].resource_set.nodes

    assert {first() for _ in range(3)} == {("n0",)}
    assert first(rotation="a") == first(rotation="a")
    assert len({first(rotation=str(word)) for word in range(30)}) > 10


def test_near_ties_go_to_fewer_processors() -> None:
    ranking = rank([nodes(8)], Known(traffic=180.0), Question(1.0, tolerance=0.2, top=8))
    exact = rank([nodes(8)], Known(traffic=180.0), Question(1.0, top=8))
    assert ranking.placements[0].resource_set.processors < exact.placements[0].resource_set.processors
    assert ranking.placements[0].completion <= exact.placements[0].completion * 1.2


def test_loads_are_forecast_over_the_predicted_duration() -> None:
    """Node 0 is idle now and will be busy soon: only a short job should take it."""

    def forecast(cluster: ClusterState, horizon: float) -> ClusterState:
        share = min(1.0, 20.0 / horizon)
        return replace(cluster, available_cpu=np.array([share + (1 - share) * 0.1, 0.6]))

    state = nodes(2, available_cpu=[1.0, 0.6])
    predictor, alone = Known(work=10.0, traffic=0.0), Constraints(processors=(1,))
    short = rank([state], predictor, Question(1.0, alone, top=1, loads=Loads(forecast))).placements[0]
    long = rank([state], predictor, Question(100.0, alone, top=1, loads=Loads(forecast))).placements[0]
    assert short.resource_set.nodes == ("n0",)
    assert long.resource_set.nodes == ("n1",)


def test_a_node_class_of_twice_the_speed_counts_as_such() -> None:
    state = nodes(2, available_cpu=[1.0, 0.6], speed=[1.0, 2.0])
    best = rank([state], Known(traffic=1e6), Question(1.0)).placements[0]
    assert best.resource_set.nodes == ("n1",)
    assert best.prediction.execution_time == pytest.approx(100 / 1.2 + 1e6 / 1000)


def test_a_score_is_the_weighted_sum_times_what_doubling_must_save() -> None:
    terms = Terms.of([100.0, 50.0], [110.0, 60.0], processors=[2, 8])
    weights = Objective(time=2.0, core_hours=3.0, risk=0.5)
    expected = 2.0 * terms.time + 3.0 * terms.core_hours + 0.5 * terms.risk
    assert weights.score(terms, [2, 8]).tolist() == pytest.approx(expected.tolist())
    halved = replace(weights, saving=0.5).score(terms, [2, 8])
    assert halved.tolist() == pytest.approx((expected * [2.0, 8.0]).tolist())
    alone = Objective(time=2.0, saving=0.5)
    assert alone.score_time(terms.time, [2, 8]).tolist() == pytest.approx(alone.score(terms, [2, 8]).tolist())
    assert (alone.time_alone, alone.energy_alone, weights.time_alone) == (True, False, False)
    assert (Objective(time=0.0, energy=1.0).energy_alone, Objective(energy=1.0).energy_alone) == (True, False)


@pytest.mark.parametrize(
    ("weights", "line"),
    [
        ({"time": -1.0}, "weight of time is -1.0, expected a finite number of at least 0"),
        ({"risk": np.inf}, "weight of risk is inf, expected a finite number"),
        ({"energy": 1e-31}, "weight of energy is 1e-31, expected 0 or a number from 1e-30 to 1e[+]30"),
        ({"energy": 2e30}, "weight of energy is 2e[+]30, expected 0 or a number"),
        ({"time": 0.0}, "all weights of the objective are 0, expected one above 0"),
        ({"saving": 1.0}, "saving is 1.0, expected a number in"),
        ({"saving": -0.1}, "saving is -0.1, expected a number in"),
    ],
)
def test_an_objective_that_orders_nothing_is_refused(weights: dict[str, float], line: str) -> None:
    with pytest.raises(InputError, match=line):
        Objective(**weights)
    assert Objective(time=1e-30, energy=1e30, saving=0.0).time == 1e-30
