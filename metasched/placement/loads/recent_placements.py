"""The load of recently placed jobs, which no measurement shows yet.

Measurements lag by half a minute or more, so a burst of submissions would all be placed on the same idle nodes.
Therefore a placed job counts as load on its nodes until a measurement includes it, or until its predicted end.

If a scheduler allocates processors exclusively, those of a recently placed job are not available to others in any
partition; jobs that find too few free processors wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import overload

import numpy as np
from numpy.typing import NDArray

from metasched.placement.clusters.queue_wait import QueueWait, earliest_start
from metasched.placement.clusters.running_jobs import RunningJob
from metasched.placement.clusters.state import ClusterState, places

#: Time that a job must run until the averages of the monitors fully include it (s).
SETTLING = 30.0


@dataclass(frozen=True, slots=True)
class RecentPlacement:
    """A recently placed job, which measurements may not include yet.

    Parameters
    ----------
    cluster : name of its cluster.
    nodes : names of its nodes.
    processors : processors it takes on each of them.
    start : when it was placed (s).
    execution_time : predicted time until its end (s).
    overlapping : names of the other clusters that the same nodes may be in: partitions of one scheduler share nodes.
    dedicated : whether its processors are allocated exclusively.
    waits : whether it waits for processors that other jobs use.
    power, power_doubt : see :class:`metasched.placement.clusters.running_jobs.RunningJob`.
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
    power_doubt: float = 0.0

    def left_on(self, cluster: ClusterState, now: float) -> float:
        """Its remaining time on nodes of a cluster (s); 0 if it has none of these nodes or should have ended."""
        here = self.cluster == cluster.name or cluster.name in self.overlapping
        return max(self.start + self.execution_time - now, 0.0) if here else 0.0


Ints = NDArray[np.int64]

#: A job on one of its nodes: the numbers of the job, of the node and of the possible clusters; its processors there;
#: the time from which and until which it counts (s); and whether its processors are exclusive.
_TAKEN = np.dtype(
    [("job", "i8"), ("node", "i8"), ("where", "i8"), ("processors", "i8"), ("start", "f8"), ("end", "f8"),
     ("dedicated", "?")]
)  # fmt: skip


class PlacedJobs(Sequence[RecentPlacement]):
    """Recently placed jobs, the oldest first. The value is immutable; :meth:`plus` and :meth:`only` return new ones.

    A daemon computes their load thousands of times a minute, and adds a job each time. Therefore the jobs are stored in
    columns, which a value shares with those derived from it by :meth:`plus`.

    Parameters
    ----------
    jobs : the oldest first.

    Examples
    --------
    >>> one = PlacedJobs([RecentPlacement("c", ("n0",), (1,), 0.0, 60.0)])
    >>> two = one.plus(RecentPlacement("c", ("n1",), (4,), 5.0, 60.0))
    >>> len(one), [job.nodes for job in two]
    (1, [('n0',), ('n1',)])
    """

    def __init__(self, jobs: Iterable[RecentPlacement] = ()) -> None:
        self._columns = _Columns()
        for job in jobs:
            self._columns.add(job)
        self._jobs, self._rows = len(self._columns.jobs), self._columns.rows

    @classmethod
    def _of(cls, columns: _Columns) -> PlacedJobs:
        found = cls()
        found._columns, found._jobs, found._rows = columns, len(columns.jobs), columns.rows
        return found

    def plus(self, job: RecentPlacement) -> PlacedJobs:
        """These jobs and one that was placed after them."""
        newest = len(self._columns.jobs) == self._jobs
        longer = self._columns if newest else self.only(np.ones(self._jobs, dtype=np.bool_))._columns
        longer.add(job)
        return self._of(longer)

    def only(self, kept: NDArray[np.bool_]) -> PlacedJobs:
        """The jobs that a boolean array of shape (jobs,) selects."""
        return self._of(self._columns.only(kept, self._rows))

    def __len__(self) -> int:
        return self._jobs

    def __iter__(self) -> Iterator[RecentPlacement]:
        return iter(self._columns.jobs[: self._jobs])

    @overload
    def __getitem__(self, index: int) -> RecentPlacement: ...
    @overload
    def __getitem__(self, index: slice) -> list[RecentPlacement]: ...
    def __getitem__(self, index: int | slice) -> RecentPlacement | list[RecentPlacement]:
        return self._columns.jobs[: self._jobs][index]

    def on(self, cluster: ClusterState, now: float) -> tuple[Ints, NDArray[np.void]]:
        """The load on a cluster of those jobs that have neither ended nor wait.

        Parameters
        ----------
        cluster : whose nodes count.
        now : seconds.

        Returns
        -------
        The number of the node in the cluster, shape (k,), and the load there: columns of shape (k,).
        """
        own, taken = self._columns, self._columns.taken[: self._rows]
        here = np.array([cluster.name in names for names in own.places], dtype=np.bool_)
        if not taken.size:
            return np.empty(0, np.int64), taken
        place = own.numbers(cluster.nodes).take(taken["node"])
        count = np.flatnonzero((place >= 0) & here.take(taken["where"]) & (taken["end"] > now))
        return place.take(count), taken.take(count)


class _Columns:
    """Jobs and their loads in columns that only grow, so that readers of the first rows are never disturbed."""

    def __init__(self) -> None:
        self.jobs: list[RecentPlacement] = []
        self.nodes: dict[str, int] = {}
        self.places: dict[frozenset[str], int] = {}
        self.taken, self.rows = np.empty(16, _TAKEN), 0
        self._last: tuple[tuple[str, ...], Ints] = (), np.empty(0, np.int64)

    def numbers(self, nodes: tuple[str, ...]) -> Ints:
        """The number of each recorded node within a cluster, -1 for nodes outside it."""
        known, found = self._last
        if known is not nodes or found.size != len(self.nodes):
            place = places(nodes)
            found = np.array([place.get(name, -1) for name in tuple(self.nodes)])
            self._last = nodes, found
        return found

    def add(self, job: RecentPlacement) -> None:
        """Add a job; one that waits has no load yet."""
        self.jobs.append(job)
        if job.waits:
            return
        where = self.places.setdefault(job.overlapping | {job.cluster}, len(self.places))
        if self.rows + len(job.nodes) > self.taken.size:
            self.taken = np.concatenate([self.taken, np.empty(self.taken.size + len(job.nodes), _TAKEN)])
        for name, processors in zip(job.nodes, job.processors, strict=True):
            number = self.nodes.setdefault(name, len(self.nodes))
            end = job.start + job.execution_time
            self.taken[self.rows] = len(self.jobs) - 1, number, where, processors, job.start, end, job.dedicated
            self.rows += 1

    def only(self, kept: NDArray[np.bool_], rows: int) -> _Columns:
        """The selected jobs of the first rows, in new columns."""
        found = _Columns()
        found.jobs = [job for job, keep in zip(self.jobs, kept.tolist(), strict=False) if keep]
        found.nodes, found.places = dict(self.nodes), dict(self.places)
        own = self.taken[:rows]
        taken = own[kept.take(own["job"])]
        taken["job"] = (np.cumsum(kept) - 1).take(taken["job"])
        found.taken, found.rows = np.concatenate([taken, np.empty(16, _TAKEN)]), taken.size
        return found


def as_running(placed: Iterable[RecentPlacement], cluster: ClusterState) -> list[RunningJob]:
    """The recently placed jobs of a cluster that do not wait, as running jobs with all of their work left."""
    return [
        RunningJob(
            job.nodes, job.processors, job.execution_time, 0.0, job.dedicated,
            power=job.power, power_doubt=job.power_doubt,
        )
        for job in placed
        if not job.waits and (job.cluster == cluster.name or cluster.name in job.overlapping)
    ]  # fmt: skip


def with_recent_placements(
    cluster: ClusterState, placed: Iterable[RecentPlacement], now: float, settling: float = SETTLING
) -> ClusterState:
    """The state as it will be measured once measurements include the recently placed jobs.

    On each node they use free processors first. If they use all of them, the node is shared: if a new process would get
    the share ``a`` of a processor, 1/a processes compete for it, and k more on p processors leave 1/(1/a + k/p). The
    node's link is shared equally among the jobs that use it. Processors that a job has exclusively are not available.

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
    recent = placed if isinstance(placed, PlacedJobs) else PlacedJobs(placed)
    node, of_jobs = recent.on(cluster, now)
    dedicated, processors = of_jobs["dedicated"], of_jobs["processors"]
    # Exclusive processors are unavailable whatever is measured; other jobs count until a measurement includes them.
    unseen = now - cluster.age.take(node) < of_jobs["start"] + settling

    def sums(counts: Ints) -> Ints:
        return np.bincount(node, counts, len(cluster.nodes)).astype(np.int64)

    owned, taken = sums(processors * dedicated), sums(processors * (unseen & ~dedicated))
    jobs = sums(unseen.astype(np.int64))
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
    """The state for a job that finds too few free processors, and waits until recently placed jobs end.

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
