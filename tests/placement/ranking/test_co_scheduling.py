"""Contention with running jobs: sharing slows down both sides, and the ranker steps aside when that pays."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np
import pytest
from descriptions import description_of
from hypothesis import given, settings
from hypothesis import strategies as st
from known_model import Known

from metasched.placement.clusters.bandwidth_matrix import BandwidthMatrix
from metasched.placement.clusters.constraints import Constraints
from metasched.placement.clusters.running_jobs import RunningJob, StartedJob, terms_left
from metasched.placement.clusters.state import ClusterState, SetMinima
from metasched.placement.clusters.switch_tree import Topology
from metasched.placement.ranking.co_scheduling import Coscheduled
from metasched.placement.ranking.contention import Share
from metasched.placement.ranking.query import Question
from metasched.placement.ranking.ranker import rank
from metasched.predictors.abilities import computing_share
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.records import InputError, Request, Run, Settings


def shared(cluster: ClusterState, job: RunningJob, model: Known, nodes: list[int]) -> tuple[float, float]:
    share = Share(np.array(nodes), np.ones(len(nodes), dtype=np.int64))
    time = model.predict_many(1.0, len(nodes), 1.0, 1000.0).execution_time
    found = Coscheduled({"c": (job,)}, 1.0).effects(cluster, model, [share], np.atleast_1d(time))
    return float(found.slowdown[0]), float(found.harm[0])


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


@pytest.mark.parametrize("nodes", [[0], [1], [0, 1], [1, 3], [0, 1, 2, 3]])
def test_in_a_measured_network_the_nodes_own_links_are_shared_as_on_one_switch(nodes: list[int]) -> None:
    measured = BandwidthMatrix(np.full((4, 4), 1e8))
    job = RunningJob(("a", "c"), (1, 1), 1.0, 1000.0)
    found = [
        shared(ClusterState.make("c", list("abcd"), available_bandwidth=[50.0, 100.0, 200.0, 400.0], network=network),
               job, Known(work=1.0, traffic=1e5), nodes)
        for network in (measured, None)
    ]  # fmt: skip
    assert found[0] == pytest.approx(found[1])
    assert (found[0] == (1.0, 0.0)) is ({*nodes} <= {1, 3})


def test_each_rack_has_the_uplink_that_is_its_own() -> None:
    uplink = np.array([100.0, 1e5, 1e5, np.inf])
    racks = Topology(("r1", "r2", "r3", "top"), np.array([3, 3, 3, -1]), uplink, np.array([0, 0, 1, 1, 2, 2]))
    cluster = ClusterState.make("c", list("abcdef"), available_bandwidth=1e5, network=racks)
    job = RunningJob(("a", "c"), (1, 1), 1.0, 1000.0)
    narrow, wide = (shared(cluster, job, Known(work=1.0, traffic=1e6), nodes) for nodes in ([1, 4], [3, 4]))
    assert narrow[0] > 1.3
    assert wide[0] < narrow[0]


def test_the_ranker_steps_aside_from_a_described_job() -> None:
    described = {
        "name": "c",
        "nodes": [{"names": "n[0-3]", "available_cpu": [1.0, 1.0, 0.9, 0.9]}],
        "running": [{"nodes": "n[0-1]", "computation": 500.0}],
    }
    description = description_of({"cluster": [described]})
    model = Known(traffic=30000.0)
    contention = Coscheduled(description.running, 1.0)
    assert rank(description.clusters, model, Question(1.0)).placements[0].resource_set.nodes == ("n0", "n1")
    best = rank(description.clusters, model, Question(1.0, contention=contention)).placements[0]
    assert best.resource_set.nodes == ("n2", "n3")
    assert best.slowdown == 1.0


def test_a_job_on_an_unknown_node_is_refused() -> None:
    described = {"name": "c", "nodes": [{"names": "n0"}], "running": [{"nodes": "n9", "computation": 1.0}]}
    with pytest.raises(InputError, match="a job runs on node n9, which is not described"):
        description_of({"cluster": [described]})


def test_a_job_on_processors_of_its_own_shares_only_links() -> None:
    cluster = ClusterState.make("c", ["n0", "n1"], processors=2)
    job = RunningJob(("n0", "n1"), (2, 2), 100.0, 100.0, dedicated=True)
    only_computing = shared(cluster, job, Known(traffic=0.0), [0])
    assert only_computing == (1.0, 0.0)
    assert shared(cluster, replace(job, dedicated=False), Known(traffic=0.0), [0])[0] > 1.2
    slowdown, harm = shared(cluster, replace(job, communication=1e4), Known(work=1.0, traffic=1e6), [0, 1])
    assert slowdown > 1.2
    assert harm > 10


def test_what_a_measurement_shows_already_is_not_counted_twice() -> None:
    # A job that sends half of its time leaves half of a link that has 1000 Mbit/s.
    model = Known(work=1.0, traffic=1e6)
    job = RunningJob(("n0", "n1"), (1, 1), 500.0, 500.0, dedicated=True, running_for=600.0)
    share = Share(np.array([0, 1]), np.array([1, 1]))
    measured = ClusterState.make("c", ["n0", "n1"], available_bandwidth=500.0)
    before = ClusterState.make("c", ["n0", "n1"], available_bandwidth=1000.0)

    def completion(cluster: ClusterState, job: RunningJob) -> float:
        time = model.predict_many(1.0, 2, 1.0, cluster.available_bandwidth[:1]).execution_time
        found = Coscheduled({"c": (job,)}, 1.0).effects(cluster, model, [share], time)
        return float((found.slowdown * time).item())

    hidden = replace(job, running_for=0.0)
    truth = completion(before, hidden)
    at_half = float(model.predict_many(1.0, 2, 1.0, 500.0).execution_time.item())
    assert completion(measured, job) == pytest.approx(max(truth, at_half))
    assert completion(measured, hidden) > 1.2 * truth


def visible_job(of_cpu: float) -> tuple[ClusterState, RunningJob]:
    """Two nodes of two processors, with a long job on one that shows in part, and a part of what the loads say."""
    minima = SetMinima(np.full(4, of_cpu), np.ones(4))
    cluster = ClusterState.make("c", ["n0", "n1"], processors=2, available_cpu=[0.9, 1.0], jobs=[1, 0])
    job = RunningJob(("n0",), (2,), 1e9, 0.0, running_for=600.0)
    return replace(cluster, minima=minima), job


def test_what_is_expected_of_sets_leaves_the_slowdown_by_a_job_that_shows() -> None:
    def slowdown(of_cpu: float) -> float:
        cluster, job = visible_job(of_cpu)
        asked = Question(1.0, Constraints(processors=(4,)), contention=Coscheduled({"c": (job,)}, 1.0))
        return rank([cluster], Known(traffic=0.0), asked).placements[0].slowdown

    assert slowdown(1.0) > 1.01
    assert slowdown(0.4) == pytest.approx(slowdown(1.0))


@dataclass(frozen=True)
class Clocked(Known):
    """Computes in proportion to the clock."""

    clocks: bool = True

    def under(self, settings: Settings) -> Clocked:
        return replace(self, work=self.work * 1000.0 / (settings.frequency or 1000.0))


def test_a_job_shares_with_others_as_its_clock_makes_it() -> None:
    cluster, job = visible_job(1.0)
    asked = Question(1.0, Constraints(processors=(4,)), contention=Coscheduled({"c": (job,)}, 1.0))
    slow = rank([cluster], Clocked(traffic=3e4), replace(asked, settings=(Settings(frequency=500.0),))).placements[0]
    known = rank([cluster], Known(work=200.0, traffic=3e4), asked).placements[0]
    assert known.slowdown > 1.01
    assert (slow.completion, slow.slowdown) == pytest.approx((known.completion, known.slowdown))


@pytest.mark.parametrize("described", [True, False])
def test_each_thread_takes_a_processor_that_others_may_want(described: bool) -> None:
    cluster = ClusterState.make("c", ["n0"], processors=4)
    contention = Coscheduled({"c": (RunningJob(("n0",), (2,), 1e9, 0.0),)}, 1.0, {"c": cluster} if described else {})
    asked = Question(1.0, Constraints(processors=(2,)), contention=contention)
    one, two = (
        rank([cluster], Known(traffic=0.0), replace(asked, settings=(Settings(None, threads),))).placements[0].slowdown
        for threads in (1, 2)
    )
    assert one == pytest.approx(1.0)
    assert two == pytest.approx(1.5)


def test_jobs_on_nodes_that_the_job_may_not_take_still_fill_the_uplinks() -> None:
    racks = Topology(
        ("r1", "r2", "top"), np.array([2, 2, -1]), np.array([100.0, 100.0, np.inf]), np.array([0, 0, 1, 1])
    )
    cluster = ClusterState.make("c", ["a", "b", "c", "d"], processors=[0, 1, 0, 1], network=racks)
    job = RunningJob(("a", "c"), (1, 1), 1.0, 1e5, dedicated=True)
    model = Known(work=1.0, traffic=1e6)
    asked = Question(1.0, Constraints(processors=(2,)))
    for whole, slowed in (({}, False), ({"c": cluster}, True)):
        contention = Coscheduled({"c": (job,)}, 1.0, whole)
        best = rank([cluster], model, replace(asked, contention=contention)).placements[0]
        assert best.resource_set.nodes == ("b", "d")
        assert (best.slowdown > 1.3) == slowed


def test_what_a_job_has_left_comes_from_its_model() -> None:
    cluster = ClusterState.make("c", ["n0", "n1"])
    model = Known(work=1000.0, traffic=1e5)
    alone = float(model.predict_many(1.0, 2, 1.0, 1000.0).execution_time.item())
    started = StartedJob(("n0", "n1"), (1, 1), 0.25 * alone, "lu", 1.0)
    (job,), notes = terms_left([started], cluster, {"lu": model}.get)
    assert notes == ()
    assert job.computation + job.communication == pytest.approx(0.75 * alone)
    assert job.computation == pytest.approx(0.75 * float(model.predict_many(1.0, 2, 1.0, 1e9).execution_time.item()))
    (late,), _ = terms_left([replace(started, running_for=9 * alone)], cluster, {"lu": model}.get)
    assert late.computation + late.communication == pytest.approx(0.1 * alone)


def test_what_a_job_has_left_counts_with_its_threads_its_layout_and_its_parameters() -> None:
    draw = np.random.default_rng(5)
    runs = [
        Run("lu", "c", n, p, 1.0, 1000.0, 1e-3 * n * steps * k**0.4 * t**-0.7 / p,
            extra={"processes_per_node": str(k), "threads": str(t), "parameter:steps": str(steps)})
        for n in (1e3, 2e3, 4e3) for p in (4, 8) for k, t in ((1, 1), (2, 2), (4, 1), (1, 4))
        for steps in (float(draw.choice((10, 20))), 40.0)
    ]  # fmt: skip
    model, nodes = RobustPredictor("lu", "c").fit(runs), ("n0", "n1")
    cluster = ClusterState.make("c", nodes, processors=4)

    def left(taken: tuple[int, ...], settings: Settings) -> float:
        started = StartedJob(nodes, taken, 0.0, "lu", 2e3, settings=settings)
        (job,), _ = terms_left([started], cluster, {"lu": model}.get)
        return job.computation + job.communication

    steps = {"steps": 20.0}
    cases = [((4, 4), 2, 4, 2), ((4, 4), 1, 8, 4), ((4, 3), 2, 3, 2), ((1, 1), 2, 1, 1)]
    for taken, threads, processes, per_node in cases:
        asked = Request(2e3, processes, 1.0, 1000.0, settings=Settings.of(per_node, threads, steps))
        predicted = model.predict(asked).execution_time
        assert left(taken, Settings.of(None, threads, steps)) == pytest.approx(predicted, rel=0.01)
    # What was never varied in a run makes no difference.
    assert left((4, 4), Settings.of(parameters={"colour": "red"})) == pytest.approx(left((4, 4), Settings()))


def test_the_split_is_the_models_own_where_bandwidth_makes_no_difference() -> None:
    draw = np.random.default_rng(3)
    runs = [
        Run("mg", "c", n, p, cpu, bw, 1e-3 * n / (cpu * p) + (2e-3 * n * (1 - 1 / p)))  # latency, no matter the width
        for n in (1e3, 2e3, 4e3, 8e3) for p in (1, 2, 4, 8)
        for cpu, bw in [(float(draw.uniform(0.4, 1.0)), float(draw.uniform(100.0, 1000.0))) for _ in range(3)]
    ]  # fmt: skip
    model = RobustPredictor("mg", "c").fit(runs)
    terms = model.breakdown(Request(4e3, 8, 1.0, 1000.0))
    said = terms[0].seconds / sum(term.seconds for term in terms)
    assert said == pytest.approx((1 / 8) / (1 / 8 + 2 * 7 / 8), abs=0.1)
    assert float(computing_share(model, 4e3, 8, 1.0, 1000.0)[0]) == pytest.approx(said)
    nodes = tuple(f"n{k}" for k in range(8))
    cluster = ClusterState.make("c", nodes)
    (job,), _ = terms_left([StartedJob(nodes, (1,) * 8, 0.0, "mg", 4e3)], cluster, {"mg": model}.get)
    assert job.computation / (job.computation + job.communication) == pytest.approx(said)


def test_a_job_of_less_than_a_second_shares_too() -> None:
    runs = [Run("lu", "c", n, p, 1.0, 1000.0, 1e-4 * n / p) for n in (1e3, 2e3, 4e3) for p in (1, 2, 4)]
    known = {"lu": RobustPredictor("lu", "c").fit(runs)}.get
    (job,), notes = terms_left([StartedJob(("n0",), (1,), 0.0, "lu", 2e3)], ClusterState.make("c", ["n0"]), known)
    assert job.computation + job.communication == pytest.approx(0.2, rel=0.05)
    assert notes == ()


def test_a_job_without_a_model_is_taken_not_to_share_and_the_answer_says_so() -> None:
    cluster = ClusterState.make("c", ["n0", "n1"])
    jobs = [StartedJob(("n0",), (1,), 5.0, "lu", 1.0), StartedJob(("n0",), (1,), 5.0), StartedJob(("x",), (1,), 5.0)]
    running, notes = terms_left(jobs, cluster, lambda application: None)
    assert running == ()
    model = Known()
    contention = Coscheduled({"c": running}, 1.0, notes=notes)
    ranking = rank([cluster], model, Question(1.0, contention=contention))
    line = "2 jobs on c are assumed to share nothing, since they have no model: lu, no application is named"
    assert ranking.warnings == (line,)
    assert ranking.placements[0].slowdown == 1.0


def test_a_running_job_with_gpus_has_the_time_of_runs_with_its_gpus() -> None:
    runs = [
        Run("lu", "c", n, p, 1.0, 1000.0, (0.1 if gpu else 1.0) * n / p, extra={"parameter:gpu": gpu} if gpu else {})
        for n in (1e3, 2e3, 4e3) for p in (1, 2) for gpu in ("", "a100")
    ]  # fmt: skip
    cluster, model = ClusterState.make("c", ["n0"]), {"lu": RobustPredictor("lu", "c").fit(runs)}.get
    jobs = [StartedJob(("n0",), (1,), 0.0, "lu", 1e3, devices=(("gpu", gpu),)) for gpu in ("none", "a100")]
    fast, plain = sorted(terms_left(jobs, cluster, model)[0], key=lambda job: job.computation)
    assert plain.computation + plain.communication == pytest.approx(1000.0, rel=0.1)
    assert fast.computation + fast.communication == pytest.approx(100.0, rel=0.1)
    never = RobustPredictor("lu", "c").fit([run for run in runs if not run.extra])
    assert terms_left(jobs[1:], cluster, {"lu": never}.get)[0] == ()


def test_a_network_that_would_take_too_long_is_answered_by_equal_shares() -> None:
    cluster = ClusterState.make("c", ["n0"])
    job = RunningJob(("n0",), (1,), 50.0, 50.0)
    model = Known(traffic=0.0)
    contention = Coscheduled({"c": (job,)}, 1.0, effort=10)
    ranking = rank([cluster], model, Question(1.0, contention=contention))
    assert any(line.startswith("contention with 1 running jobs is that of equal shares") for line in ranking.warnings)
    assert ranking.placements[0].slowdown > 1.0


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_no_set_beats_the_ranking_by_more_than_its_gap(data: st.DataObject) -> None:
    size = data.draw(st.integers(2, 5))
    share = st.sampled_from([0.25, 0.5, 0.9, 1.0])
    cpu = data.draw(st.lists(share, min_size=size, max_size=size))
    width = data.draw(st.lists(st.sampled_from([100.0, 400.0, 1000.0]), min_size=size, max_size=size))
    names = [f"n{index}" for index in range(size)]
    jobs = []
    for _ in range(data.draw(st.integers(1, 3))):
        taken = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=size, unique=True))
        terms = data.draw(st.floats(1, 500)), data.draw(st.floats(0, 500))
        jobs.append(RunningJob(tuple(taken), (1,) * len(taken), *terms))
    busy = [sum(name in job.nodes for job in jobs) for name in names]
    cluster = ClusterState.make("c", names, available_cpu=cpu, available_bandwidth=width, jobs=busy)
    model = Known(traffic=data.draw(st.sampled_from([0.0, 3e3, 3e5])))
    contention = Coscheduled({"c": jobs}, 1.0)
    ranking = rank([cluster], model, Question(1.0, contention=contention))
    every = [np.array(chosen) for count in range(1, size + 1) for chosen in itertools.combinations(range(size), count)]
    time = np.array(
        [
            model.predict_many(
                1.0, nodes.size, cluster.effective_cpu[nodes].min(), cluster.available_bandwidth[nodes].min()
            ).execution_time.item()
            for nodes in every
        ]
    )
    shares = [Share(nodes, np.ones(nodes.size, dtype=np.int64)) for nodes in every]
    best = (time * contention.effects(cluster, model, shares, time).slowdown).min()
    assert best * (1 - 1e-4) <= ranking.placements[0].completion <= best * (1 + ranking.gap) * (1 + 1e-4)
