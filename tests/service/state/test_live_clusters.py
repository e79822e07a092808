"""The loads of a view are the newest of each node, however they came in."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from metasched.placement.clusters.partition import Partition
from metasched.placement.clusters.state import ClusterState
from metasched.placement.loads.staleness import LEAST_BANDWIDTH, LEAST_CPU
from metasched.records import Load
from metasched.service.state.live_clusters import LiveClusters

NODES = [f"n{number}" for number in range(40)]
SAMPLES = st.builds(
    Load,
    st.integers(0, 50).map(float),
    st.sampled_from([*NODES, "elsewhere"]),
    st.sampled_from([0.0, 0.25, 1.0]),
    st.sampled_from([0.0, 90.0]),
)


@given(st.lists(st.lists(SAMPLES, max_size=20), max_size=8), st.integers(0, 8), st.permutations(NODES))
def test_every_node_has_its_newest_load(batches: list[list[Load]], put_after: int, others: list[str]) -> None:
    clusters, newest = LiveClusters(), dict[str, Load]()
    states = [ClusterState.make("a", NODES), ClusterState.make("b", others[:25])]
    for number, batch in enumerate([*batches, []]):
        if number == min(put_after, len(batches)):
            clusters.put("s", [Partition.of(each) for each in states], 0.0)
        clusters.note(batch)
        for load in batch:
            if load.node not in newest or newest[load.node].time <= load.time:
                newest[load.node] = load
    assert dict(clusters.latest) == newest
    for partition in clusters.refresh(60.0).partitions:
        for number, node in enumerate(partition.state.nodes):
            load = newest.get(node)
            found = partition.state
            got = found.age[number], found.available_cpu[number], found.available_bandwidth[number]
            if load is None:
                assert np.isnan(got[0])
                assert got[1:] == (1.0, 1000.0)
            else:
                least = max(load.available_cpu, LEAST_CPU), max(load.available_bandwidth, LEAST_BANDWIDTH)
                assert got == (60.0 - load.time, *least)


def test_nodes_of_a_cluster_may_change() -> None:
    clusters = LiveClusters()
    for nodes in (["n0", "n1"], ["n1", "n2"]):
        clusters.put("s", [Partition.of(ClusterState.make("a", nodes))], 0.0)
        clusters.note([Load(1.0, "n1", 0.5, 90.0)])
        cpu = clusters.refresh(2.0).partitions[0].state.available_cpu
        assert np.array_equal(cpu, np.where(np.array(nodes) == "n1", 0.5, 1.0))


def test_a_load_of_a_time_that_is_not_yet_gives_way_to_any_other() -> None:
    """The clocks of a site were an hour ahead, and are right now."""
    clusters = LiveClusters()
    clusters.put("s", [Partition.of(ClusterState.make("a", ["n0"]))], 0.0)
    clusters.note([Load(3600.0, "n0", 0.75, 90.0)], 3660.0)
    clusters.note([Load(10.0, "n0", 0.25, 90.0), Load(5.0, "n0", 0.5, 90.0)], 71.0)
    state = clusters.refresh(11.0).partitions[0].state
    assert (state.available_cpu.tolist(), state.age.tolist()) == ([0.25], [1.0])
    clusters.note([Load(70.0, "n0", 0.5, 90.0)], 72.0)
    clusters.note([Load(12.0, "n0", 0.75, 90.0)], 72.0)
    assert clusters.refresh(12.0).partitions[0].state.available_cpu.tolist() == [0.5]
