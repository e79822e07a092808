"""The load of recently placed jobs, which no measurement shows yet.

Measurements lag by half a minute or more, so a burst of submissions would all be placed on the same idle nodes.
Therefore a placed job counts as load on its nodes until a measurement includes it, or until its predicted end.

If a scheduler allocates processors exclusively, those of a recently placed job are not available to others in any
partition; jobs that find too few free processors wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import overload

import numpy as np
from numpy.typing import NDArray

from metasched.arrays import Flags, Floats, Ints
from metasched.placement.clusters.own_load import SETTLING
from metasched.placement.clusters.queue_wait import QueueWait, earliest_start
from metasched.placement.clusters.running_jobs import RunningJob
from metasched.placement.clusters.state import ClusterState, places

#: Clusters in which the numbers of nodes are remembered.
MOST_CLUSTERS = 1000


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
    memory : megabytes it takes on each of them, if it is dedicated; none where empty.
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
    memory: tuple[float, ...] = ()

    def left_on(self, cluster: ClusterState, now: float) -> float:
        """Its remaining time on nodes of a cluster (s); 0 if it has none of these nodes or should have ended."""
        here = self.cluster == cluster.name or cluster.name in self.overlapping
        return max(self.start + self.execution_time - now, 0.0) if here else 0.0


@dataclass(frozen=True, slots=True)
class Taken:
    """What jobs take of their nodes: a row for each job on each of its nodes, arrays of shape (k,).

    Parameters
    ----------
    node : number of the node in a cluster.
    processors : that the job takes there.
    dedicated : 1 where these are its own, else 0.
    start : when the job was placed (s).
    memory : that the job takes there (megabytes).
    """

    node: Ints
    processors: Ints
    dedicated: Ints
    start: Floats
    memory: Floats


class PlacedJobs(Sequence[RecentPlacement]):
    """Recently placed jobs, the oldest first. The value is immutable; :meth:`plus` and :meth:`only` return new ones.

    A daemon computes their load thousands of times a minute, and adds a job each time. Therefore the jobs are stored in
    columns, which a value shares with those derived from it by :meth:`plus`.

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

    def only(self, kept: Flags) -> PlacedJobs:
        """The jobs that a boolean array of shape (jobs,) selects."""
        return self._of(self._columns.only(kept, self._rows))

    def not_over(self, now: float, since: Mapping[str, float], else_since: float) -> Flags:
        """Which jobs should not have ended yet, and were placed recently enough; shape (jobs,).

        Parameters
        ----------
        now : seconds.
        since, else_since : from when on placements on a cluster, by its name, and on any other count (s).
        """
        own = self._columns
        cluster, start, end = own.each[:, : self._jobs]
        first = np.array([since.get(name, else_since) for name in tuple(own.clusters)])
        counts: Flags = (end > now) & (start >= first.take(cluster.astype(np.int64)))
        return counts

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

    def on(self, cluster: ClusterState, now: float) -> Taken:
        """The load on a cluster of those jobs that have neither ended nor wait.

        Parameters
        ----------
        cluster : whose nodes count.
        now : seconds.
        """
        own = self._columns
        _, node, where, processors, dedicated = own.counts[:, : self._rows]
        start, end, memory = own.amounts[:, : self._rows]
        place = own.numbers(cluster.nodes).take(node)
        counts = (place >= 0) & (end > now)
        here = [cluster.name in names for names in tuple(own.places)]
        if not all(here):
            counts &= np.array(here).take(where)
        kept = np.flatnonzero(counts)
        columns = (each.take(kept) for each in (processors, dedicated, start, memory))
        return Taken(place.take(kept), *columns)


class _Columns:
    """Jobs and their loads in columns that only grow, so that readers of the first rows are never disturbed."""

    def __init__(self) -> None:
        self.jobs: list[RecentPlacement] = []
        #: Of each job, a column: the number of its cluster, from when and until when it counts (s).
        self.clusters, self.each = dict[str, int](), np.empty((3, 16))
        self.nodes: dict[str, int] = {}
        self.places: dict[frozenset[str], int] = {}
        #: Of each job on each of its nodes, a column: the numbers of the job, of the node and of the possible clusters,
        #: its processors there, and 1 where they are exclusive; the time from which and until which it counts (s), and
        #: its memory there (megabytes).
        self.counts, self.amounts, self.rows = np.empty((5, 16), np.int64), np.empty((3, 16)), 0
        #: The numbers of the first nodes within clusters, by the identities of their lists of nodes.
        self._numbers: dict[int, tuple[tuple[str, ...], Ints]] = {}

    def numbers(self, nodes: tuple[str, ...]) -> Ints:
        """The number of each recorded node within a cluster, -1 for nodes outside it."""
        _, found = self._numbers.get(id(nodes), (nodes, np.empty(0, np.int64)))
        if found.size < len(self.nodes):
            place, new = places(nodes), tuple(self.nodes)[found.size :]
            found = np.concatenate([found, np.array([place.get(name, -1) for name in new])])
            if len(self._numbers) >= MOST_CLUSTERS:
                self._numbers.clear()
            self._numbers[id(nodes)] = nodes, found
        return found

    def add(self, job: RecentPlacement) -> None:
        """Add a job; one that waits has no load yet."""
        end = job.start + job.execution_time
        if len(self.jobs) >= self.each.shape[1]:
            self.each = np.concatenate([self.each, np.empty_like(self.each)], axis=1)
        cluster = self.clusters.setdefault(job.cluster, len(self.clusters))
        self.each[:, len(self.jobs)] = cluster, job.start, end
        self.jobs.append(job)
        if job.waits:
            return
        where = self.places.setdefault(job.overlapping | {job.cluster}, len(self.places))
        rows = slice(self.rows, self.rows + len(job.nodes))
        if rows.stop > self.amounts.shape[1]:
            more = rows.stop
            self.counts = np.concatenate([self.counts, np.empty((5, more), np.int64)], axis=1)
            self.amounts = np.concatenate([self.amounts, np.empty((3, more))], axis=1)
        numbers = [self.nodes.setdefault(name, len(self.nodes)) for name in job.nodes]
        columns: tuple[int | Sequence[int], ...] = len(self.jobs) - 1, numbers, where, job.processors, job.dedicated
        for row, column in enumerate(columns):
            self.counts[row, rows] = column
        self.amounts[0, rows], self.amounts[1, rows], self.amounts[2, rows] = job.start, end, job.memory or 0.0
        self.rows = rows.stop

    def only(self, kept: Flags, rows: int) -> _Columns:
        """The selected jobs of the first rows, in new columns."""
        found = _Columns()
        found.jobs = [job for job, keep in zip(self.jobs, kept.tolist(), strict=False) if keep]
        found.clusters = dict(self.clusters)
        found.each = np.concatenate([self.each[:, np.flatnonzero(kept)], np.empty((3, 16))], axis=1)
        found.nodes, found.places, found._numbers = dict(self.nodes), dict(self.places), dict(self._numbers)
        stay = np.flatnonzero(kept.take(self.counts[0, :rows]))
        found.counts, found.amounts, found.rows = self.counts[:, stay], self.amounts[:, stay], stay.size
        found.counts[0] = (np.cumsum(kept) - 1).take(found.counts[0])
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
    node's link is shared equally among the jobs that use it. Processors and memory that a job has exclusively are not
    available.

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
    taken = recent.on(cluster, now)
    # Exclusive processors are unavailable whatever is measured; other jobs count until a measurement includes them.
    unseen = ~(now - cluster.age.take(taken.node) >= taken.start + settling)  # also where nothing is ever measured

    def sums(counts: NDArray[np.generic]) -> Ints:
        return np.bincount(taken.node, counts, len(cluster.nodes)).astype(np.int64)

    there, jobs, memory = cluster.processors, sums(unseen), cluster.memory
    shared_by = taken.processors * unseen
    if taken.dedicated.any():
        there = np.maximum(there - sums(taken.processors * taken.dedicated), 0)
        shared_by *= 1 - taken.dedicated
        if taken.memory.any():
            used_memory = np.bincount(taken.node, taken.memory * taken.dedicated, len(cluster.nodes))
            memory = np.maximum(memory - used_memory, 0.0)
    used = sums(shared_by)
    free = there - used
    shared = (free <= 0) & (used > 0) & (there > 0)
    crowd = np.where(shared, used / np.maximum(there, 1), 0.0)
    left = np.where(shared, there, np.maximum(free, 0))
    return replace(
        cluster,
        processors=left,
        minima=None if cluster.minima is None else cluster.minima.offered(left),
        available_cpu=1.0 / (1.0 / cluster.available_cpu + crowd),
        available_bandwidth=cluster.available_bandwidth / (1.0 + jobs),
        memory=memory,
        jobs=cluster.jobs + jobs,
    )


def after_recent_placements(cluster: ClusterState, placed: Iterable[RecentPlacement], now: float) -> ClusterState:
    """The state for a job that finds too few free processors, and waits until recently placed jobs end.

    Of these only such count as have processors of their own; the rest is as for :func:`with_recent_placements`.

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
