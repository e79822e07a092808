"""What a placement counts with: one order of forecast, staleness and recent placements, on every path."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from known_model import Known

from metasched.placement.clusters.constraints import Constraints
from metasched.placement.clusters.state import ClusterState
from metasched.placement.loads.counted import Loads, counted, expected
from metasched.placement.loads.recent_placements import RecentPlacement
from metasched.placement.ranking.fast_path import fronts_of, quickest
from metasched.placement.ranking.query import Question
from metasched.placement.ranking.ranker import rank

SILENT = ClusterState.make("c", ["a", "b", "silent"], available_cpu=[0.9, 0.8, 0.9], age=[0.0, 0.0, 900.0])


def busy_soon(state: ClusterState, seconds: float) -> ClusterState:
    """Every node will be busy, and the silent one is said to be free."""
    expected = {"a": 0.3, "b": 0.2, "silent": 1.0}
    return replace(state, available_cpu=np.array([expected[node] for node in state.nodes]))


def test_a_silent_node_counts_no_better_than_the_forecasts_of_the_others() -> None:
    state, warnings = counted(SILENT, Loads(busy_soon), 60.0)
    assert state.available_cpu.tolist() == pytest.approx([0.3, 0.2, 0.225])
    assert warnings == ("1 of 3 nodes of cluster c have stale measurements, up to 900 s old",)


def test_ranker_and_fast_path_prefer_the_node_that_will_be_free_to_the_silent_one() -> None:
    question = Question(1.0, Constraints(processors=(1,)), top=1, loads=Loads(busy_soon))
    [best] = rank([SILENT], Known(), question).placements
    quick = quickest(
        lambda horizon: [fronts_of(expected(SILENT, question.loads, horizon), question)],
        {"c": Known()},
        question,
    )
    assert quick is not None
    assert best.resource_set.nodes == quick.placement.resource_set.nodes == ("a",)
    assert best.resource_set.available_cpu == quick.placement.resource_set.available_cpu == pytest.approx(0.3)
    assert quick.warnings == ("1 of 3 nodes of cluster c have stale measurements, up to 900 s old",)


def test_a_job_placed_on_the_fresh_nodes_says_nothing_of_a_silent_one() -> None:
    placed = RecentPlacement("c", ("a", "b"), (1, 1), start=0.0, execution_time=100.0)
    state, _ = counted(SILENT, Loads(busy_soon, recent=(placed,), now=10.0), 60.0)
    assert state.available_cpu.tolist() == pytest.approx([1 / (1 / 0.3 + 1), 1 / (1 / 0.2 + 1), 0.225])


def test_without_a_horizon_the_loads_of_now_count() -> None:
    assert counted(SILENT, Loads(busy_soon), None)[0].available_cpu.tolist() == pytest.approx([0.9, 0.8, 0.825])
