"""What an application demands of its nodes and of its number of processors, and which nodes that rules out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from metasched.placement.cluster import ClusterState
from metasched.records import InputError

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Constraints:
    """Demands of one application.

    Parameters
    ----------
    processors : numbers of processors allowed, any where empty.
    min_processors, max_processors : the least and the largest number allowed.
    per_node : the most processors it may take on one node.
    memory : megabytes that each node must have; a node whose memory is unknown does not count as having it.
    features : words that each node must have.
    exclusive : take only nodes without any job.
    clusters : names of the clusters it may run on, all where empty.
    exclude : names of nodes that it must not take.

    Examples
    --------
    >>> Constraints(min_processors=3, max_processors=6).counts(4).tolist()
    [3, 4]
    >>> Constraints(processors=(2, 8), min_processors=3).counts(64).tolist()
    [8]
    """

    processors: tuple[int, ...] = ()
    min_processors: int = 1
    max_processors: int | None = None
    per_node: int | None = None
    memory: float | None = None
    features: frozenset[str] = frozenset()
    exclusive: bool = False
    clusters: frozenset[str] = frozenset()
    exclude: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for name, least in (
            ("processors", min(self.processors, default=1)),
            ("min_processors", self.min_processors),
            ("max_processors", 1 if self.max_processors is None else self.max_processors),
            ("processors per node", 1 if self.per_node is None else self.per_node),
        ):
            if least < 1:
                raise InputError(f"{name} is {least}, expected a whole number of at least 1")
        if self.max_processors is not None and self.max_processors < self.min_processors:
            raise InputError(
                f"max_processors is {self.max_processors}, expected at least min_processors, {self.min_processors}"
            )
        if self.memory is not None and not self.memory > 0:
            raise InputError(f"memory is {self.memory:g}, expected more than 0 megabytes")

    def counts(self, available: int) -> Ints:
        """Numbers of processors allowed, ascending, when so many are available."""
        most = available if self.max_processors is None else min(available, self.max_processors)
        counts = np.unique(np.asarray(self.processors, dtype=np.int64)) if self.processors else np.arange(1, most + 1)
        return counts[(counts >= self.min_processors) & (counts <= most)].astype(np.int64)

    def excluded(self, cluster: ClusterState) -> dict[str, Flags]:
        """For each demand made, the nodes of a cluster that it rules out: arrays of shape (n,)."""
        size = len(cluster.nodes)
        ruled_out: dict[str, Flags] = {"down or drained": ~cluster.up, "no free processor": cluster.processors < 1}
        if self.clusters:
            ruled_out[f"cluster {' or '.join(sorted(self.clusters))} only"] = np.full(
                size, cluster.name not in self.clusters
            )
        if self.exclude:
            ruled_out["excluded nodes"] = np.fromiter((name in self.exclude for name in cluster.nodes), bool, size)
        if self.memory is not None:
            ruled_out[f"memory of {self.memory:g} MB"] = ~(cluster.memory >= self.memory)
        for feature in sorted(self.features):
            ruled_out[f"feature {feature}"] = np.fromiter((feature not in has for has in cluster.features), bool, size)
        if self.exclusive:
            ruled_out["exclusive nodes"] = cluster.jobs > 0
        return ruled_out


@dataclass(frozen=True, slots=True)
class Admitted:
    """A cluster cut down to the nodes that the constraints leave.

    Parameters
    ----------
    cluster : the cluster with the nodes that are left.
    ruled_out : for each demand the number of nodes that it rules out; a node may fail several.
    """

    cluster: ClusterState
    ruled_out: dict[str, int]


def admit(cluster: ClusterState, constraints: Constraints) -> Admitted:
    """Leave the nodes that satisfy the constraints, with the processors that may be taken on each."""
    ruled_out = constraints.excluded(cluster)
    kept = ~np.logical_or.reduce(list(ruled_out.values()), axis=0)
    left = cluster if kept.all() else cluster.select(np.flatnonzero(kept))
    return Admitted(left, {demand: int(flags.sum()) for demand, flags in ruled_out.items() if flags.any()})
