"""The load of jobs that were placed a moment ago and that no measurement shows yet.

Metrics lag by half a minute or more. Without their shadow a burst of submissions would all see the same idle nodes
and pile up on them. A placed job shades its nodes until a measurement is made in which it is visible, or until it
should be over.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from metasched.placement.cluster import ClusterState

#: How long a job runs before the averages of the monitors show it fully (s).
SETTLING = 30.0


@dataclass(frozen=True, slots=True)
class Placed:
    """A job that was placed.

    Parameters
    ----------
    cluster : name of its cluster.
    nodes : names of its nodes.
    processors : processors it takes on each of them.
    start : when it starts (s).
    execution_time : how long it should run (s).
    """

    cluster: str
    nodes: tuple[str, ...]
    processors: tuple[int, ...]
    start: float
    execution_time: float


def shaded(cluster: ClusterState, placed: Iterable[Placed], now: float, settling: float = SETTLING) -> ClusterState:
    """The state as it will be measured once the jobs just placed are visible.

    On each node they take free processors first. Where they take all of them the node is shared: with ``a`` of a
    processor for a new process, 1/a processes compete for it, and k more on p processors leave 1/(1/a + k/p). The
    node's link is shared among the jobs that hold it, each taken to use its full share of it.

    Parameters
    ----------
    cluster : the state as measured, with the age of each measurement.
    placed : jobs placed on any cluster.
    now : the time of the state (s).
    settling : how long a job runs before a measurement shows it (s).

    Examples
    --------
    >>> idle = ClusterState.make("c", ["n0", "n1"], processors=2, available_bandwidth=100.0)
    >>> job = Placed("c", ("n0", "n1"), (1, 2), start=0.0, execution_time=500.0)
    >>> after = shaded(idle, [job], now=10.0)
    >>> after.processors.tolist(), after.available_cpu.tolist(), after.available_bandwidth.tolist()
    ([1, 2], [1.0, 0.5], [50.0, 50.0])
    """
    number = {name: index for index, name in enumerate(cluster.nodes)}
    taken = np.zeros(len(cluster.nodes), dtype=np.int64)
    jobs = np.zeros(len(cluster.nodes), dtype=np.int64)
    for job in placed:
        if job.cluster != cluster.name or now >= job.start + job.execution_time:
            continue
        for name, processors in zip(job.nodes, job.processors, strict=True):
            index = number.get(name)
            if index is not None and now - cluster.age[index] < job.start + settling:
                taken[index] += processors
                jobs[index] += 1
    free = cluster.processors - taken
    shared = (free <= 0) & (taken > 0) & (cluster.processors > 0)
    crowd = np.where(shared, taken / np.maximum(cluster.processors, 1), 0.0)
    return replace(
        cluster,
        processors=np.where(shared, cluster.processors, np.maximum(free, 0)),
        available_cpu=1.0 / (1.0 / cluster.available_cpu + crowd),
        available_bandwidth=cluster.available_bandwidth / (1.0 + jobs),
        jobs=cluster.jobs + jobs,
    )
