"""Contention with the jobs already there, by the closed queueing networks of :mod:`metasched.contention`.

A job's two terms say what it asks of processors and of links: its time with boundless bandwidth is computation, the
rest communication. The nodes that the running jobs and a candidate touch, with the links above them, are what they
share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from metasched.contention.shared_cluster import SharedCluster, Work
from metasched.contention.slowdown import effects
from metasched.placement.cluster import ClusterState
from metasched.placement.sharing import Share
from metasched.placement.topology import Topology
from metasched.predictors.contract import Predictor

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: A link that never limits, and the bandwidth at which no communication is left (Mbit/s).
BOUNDLESS = 1e9


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A job that runs.

    Parameters
    ----------
    nodes : names of its nodes.
    processors : processes on each of them.
    computation, communication : seconds left of each, were it alone.
    """

    nodes: tuple[str, ...]
    processors: tuple[int, ...]
    computation: float
    communication: float


@dataclass(frozen=True)
class Coscheduled:
    """The contention between a job and those that run: a :class:`metasched.placement.sharing.Contention`.

    Parameters
    ----------
    running : for each cluster the jobs already there.
    predictors : for each cluster the predictor of the job to place.
    problem_size : its N.

    Examples
    --------
    A job that only computes would halve itself and another on their one processor.

    >>> there = {"c": (RunningJob(("n0",), (1,), 100.0, 0.0),)}
    >>> shared = Coscheduled(there, {}, 1.0)
    >>> cluster = ClusterState.make("c", ["n0", "n1"])
    >>> slowdown, harm = shared.among(cluster, [Share(np.array([0]), np.array([1]))], np.array([50.0]), np.array([0.0]))
    >>> slowdown.round(6).tolist(), harm.round(6).tolist()
    ([2.0], [50.0])
    """

    running: Mapping[str, Sequence[RunningJob]]
    predictors: Mapping[str, Predictor]
    problem_size: float

    def effects(self, cluster: ClusterState, shares: Sequence[Share], execution_time: Floats) -> tuple[Floats, Floats]:
        """Slowdown of the job, and seconds that the others lose together, for each of its shares."""
        if not self.running.get(cluster.name):
            return np.ones(len(shares)), np.zeros(len(shares))
        unbounded = self.predictors[cluster.name].predict_many(
            self.problem_size,
            np.array([share.processors.sum() for share in shares]),
            np.array([cluster.effective_cpu[share.nodes].min() for share in shares]),
            BOUNDLESS,
        )
        computation = np.minimum(unbounded.execution_time, execution_time)
        return self.among(cluster, shares, computation, execution_time - computation)

    def among(
        self, cluster: ClusterState, shares: Sequence[Share], computation: Floats, communication: Floats
    ) -> tuple[Floats, Floats]:
        """The same for a job with these two terms on each of its shares: arrays of shape (k,), seconds."""
        number = {name: index for index, name in enumerate(cluster.nodes)}
        jobs = self.running[cluster.name]
        there = [
            {number[name]: count for name, count in zip(job.nodes, job.processors, strict=True) if name in number}
            for job in jobs
        ]
        asked = [dict(zip(share.nodes.tolist(), share.processors.tolist(), strict=True)) for share in shares]
        left = [index for index, taken in enumerate(there) if taken]  # others run where this job may not go
        if not left:
            return np.ones(len(shares)), np.zeros(len(shares))
        nodes = np.array(sorted({node for taken in (*there, *asked) for node in taken}), dtype=np.int64)
        shared = _shared(cluster, nodes)
        running = Work.of(
            shared,
            _processes([there[index] for index in left], nodes),
            np.array([jobs[index].computation for index in left]),
            np.array([jobs[index].communication for index in left]),
        )
        found = effects(shared, running, Work.of(shared, _processes(asked, nodes), computation, communication))
        return found.slowdown, found.lost.sum(axis=1)


def _processes(taken: Sequence[Mapping[int, int]], nodes: Ints) -> Floats:
    """Processes of each job on each node: array of shape (jobs, nodes)."""
    return np.array([[job.get(node, 0) for node in nodes.tolist()] for job in taken], dtype=np.float64)


def _shared(cluster: ClusterState, nodes: Ints) -> SharedCluster:
    """Some nodes of a cluster and the links above them; the nodes' own links where the network is no tree."""
    count = nodes.size
    own = cluster.available_bandwidth[nodes]
    processors, cpu = np.maximum(cluster.processors[nodes], 1), cluster.effective_cpu[nodes]
    network = cluster.network
    if not isinstance(network, Topology):
        return SharedCluster.star(processors, own, cpu)
    # A node's link leads to the uplink of its switch, and that to the next; a root has none.
    above = np.where(network.parent >= 0, np.arange(network.parent.size) + count, -1)
    return SharedCluster(
        processors,
        cpu,
        np.arange(count),
        np.concatenate([own, np.minimum(network.uplink, BOUNDLESS)]),
        np.concatenate([above[network.leaf[nodes]], np.where(network.parent >= 0, above[network.parent], -1)]),
    )
