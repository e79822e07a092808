"""The load of jobs that were placed a moment ago and that no measurement shows yet.

Metrics lag by half a minute or more. A burst of submissions would all see the same idle nodes and pile up on them. So a
placed job counts on its nodes until a measurement is made in which it is visible, or until it should be over.

Where a scheduler gives each job processors of its own, those of a job just placed are gone for others, whichever of its
partitions they ask for; who finds too few free processors waits.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from metasched.placement.clusters.queue_wait import QueueWait, earliest_start
from metasched.placement.clusters.running_jobs import RunningJob
from metasched.placement.clusters.state import ClusterState

#: How long a job runs before the averages of the monitors show it fully (s).
SETTLING = 30.0


@dataclass(frozen=True, slots=True)
class RecentPlacement:
    """A job that was placed, and that measurements may not show yet.

    Parameters
    ----------
    cluster : name of its cluster.
    nodes : names of its nodes.
    processors : processors it takes on each of them.
    start : when it was placed (s).
    execution_time : how long after that it should be over (s).
    overlapping : names of the other clusters that the same nodes may be in: partitions of one scheduler share nodes.
    dedicated : whether its processors are its own, as a scheduler gives them out.
    waits : whether it waits for processors that others have.
    power : what it draws on average at most (W); None where nothing tells it.
    """

    cluster: str
    nodes: tuple[str, ...]
    processors: tuple[int, ...]
    start: float
    execution_time: float
    overlapping: frozenset[str] = frozenset()
    dedicated: bool = False
    waits: bool = False
    power: float | None = None

    def left_on(self, cluster: ClusterState, now: float) -> float:
        """How long it may still be on nodes of a cluster (s); 0 where its nodes are others or it should be over."""
        here = self.cluster == cluster.name or cluster.name in self.overlapping
        return max(self.start + self.execution_time - now, 0.0) if here else 0.0


def as_running(placed: Iterable[RecentPlacement], cluster: ClusterState) -> list[RunningJob]:
    """The jobs just placed on nodes of a cluster and not waiting, as jobs that run there with all they have to do."""
    return [
        RunningJob(job.nodes, job.processors, job.execution_time, 0.0, job.dedicated, power=job.power)
        for job in placed
        if not job.waits and (job.cluster == cluster.name or cluster.name in job.overlapping)
    ]


def with_recent_placements(
    cluster: ClusterState, placed: Iterable[RecentPlacement], now: float, settling: float = SETTLING
) -> ClusterState:
    """The state as it will be measured once the jobs just placed are visible.

    On each node they take free processors first. Where they take all of them the node is shared: with ``a`` of a
    processor for a new process, 1/a processes compete for it, and k more on p processors leave 1/(1/a + k/p). The
    node's link is shared among the jobs that hold it, each taken to use its full share of it. Processors that a job has
    for itself are not shared: they are gone.

    Parameters
    ----------
    cluster : the state as measured, with the age of each measurement.
    placed : jobs placed on any cluster.
    now : the time of the state (s).
    settling : how long a job runs before a measurement shows it (s).

    Examples
    --------
    >>> idle = ClusterState.make("c", ["n0", "n1"], processors=2, available_bandwidth=100.0)
    >>> job = RecentPlacement("c", ("n0", "n1"), (1, 2), start=0.0, execution_time=500.0)
    >>> after = with_recent_placements(idle, [job], now=10.0)
    >>> after.processors.tolist(), after.available_cpu.tolist(), after.available_bandwidth.tolist()
    ([1, 2], [1.0, 0.5], [50.0, 50.0])
    >>> with_recent_placements(idle, [replace(job, dedicated=True)], now=10.0).processors.tolist()
    [1, 0]
    """
    number = {name: index for index, name in enumerate(cluster.nodes)}
    taken, owned, jobs = (np.zeros(len(cluster.nodes), dtype=np.int64) for _ in range(3))
    for job in placed:
        if job.waits or not job.left_on(cluster, now):
            continue
        for name, processors in zip(job.nodes, job.processors, strict=True):
            index = number.get(name)
            if index is None:
                continue
            if job.dedicated:  # No measurement shows who has been given a processor.
                owned[index] += processors
            if now - cluster.age[index] < job.start + settling:
                taken[index] += 0 if job.dedicated else processors
                jobs[index] += 1
    there = np.maximum(cluster.processors - owned, 0)
    free = there - taken
    shared = (free <= 0) & (taken > 0) & (there > 0)
    crowd = np.where(shared, taken / np.maximum(there, 1), 0.0)
    return replace(
        cluster,
        processors=np.where(shared, there, np.maximum(free, 0)),
        available_cpu=1.0 / (1.0 / cluster.available_cpu + crowd),
        available_bandwidth=cluster.available_bandwidth / (1.0 + jobs),
        jobs=cluster.jobs + jobs,
    )


def after_recent_placements(cluster: ClusterState, placed: Iterable[RecentPlacement], now: float) -> ClusterState:
    """The state for a job that finds too few processors free, and waits until jobs just placed give theirs back.

    Parameters
    ----------
    cluster, placed, now : see :func:`with_recent_placements`; only jobs with processors of their own count.

    Examples
    --------
    >>> idle = ClusterState.make("c", ["n0", "n1"], processors=2)
    >>> jobs = [RecentPlacement("c", (name,), (2,), 0.0, end, dedicated=True) for name, end in (("n0", 60), ("n1", 90))]
    >>> after = after_recent_placements(idle, jobs, now=10.0)
    >>> after.processors.tolist(), after.queue_wait.at([1, 2, 4]).tolist()
    ([2, 2], [50.0, 50.0, 80.0])
    """
    up = {name for name, well in zip(cluster.nodes, cluster.up.tolist(), strict=True) if well}
    running: list[tuple[int, float]] = []
    queued: list[tuple[int, float]] = []
    for job in placed:
        left = job.left_on(cluster, now) if job.dedicated else 0.0
        here = sum(taken for name, taken in zip(job.nodes, job.processors, strict=True) if name in up)
        if left and here:
            (queued if job.waits else running).append((here, left))
    if not running:
        return cluster
    free = int(cluster.processors[cluster.up].sum()) - sum(taken for taken, _ in running)
    wait, first = earliest_start(max(free, 0), running, queued), min(left for _, left in running)
    steps = np.union1d(wait.processors, cluster.queue_wait.processors)
    seconds = np.maximum(np.maximum(wait.at(steps), first), cluster.queue_wait.at(steps))
    return replace(cluster, queue_wait=QueueWait(steps, seconds))
