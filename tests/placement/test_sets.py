"""Forecasts of sets: what many nodes keep of their least one's promise, and the exact search with it."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metasched.placement.cluster import ClusterState, Kept
from metasched.placement.outlook import RecordedLoads
from metasched.placement.question import Question
from metasched.placement.ranker import rank
from metasched.predictors.published import PublishedPredictor
from metasched.records import Run
from monitors.forecasters.sets import forecast_sets

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


@settings(max_examples=100)
@given(st.data())
def test_the_best_set_is_that_of_brute_force(model: PublishedPredictor, data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 5))
    column = st.lists(LEVELS, min_size=size, max_size=size)
    cpu, link = np.array(data.draw(column)), 100.0 * np.array(data.draw(column))
    kept = Kept(np.array(data.draw(column)), np.array(data.draw(column)))
    cluster = replace(
        ClusterState.make("c", [f"n{k}" for k in range(size)], available_cpu=cpu, available_bandwidth=link), kept=kept
    )
    least = min(
        float(
            model.predict_many(
                2000, p, kept.cpu[p - 1] * cpu[list(nodes)].min(), kept.bandwidth[p - 1] * link[list(nodes)].min()
            ).execution_time[0]
        )
        for p in range(1, size + 1)
        for nodes in combinations(range(size), p)
    )
    best = rank([cluster], model, Question(2000)).placements[0]
    assert best.prediction.execution_time == pytest.approx(least)
    taken = [int(name[1:]) for name in best.resource_set.nodes]
    assert best.resource_set.available_cpu == pytest.approx(kept.cpu[len(taken) - 1] * cpu[taken].min())


def test_nodes_that_never_change_keep_all() -> None:
    t = 60.0 * np.arange(100)
    found = forecast_sets(t, np.full((100, 3), [0.5, 0.7, 1.0]), np.full((100, 3), 80.0), t[-1], 600.0)
    assert found.kept_cpu == pytest.approx(1.0)
    assert found.cpu == pytest.approx([0.5, 0.7, 1.0])


def test_without_history_the_latest_samples_stand() -> None:
    found = forecast_sets([0.0, 60.0], [[0.5, 1.0], [0.75, np.nan]], [[90.0, 80.0]] * 2, 70.0, 600.0)
    assert (found.cpu.tolist(), found.bandwidth.tolist()) == ([0.75, 1.0], [90.0, 80.0])
    assert (found.kept_cpu.tolist(), found.kept_bandwidth.tolist()) == ([1.0, 1.0], [1.0, 1.0])


def test_a_busy_node_is_expected_to_recover_and_sets_to_lose() -> None:
    random = np.random.default_rng(2)
    levels = np.repeat(np.where(random.random((60, 10)) < 0.3, 0.4, 1.0), 10, axis=0)
    t = 60.0 * np.arange(600)
    found = forecast_sets(t, levels, np.full((600, 10), 80.0), t[-1], 3600.0, samples="averages")
    busy = levels[-1] < 1.0
    assert np.all(found.cpu[busy] > 0.5)
    assert np.all(found.cpu[~busy] < 0.95)
    assert np.all(np.diff(found.kept_cpu) < 0.02)
    assert found.kept_cpu[-1] < 0.9


def test_samples_to_come_are_not_looked_at() -> None:
    random = np.random.default_rng(3)
    t, cpu = 60.0 * np.arange(200), random.uniform(0.2, 1.0, (200, 4))
    link = random.uniform(10.0, 90.0, (200, 4))
    early = forecast_sets(t[:150], cpu[:150], link[:150], t[149], 600.0)
    late = forecast_sets(t, cpu, link, t[149], 600.0)
    for one, other in ((early.cpu, late.cpu), (early.kept_cpu, late.kept_cpu), (early.bandwidth, late.bandwidth)):
        assert one.tolist() == other.tolist()


def test_processors_of_one_node_are_taken_together() -> None:
    random = np.random.default_rng(4)
    t, cpu = 60.0 * np.arange(200), random.uniform(0.2, 1.0, (200, 3))
    recorded = RecordedLoads(t, ("a", "b", "c"), cpu, np.full((200, 3), 80.0), t[-1], "averages")
    ahead = recorded(ClusterState.make("c", ["a", "b", "c", "d"], processors=[2, 2, 2, 1]), 600.0)
    assert ahead.kept is not None
    assert ahead.kept.cpu.size == 6
    assert ahead.kept.cpu[0] == ahead.kept.cpu[1]
    assert ahead.available_cpu[3] == 1.0
