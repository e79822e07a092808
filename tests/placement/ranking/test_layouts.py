"""The ranker chooses nodes, processes per node and threads together, as well as looking at every one of them would."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from known_model import Known

from metasched.blocks.power import of_processors
from metasched.placement.clusters.constraints import Constraints
from metasched.placement.clusters.queue_wait import QueueWait
from metasched.placement.clusters.state import ClusterState, SetMinima
from metasched.placement.clusters.switch_tree import Topology
from metasched.placement.ranking.layouts import MOST_LAYOUTS, layouts
from metasched.placement.ranking.objective import Objective
from metasched.placement.ranking.query import InfeasibleError, Question
from metasched.placement.ranking.ranker import rank
from metasched.placement.search.exact_search import Scope
from metasched.predictors.abilities import under
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.records import DEFAULT_SETTINGS, Request, Run, Settings
from tests.predictors.laid_out import laid_out


@dataclass(frozen=True)
class Laid(Known):
    """Memory shared by k processes slows computation by k^sharing, t threads make it t^0.8 as fast."""

    sharing: float = 0.3
    known: tuple[tuple[int | None, int], ...] = ()

    @property
    def layouts(self) -> frozenset[tuple[int | None, int]]:
        return frozenset(self.known)

    def under(self, settings: Settings) -> Laid:
        k, t = settings.processes_per_node or 1, settings.threads
        return replace(self, work=100.0 * k**self.sharing * t**-0.8, traffic=self.traffic / (1.0 + 0.5 * (k > 1)))


#: Learned with 1, 2 and 4 processes on a node.
LAID_OUT = RobustPredictor("cg", "c8").fit(laid_out(30, parameters=False))


@given(st.integers(0, 100_000))
def test_no_placement_with_any_layout_is_sooner(seed: int) -> None:
    draw = np.random.default_rng(seed)
    state = ClusterState.make(
        "c", ["n0", "n1", "n2"], processors=draw.integers(1, 6, 3), available_cpu=draw.uniform(0.2, 1.0, 3),
        available_bandwidth=draw.uniform(10, 1000, 3),
    )  # fmt: skip
    model = Laid(traffic=float(draw.uniform(0, 3000)), sharing=float(draw.uniform(0, 1)))
    chosen = [Settings(k, t) for k, t in product((1, 2, 4), (1, 2))]
    best, largest = np.inf, int(state.processors.max())
    for each in chosen:
        per_node = min(each.processes_per_node or 9, max(largest // each.threads, 1))  # no node of it takes more
        each = replace(each, processes_per_node=per_node)
        places = [min(int(has) // each.threads, per_node) for has in state.processors]
        for counts in product(*(range(most + 1) for most in places)):
            used = np.flatnonzero(counts)
            if used.size:
                cpu, width = state.available_cpu[used].min(), state.network.bandwidth(state.available_bandwidth, used)
                time = model.under(each).predict_many(1.0, sum(counts), cpu, width).execution_time
                best = min(best, time.item())
    asked = Question(1.0, Constraints(least_efficiency=0.0), settings=tuple(chosen))
    found = rank([state], model, asked).placements
    assert found[0].completion == pytest.approx(best)
    sets = [(one.resource_set.nodes, one.resource_set.processors, one.resource_set.place) for one in found]
    assert len(set(sets)) == len(sets)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 100_000), st.sampled_from(["top", "processors", "all"]))
def test_powers_taken_once_find_what_single_predictions_find(seed: int, scope: Scope) -> None:
    draw = np.random.default_rng(seed)
    size = int(draw.integers(20, 60))
    racks = Topology(("r0", "r1", "top"), np.array([2, 2, -1]), np.array([300.0, 500.0, np.inf]), np.arange(size) % 2)
    ends = np.repeat([[0.5], [1.5]], 8, axis=1)
    clusters = [
        replace(
            ClusterState.make(
                name, [f"{name}{node}" for node in range(size)], processors=draw.integers(1, 6, size),
                available_cpu=draw.uniform(0.2, 1.0, size), available_bandwidth=draw.uniform(10, 1000, size),
                network=racks, queue_wait=QueueWait.always(float(draw.choice([0.0, 20.0]))),
            ),
            minima=SetMinima(draw.uniform(0.5, 1.0, 8), draw.uniform(0.5, 1.0, 8), ends, ends) if forecast else None,
        )
        for name, forecast in (("a", True), ("b", False))
    ]  # fmt: skip
    models = {
        name: Laid(traffic=float(draw.uniform(0, 30000)), sharing=float(draw.uniform(0, 1)))
        for name in ("a", "b")
    }  # fmt: skip
    chosen = tuple(Settings(k, t) for k, t in product((1, 2, 4), (1, 2)))
    asked = Question(3.0, Constraints(max_processors=40), settings=chosen, scope=scope, top=5)
    quick, slow = (
        rank(clusters, {name: replace(model, tells_powers=powers) for name, model in models.items()}, asked)
        for powers in (True, False)
    )
    assert [each.completion for each in quick.placements] == pytest.approx(
        [each.completion for each in slow.placements]
    )
    if scope != "top":
        assert quick.curve.processors.tolist() == slow.curve.processors.tolist()
        assert quick.curve.completion == pytest.approx(slow.curve.completion)


def test_processes_that_share_memory_are_spread_and_those_that_talk_are_packed() -> None:
    state = ClusterState.make("c", ["n0", "n1", "n2", "n3"], processors=4, available_bandwidth=100.0)
    every = tuple(Settings(k) for k in (1, 4))
    four = Constraints(processors=(4,))
    spread = rank([state], Laid(traffic=0.0, sharing=0.5), Question(1.0, four, settings=every)).placements[0]
    packed = rank([state], Laid(traffic=9000.0, sharing=0.0), Question(1.0, four, settings=every)).placements[0]
    assert (len(spread.resource_set.nodes), spread.as_dict()["processes_per_node"]) == (4, 1)
    assert (len(packed.resource_set.nodes), packed.as_dict()["processes_per_node"]) == (1, 4)
    assert "1 process a node instead of 4" in packed.reason


def test_a_process_takes_as_many_processors_as_it_has_threads() -> None:
    state = ClusterState.make("c", ["n0", "n1"], processors=4, hardware=of_processors(10.0))
    question = Question(1.0, Constraints(), Objective(core_hours=60.0), settings=(Settings(None, 2),), top=9)
    ranking = rank([state], Laid(), question)
    assert max(one.resource_set.processors for one in ranking.placements) == 4
    first = ranking.placements[0]
    hours = 2 * first.resource_set.processors * first.prediction.execution_time / 3600.0
    assert ranking.costs[0]["core_hours"] == pytest.approx(hours)


def test_layouts_are_those_that_it_has_run_with_and_that_fit() -> None:
    state = ClusterState.make("c", ["n0", "n1"], processors=[4, 8])
    model = Laid(known=tuple(product((1, 4, 16), (1, 4))))
    assert layouts([state], Known(), DEFAULT_SETTINGS) == ()
    assert layouts([state], model, Settings(2)) == (Settings(2),)
    assert layouts([state], model, Settings(2), Constraints(per_node=2)) == ()
    assert layouts([state], model, DEFAULT_SETTINGS) == (Settings(1), Settings(4), Settings(8))
    assert layouts([state], model, DEFAULT_SETTINGS, Constraints(per_node=3)) == (Settings(1), Settings(3))
    assert layouts([state], model, DEFAULT_SETTINGS, Constraints(per_node=1)) == (Settings(1),)
    assert layouts([state], Laid(known=((2, 1),)), DEFAULT_SETTINGS) == ()
    assert layouts([state], Laid(known=((1, 1), (4, 1))), DEFAULT_SETTINGS) == (Settings(1), Settings(4))
    assert layouts([state], model, Settings(threads=4)) == (Settings(1, 4), Settings(2, 4))
    some = layouts([state], model, Settings(parameters=(("k", 1.0),)), any_threads=True)
    assert [(one.processes_per_node, one.threads) for one in some] == [(1, 1), (1, 4), (2, 4), (4, 1), (8, 1)]
    assert {one.parameters for one in some} == {(("k", 1.0),)}
    assert layouts([state], Laid(known=((2, 4),)), DEFAULT_SETTINGS, any_threads=True) == (Settings(threads=4),)
    many = Laid(known=tuple((k, 1) for k in range(1, 9)) + tuple((k, 2) for k in range(1, 9)))
    assert len(layouts([state], many, DEFAULT_SETTINGS, any_threads=True)) == MOST_LAYOUTS


@pytest.mark.parametrize(("threads", "per_node"), [(1, None), (1, 4), (1, 3), (1, 2), (2, None), (2, 4)])
@pytest.mark.parametrize("model", [Laid(), Laid(known=((1, 1), (2, 1), (4, 1)))])
def test_no_node_takes_more_processes_than_were_asked_for(model: Laid, threads: int, per_node: int | None) -> None:
    state = ClusterState.make("c", ["n0", "n1"], processors=[4, 8])
    asked, limits = Settings(2, threads), Constraints(per_node=per_node)
    chosen = layouts([state], model, asked, limits)
    ranking = rank([state], model, Question(1.0, limits, settings=chosen, top=50))
    assert max(one.resource_set.processors for one in ranking.placements) == 4


def test_a_cluster_that_is_excluded_or_has_no_model_has_no_part_in_the_layouts() -> None:
    large, small = (ClusterState.make(name, ["n"], processors=[size]) for name, size in (("large", 8), ("small", 4)))
    models = {"large": Laid(known=((8, 1), (2, 1))), "small": Laid(known=((1, 1), (4, 1)))}
    only = Constraints(clusters=("small",))
    assert layouts([large, small], models, DEFAULT_SETTINGS, only) == (Settings(1), Settings(4))
    assert layouts([large, small], {"small": models["small"]}, DEFAULT_SETTINGS) == (Settings(1), Settings(4))
    assert layouts([small], models["large"], DEFAULT_SETTINGS) == (Settings(2), Settings(4))
    assert layouts([large, small], models["large"], Settings(8)) == (Settings(8),)
    assert layouts([large, small], models["small"], Settings(4)) == (Settings(4),)
    with pytest.raises(InfeasibleError, match="no node has more than 4"):
        layouts([large, small], models, Settings(8), only)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (Settings(4, 4), "4 processes of 4 threads on a node take 16 processors, no node has more than 8"),
        (Settings(None, 9), "1 process of 9 threads on a node takes 9 processors, no node has more than 8"),
        (Settings(16), "16 processes of 1 thread on a node take 16 processors, no node has more than 8"),
    ],
)
def test_what_fits_on_no_node_is_refused(asked: Settings, why: str) -> None:
    state = ClusterState.make("c", ["n0", "n1"], processors=[4, 8])
    with pytest.raises(InfeasibleError) as refused:
        layouts([state], Laid(), asked)
    assert str(refused.value) == why


def test_a_learned_model_knows_the_layouts_of_its_runs() -> None:
    def run(n: float, p: int, k: int) -> Run:
        return Run("cg", "c", n, p, 1.0, 90.0, 1e-3 * n * k**0.5 / p, extra={"processes_per_node": str(k)})

    model = RobustPredictor("cg", "c").fit([run(n, p, k) for n in (100, 200) for p in (4, 8) for k in (1, 2, 4)])
    assert model.layouts == {(1, 1), (2, 1), (4, 1)}
    state = ClusterState.make("c", [f"n{k}" for k in range(8)], processors=4, available_bandwidth=90.0)
    chosen = layouts([state], model, DEFAULT_SETTINGS)
    found = rank([state], model, Question(200, Constraints(processors=(8,)), settings=chosen)).placements[0]
    assert found.resource_set.processes_per_node == 1


@given(st.integers(0, 100_000))
def test_a_placement_has_the_time_that_is_predicted_for_its_layout(seed: int) -> None:
    draw = np.random.default_rng(seed)
    clusters = [
        ClusterState.make(
            name, [f"{name}{node}" for node in range(4)], processors=np.full(4, draw.integers(1, 10)),
            available_cpu=draw.uniform(0.2, 1.0, 4), available_bandwidth=draw.uniform(10, 1000, 4),
        )
        for name in ("a", "b")
    ]  # fmt: skip
    asked = Settings((None, 1, 2, 4)[draw.integers(4)])
    try:
        chosen = layouts(clusters, LAID_OUT, asked)
    except InfeasibleError:
        return
    found = rank(clusters, under(LAID_OUT, asked), Question(500.0, settings=chosen, top=50)).placements
    assert found
    for placement in found:
        where = placement.resource_set
        nodes = dict(zip(("a", "b"), clusters, strict=True))[where.cluster]
        assert where.processors <= len(where.nodes) * int(nodes.processors.max())
        per_node = where.processes_per_node or asked.processes_per_node or 0
        stated = Settings(min(where.processors, per_node))
        request = Request(500.0, where.processors, where.available_cpu, where.available_bandwidth, stated)
        assert LAID_OUT.predict(request).execution_time == pytest.approx(placement.prediction.execution_time)
        assert -(-where.processors // len(where.nodes)) <= per_node <= int(nodes.processors.max())
