"""Loads of a moment ago: what recent placements take, and stale measurements."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from known_model import Known

from metasched.placement.clusters.state import ClusterState, places
from metasched.placement.loads import recent_placements
from metasched.placement.loads.recent_placements import (
    PlacedJobs,
    RecentPlacement,
    as_running,
    with_recent_placements,
)
from metasched.placement.loads.staleness import with_loads, with_stale_capped
from metasched.placement.ranking.query import Question
from metasched.placement.ranking.ranker import rank
from metasched.records import Load


def nodes(count=4, **columns) -> ClusterState:
    return ClusterState.make("c", [f"n{index}" for index in range(count)], **columns)


def test_the_numbers_of_nodes_are_looked_up_once_however_many_clusters_take_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[str, ...]] = []
    monkeypatch.setattr(recent_placements, "places", lambda nodes: asked.append(nodes) or places(nodes))
    clusters = [replace(nodes(), name=name) for name in "cde"]
    placed = PlacedJobs([RecentPlacement("c", ("n1",), (1,), 0.0, 60.0, frozenset("de"))])
    for _ in range(4):
        for each in clusters:
            assert placed.on(each, 1.0).node.tolist() == [1]
    assert len(asked) == 3
    placed = placed.plus(RecentPlacement("d", ("n3",), (1,), 0.0, 60.0, frozenset("ce")))
    for each in clusters * 2:
        assert placed.on(each, 1.0).node.tolist() == [1, 3]
    assert len(asked) == 6


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
    # Where nothing is measured, it counts as long as it should run.
    assert with_recent_placements(nodes(1, age=math.nan), [job], now=99.0).available_cpu[0] == 0.5
    assert with_recent_placements(nodes(1, age=math.nan), [job], now=101.0).available_cpu[0] == 1.0


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


JOBS = st.builds(
    RecentPlacement,
    cluster=st.sampled_from(["c", "other", "elsewhere"]),
    nodes=st.sampled_from([("n0",), ("n1", "n2"), ("n2", "n0"), ("unknown", "n3")]),
    processors=st.just((1, 3)),
    start=st.floats(0.0, 100.0),
    execution_time=st.floats(0.0, 200.0),
    overlapping=st.sampled_from([frozenset(), frozenset({"c"})]),
    dedicated=st.booleans(),
    waits=st.booleans(),
    memory=st.sampled_from([(), (100.0, 40.0)]),
).map(lambda job: replace(job, processors=job.processors[: len(job.nodes)], memory=job.memory[: len(job.nodes)]))


@given(st.lists(st.tuples(JOBS, st.booleans()), max_size=12), st.floats(0.0, 150.0))
def test_what_jobs_take_in_columns_is_what_they_take_one_by_one(jobs: list, now: float) -> None:
    """Each job is added to the others, and some are forgotten in between; earlier records stay what they were."""
    memory = np.array([120.0, 1000.0, np.nan, 500.0])
    state = nodes(4, age=np.array([0.0, 10.0, 40.0, 90.0]), processors=np.array([1, 2, 4, 8]), memory=memory)
    placed, expected = PlacedJobs(), []
    records: list[tuple[PlacedJobs, list[RecentPlacement]]] = []
    for job, forget in jobs:
        if forget and expected:
            placed, expected = placed.only(np.arange(len(expected)) > 0), expected[1:]
        placed, expected = placed.plus(job), [*expected, job]
        records.append((placed, expected))
    if records:  # two that go on from one record know nothing of each other
        records.append((records[0][0].plus(jobs[-1][0]), [*records[0][1], jobs[-1][0]]))
    for record, those in [(placed, expected), *records]:
        assert list(record) == those
        after = with_recent_placements(state, record, now)
        one_by_one = taken_one_by_one(state, those, now)
        for name in ("processors", "available_cpu", "available_bandwidth", "jobs", "memory"):
            np.testing.assert_array_equal(getattr(after, name), getattr(one_by_one, name))
        since = {"c": 20.0, "other": 50.0}
        assert record.not_over(now, since, 5.0).tolist() == [
            now < job.start + job.execution_time and job.start >= since.get(job.cluster, 5.0) for job in those
        ]


def taken_one_by_one(cluster: ClusterState, placed: list[RecentPlacement], now: float) -> ClusterState:
    """The rule of :func:`with_recent_placements`, node after node."""
    processors, cpu, bandwidth, jobs, memory = (
        getattr(cluster, name).copy()
        for name in ("processors", "available_cpu", "available_bandwidth", "jobs", "memory")
    )
    for index, name in enumerate(cluster.nodes):
        here = [
            (job, taken)
            for job in placed
            for node, taken in zip(job.nodes, job.processors, strict=True)
            if node == name and not job.waits and job.left_on(cluster, now) > 0
        ]
        seen_until = now - cluster.age[index] - 30.0
        unseen = [(job, taken) for job, taken in here if math.isnan(seen_until) or seen_until < job.start]
        there = max(int(processors[index]) - sum(taken for job, taken in here if job.dedicated), 0)
        shared = sum(taken for job, taken in unseen if not job.dedicated)
        crowded = shared > 0 and there > 0 and shared >= there
        processors[index] = there if crowded else max(there - shared, 0)
        cpu[index] = 1.0 / (1.0 / cpu[index] + (shared / there if crowded else 0.0))
        bandwidth[index] /= 1.0 + len(unseen)
        jobs[index] += len(unseen)
        own = [dict(zip(job.nodes, job.memory, strict=True))[name] for job, _ in here if job.dedicated and job.memory]
        memory[index] = max(memory[index] - sum(own), 0.0)
    return replace(
        cluster, processors=processors, available_cpu=cpu, available_bandwidth=bandwidth, jobs=jobs, memory=memory
    )
