"""The power of a cluster without the job to be placed: of running jobs and of idle nodes.

The nodes of a cluster draw power whether a job is placed on them or not. A job's own power holds that of the nodes that
it takes; besides it count the jobs that run, and the nodes that do nothing. What an idle node draws is ``idle_power``
of the cluster's hardware, 0 where that does not tell it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from metasched.blocks.power import cores_of, drawn, idle_power, knows_power
from metasched.placement.clusters.running_jobs import RunningJob
from metasched.placement.clusters.state import ClusterState

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Draw:
    """The power of a cluster without a job.

    Parameters
    ----------
    running : power of the jobs that run (W).
    idle : of a node that does nothing (W).
    unused : nodes that are up and have no job.
    per_node : processors that a node has at most.

    Examples
    --------
    >>> draw = Draw(running=300.0, idle=50.0, unused=4, per_node=2)
    >>> draw.alone, draw.besides(np.array([1, 2, 3, 8])).tolist()
    (500.0, [450.0, 450.0, 400.0, 300.0])
    """

    running: float
    idle: float
    unused: int
    per_node: int

    @property
    def alone(self) -> float:
        """The power of the cluster without the job (W)."""
        return self.running + self.idle * self.unused

    def besides(self, processors: Ints) -> Floats:
        """The power besides a job that uses the fewest idle nodes with enough processors (W), shape (n,)."""
        nodes = -(-np.asarray(processors) // self.per_node)
        return np.asarray(self.running + self.idle * np.maximum(self.unused - nodes, 0))


def draw_of(cluster: ClusterState, jobs: Sequence[RunningJob]) -> Draw:
    """The power of a cluster without a job to be placed there.

    Nodes with a job of which no power is known count as busy by the hardware's formula, or as idle where it has none.

    Parameters
    ----------
    cluster : its state.
    jobs : that run there, or were placed there just now.

    Examples
    --------
    >>> from metasched.placement.clusters.running_jobs import RunningJob
    >>> cluster = ClusterState.make("c", ["n0", "n1", "n2"], jobs=[1, 0, 0])
    >>> draw_of(cluster, [RunningJob(("n0",), (1,), 10.0, 0.0, power=90.0)])
    Draw(running=90.0, idle=0.0, unused=2, per_node=1)
    """
    hardware, place = cluster.hardware, {name: index for index, name in enumerate(cluster.nodes)}
    idle = idle_power(hardware)
    known = np.zeros(len(cluster.nodes), dtype=bool)
    running = 0.0
    for job in jobs:
        here = [place[name] for name in job.nodes if name in place]
        if job.power is not None and here:
            running += job.power * len(here) / len(job.nodes)
            known[here] = True
    unknown = int(np.count_nonzero((cluster.jobs > 0) & ~known & cluster.up))
    busy = idle
    if hardware is not None and knows_power(hardware):
        busy = max(idle, float(drawn(hardware, [cores_of(hardware)])[0]))
    unused = int(np.count_nonzero(cluster.up & ~known & (cluster.jobs == 0)))
    return Draw(running + unknown * busy, idle, unused, max(int(cluster.processors.max(initial=1)), 1))
