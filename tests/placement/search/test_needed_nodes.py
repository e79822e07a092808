"""What is left of a cluster for small sets has the same fronts as the whole, and the same nodes on them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metasched.placement.clusters.constraints import Constraints
from metasched.placement.clusters.state import ClusterState
from metasched.placement.clusters.switch_tree import Topology
from metasched.placement.search import needed_nodes
from metasched.placement.search.cpu_bandwidth_fronts import Fronts


def site(draw: np.random.Generator) -> ClusterState:
    """Switches at several heights, uplinks that limit, and nodes of which many are equal."""
    switches, nodes = int(draw.integers(1, 6)), int(draw.integers(1, 90))
    parent = [-1, *(int(draw.integers(-1, number)) for number in range(1, switches))]
    uplink = np.where(np.array(parent) >= 0, draw.choice([40.0, 80.0, 500.0], switches), np.inf)
    alike = bool(draw.integers(0, 2))
    state = ClusterState.make(
        "c",
        [f"n{number}" for number in range(nodes)],
        processors=draw.integers(0, 5, nodes),
        available_cpu=draw.choice([0.5, 1.0], nodes) if alike else draw.uniform(0.1, 1.0, nodes),
        available_bandwidth=draw.choice([50.0, 100.0], nodes) if alike else draw.uniform(10.0, 100.0, nodes),
        network=Topology(tuple(map(str, range(switches))), np.array(parent), uplink, draw.integers(0, switches, nodes)),
    )
    return replace(state, turn=draw.permutation(nodes)) if draw.integers(0, 2) else state


def changed(state: ClusterState, draw: np.random.Generator) -> ClusterState:
    """A few nodes get worse, as by a job placed there, and sometimes one better, as by a job that ended."""
    worse = draw.random(len(state.nodes)) < draw.choice([0.02, 0.1, 0.3])
    better = draw.random(len(state.nodes)) < draw.choice([0.0, 0.05])
    factor = np.where(worse, draw.choice([0.5, 1.0]), np.where(better, draw.choice([1.0, 1.5]), 1.0))
    return replace(
        state,
        processors=np.maximum(state.processors + better - worse * draw.integers(0, 3), 0),
        available_cpu=state.available_cpu * factor,
        available_bandwidth=state.available_bandwidth / np.where(worse, draw.integers(1, 3), 1.0),
        jobs=state.jobs + worse,
    )


@pytest.mark.parametrize(("block", "spare"), [(2, 0.3), (needed_nodes.BLOCK, 0.3), (4, needed_nodes.SPARE)])
@settings(max_examples=150)
@given(st.integers(0, 100_000))
def test_small_sets_have_the_fronts_of_the_whole_cluster(block: int, spare: float, seed: int) -> None:
    draw = np.random.default_rng(seed)
    state, most = site(draw), int(draw.integers(1, 12))
    per_node = int(draw.integers(1, 4)) if draw.integers(0, 2) else None
    constraints = Constraints(per_node=per_node, exclusive=bool(draw.integers(0, 2)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(needed_nodes, "BLOCK", block)
        patch.setattr(needed_nodes, "SPARE", spare)
        nodes = needed_nodes.NeededNodes(most)
        for _ in range(6):
            small, whole = Fronts(state, constraints, needed=nodes), Fronts(state, constraints)
            assert min(small.largest, most) == min(whole.largest, most)
            found, expected = small.of(range(1, most + 1)), whole.of(range(1, most + 1))
            for name in ("processors", "cpu", "bandwidth"):
                assert getattr(found, name).tolist() == getattr(expected, name).tolist()
            assert [small.resource_set(found, at) for at in range(found.cpu.size)] == [
                whole.resource_set(expected, at) for at in range(expected.cpu.size)
            ]
            state = changed(state, draw)


def test_nodes_are_searched_again_only_after_many_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    draw, searches = np.random.default_rng(3), []
    whole = needed_nodes.needed
    monkeypatch.setattr(needed_nodes, "needed", lambda *given: searches.append(0) or whole(*given))
    state = ClusterState.make("c", [f"n{number}" for number in range(400)], available_cpu=draw.uniform(0.1, 1.0, 400))
    nodes, tree = needed_nodes.NeededNodes(4), state.network
    assert isinstance(tree, Topology)
    for number in range(1, 51):
        kept = nodes.of(state, tree, state.processors)
        assert kept.sum() < 100
        fastest = np.argsort(-state.available_cpu)[0]
        state = replace(state, available_cpu=np.where(np.arange(400) == fastest, 0.01, state.available_cpu))
        assert len(searches) == 1 + (number - 1) // 17


def test_most_of_a_large_cluster_is_left_out() -> None:
    draw = np.random.default_rng(3)
    nodes = 2000
    tree = Topology(("a", "b", "top"), [2, 2, -1], [200.0, 200.0, np.inf], np.arange(nodes) % 2)
    group, node, width = tree.domains(draw.uniform(10.0, 100.0, nodes))
    kept = needed_nodes.needed(
        group, node, width, draw.uniform(0.1, 1.0, nodes), np.full(nodes, 4), np.arange(nodes), 8
    )
    assert 20 < kept.size < 200
