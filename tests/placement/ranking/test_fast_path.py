"""The quick answer is the ranker's: on random clusters, loads of every kind, models and constraints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from known_model import Known

from metasched.placement.clusters.constraints import Constraints
from metasched.placement.clusters.queue_wait import QueueWait
from metasched.placement.clusters.state import ClusterState, SetMinima
from metasched.placement.clusters.switch_tree import Topology
from metasched.placement.loads.counted import Forecast, Loads, expected
from metasched.placement.loads.recent_placements import RecentPlacement
from metasched.placement.ranking import fast_path
from metasched.placement.ranking.contention import NoContention
from metasched.placement.ranking.fast_path import MOST_COUNTS, Quickest, fronts_of, quickest
from metasched.placement.ranking.objective import Objective
from metasched.placement.ranking.preparation import rotated
from metasched.placement.ranking.query import InfeasibleError, Question
from metasched.placement.ranking.ranker import rank
from metasched.placement.search.cpu_bandwidth_fronts import Fronts
from metasched.service.state.load_forecasts import LADDER, nearest_horizon


def site(draw: np.random.Generator, name: str) -> ClusterState:
    nodes, switches = int(draw.integers(1, 9)), int(draw.integers(1, 4))
    below = draw.integers(0, switches, nodes)
    tree = Topology(
        (*(f"r{k}" for k in range(switches)), "top"),
        np.array([switches] * switches + [-1]),
        np.append(draw.choice([30.0, 200.0, np.inf], switches), np.inf),
        below,
    )
    return ClusterState.make(
        name,
        [f"{name}{k}" for k in range(nodes)],
        processors=draw.integers(0, 4, nodes),
        available_cpu=draw.choice([0.25, 0.5, 0.75, 1.0, draw.uniform(0.1, 1.0)], nodes),
        available_bandwidth=draw.choice([50.0, 100.0, draw.uniform(10, 100)], nodes),
        speed=draw.choice([1.0, 1.5]),
        up=draw.uniform(size=nodes) < 0.9,
        memory=draw.choice([np.nan, 100.0, 350.0, 900.0], nodes),
        network=tree,
        queue_wait=QueueWait.always(float(draw.choice([0.0, 40.0]))),
        age=draw.choice([0.0, 20.0, 900.0], nodes, p=[0.5, 0.3, 0.2]),
    )


def forecast_of(draw: np.random.Generator) -> Forecast:
    """Nodes that change at different paces, and sets that lose some of it, with a doubt."""
    seed = int(draw.integers(0, 1000))

    def forecast(state: ClusterState, seconds: float) -> ClusterState:
        share = 1.0 / (1.0 + seconds / 300.0)
        then = np.array([np.random.default_rng([seed, *node.encode()]).uniform(0.1, 1.0) for node in state.nodes])
        part = np.linspace(1.0, 0.8, max(int(state.processors.sum()), 1))
        ends = np.stack([np.linspace(0.9, 0.6, part.size), np.linspace(1.1, 1.5, part.size)])
        return replace(
            state,
            available_cpu=share * state.available_cpu + (1 - share) * then,
            minima=SetMinima(part, part**0.5, ends, ends),
        )

    return forecast


def loads_of(draw: np.random.Generator, sites: Sequence[ClusterState]) -> Loads:
    recent = [
        RecentPlacement(each.name, (node,), (int(draw.integers(1, 4)),), float(draw.uniform(0, 100)), 500.0)
        for each in sites
        for node in each.nodes
        if draw.uniform() < 0.3
    ]
    forecast = forecast_of(draw) if draw.uniform() < 0.6 else None
    return Loads(forecast, tuple(recent), now=100.0, first_horizon=float(draw.choice([60.0, 500.0])))


def quick(sites: Sequence[ClusterState], models: dict[str, Known], question: Question) -> Quickest | None:
    def fronts_at(horizon: float | None) -> list[Fronts]:
        before = [expected(each, question.loads, horizon) for each in sites]
        return [fronts_of((rotated(each, question.rotation), warnings), question) for each, warnings in before]

    return quickest(fronts_at, models, question)


def drawn(seed: int) -> tuple[np.random.Generator, list[ClusterState], dict[str, Known]]:
    """One cluster or two, and what takes how long on them, with the generator for what else is drawn."""
    draw = np.random.default_rng(seed)
    sites = [site(draw, name) for name in ("a", "b")[: int(draw.integers(1, 3))]]
    models = {each.name: Known(draw.uniform(1, 100), draw.uniform(1, 5000)) for each in sites}
    return draw, sites, models


@given(st.integers(0, 100_000))
def test_the_quick_answer_is_the_rankers(seed: int) -> None:
    draw, sites, models = drawn(seed)
    constraints = Constraints(
        per_node=draw.choice([None, 1, 2]),
        memory_per_processor=draw.choice([None, None, 50.0, 200.0]),
        min_processors=int(draw.integers(1, 3)),
        exclude="a0" if draw.uniform() < 0.3 else "",
        least_efficiency=float(draw.choice([0.0, 0.25, draw.uniform(0, 1), 1.0])),
    )
    size = float(draw.uniform(1, 1000))
    question = Question(size, constraints, top=2, loads=loads_of(draw, sites))
    found = quick(sites, models, question)
    if found is None:
        with pytest.raises(InfeasibleError):
            rank(sites, models, question)
        return
    ranking = rank(sites, models, question)
    best, answered = ranking.placements[0], found.placement
    assert answered.completion == pytest.approx(best.completion, rel=1e-9)
    chosen = answered.resource_set
    assert set(ranking.warnings) >= set(found.warnings)
    state = found.clusters[chosen.cluster]
    numbers = np.array([state.nodes.index(node) for node in chosen.nodes])
    assert chosen == state.resource_set(numbers, chosen.processors)
    counted = ranking.clusters[chosen.cluster]
    loads = dict(zip(state.nodes, state.available_cpu, strict=True))
    assert [loads[node] for node in counted.nodes] == pytest.approx(counted.available_cpu)
    assert set(chosen.nodes) <= set(counted.nodes)
    assert sum(state.processors[numbers]) >= chosen.processors >= constraints.min_processors
    if chosen == best.resource_set:
        assert answered.prediction == best.prediction
    interval = answered.prediction.interval
    assert interval.low < answered.prediction.execution_time < interval.high


@given(st.integers(0, 100_000))
def test_a_rotation_takes_the_nodes_as_if_they_stood_in_that_order(seed: int) -> None:
    draw, sites, models = drawn(seed)
    question = Question(
        float(draw.uniform(1, 1000)),
        Constraints(exclude="a0" if draw.uniform() < 0.3 else ""),
        loads=replace(loads_of(draw, sites), forecast=None),
        rotation=f"{seed}",
    )
    in_order = [each.select(np.argsort(turn)) for each in sites if (turn := rotated(each, f"{seed}").turn) is not None]
    assert len(in_order) == len(sites)
    plain = replace(question, rotation=None)
    found, expected = quick(sites, models, question), quick(in_order, models, plain)
    assert (found and found.placement.resource_set) == (expected and expected.placement.resource_set)


@given(st.integers(0, 100_000))
def test_loads_that_are_kept_give_the_same_ranking(seed: int) -> None:
    """Forecasts that hold for a range of horizons, as the daemon's: what is expected is then computed once for each."""
    draw, sites, models = drawn(seed)
    over, kept = forecast_of(draw), dict[tuple[str, int], tuple[ClusterState, tuple[str, ...]]]()

    def forecast(state: ClusterState, seconds: float) -> ClusterState:
        return over(state, LADDER[nearest_horizon(seconds)])

    def expects(state: ClusterState, seconds: float | None) -> tuple[ClusterState, tuple[str, ...]]:
        key = state.name, nearest_horizon(seconds or 0.0)
        return kept.setdefault(key, expected(state, loads, seconds))

    loads = replace(loads_of(draw, sites), forecast=forecast)
    question = Question(float(draw.uniform(1, 1000)), loads=loads, rotation="x" if draw.uniform() < 0.5 else None)
    try:
        plain = rank(sites, models, question)
    except InfeasibleError:
        return
    quicker = rank(sites, models, replace(question, loads=replace(loads, kept=expects)))
    assert (quicker.placements, quicker.warnings) == (plain.placements, plain.warnings)
    assert quicker.curve.completion.tolist() == plain.curve.completion.tolist()
    assert rank(sites, models, replace(question, curve=False)).placements == plain.placements
    assert len(kept) <= len(LADDER) * len(sites)


@given(st.integers(0, 100_000))
def test_only_numbers_of_processors_that_cannot_win_are_left_out(seed: int) -> None:
    draw, sites, models = drawn(seed)
    constraints = Constraints(min_processors=int(draw.integers(1, 3)), least_efficiency=float(draw.choice([0.0, 0.5])))
    recent = [RecentPlacement(each.name, each.nodes[:1], (2,), 90.0, 500.0) for each in sites]
    loads = replace(loads_of(draw, sites), recent=tuple(recent))
    question = Question(float(draw.uniform(1, 1000)), constraints, top=2, loads=loads)
    found = quick(sites, models, question)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fast_path, "FEW_COUNTS", 1000)
        expected = quick(sites, models, question)
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        assert (found.placement, found.warnings) == (expected.placement, expected.warnings)


def test_no_set_beats_one_on_the_front_and_every_other_is_beaten() -> None:
    draw = np.random.default_rng(5)
    cpu, bandwidth = draw.uniform(0.1, 1, 12), draw.uniform(1, 9, 12)
    state = ClusterState.make("c", [f"n{k}" for k in range(12)], available_cpu=cpu, available_bandwidth=bandwidth)
    front = Fronts(state, Constraints()).of([3])
    for b in state.available_bandwidth:
        able = np.sort(state.available_cpu[state.available_bandwidth >= b])
        if able.size >= 3:
            assert np.any((front.cpu >= able[-3]) & (front.bandwidth >= b))
    for k in range(front.cpu.size):
        better = (front.cpu >= front.cpu[k]) & (front.bandwidth >= front.bandwidth[k])
        assert better.sum() == 1


def test_the_reason_names_what_the_next_best_lacks() -> None:
    state = ClusterState.make("c", ["n0", "n1"], available_cpu=[1.0, 0.5])
    constraints = Constraints(processors=(1, 2))
    question = Question(10.0, constraints, top=2)
    found = quick([state], {"c": Known(traffic=0.0)}, question)
    assert found is not None
    expected = rank([state], {"c": Known(traffic=0.0)}, question).placements[0]
    assert found.placement.reason == expected.reason
    other = ClusterState.make("d", ["m0", "m1"], available_cpu=[0.99, 0.5])
    models = {"c": Known(traffic=0.0), "d": Known(work=150.0, traffic=0.0)}
    question = replace(question, constraints=Constraints(processors=(1,)))
    found = quick([state, other], models, question)
    assert found is not None
    assert found.placement.reason == rank([state, other], models, question).placements[0].reason
    assert found.placement.reason == "best; the next is 51.5% slower: another cluster's model"


def test_of_equal_completions_that_on_the_fewest_processors_is_the_quick_answer() -> None:
    slow = ClusterState.make("a", ["a0", "a1"], available_cpu=0.5)
    fast = ClusterState.make("b", ["b0", "b1", "b2"], available_cpu=[1.0, 0.25, 0.25])
    models = {name: Known(traffic=0.0) for name in "ab"}
    for sites in ([slow, fast], [fast, slow]):
        question = Question(1.0, Constraints(least_efficiency=0.0), top=2)
        found = quick(sites, models, question)
        assert found is not None
        assert found.placement.resource_set.nodes == ("b0",)
        assert found.placement == rank(sites, models, question).placements[0]


def test_what_is_not_quick_is_left_to_the_ranker() -> None:
    state = ClusterState.make("c", [f"n{k}" for k in range(MOST_COUNTS + 1)])
    assert quick([state], {"c": Known()}, Question(1.0)) is None
    small = ClusterState.make("c", ["n0"])
    assert quick([small], {"c": Known()}, Question(1.0)) is not None
    assert quick([small], {"c": Known()}, Question(1.0, contention=NoContention())) is not None
    assert quick([small], {"c": Known()}, Question(1.0, objective=Objective(core_hours=1.0))) is None
