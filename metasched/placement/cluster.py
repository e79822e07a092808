"""A cluster as the search sees it: one array for each thing known about its nodes, and the topology between them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from metasched.placement.topology import Topology
from metasched.records import Cluster, InputError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ClusterState:
    """What the nodes of one cluster are and have to spare.

    Parameters
    ----------
    name : the cluster's name.
    nodes : names of the nodes, n of them.
    processors : array of shape (n,), processors that a job may use there.
    available_cpu : array of shape (n,), share of one processor that a new process would get, in (0, 1].
    available_bandwidth : array of shape (n,), what the node's own link has to spare (Mbit/s).
    speed : array of shape (n,), relative to the node that the model was learned on.
    memory : array of shape (n,), megabytes, NaN where unknown.
    jobs : array of shape (n,), jobs that already run there.
    features : for each node the words that constraints may ask for.
    topology : the switches between the nodes.
    queue_wait : how long a job would wait before it starts (s).
    """

    name: str
    nodes: tuple[str, ...]
    processors: Ints
    available_cpu: Floats
    available_bandwidth: Floats
    speed: Floats
    memory: Floats
    jobs: Ints
    features: tuple[frozenset[str], ...]
    topology: Topology
    queue_wait: float = 0.0

    @classmethod
    def of(cls, cluster: Cluster, topology: Topology | None = None, queue_wait: float = 0.0) -> ClusterState:
        """The state that a :class:`metasched.records.Cluster` describes; a single switch unless told otherwise.

        Examples
        --------
        >>> from metasched.records import Node
        >>> ClusterState.of(Cluster("c2", (Node("n0"), Node("n1", processors=2)))).processors.tolist()
        [1, 2]
        """
        nodes = cluster.nodes
        return cls(
            name=cluster.name,
            nodes=tuple(node.name for node in nodes),
            processors=np.array([node.processors for node in nodes], dtype=np.int64),
            available_cpu=np.array([node.available_cpu for node in nodes], dtype=np.float64),
            available_bandwidth=np.array([node.available_bandwidth for node in nodes], dtype=np.float64),
            speed=np.array([node.speed for node in nodes], dtype=np.float64),
            memory=np.array([np.nan if node.memory is None else node.memory for node in nodes], dtype=np.float64),
            jobs=np.zeros(len(nodes), dtype=np.int64),
            features=tuple(node.features for node in nodes),
            topology=topology or Topology.star(cluster.name, len(nodes)),
            queue_wait=queue_wait,
        )

    def __post_init__(self) -> None:
        size = len(self.nodes)
        for column in ("processors", "available_cpu", "available_bandwidth", "speed", "memory", "jobs"):
            shape = getattr(self, column).shape
            if shape != (size,):
                raise InputError(f"{column} of cluster {self.name} has shape {shape}, expected ({size},)")
        if len(self.features) != size or self.topology.leaf.shape != (size,):
            raise InputError(f"features and topology of cluster {self.name} must tell of {size} nodes")

    @property
    def effective_cpu(self) -> Floats:
        """Available CPU in units of the reference node's processor, shape (n,)."""
        return self.available_cpu * self.speed

    def select(self, nodes: ArrayLike) -> ClusterState:
        """The cluster with some of its nodes only.

        Parameters
        ----------
        nodes : numbers of the nodes to keep.
        """
        kept = np.asarray(nodes, dtype=np.int64)
        return replace(
            self,
            nodes=tuple(self.nodes[index] for index in kept),
            processors=self.processors[kept],
            available_cpu=self.available_cpu[kept],
            available_bandwidth=self.available_bandwidth[kept],
            speed=self.speed[kept],
            memory=self.memory[kept],
            jobs=self.jobs[kept],
            features=tuple(self.features[index] for index in kept),
            topology=self.topology.select(kept),
        )
