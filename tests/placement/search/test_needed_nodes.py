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


@pytest.mark.parametrize("block", [2, needed_nodes.BLOCK])
@settings(max_examples=150)
@given(st.integers(0, 100_000))
def test_small_sets_have_the_fronts_of_the_whole_cluster(block: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    state, most = site(draw), int(draw.integers(1, 12))
    constraints = Constraints(per_node=int(draw.integers(1, 4)) if draw.integers(0, 2) else None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(needed_nodes, "BLOCK", block)
        small, whole = Fronts(state, constraints, (), most), Fronts(state, constraints)
    assert small.largest == whole.largest
    found, expected = small.of(range(1, most + 1)), whole.of(range(1, most + 1))
    for name in ("processors", "cpu", "bandwidth", "domain"):
        assert getattr(found, name).tolist() == getattr(expected, name).tolist()
    assert [small.resource_set(found, at) for at in range(found.cpu.size)] == [
        whole.resource_set(expected, at) for at in range(expected.cpu.size)
    ]


def test_most_of_a_large_cluster_is_left_out() -> None:
    draw = np.random.default_rng(3)
    nodes = 2000
    tree = Topology(("a", "b", "top"), [2, 2, -1], [200.0, 200.0, np.inf], np.arange(nodes) % 2)
    group, node, width = tree.domains(draw.uniform(10.0, 100.0, nodes))
    kept = needed_nodes.needed(
        group, node, width, draw.uniform(0.1, 1.0, nodes), np.full(nodes, 4), np.arange(nodes), 8
    )
    assert 20 < kept.size < 200
