"""Loads that were measured a while ago: brought into a state, and believed the less the older they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from metasched.placement.cluster import ClusterState
from metasched.records import Load

#: Measurements older than this are stale (s): five of the usual intervals of a minute.
STALE_AFTER = 300.0
#: A load of 0 means that a new process would hardly run; predictions need a number above 0.
LEAST_CPU, LEAST_BANDWIDTH = 0.01, 0.001


def with_loads(cluster: ClusterState, loads: Iterable[Load], now: float) -> ClusterState:
    """The state with the last load of each node that was measured until now; others keep what they had.

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


@dataclass(frozen=True, slots=True)
class Tempered:
    """A state without undue trust in old measurements, and what the user should know of it."""

    cluster: ClusterState
    warnings: tuple[str, ...]


def tempered(cluster: ClusterState, stale_after: float = STALE_AFTER) -> Tempered:
    """Count a stale node with what was last seen of it, but no better than the lower quartile of the fresh ones.

    With no fresh node at all there is nothing better than what was last seen, and a warning says so.

    Examples
    --------
    >>> cluster = ClusterState.make("c", ["a", "b", "c"], available_cpu=[0.5, 0.6, 1.0], age=[0.0, 0.0, 900.0])
    >>> tempered(cluster).cluster.available_cpu.tolist()
    [0.5, 0.6, 0.525]
    """
    stale = cluster.up & (cluster.age > stale_after)
    fresh = cluster.up & ~stale
    if not stale.any():
        return Tempered(cluster, ())
    oldest = f"up to {cluster.age[stale].max():.0f} s old"
    if not fresh.any():
        return Tempered(cluster, (f"all measurements of cluster {cluster.name} are stale, {oldest}",))
    cpu, bandwidth = (
        np.where(stale, np.minimum(values, np.quantile(values[fresh], 0.25)), values)
        for values in (cluster.available_cpu, cluster.available_bandwidth)
    )
    line = f"{int(stale.sum())} of {stale.size} nodes of cluster {cluster.name} have stale measurements, {oldest}"
    return Tempered(replace(cluster, available_cpu=cpu, available_bandwidth=bandwidth), (line,))
