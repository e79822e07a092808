"""How a figure came about, and what would change it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from known_model import Known

from metasched.placement.clusters.queue_wait import QueueWait
from metasched.placement.clusters.state import ClusterState
from metasched.placement.clusters.switch_tree import Topology
from metasched.placement.explaining.breakdown import breakdown, held_back_by
from metasched.placement.explaining.what_if import drained, scaling
from metasched.placement.loads.forecast import RecordedLoads
from metasched.placement.ranking.query import Curve, Question
from metasched.placement.ranking.ranker import rank
from metasched.predictors.formulas.published import PublishedPredictor
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.records import InputError, ResourceSet, Run


@pytest.fixture(scope="module", params=[PublishedPredictor, RobustPredictor])
def learned(request):
    random = np.random.default_rng(5)
    return request.param("cg", "c").fit(
        Run("cg", "c", n, p, cpu, bw, (1e-4 * n**2 / (cpu * p) + (p > 1) * 0.2 * n / bw) * random.lognormal(0, 0.05))
        for n in range(500, 3000, 250)
        for p in (1, 2, 4, 8)
        for cpu, bw in [(random.uniform(0.4, 1), random.uniform(100, 900))]
    )


def test_the_parts_add_up_to_the_completion(learned) -> None:
    cluster = ClusterState.make(
        "c", ["n0", "n1", "n2"], processors=2, available_cpu=[1.0, 0.8, 0.5], queue_wait=QueueWait.always(12.0)
    )
    placements = rank([cluster], learned, Question(1500.0)).placements
    assert len(placements) > 1
    for placement in placements:
        parts = breakdown(placement, learned, 1500.0)
        assert sum(part.seconds for part in parts) == pytest.approx(placement.completion, rel=1e-9)
        assert [part.name for part in parts][:3] == ["wait", "computation", "communication"]


def test_what_holds_a_set_back_is_named() -> None:
    racks = Topology(("r1", "r2", "top"), np.array([2, 2, -1]), np.array([50.0, 60.0, np.inf]), np.array([0, 0, 1]))
    cluster = ClusterState.make("c", ["a", "b", "c"], available_cpu=[0.9, 0.8, 1.0], network=racks)
    assert held_back_by(ResourceSet("c", ("a", "c"), 2, 0.9, 50.0), cluster) == ("node a", "path between a and c")
    assert held_back_by(ResourceSet("c", ("a", "b"), 2, 0.8, 1000.0), cluster) == ("node b", "link of a")
    with pytest.raises(InputError, match="node x is not described in cluster c"):
        held_back_by(ResourceSet("c", ("x",), 1, 1.0, 1.0), cluster)


def test_a_non_monotone_model_is_warned_of() -> None:
    cluster = ClusterState.make("c", ["a", "b"])
    ranking = rank([cluster], Known(work=1.0, traffic=-0.5), Question(1.0))
    assert ranking.warnings == ("the model for cluster c predicts longer times for more bandwidth",)


def test_a_drained_node_is_not_taken_and_an_unknown_one_refused() -> None:
    cluster = ClusterState.make("c", ["a", "b"])
    ranking = rank(drained([cluster], {"a"}), Known(), Question(1.0))
    assert {placement.resource_set.nodes for placement in ranking.placements} == {("b",)}
    assert ranking.ruled_out["c"] == {"down, drained or reserved": 1}
    with pytest.raises(InputError, match="node x is in none of the clusters"):
        drained([cluster], {"x"})


@given(st.lists(st.floats(0.1, 1e4), min_size=1, max_size=20), st.integers(1, 20))
def test_scaling_shows_the_ends_the_fastest_and_the_advised(times, advised) -> None:
    time = np.array(times)
    count = np.arange(1, time.size + 1)
    advised = min(advised, time.size)
    found = scaling(Curve(count, time, time, time, time), advised)
    assert time[found.fastest - 1] == time.min()
    assert set(found.processors) >= {1, int(count[-1]), found.fastest, advised}
    assert found.efficiency[0] == pytest.approx(1.0)


def test_recorded_loads_are_forecast_for_each_node_and_only_from_the_past() -> None:
    time = np.arange(0.0, 2000.0, 10.0)
    cpu = np.where(time[:, None] < 1000.0, [0.9, 0.3], [0.1, 0.9])
    recorded = RecordedLoads(time, ("a", "b"), cpu, np.full_like(cpu, 70.0), now=990.0)
    ahead = recorded(ClusterState.make("c", ["b", "x", "a"]), 100.0)
    assert ahead.available_cpu == pytest.approx([0.3, 1.0, 0.9], abs=1e-6)
    assert ahead.available_bandwidth == pytest.approx([70.0, 1000.0, 70.0])
