"""The quick answer is the ranker's: on random clusters, models and constraints, with and without switches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from known_model import Known

from metasched.placement.cluster import ClusterState
from metasched.placement.constraints import Constraints
from metasched.placement.fronts import Fronts
from metasched.placement.question import InfeasibleError, Question
from metasched.placement.quick import MOST_COUNTS, quickest
from metasched.placement.ranker import rank
from metasched.placement.topology import Topology
from metasched.placement.waits import QueueWait


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
        network=tree,
        queue_wait=QueueWait.always(float(draw.choice([0.0, 40.0]))),
    )


@given(st.integers(0, 100_000))
def test_the_quick_answer_is_the_rankers(seed: int) -> None:
    draw = np.random.default_rng(seed)
    sites = [site(draw, name) for name in ("a", "b")[: int(draw.integers(1, 3))]]
    models = {each.name: Known(draw.uniform(1, 100), draw.uniform(1, 5000)) for each in sites}
    constraints = Constraints(
        per_node=draw.choice([None, 1, 2]),
        min_processors=int(draw.integers(1, 3)),
        exclude=frozenset({"a0"} if draw.uniform() < 0.3 else ()),
    )
    size = float(draw.uniform(1, 1000))
    found = quickest([Fronts(each, constraints) for each in sites], models, size, constraints, 0.9)
    question = Question(size, constraints, top=2)
    if found is None:
        with pytest.raises(InfeasibleError):
            rank(sites, models, question)
        return
    best = rank(sites, models, question).placements[0]
    assert found.placement.completion == pytest.approx(best.completion, rel=1e-9)
    chosen = found.placement.resource_set
    state = next(each for each in sites if each.name == chosen.cluster)
    numbers = [state.nodes.index(node) for node in chosen.nodes]
    assert chosen.available_bandwidth == state.network.bandwidth(state.available_bandwidth, numbers)
    assert chosen.available_cpu == state.effective_cpu[numbers].min()
    assert sum(state.processors[numbers]) >= chosen.processors >= constraints.min_processors
    interval = found.placement.prediction.interval
    assert interval.low < found.placement.prediction.execution_time < interval.high


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
    found = quickest([Fronts(state, constraints)], {"c": Known(traffic=0.0)}, 10.0, constraints, 0.9)
    assert found is not None
    expected = rank([state], {"c": Known(traffic=0.0)}, Question(10.0, constraints, top=2)).placements[0]
    assert found.placement.reason == expected.reason


def test_what_is_not_quick_is_left_to_the_ranker() -> None:
    state = ClusterState.make("c", [f"n{k}" for k in range(MOST_COUNTS + 1)])
    assert quickest([Fronts(state, Constraints())], {"c": Known()}, 1.0, Constraints(), 0.9) is None
