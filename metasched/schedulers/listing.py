"""The listing of a scheduler: its partitions by node, and its running and pending jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from metasched.history.queue import QueuedJob
from metasched.jobs import placement_in


@dataclass(frozen=True, slots=True)
class Instance:
    """A partition's part on one node.

    Parameters
    ----------
    queue, host : names of the partition, a queue as many schedulers say, and of the node.
    slots, used : processors there, and how many of them jobs or reservations hold.
    up : whether jobs may start there.
    time_limit : the longest that a job may run there (s), None where there is no limit.
    memory : of the host (MB), as far as jobs may have it, NaN where that is not reported.
    """

    queue: str
    host: str
    slots: int
    used: int
    up: bool
    time_limit: float | None
    memory: float


@dataclass(frozen=True, slots=True)
class ListedJob:
    """A job that runs or waits.

    Parameters
    ----------
    number : its number, with that of its task where it is one of an array: ``7.2``.
    name, user : its name, and that of its user.
    slots : processors by host, where it runs; how many it waits for, by an empty name, where it waits.
    ready : whether it waits for processors and nothing else.
    queues : names of the partitions that it runs in, or names and patterns of those that it asks for.
    limit : its time limit (s), None where it has none.
    hosts : names of the only hosts that it may start on, empty where it may start on any.
    since : when it started, or was submitted where it waits (s), None where that is not reported.
    tasks : how many tasks of an array wait in this line.
    comment : what says its mark.
    """

    number: str
    name: str
    user: str
    slots: Mapping[str, int]
    ready: bool = True
    queues: tuple[str, ...] = ()
    limit: float | None = None
    hosts: frozenset[str] = frozenset()
    since: float | None = None
    tasks: int = 1
    comment: str = ""

    @property
    def runs(self) -> bool:
        """Whether the job has started: no slot of it waits."""
        return "" not in self.slots


@dataclass(frozen=True, slots=True)
class Listing:
    """All partitions and jobs of a cluster."""

    instances: tuple[Instance, ...]
    jobs: tuple[ListedJob, ...]

    def queue_names(self) -> tuple[str, ...]:
        """The partitions, in order of their names."""
        return tuple(sorted({each.queue for each in self.instances}))

    def queue(self, now: float) -> list[QueuedJob]:
        """The jobs as the scheduler's queue at a time (s since 1970)."""
        names = self.queue_names()
        return [made for job in self.jobs for made in _queued(job, names, now)]


def _queued(job: ListedJob, names: tuple[str, ...], now: float) -> Iterator[QueuedJob]:
    patterns = [each.partition("@")[0] for each in job.queues]
    wanted = frozenset(name for name in names if not patterns or any(fnmatchcase(name, each) for each in patterns))
    count = sum(job.slots.values())
    if job.runs:
        ran = max(now - (job.since or now), 0.0)
        yield QueuedJob(job.number, wanted, count, job.limit, ran, tuple(job.slots), started=job.since,
                        user=job.user, name=job.name, placement=placement_in(job.comment))  # fmt: skip
        return
    yield QueuedJob(job.number, wanted, count, job.limit, ready=job.ready, submitted=job.since, user=job.user,
                    name=job.name, tasks=job.tasks, placement=placement_in(job.comment))  # fmt: skip
