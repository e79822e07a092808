"""Adds measured loads to a state, and caps the loads of nodes whose measurements are stale."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from metasched.arrays import Flags
from metasched.placement.clusters.state import ClusterState
from metasched.records import Load

#: Measurements older than this are stale (s): five of the usual intervals of a minute.
STALE_AFTER = 300.0
#: A load of 0 means that a new process would hardly run; predictions need a number above 0.
LEAST_CPU, LEAST_BANDWIDTH = 0.01, 0.001


def with_loads(cluster: ClusterState, loads: Iterable[Load], now: float) -> ClusterState:
    """The state with the latest measured load of each node; other nodes are unchanged.

    Parameters
    ----------
    cluster : whose nodes' loads are replaced.
    loads : in any order, those of other nodes among them.
    now : the present (s); later samples do not count.

    Examples
    --------
    >>> cluster = ClusterState.make("c", ["n0", "n1"])
    >>> seen = with_loads(cluster, [Load(10.0, "n0", 0.25, 80.0), Load(90.0, "n0", 0.5, 90.0)], now=60.0)
    >>> seen.available_cpu.tolist(), seen.age.tolist()
    ([0.25, 1.0], [50.0, 0.0])
    """
    number = {name: index for index, name in enumerate(cluster.nodes)}
    cpu, bandwidth, age = cluster.available_cpu.copy(), cluster.available_bandwidth.copy(), cluster.age.copy()
    last = np.full(len(cluster.nodes), -np.inf)
    for load in loads:
        index = number.get(load.node)
        if index is not None and last[index] <= load.time <= now:
            last[index], age[index] = load.time, now - load.time
            cpu[index] = max(load.available_cpu, LEAST_CPU)
            bandwidth[index] = max(load.available_bandwidth, LEAST_BANDWIDTH)
    return replace(cluster, available_cpu=cpu, available_bandwidth=bandwidth, age=age)


def stale(cluster: ClusterState, stale_after: float) -> Flags:
    """Which nodes are up and have stale measurements, shape (n,)."""
    return cluster.up & (cluster.age > stale_after)


def with_stale_capped(cluster: ClusterState, stale_after: float = STALE_AFTER) -> tuple[ClusterState, tuple[str, ...]]:
    """Cap the loads of stale nodes at the lower quartile of the fresh ones, and warn how many there are.

    Without any fresh node the latest measurements are used, and the warning says so.

    Parameters
    ----------
    cluster : with the age of each node's loads (s).
    stale_after : age from which on loads are stale (s).

    Examples
    --------
    >>> cluster = ClusterState.make("c", ["a", "b", "c"], available_cpu=[0.5, 0.6, 1.0], age=[0.0, 0.0, 900.0])
    >>> with_stale_capped(cluster)[0].available_cpu.tolist()
    [0.5, 0.6, 0.525]
    """
    old = stale(cluster, stale_after)
    fresh = cluster.up & ~old
    if not old.any():
        return cluster, ()
    oldest = f"up to {cluster.age[old].max():.0f} s old"
    if not fresh.any():
        return cluster, (f"all measurements of cluster {cluster.name} are stale, {oldest}",)
    cpu, bandwidth = (
        np.where(old, np.minimum(values, np.quantile(values[fresh], 0.25)), values)
        for values in (cluster.available_cpu, cluster.available_bandwidth)
    )
    line = f"{int(old.sum())} of {old.size} nodes of cluster {cluster.name} have stale measurements, {oldest}"
    return replace(cluster, available_cpu=cpu, available_bandwidth=bandwidth), (line,)
