"""Loads of a moment ago: what recent placements take, and stale measurements."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from known_model import Known

from metasched.placement.clusters.state import ClusterState
from metasched.placement.loads.recent_placements import RecentPlacement, as_running, with_recent_placements
from metasched.placement.loads.staleness import with_loads, with_stale_capped
from metasched.placement.ranking.query import Question
from metasched.placement.ranking.ranker import rank
from metasched.records import Load


def nodes(count=4, **columns) -> ClusterState:
    return ClusterState.make("c", [f"n{index}" for index in range(count)], **columns)


def test_a_burst_of_submissions_spreads_over_the_nodes() -> None:
    """A hundred jobs placed within one metric interval on fifty equal nodes: two on each, not all on the first."""
    measured = nodes(50)
    placed: list[RecentPlacement] = []
    for _ in range(100):
        state = with_recent_placements(measured, placed, now=1.0)
        chosen = rank([state], Known(traffic=1e6), Question(1.0, top=1)).placements[0].resource_set
        placed.append(RecentPlacement("c", chosen.nodes, (1,) * len(chosen.nodes), start=1.0, execution_time=1000.0))
    taken = Counter(name for job in placed for name in job.nodes)
    assert set(taken.values()) == {2}
    assert len(taken) == 50


def test_a_shadow_ends_when_a_measurement_shows_the_job_or_the_job_is_over() -> None:
    job = RecentPlacement("c", ("n0",), (1,), start=0.0, execution_time=100.0)
    assert with_recent_placements(nodes(1), [job], now=10.0).available_cpu[0] == 0.5
    assert with_recent_placements(nodes(1), [job], now=40.0).available_cpu[0] == 1.0
    assert with_recent_placements(nodes(1, age=35.0), [job], now=40.0).available_cpu[0] == 0.5
    assert with_recent_placements(nodes(1, age=1000.0), [job], now=101.0).available_cpu[0] == 1.0


@given(st.integers(1, 8), st.integers(1, 30), st.floats(0.05, 1.0))
def test_more_shadow_never_leaves_more(processors, taken, cpu) -> None:
    def offer(count: int) -> float:
        jobs = [RecentPlacement("c", ("n0",), (count,), 0.0, 1e6)] if count else []
        state = with_recent_placements(nodes(1, processors=processors, available_cpu=cpu), jobs, now=0.0)
        return float(state.processors[0] * state.available_cpu[0])

    crowded = taken > processors
    assert offer(taken) <= offer(0) * (1 + 1e-12)
    if crowded:
        assert offer(taken) <= offer(taken - 1) * (1 + 1e-12)


def test_stale_nodes_are_no_better_than_the_lower_quartile_of_the_fresh() -> None:
    state = nodes(available_cpu=[0.4, 0.8, 1.0, 0.2], age=[0, 0, 900, 900])
    after, warnings = with_stale_capped(state)
    assert after.available_cpu.tolist() == pytest.approx([0.4, 0.8, 0.5, 0.2])
    assert warnings == ("2 of 4 nodes of cluster c have stale measurements, up to 900 s old",)


def test_all_nodes_stale_still_gives_a_ranking_and_a_warning() -> None:
    ranking = rank([nodes(age=1e4)], Known(), Question(1.0))
    assert ranking.placements
    assert ranking.warnings == ("all measurements of cluster c are stale, up to 10000 s old",)


def test_the_last_load_until_now_counts() -> None:
    loads = [Load(5.0, "n0", 0.9, 90.0), Load(9.0, "n0", 0.0, 0.0), Load(11.0, "n0", 0.5, 50.0), Load(1.0, "x", 1, 1)]
    state = with_loads(nodes(2), loads, now=10.0)
    assert state.available_cpu.tolist() == [0.01, 1.0]
    assert state.available_bandwidth.tolist() == [0.001, 1000.0]
    assert state.age.tolist() == [1.0, 0.0]


def test_a_job_just_placed_counts_on_its_own_cluster_and_where_its_nodes_are_too_unless_it_waits() -> None:
    def job(**more) -> RecentPlacement:
        return RecentPlacement("c", ("n0",), (1,), 5.0, 100.0, frozenset({"other"}), power=80.0, **more)

    for state in (nodes(1), ClusterState.make("other", ["n0"])):
        assert with_recent_placements(state, [job()], now=10.0).available_cpu.tolist() == [0.5]
        (running,) = as_running([job()], state)
        assert (running.nodes, running.processors, running.power) == (("n0",), (1,), 80.0)
        assert (running.computation, running.communication) == (100.0, 0.0)
        assert as_running([job(waits=True)], state) == []
    elsewhere = ClusterState.make("elsewhere", ["n0"])
    assert with_recent_placements(elsewhere, [job()], now=10.0).available_cpu.tolist() == [1.0]
    assert as_running([job()], elsewhere) == []
