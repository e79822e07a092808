"""Contention with running jobs: sharing slows down both sides, and the ranker steps aside when that pays."""

from __future__ import annotations

import numpy as np
import pytest
from known_model import Known

from metasched.placement.cluster import ClusterState
from metasched.placement.coscheduled import Coscheduled, RunningJob
from metasched.placement.description import build_description
from metasched.placement.question import Question
from metasched.placement.ranker import rank
from metasched.placement.sharing import Share
from metasched.placement.topology import Topology
from metasched.records import InputError


def shared(cluster: ClusterState, job: RunningJob, model: Known, nodes: list[int]) -> tuple[float, float]:
    share = Share(np.array(nodes), np.ones(len(nodes), dtype=np.int64))
    time = model.predict_many(1.0, len(nodes), 1.0, 1000.0).execution_time
    slowdown, harm = Coscheduled({"c": (job,)}, {"c": model}, 1.0).effects(cluster, [share], np.atleast_1d(time))
    return float(slowdown[0]), float(harm[0])


def test_two_jobs_on_one_processor_take_twice_as_long_while_both_run() -> None:
    cluster = ClusterState.make("c", ["n0", "n1"])
    job = RunningJob(("n0",), (1,), 100.0, 0.0)
    slowdown, harm = shared(cluster, job, Known(traffic=0.0), [0])
    assert slowdown == pytest.approx(2.0)
    assert harm == pytest.approx(100.0)
    assert shared(cluster, job, Known(traffic=0.0), [1]) == (1.0, 0.0)


def test_jobs_on_other_nodes_still_share_an_uplink() -> None:
    racks = Topology(
        ("r1", "r2", "top"), np.array([2, 2, -1]), np.array([100.0, 100.0, np.inf]), np.array([0, 0, 1, 1])
    )
    cluster = ClusterState.make("c", ["a", "b", "c", "d"], network=racks)
    job = RunningJob(("a", "c"), (1, 1), 1.0, 1000.0)
    across, within = (shared(cluster, job, Known(work=1.0, traffic=1e6), nodes) for nodes in ([1, 3], [1]))
    assert across[0] > 1.3
    assert across[1] > 100
    assert within == (1.0, 0.0)


def test_the_ranker_steps_aside_from_a_described_job() -> None:
    described = {
        "name": "c",
        "nodes": [{"names": "n[0-3]", "available_cpu": [1.0, 1.0, 0.9, 0.9]}],
        "running": [{"nodes": "n[0-1]", "computation": 500.0}],
    }
    description = build_description({"cluster": [described]})
    model = Known(traffic=30000.0)
    contention = Coscheduled(description.running, {"c": model}, 1.0)
    assert rank(description.clusters, model, Question(1.0)).placements[0].resource_set.nodes == ("n0", "n1")
    best = rank(description.clusters, model, Question(1.0, contention=contention)).placements[0]
    assert best.resource_set.nodes == ("n2", "n3")
    assert best.slowdown == 1.0


def test_a_job_on_an_unknown_node_is_refused() -> None:
    described = {"name": "c", "nodes": [{"names": "n0"}], "running": [{"nodes": "n9", "computation": 1.0}]}
    with pytest.raises(InputError, match="a job runs on node n9, which is not described"):
        build_description({"cluster": [described]})
