"""What jobs that share do to each other, and the cluster that they share."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metasched.contention.effort import Effort, EffortError
from metasched.contention.equal_shares import equal_shares
from metasched.contention.idle import Idle
from metasched.contention.reduction import reduced
from metasched.contention.shared_cluster import SharedCluster, Work
from metasched.contention.slowdown import effects, time_to_end
from metasched.contention.synchronised import Stage, slowdowns
from metasched.queueing.multi_class import solve_exactly
from metasched.records import InputError

law = settings(max_examples=40, deadline=None)
SECONDS = st.floats(0.5, 50.0)


@st.composite
def shared(draw: st.DrawFn, most: int = 4) -> tuple[SharedCluster, Work]:
    nodes, jobs = draw(st.integers(1, most)), draw(st.integers(2, 4))
    processors = draw(st.lists(st.integers(1, 3), min_size=nodes, max_size=nodes))
    cluster = SharedCluster.star(processors, 100.0)
    rows = st.lists(st.integers(0, 2), min_size=nodes, max_size=nodes).filter(any)
    processes = draw(st.lists(rows, min_size=jobs, max_size=jobs))
    terms = [draw(st.lists(SECONDS, min_size=jobs, max_size=jobs)) for _ in range(2)]
    return cluster, Work.of(cluster, [processes], [terms[0]], [terms[1]])


def _stages(cluster: SharedCluster, work: Work) -> tuple[Stage, Stage, np.ndarray]:
    return (
        Stage(work.computing, work.load, cluster.processors[None].astype(float)),
        Stage(work.sending, work.flows, np.zeros((1, cluster.width.size))),
        np.ones(work.remaining.shape, dtype=bool),
    )


@law
@given(shared())
def test_nobody_is_sped_up_and_nobody_waits_for_more_than_everybody(case: tuple[SharedCluster, Work]) -> None:
    cluster, work = case
    stretch = slowdowns(*_stages(cluster, work))[0]
    assert np.all(stretch >= 1 - 1e-7)
    # A processor or link shared by all processes gives each at least its equal part.
    most = work.load[0].sum(axis=0).max()
    smallest = np.where(work.flows[0] > 0, work.flows[0], np.inf).min(axis=1)
    flows = np.where(np.isfinite(smallest), work.flows[0].sum(axis=0).max() / smallest, 1.0)
    assert np.all(stretch <= np.maximum(most, flows) + 1e-6)


@law
@given(shared(most=1))
def test_one_job_more_on_a_node_never_helps_the_others_there(case: tuple[SharedCluster, Work]) -> None:
    # On several nodes it may: whoever it holds up elsewhere leaves more to the others here.
    cluster, work = case
    pure = Work(work.load, work.computing, work.flows, np.zeros_like(work.sending), work.remaining)
    computing, sending, active = _stages(cluster, pure)
    fewer = active.copy()
    fewer[:, -1] = False
    after, before = slowdowns(computing, sending, active), slowdowns(computing, sending, fewer)
    assert np.all(after[:, :-1] >= before[:, :-1] * (1 - 1e-6))


@pytest.mark.parametrize("split", [0.1, 0.5, 0.9])
def test_two_jobs_on_one_processor_are_the_two_class_network(split: float) -> None:
    demands, think = np.array([[split, 0.7]]), np.array([1 - split, 0.4])
    exact = solve_exactly(demands, think, [1, 1], np.ones((1, 2))).throughput
    cpu = Stage(demands.T[None], np.ones((1, 2, 1)), np.ones((1, 1)))
    apart = Stage(np.diag(think)[None], np.eye(2)[None], np.zeros((1, 2)))
    stretch = slowdowns(cpu, apart, np.ones((1, 2), dtype=bool))[0]
    np.testing.assert_allclose(stretch, 1 / exact / (demands[0] + think), rtol=1e-6)


def test_a_chain_of_jobs_that_only_compute_halves_every_one() -> None:
    # The second shares one node with the first and another with the third; it is never early anywhere.
    cluster = SharedCluster.star([1, 1, 1, 1], 100.0)
    work = Work.of(cluster, [[[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]], np.full((1, 3), 5.0), np.zeros((1, 3)))
    np.testing.assert_allclose(slowdowns(*_stages(cluster, work)), 2.0, rtol=1e-5)


def test_processors_to_spare_slow_nobody() -> None:
    cluster = SharedCluster.star([4], 100.0)
    work = Work.of(cluster, [[[2], [1], [1]]], np.full((1, 3), 5.0), np.zeros((1, 3)))
    assert slowdowns(*_stages(cluster, work)).tolist() == [[1.0, 1.0, 1.0]]


def test_too_many_processes_for_a_node_share_its_processors() -> None:
    cluster = SharedCluster.star([2], 100.0)
    work = Work.of(cluster, [[[2], [1], [1]]], np.full((1, 3), 5.0), np.zeros((1, 3)))
    np.testing.assert_allclose(slowdowns(*_stages(cluster, work)), 2.0, rtol=1e-6)


@law
@given(st.integers(2, 4), st.data())
def test_idle_processors_are_counted_as_over_all_patterns_of_presence(jobs: int, data: st.DataObject) -> None:
    loads = np.array(data.draw(st.lists(st.integers(1, 3), min_size=jobs, max_size=jobs)), dtype=float)
    there = np.array(data.draw(st.lists(st.floats(0, 1), min_size=jobs, max_size=jobs)))
    capacity = data.draw(st.integers(2, 5))
    stage = Stage(np.ones((1, jobs, 1)), loads[None, :, None], np.array([[float(capacity)]]))
    found = stage.residence(there[None, None, :, None])[0, :, 0]
    for job in range(jobs):
        others = [other for other in range(jobs) if other != job]
        mean = 0.0
        for pattern in itertools.product([0, 1], repeat=len(others)):
            chance = np.prod([there[o] if here else 1 - there[o] for o, here in zip(others, pattern, strict=True)])
            mean += chance * max(
                capacity, loads[job] + sum(loads[o] for o, h in zip(others, pattern, strict=True) if h)
            )
        assert found[job] == pytest.approx(mean / max(capacity, loads[job]), rel=1e-9)


def test_jobs_disturb_each_other_only_while_both_run() -> None:
    cluster = SharedCluster.star([1], 100.0)
    work = Work.of(cluster, [[[1], [1]]], [[10.0, 30.0]], [[0.0, 0.0]])
    # Both at half speed until the first ends at 20 s; the second has then 20 s left.
    np.testing.assert_allclose(time_to_end(cluster, work), [[20.0, 40.0]], rtol=1e-6)


def test_every_candidate_is_answered_as_if_it_were_the_only_one() -> None:
    generator = np.random.default_rng(3)
    cluster = SharedCluster([2, 1, 1, 2], np.ones(4), [0, 0, 1, 2], [100.0, 100.0, 50.0], [-1, 0, 0])
    running = Work.of(cluster, [[1, 1, 0, 0], [0, 1, 1, 1]], [20.0, 9.0], [5.0, 3.0])
    places = generator.integers(0, 2, (12, 4)) + np.eye(4)[generator.integers(0, 4, 12)]
    terms = generator.uniform(1, 30, (2, 12))
    together = effects(cluster, running, Work.of(cluster, places, *terms))
    for index in range(12):
        one = effects(cluster, running, Work.of(cluster, places[index : index + 1], *terms[:, index : index + 1]))
        np.testing.assert_allclose(together.slowdown[index], one.slowdown[0], rtol=1e-6)
        np.testing.assert_allclose(together.caused[index], one.caused[0], rtol=1e-6)
        np.testing.assert_allclose(together.lost[index], one.lost[0], rtol=1e-4, atol=1e-4)


def test_links_are_shared_by_flows_and_an_uplink_by_all_below_it() -> None:
    # Two racks of two nodes; both jobs run across the racks on nodes of their own and meet on the uplinks.
    cluster = SharedCluster(np.ones(4), np.ones(4), [0, 1, 2, 3], [100.0] * 4 + [100.0, 100.0], [4, 4, 5, 5, -1, -1])
    work = Work.of(cluster, [[[1, 0, 1, 0], [0, 1, 0, 1]]], [[0.0, 0.0]], [[4.0, 4.0]])
    np.testing.assert_allclose(slowdowns(*_stages(cluster, work)), 2.0, rtol=1e-6)
    apart = Work.of(cluster, [[[1, 1, 0, 0], [0, 0, 1, 1]]], [[0.0, 0.0]], [[4.0, 4.0]])
    assert slowdowns(*_stages(cluster, apart)).tolist() == [[1.0, 1.0]]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (([1, 0], [1.0, 1.0], [0, 1], [1.0, 1.0], [-1, -1]), "processors of a cluster holds 0"),
        (([1, 1], [1.0, np.nan], [0, 1], [1.0, 1.0], [-1, -1]), "available_cpu of a cluster holds nan"),
        (([1, 1], [1.0, 1.0], [0, 2], [1.0, 1.0], [-1, -1]), "names a link outside 0..1"),
        (([1, 1], [1.0, 1.0], [0, 1], [1.0, 1.0], [1, 0]), "contains a cycle"),
        (([1, 1], [1.0], [0, 1], [1.0, 1.0], [-1, -1]), "must have one value for each of its 2 pools"),
        (([1, 1], [1.0, 1.0], [0, 1], [1.0, 1.0], [-1]), "parent of a cluster has 1 numbers"),
    ],
)
def test_clusters_that_cannot_be_get_a_line(arguments: tuple, line: str) -> None:
    with pytest.raises(InputError, match=line):
        SharedCluster(*arguments)


@pytest.mark.parametrize(
    ("processes", "computation", "extra", "line"),
    [
        ([1, 1, 1], 1.0, {"communication": 1.0}, "processes cover 3 pools, expected 2"),
        ([0, 0], 1.0, {"communication": 1.0}, "at least one for each job"),
        ([1, 0.5], 1.0, {"communication": 1.0}, "whole numbers"),
        ([1, 1], -1.0, {"communication": 1.0}, "computation of a job holds -1.0"),
        ([1, 1], 1.0, {"communication": -1.0}, "communication of a job holds -1.0"),
        ([1, 1], 0.0, {"communication": 0.0}, "no remaining work"),
        ([1, 1], 1.0, {"communication": 1.0, "remaining": np.inf}, "no finite time"),
        ([1, 1], 1.0, {"communication": 1.0, "remaining": -1.0}, "no finite time"),
    ],
)
def test_work_that_cannot_be_gets_a_line(processes: list, computation: float, extra: dict, line: str) -> None:
    with pytest.raises(InputError, match=line):
        Work.of(SharedCluster.star([1, 1], 100.0), processes, computation, **extra)


@st.composite
def questions(draw: st.DrawFn) -> tuple[SharedCluster, Work, Work]:
    """Jobs and candidates on racks of alike nodes, each with as many processes on every node that it takes."""
    racks, below = draw(st.integers(1, 2)), draw(st.integers(1, 3))
    nodes = racks * below
    processors = draw(st.integers(1, 3))
    own, up = draw(st.sampled_from([50.0, 100.0])), draw(st.sampled_from([60.0, 200.0]))
    cluster = SharedCluster(
        np.full(nodes, processors),
        np.array(draw(st.lists(st.sampled_from([0.5, 1.0]), min_size=nodes, max_size=nodes))),
        np.arange(nodes),
        np.append(np.full(nodes, own), np.full(racks, up)),
        np.append(nodes + np.arange(nodes) // below, np.full(racks, -1)),
    )

    def work(most: int) -> Work:
        jobs = draw(st.integers(1, most))
        where = st.lists(st.booleans(), min_size=nodes, max_size=nodes).filter(any)
        taken = np.array(draw(st.lists(where, min_size=jobs, max_size=jobs)), dtype=float)
        taken *= np.array(draw(st.lists(st.integers(1, 3), min_size=jobs, max_size=jobs)))[:, None]
        terms = [draw(st.lists(SECONDS, min_size=jobs, max_size=jobs)) for _ in range(2)]
        return Work.of(cluster, taken, *terms)

    return cluster, work(4), work(3)


@law
@given(questions())
def test_what_is_left_out_changes_no_answer(case: tuple[SharedCluster, Work, Work]) -> None:
    cluster, running, candidates = case
    found = effects(cluster, running, candidates)
    alone = time_to_end(cluster, Work(*(part[None] for part in _parts(running))))[0]
    for index in range(candidates.remaining.size):
        both = zip(_parts(running), _parts(candidates), strict=True)
        together = Work(*(np.concatenate([there, asked[index : index + 1]])[None] for there, asked in both))
        ends = time_to_end(cluster, together)[0]
        assert found.slowdown[index] == pytest.approx(max(ends[-1] / candidates.remaining[index], 1.0), rel=1e-4)
        assert found.lost[index] == pytest.approx(np.maximum(ends[:-1] - alone, 0.0), abs=2e-4 * ends.max())


def _parts(work: Work) -> tuple[np.ndarray, ...]:
    return work.load, work.computing, work.flows, work.sending, work.remaining


def test_a_hundred_alike_nodes_are_one_station() -> None:
    cluster = SharedCluster.star([2] * 100, 100.0)
    work = Work.of(cluster, np.full((3, 100), 2.0), [9.0, 5.0, 7.0], [1.0, 2.0, 3.0])
    stages = (
        Stage(work.computing[None], work.load[None], cluster.processors[None].astype(float)),
        Stage(work.sending[None], work.flows[None], np.zeros((1, 100))),
    )
    # One shared by all, and one for what each of the three does alone.
    assert [reduced(stage).demands.shape for stage in stages] == [(1, 3, 4)] * 2


def test_many_jobs_are_answered_nearly_as_if_each_found_the_others_without_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    generator = np.random.default_rng(5)
    cluster = SharedCluster.star([4] * 6, 100.0)
    work = Work.of(
        cluster, generator.integers(0, 3, (1, 10, 6)) + np.eye(6)[generator.integers(0, 6, (1, 10))],
        generator.uniform(5, 50, (1, 10)), generator.uniform(5, 50, (1, 10)),
    )  # fmt: skip
    quick = slowdowns(*_stages(cluster, work))
    monkeypatch.setattr("metasched.contention.synchronised.FEW", 10)
    assert np.abs(quick / slowdowns(*_stages(cluster, work)) - 1).max() < 0.05


@law
@given(st.data())
def test_idle_processors_of_many_jobs_are_nearly_those_of_all_patterns(data: st.DataObject) -> None:
    jobs = 6
    loads = np.array(data.draw(st.lists(st.integers(1, 3), min_size=jobs, max_size=jobs)), dtype=float)
    there = np.array(data.draw(st.lists(st.floats(0.05, 0.95), min_size=jobs, max_size=jobs)))
    idle = Idle.of(loads[None, :, None], np.array([[float(data.draw(st.integers(2, 12)))]]))
    presence = there[None, None, :, None]
    exact, close = idle.spare(presence), Idle(idle.loads, idle.capacity, None).spare(presence)
    assert np.abs(close - exact).max() < 0.3


def test_more_effort_than_allowed_is_refused() -> None:
    cluster = SharedCluster.star([1, 1], 100.0)
    there = Work.of(cluster, [[1, 1]], [9.0], [5.0])
    asked = Work.of(cluster, [[1, 1]], [9.0], [5.0])
    with pytest.raises(EffortError, match="more than 100 numbers"):
        effects(cluster, there, asked, effort=Effort(100))


def test_iterations_of_small_networks_are_not_free() -> None:
    """Each takes some time however few numbers it computes: an answer must not take seconds by thousands of them."""
    cluster = SharedCluster.star([1, 1], 100.0)
    there = Work.of(cluster, [[1, 1]], [9.0], [5.0])
    asked = Work.of(cluster, [[1, 1]], [9.0], [5.0])
    with pytest.raises(EffortError):
        effects(cluster, there, asked, effort=Effort(20_000))


@given(st.integers(0, 100_000))
def test_the_candidate_ends_at_the_same_time_where_others_are_followed_no_further(seed: int) -> None:
    draw = np.random.default_rng(seed)
    nodes, jobs = int(draw.integers(2, 5)), int(draw.integers(1, 5))
    cluster = SharedCluster.star(draw.integers(1, 3, nodes), draw.uniform(10, 100, nodes))

    def work(count: int) -> Work:
        processes = draw.integers(0, 3, (count, nodes))
        processes[:, int(draw.integers(nodes))] += 1
        return Work.of(cluster, processes, draw.uniform(1, 9, count), draw.uniform(0, 9, count))

    there, asked = work(jobs), work(3)
    whole, short = effects(cluster, there, asked), effects(cluster, there, asked, lost=False)
    assert short.slowdown == pytest.approx(whole.slowdown, rel=1e-9)
    assert not short.lost.any()


def test_equal_shares_need_no_network() -> None:
    cluster = SharedCluster.star([1], 100.0)
    there = Work.of(cluster, [[1]], [10.0], [0.0])
    asked = Work.of(cluster, [[1]], [30.0], [0.0])
    found = effects(cluster, there, asked, stretched=equal_shares)
    assert found.slowdown == pytest.approx(40 / 30)
    assert found.lost == pytest.approx(10.0)


def test_the_effort_counts_every_candidate_job_and_pattern() -> None:
    loads, capacity = np.ones((2, 3, 4)), np.full((2, 4), 2.0)
    tabled, untabled = Idle.of(loads, capacity), Idle(loads, capacity, None)
    alike = [each.effort(everybody=True) for each in (untabled, tabled)]
    apart = [each.effort(everybody=False) for each in (untabled, tabled)]
    assert (alike[0], apart[0]) == (20 * loads.size, (20 + 4 * 3) * loads.size)
    assert alike[1] - alike[0] == apart[1] - apart[0] == 3 * 2**3 * loads.size
    assert tabled.take(np.array([1])).effort(everybody=True) == alike[1] / 2
