"""What a campaign will run, where and when; and the platform it runs on."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.testbed import plan
from benchmarks.testbed.applications import APPLICATIONS
from benchmarks.testbed.clusters import CLUSTERS, MULTICORE, node_of, write_platform
from benchmarks.testbed.coscheduled import SHARING, common_nodes, draw_pair
from benchmarks.testbed.loading import random_loading
from benchmarks.testbed.timeline import Series

clusters = pytest.mark.parametrize("cluster", CLUSTERS.values(), ids=list(CLUSTERS))


@clusters
def test_a_job_takes_a_second_processor_of_a_node_only_when_all_nodes_have_one(cluster) -> None:
    rng = np.random.default_rng(1)
    for count in range(1, len(cluster.processors) + 1):
        placed = plan.place(cluster, count, rng)
        load = Counter(map(node_of, placed))
        assert len(set(placed)) == count
        assert max(load.values()) - min([*load.values(), *[0] * (len(load) < cluster.node_count)]) <= 1


@clusters
def test_a_campaign_trains_on_small_counts_and_predicts_up_to_the_whole_cluster(cluster) -> None:
    application = APPLICATIONS["cg"]
    wanted = plan.requests(application, cluster, np.random.default_rng(2))
    train = [one for one in wanted if one.phase == "train"]
    predict = wanted[len(train) :]
    assert Counter(len(one.processors) for one in train) == {1: 20, 2: 20, 4: 10, 8: 10}
    assert all(application.smallest <= one.problem_size <= application.largest for one in train)
    assert len(predict) >= 150
    assert max(len(one.processors) for one in predict) == len(cluster.processors)
    assert min(one.problem_size for one in predict) < application.smallest
    assert max(one.problem_size for one in predict) > application.largest


@given(st.floats(0.0, 3_000.0), st.floats(0.1, 2_000.0))
def test_latest_end_is_where_the_integral_reaches_the_work(start: float, work: float) -> None:
    share = Series(np.array([0.0, 100.0, 900.0, 2_000.0]), np.array([1.0, 0.25, 0.7, 0.4]))
    end = plan.latest_end(share, start, work)
    assert share.integral(end) - share.integral(start) == pytest.approx(work)


def test_slots_follow_each_other_without_overlap() -> None:
    cluster = CLUSTERS["amd"]
    rng = np.random.default_rng(3)
    slots = [plan.Slot(plan.place(cluster, 4, rng), float(rng.uniform(1.0, 90.0))) for _ in range(40)]
    timeline, moments = plan.schedule(cluster, random_loading, 1, slots, rng)
    for slot, start, following in zip(slots, moments, moments[1:], strict=False):
        share = plan.lowest_share(cluster, timeline, slot.processors)
        assert plan.latest_end(share, start, slot.work) < following
    assert timeline.horizon > moments[-1]


@clusters
def test_the_platform_joins_all_processors_and_gives_each_its_load(cluster, tmp_path: Path) -> None:
    timeline = random_loading(cluster, 1, 2_000.0)
    root = ElementTree.parse(write_platform(cluster, timeline, tmp_path)).getroot()
    hosts = [host.get("id") for host in root.iter("host")]
    assert hosts == list(cluster.processors)
    assert all((tmp_path / host.get("speed_file")).is_file() for host in root.iter("host"))
    shared = [link.get("bandwidth_file") for link in root.iter("link") if link.get("bandwidth_file")]
    assert len(shared) == len(set(shared)) == 2 * cluster.node_count
    routes = {(route.get("src"), route.get("dst")): [c.get("id") for c in route] for route in root.iter("route")}
    assert len(routes) == len(hosts) ** 2
    for (source, target), links in routes.items():
        here, there = node_of(source), node_of(target)
        assert links == ([f"memory-{here}"] if here == there else [f"from-{here}", f"to-{there}"])


def test_a_profile_says_bytes_per_second_where_a_series_says_mbit(tmp_path: Path) -> None:
    cluster = CLUSTERS["intel"]
    timeline = random_loading(cluster, 1, 2_000.0)
    write_platform(cluster, timeline, tmp_path)
    first = (tmp_path / "to-n3.bandwidth").read_text().splitlines()[0].split()
    assert float(first[1]) * 8e-6 == pytest.approx(timeline.bandwidth["n3"].values[0])


@pytest.mark.parametrize("sharing", SHARING)
def test_a_pair_of_jobs_shares_what_it_says(sharing: str) -> None:
    rng = np.random.default_rng(4)
    for _ in range(50):
        first, second = draw_pair(CLUSTERS["woodcrest"], sharing, rng)
        processors = set(first.processors) & set(second.processors)
        nodes = common_nodes((first, second))
        assert (nodes > 0) == (sharing != "nothing")
        assert len(processors) == (nodes if sharing == "nodes" else 0)


def test_layouts_fit_the_cluster_and_fill_nodes_with_consecutive_ranks() -> None:
    quad, rng = MULTICORE["quad"], np.random.default_rng(0)
    wanted = plan.laid_out_requests(APPLICATIONS["is"], quad, rng, predictions=200)
    assert [len(one.processors) <= 16 for one in wanted[:60]] == [True] * 60
    assert {(len(one.processors), one.processes_per_node) for one in wanted[60:]} == set(plan.layouts(quad))
    filled = [[list(group) for _, group in itertools.groupby(map(node_of, one.processors))] for one in wanted]
    assert [{len(nodes) for nodes in job} for job in filled] == [{one.processes_per_node} for one in wanted]
    assert [len({nodes[0] for nodes in job}) for job in filled] == [len(job) for job in filled]
