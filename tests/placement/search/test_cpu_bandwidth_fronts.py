"""The fronts of some numbers of processors do not depend on what was asked for before."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from metasched.placement.clusters.constraints import Constraints
from metasched.placement.clusters.state import ClusterState
from metasched.placement.search.cpu_bandwidth_fronts import Fronts
from metasched.placement.search.needed_nodes import NeededNodes
from tests.placement.clusters.test_bandwidth_matrix import measured
from tests.placement.search.test_needed_nodes import site


@settings(max_examples=100)
@given(st.integers(0, 100_000))
def test_fronts_found_one_after_the_other_are_those_found_at_once(seed: int) -> None:
    draw = np.random.default_rng(seed)
    state = site(draw)
    often = Fronts(state, Constraints())
    for _ in range(4):
        counts = np.unique(draw.integers(1, 60, draw.integers(1, 12))).tolist()
        found, once = often.of(counts), Fronts(state, Constraints()).of(counts)
        for name in ("processors", "domain", "step", "cpu", "bandwidth"):
            assert getattr(found, name).tolist() == getattr(once, name).tolist()


@settings(max_examples=100)
@given(st.integers(0, 100_000))
def test_a_front_has_every_set_that_no_other_beats(seed: int) -> None:
    draw = np.random.default_rng(seed)
    fronts = Fronts(site(draw), Constraints())
    front = fronts.of(range(1, 8))
    assert front.processors.tolist() == sorted(front.processors.tolist())
    for count in np.unique(front.processors).tolist():
        mine = front.processors == count
        # From the widest to the fastest, both change with every set.
        assert (np.diff(front.bandwidth[mine]) < 0).all()
        assert (np.diff(front.cpu[mine]) > 0).all()
        ends = fronts.ends([count])
        assert front.bandwidth[mine][0] == ends.bandwidth[0].max()
        assert front.cpu[mine][-1] == ends.cpu[1].max()


def not_beaten(state: ClusterState, count: int) -> list[tuple[float, float]]:
    """CPU and bandwidth of the sets of so many processors that no other beats, by trying all sets of nodes."""
    places = range(len(state.nodes))
    able = [
        nodes for size in places for nodes in map(list, combinations(places, size + 1))
        if size < count <= state.processors[nodes].sum()
    ]  # fmt: skip
    link = state.available_bandwidth
    found = {(float(state.effective_cpu[nodes].min()), state.network.bandwidth(link, nodes)) for nodes in able}
    beaten = {
        each for each in found for other in found if other != each and other[0] >= each[0] and other[1] >= each[1]
    }
    return sorted(found - beaten)


@settings(max_examples=100)
@given(measured())
def test_fronts_of_a_measured_network_are_those_of_all_sets(state: ClusterState) -> None:
    fronts = Fronts(state, Constraints(), needed=NeededNodes(3))
    front = fronts.of(range(1, 16))
    assert fronts.exact
    assert fronts.largest == state.processors.sum()
    for count in range(1, fronts.largest + 1):
        mine = np.flatnonzero(front.processors == count)
        pairs = sorted(zip(front.cpu[mine].tolist(), front.bandwidth[mine].tolist(), strict=True))
        assert pairs == not_beaten(state, count)
        for position in mine.tolist():
            chosen = fronts.resource_set(front, position)
            nodes = [state.nodes.index(name) for name in chosen.nodes]
            assert chosen.processors == count
            assert chosen.available_cpu >= front.cpu[position]
            assert state.network.bandwidth(state.available_bandwidth, nodes) >= front.bandwidth[position]


@settings(max_examples=50)
@given(measured(), st.data())
def test_a_measured_network_is_searched_among_the_admitted_nodes_only(state: ClusterState, data: st.DataObject) -> None:
    excluded = data.draw(st.sampled_from(state.nodes))
    fronts = Fronts(state, Constraints(exclude=excluded))
    front = fronts.of(range(1, 16))
    names = {name for at in range(front.processors.size) for name in fronts.resource_set(front, at).nodes}
    assert excluded not in names
    assert fronts.cluster.nodes == tuple(name for name in state.nodes if name != excluded)
    assert fronts.largest == fronts.cluster.processors.sum()
