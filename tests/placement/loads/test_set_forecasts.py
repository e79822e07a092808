"""Forecasts of sets: what many nodes keep of their least one's promise, and the exact search with it."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from known_model import Known

from metasched.placement.clusters.constraints import Constraints
from metasched.placement.clusters.state import ClusterState, SetMinima
from metasched.placement.loads.counted import Loads, counted
from metasched.placement.loads.forecast import RecordedLoads
from metasched.placement.loads.recent_placements import RecentPlacement
from metasched.placement.ranking.objective import Objective
from metasched.placement.ranking.query import Question
from metasched.placement.ranking.ranker import rank
from metasched.placement.search.cpu_bandwidth_fronts import Fronts
from metasched.predictors.formulas.published import PublishedPredictor
from metasched.records import Request, Run, Settings
from monitors.forecasters.sets import LEARNED_FROM, forecast_sets

LEVELS = st.sampled_from([0.25, 0.5, 0.75, 1.0])


@pytest.fixture(scope="module")
def model() -> PublishedPredictor:
    random = np.random.default_rng(5)
    return PublishedPredictor("cg", "c").fit(
        Run("cg", "c", n, p, cpu, bw, 1e-4 * n**2 / (cpu * p) + (p > 1) * 0.3 * n / bw)
        for n in range(500, 3000, 250)
        for p in (1, 2, 4, 8)
        for cpu, bw in [(random.uniform(0.4, 1), random.uniform(20, 90))]
    )


@settings(max_examples=50)
@given(st.data())
def test_the_best_set_is_that_of_brute_force(model: PublishedPredictor, data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 5))
    column = st.lists(LEVELS, min_size=size, max_size=size)
    cpu, link = np.array(data.draw(column)), 100.0 * np.array(data.draw(column))
    minima = SetMinima(np.array(data.draw(column)), np.array(data.draw(column)))
    cluster = replace(
        ClusterState.make("c", [f"n{k}" for k in range(size)], available_cpu=cpu, available_bandwidth=link),
        minima=minima,
    )
    least = min(
        float(
            model.predict_many(
                2000, p, minima.cpu[p - 1] * cpu[list(nodes)].min(), minima.bandwidth[p - 1] * link[list(nodes)].min()
            ).execution_time[0]
        )
        for p in range(1, size + 1)
        for nodes in combinations(range(size), p)
    )
    best = rank([cluster], model, Question(2000, Constraints(least_efficiency=0))).placements[0]
    assert best.prediction.execution_time == pytest.approx(least)
    taken = [int(name[1:]) for name in best.resource_set.nodes]
    assert best.resource_set.available_cpu == pytest.approx(minima.cpu[len(taken) - 1] * cpu[taken].min())


def test_nodes_that_never_change_keep_all() -> None:
    t = 60.0 * np.arange(100)
    found = forecast_sets(t, np.full((100, 3), [0.5, 0.7, 1.0]), np.full((100, 3), 80.0), t[-1], 600.0)
    assert found.cpu_sets.part == pytest.approx(1.0)
    assert found.cpu == pytest.approx([0.5, 0.7, 1.0])


def test_without_history_the_latest_samples_stand() -> None:
    found = forecast_sets([0.0, 60.0], [[0.5, 1.0], [0.75, np.nan]], [[90.0, 80.0]] * 2, 70.0, 600.0)
    assert (found.cpu.tolist(), found.bandwidth.tolist()) == ([0.75, 1.0], [90.0, 80.0])
    assert (found.cpu_sets.part.tolist(), found.bandwidth_sets.part.tolist()) == ([1.0, 1.0], [1.0, 1.0])


def test_a_busy_node_is_expected_to_recover_and_sets_to_lose() -> None:
    random = np.random.default_rng(2)
    levels = np.repeat(np.where(random.random((60, 10)) < 0.3, 0.4, 1.0), 10, axis=0)
    t = 60.0 * np.arange(600)
    found = forecast_sets(t, levels, np.full((600, 10), 80.0), t[-1], 3600.0)
    busy = levels[-1] < 1.0
    assert np.all(found.cpu[busy] > 0.5)
    assert np.all(found.cpu[~busy] < 0.95)
    assert np.all(np.diff(found.cpu_sets.part) < 0.02)
    assert found.cpu_sets.part[-1] < 0.9


def test_samples_to_come_are_not_looked_at() -> None:
    random = np.random.default_rng(3)
    t, cpu = 60.0 * np.arange(200), random.uniform(0.2, 1.0, (200, 4))
    link = random.uniform(10.0, 90.0, (200, 4))
    early = forecast_sets(t[:150], cpu[:150], link[:150], t[149], 600.0)
    late = forecast_sets(t, cpu, link, t[149], 600.0)
    for one, other in (
        (early.cpu, late.cpu),
        (early.cpu_sets.part, late.cpu_sets.part),
        (early.bandwidth, late.bandwidth),
    ):
        assert one.tolist() == other.tolist()


def test_processors_of_one_node_are_taken_together() -> None:
    random = np.random.default_rng(4)
    t, cpu = 60.0 * np.arange(200), random.uniform(0.2, 1.0, (200, 3))
    recorded = RecordedLoads(t, ("a", "b", "c"), cpu, np.full((200, 3), 80.0), t[-1])
    ahead = recorded(ClusterState.make("c", ["a", "b", "c", "d"], processors=[2, 2, 2, 1]), 600.0)
    assert ahead.minima is not None
    cpu, _ = ahead.minima.at(np.arange(1, 10))
    assert cpu[0] == cpu[1] != cpu[2] == cpu[3] != cpu[4]
    assert np.all(cpu[4:] == cpu[4])
    assert ahead.available_cpu[3] == 1.0


def test_what_is_expected_of_a_set_is_that_of_as_many_nodes_as_its_layout_takes() -> None:
    part, every = np.array([1.0, 0.9, 0.7, 0.5]), np.ones(4)
    state = ClusterState.make("c", ["a", "b", "c", "d"], processors=4)
    state = replace(state, minima=SetMinima(part, every, processors=np.full(4, 4)))
    model, asked = Known(traffic=0.0), Question(1.0, Constraints(processors=(4,), least_efficiency=0.0))
    for per_node, chosen, expected in (
        (None, (), 1.0), (1, (), 0.5), (2, (), 0.9), (None, (Settings(1),), 0.5), (3, (Settings(4, 1),), 0.9),
        (None, (Settings(None, 4),), 0.5), (None, (Settings(2, 2),), 0.9),
    ):  # fmt: skip
        per = replace(asked, constraints=asked.constraints.model_copy(update={"per_node": per_node}), settings=chosen)
        assert rank([state], model, per).placements[0].resource_set.available_cpu == expected
        if not chosen:
            front = Fronts(state, per.constraints)
            assert front.resource_set(front.of([4]), 0).available_cpu == expected


@given(st.integers(0, 100_000))
def test_what_is_expected_of_a_set_counts_the_nodes_that_the_job_may_take(seed: int) -> None:
    """Nodes that are excluded, or have other jobs' processors, are none of a set's, whatever the others have."""
    draw = np.random.default_rng(seed)
    size = int(draw.integers(2, 7))
    names, t = [f"n{k}" for k in range(size)], 60.0 * np.arange(100)
    cpu = draw.uniform(0.2, 1.0, (100, size))
    recorded = RecordedLoads(t, tuple(names), cpu, np.full((100, size), 80.0), t[-1])
    state = ClusterState.make("c", names, processors=draw.integers(1, 9, size))
    gone = str(draw.choice(names))
    took = RecentPlacement("c", (str(draw.choice(names)),), (int(draw.integers(1, 9)),), 0.0, 900.0, dedicated=True)
    loads = Loads(recorded, [took] if draw.uniform() < 0.5 else (), now=1.0)
    counted_with, _ = counted(state, loads, 600.0)
    constraints = Constraints(exclude=gone, least_efficiency=0.0)
    left = int(np.delete(counted_with.processors, names.index(gone)).sum())
    assume(left > 0)
    asked = int(draw.integers(1, left + 1))
    constraints = constraints.model_copy(update={"processors": (asked,)})
    assert counted_with.minima is not None
    # With the best nodes first, each with all that it has left.
    order = np.argsort(-counted_with.available_cpu, kind="stable")
    order = order[(counted_with.processors[order] > 0) & (order != names.index(gone))]
    taken = int(np.searchsorted(np.cumsum(counted_with.processors[order]), asked)) + 1
    part = counted_with.minima.cpu[min(taken, counted_with.minima.cpu.size) - 1]
    least = counted_with.available_cpu[order[:taken]].min()
    fronts = Fronts(counted_with, constraints)
    front = fronts.of([asked])
    most = max(fronts.resource_set(front, position).available_cpu for position in range(front.cpu.size))
    assert most == pytest.approx(part * least)
    question = Question(1.0, constraints, loads=Loads(lambda each, _: counted_with, now=1.0, first_horizon=600.0))
    best = rank([state], Known(traffic=0.0), question).placements[0].resource_set
    assert (best.processors, best.available_cpu) == (asked, pytest.approx(part * least))


def test_nodes_without_a_free_processor_are_in_no_set() -> None:
    part = np.array([1.0, 0.9, 0.7])
    minima = SetMinima(part, np.ones(3), processors=np.array([0, 1, 0, 2]))
    assert minima.at(np.array([1, 2, 3, 9]))[0].tolist() == [1.0, 0.9, 0.9, 0.9]
    assert SetMinima(part, np.ones(3), processors=np.zeros(3, np.int64)).at(np.array([1]))[0].tolist() == [1.0]


@pytest.mark.parametrize("size", [1, 3, 8])
def test_nine_intervals_in_ten_hold_what_the_chosen_nodes_had(size: int) -> None:
    inside = []
    for seed in range(60):
        noise = np.random.default_rng(seed).normal(size=(400, 8))
        series = np.zeros((400, 8))
        for k in range(1, 400):
            series[k] = 0.9 * series[k - 1] + np.sqrt(1 - 0.9**2) * noise[k]
        cpu, t = np.clip(0.5 + 0.1 * series, 0.05, 1.0), 10.0 * np.arange(400)
        found = forecast_sets(t[:380], cpu[:380], cpu[:380], t[379], 200.0)
        best = np.argsort(-found.cpu, kind="stable")[:size]
        low, high = found.cpu[best].min() * found.cpu_sets.part[size - 1] * found.cpu_sets.ends[:, size - 1]
        inside.append(low <= cpu[380:, best].mean(axis=0).min() <= high)
    assert 0.8 <= np.mean(inside) <= 0.98


def test_of_a_large_cluster_some_nodes_are_learned_from_and_all_are_forecast() -> None:
    t, random = 60.0 * np.arange(100), np.random.default_rng(7)
    cpu = np.tile(random.uniform(0.2, 1.0, (100, 50)), (1, 2 * LEARNED_FROM // 50))
    found = forecast_sets(t, cpu, cpu, t[-1], 600.0)
    assert found.cpu.shape == (2 * LEARNED_FROM,)
    assert found.cpu_sets.part.shape == (LEARNED_FROM,)
    assert found.cpu[:50].tolist() == pytest.approx(found.cpu[-50:].tolist())


def test_a_forecast_placement_holds_the_doubt_about_the_loads(model: PublishedPredictor) -> None:
    random = np.random.default_rng(6)
    t, nodes = 10.0 * np.arange(400), ("a", "b", "c")
    cpu, link = (np.repeat(random.uniform(least, 1.0, (40, 3)), 10, axis=0) for least in (0.3, 0.2))
    recorded = RecordedLoads(t, nodes, cpu, 90.0 * link, t[-1])
    question = Question(2500, Constraints(processors=(3,)), loads=Loads(recorded))
    [placed] = rank([ClusterState.make("c", nodes)], model, question).placements
    sets, interval = placed.resource_set, placed.prediction.interval
    alone = model.predict(Request(2500, 3, sets.available_cpu, sets.available_bandwidth), 0.9).interval
    assert interval.low < alone.low
    assert alone.high < interval.high


def test_the_doubt_about_the_loads_is_in_risk_and_in_the_curve(model: PublishedPredictor) -> None:
    ends = np.array([[0.5, 0.5], [1.5, 1.5]])
    sure = ClusterState.make("c", ["a", "b"], available_cpu=0.6, available_bandwidth=50.0)
    doubtful = replace(sure, minima=SetMinima(np.ones(2), np.ones(2), ends, ends))
    before, after = (rank([each], model, Question(2000, objective=Objective(risk=1.0))) for each in (sure, doubtful))
    assert after.placements[0].prediction.execution_time == before.placements[0].prediction.execution_time
    assert after.costs[0]["risk"] > 1.2 * before.costs[0]["risk"]
    assert after.costs[0]["risk"] == pytest.approx(after.placements[0].prediction.interval.high)
    assert np.all(after.curve.high > 1.2 * before.curve.high)
