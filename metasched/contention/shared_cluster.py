"""The model of a shared cluster: pools of processors on a tree of links, and the work of jobs on them.

A pool is whatever its processes share equally: a node's processors, or a single one where processes are pinned. Every
pool is attached to a link, its node's own one; every link leads to a wider part of the network, none out of it.
Axis order: (candidate, job, pool or link); times in seconds, widths in Mbit/s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from metasched.arrays import Floats, Ints
from metasched.records import InputError


@dataclass(frozen=True, slots=True)
class SharedCluster:
    """Pools of processors and the links between them.

    Parameters
    ----------
    processors : array of shape (pools,).
    available_cpu : array of shape (pools,), share of one processor that a process gets there, times its speed.
    link : array of shape (pools,), number of the link that each pool is attached to.
    width : array of shape (links,), what each link has to spare in each direction.
    parent : array of shape (links,), the link that each link leads to, -1 where it ends in a switch that limits nobody.

    Examples
    --------
    Two nodes of two processors on one switch:

    >>> cluster = SharedCluster([2, 2], [1.0, 1.0], [0, 1], [100.0, 100.0], [-1, -1])
    >>> cluster.crossing(np.array([[1.0, 1.0], [2.0, 0.0]])).tolist()
    [[1.0, 1.0], [0.0, 0.0]]
    """

    processors: Ints
    available_cpu: Floats
    link: Ints
    width: Floats
    parent: Ints

    def __post_init__(self) -> None:
        for name, kind in (
            ("processors", np.int64),
            ("available_cpu", np.float64),
            ("link", np.int64),
            ("width", np.float64),
            ("parent", np.int64),
        ):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=kind))
        pools, links = self.processors.size, self.width.size
        if not pools or self.available_cpu.shape != (pools,) or self.link.shape != (pools,):
            raise InputError(
                f"available_cpu and link of a cluster must have one value for each of its {pools} pools, at least one"
            )
        if self.parent.shape != (links,):
            raise InputError(
                f"parent of a cluster has {self.parent.size} numbers, expected one for each of {links} links"
            )
        for name, least in (("processors", 1), ("available_cpu", 1e-9), ("width", 1e-9)):
            values = getattr(self, name)
            if not np.all(np.isfinite(values) & (values >= least)):
                raise InputError(f"{name} of a cluster holds {values.min()}, expected finite numbers above 0")
        if np.any((self.link < 0) | (self.link >= links)) or np.any((self.parent < -1) | (self.parent >= links)):
            raise InputError(f"link or parent of a cluster names a link outside 0..{links - 1}")
        above = self.parent
        for _ in range(links.bit_length()):  # twice as far up each time
            above = np.where(above >= 0, above[above], -1)
        if np.any(above >= 0):
            raise InputError("parent of a cluster contains a cycle, expected a tree of links")

    @classmethod
    def star(cls, processors: ArrayLike, bandwidth: ArrayLike, available_cpu: ArrayLike = 1.0) -> SharedCluster:
        """Nodes on one switch, each a pool with a link of its own.

        Parameters
        ----------
        processors : of each node.
        bandwidth : of each node's link (Mbit/s).
        available_cpu : of each node's processors, a fraction of one.
        """
        count = np.asarray(processors)
        return cls(
            count,
            np.broadcast_to(np.asarray(available_cpu, dtype=float), count.shape),
            np.arange(count.size),
            np.broadcast_to(np.asarray(bandwidth, dtype=float), count.shape),
            np.full(count.size, -1),
        )

    def crossing(self, processes: Floats) -> Floats:
        """Flows of a job over each link in each direction, shape (..., links).

        A job's processes send to each other evenly, so that a process below a link has (P - below) / (P - 1) of its
        messages cross it.
        """
        below = np.zeros((*processes.shape[:-1], self.width.size))
        pool, way = np.arange(self.link.size), self.link
        while way.size:
            np.add.at(np.moveaxis(below, -1, 0), way, np.moveaxis(processes, -1, 0)[pool])
            way = self.parent[way]
            pool, way = pool[way >= 0], way[way >= 0]
        total = processes.sum(axis=-1, keepdims=True)
        return np.asarray(below * (total - below) / np.maximum(total - 1.0, 1.0))


@dataclass(frozen=True, slots=True)
class Work:
    """The work of jobs on a cluster's pools and links, with the times that each would take alone. Made by :meth:`of`.

    Parameters
    ----------
    load : array of shape (..., pools), processes.
    computing : array of shape (..., pools), seconds that they compute.
    flows : array of shape (..., links), flows in each direction.
    sending : array of shape (..., links), seconds that those keep the link busy.
    remaining : array of shape (...,), seconds until the job ends, were it alone from now on.
    """

    load: Floats
    computing: Floats
    flows: Floats
    sending: Floats
    remaining: Floats

    @classmethod
    def of(
        cls,
        cluster: SharedCluster,
        processes: ArrayLike,
        computation: ArrayLike,
        communication: ArrayLike,
        *,
        remaining: ArrayLike | None = None,
    ) -> Work:
        """Work of jobs from the two terms of their models.

        Parameters
        ----------
        cluster : where.
        processes : array of shape (..., pools), how many processes the job has in each pool.
        computation : array of shape (...,), seconds that each process computes, on the slowest of the job's pools; or
            of shape (..., pools), seconds on each pool, where a model tells processes apart.
        communication : array of shape (...,), seconds that the job communicates, all its processes at once.
        remaining : array of shape (...,), seconds until the job ends alone; its two terms where not given.

        Raises
        ------
        InputError : when a number is negative or not finite, or when a job has no process or nothing to do.

        Examples
        --------
        >>> cluster = SharedCluster.star([2, 2, 2], 100.0, available_cpu=[1.0, 0.5, 1.0])
        >>> work = Work.of(cluster, [1, 1, 0], computation=8.0, communication=3.0)
        >>> work.computing.tolist(), work.sending.tolist(), work.remaining.tolist()
        ([4.0, 8.0, 0.0], [3.0, 3.0, 0.0], 11.0)
        """
        load = np.asarray(processes, dtype=float)
        if load.shape[-1:] != cluster.processors.shape:
            raise InputError(f"processes cover {load.shape[-1]} pools, expected {cluster.processors.size}")
        if np.any(load != np.floor(load)) or not np.all(load.sum(axis=-1) > 0):
            raise InputError("processes must be whole numbers, at least one for each job")
        computing = np.asarray(computation, dtype=float)
        if computing.ndim < load.ndim:
            slowest = np.min(np.where(load > 0, cluster.available_cpu, np.inf), axis=-1, keepdims=True)
            computing = computing[..., None] * slowest / cluster.available_cpu
        computing = np.where(load > 0, computing, 0.0)
        flows = cluster.crossing(load)
        each = flows / cluster.width
        slowest = each.max(axis=-1, keepdims=True)
        sending = np.divide(each, slowest, out=np.zeros_like(each), where=slowest > 0)
        sending = sending * np.asarray(communication, dtype=float)[..., None]
        alone = computing.max(axis=-1) + sending.max(axis=-1)
        left = alone if remaining is None else np.broadcast_to(np.asarray(remaining, dtype=float), alone.shape)
        for name, values in (("processes", load), ("computation", computing), ("communication", sending)):
            if not np.all(np.isfinite(values) & (values >= 0)):
                raise InputError(f"{name} of a job holds {values.min()}, expected finite numbers of at least 0")
        if not np.all((alone > 0) & np.isfinite(left) & (left >= 0)):
            raise InputError("a job has no remaining work or no finite time to its end")
        return cls(load, computing, flows, sending, left)
