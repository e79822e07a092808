"""A cluster whose scheduler lists its nodes, its jobs, and ended jobs, from which all else is derived."""

from __future__ import annotations

import pwd
import time
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from metasched.history.job_log import JobLog
from metasched.history.queue import QueuedJob
from metasched.jobs import EndedJob, Fate, placement_in, plain, read_mark
from metasched.placement.clusters.partition import Partition
from metasched.placement.clusters.running_jobs import StartedJob
from metasched.placement.clusters.state import ClusterState
from metasched.schedulers.accounted_jobs import AccountedJob, logged
from metasched.schedulers.command_cluster import CommandCluster
from metasched.schedulers.contract import BoundJob
from metasched.schedulers.listing import Instance, ListedJob, Listing


class ListedCluster(CommandCluster, ABC):
    """One cluster, with the parameters of :class:`CommandCluster`; it answers all of the contract of schedulers."""

    #: What the scheduler calls a partition.
    word = "queue"
    #: Whether each partition has processors of its own on a node, which jobs of others there do not take.
    apart = False
    #: Whether an epilog reports its jobs when they end; they are looked for otherwise.
    epilog = True
    #: Whether a job that has left the lists is always accounted for, some seconds later.
    accounts_for_all = False

    @abstractmethod
    def _listing(self) -> Listing:
        """The present partitions and jobs; RuntimeError if the scheduler does not answer."""

    @abstractmethod
    def _ended(self) -> Iterable[AccountedJob]:
        """The ended jobs that the scheduler still knows; RuntimeError if it does not answer."""

    def _comments(self, jobs: Sequence[ListedJob]) -> Mapping[str, str]:
        """The texts with the marks of jobs, by the numbers of the jobs without tasks."""
        return {job.number: job.comment for job in jobs}

    def release(self, number: str, time_limit: float | None, nodes: int | None, partitions: Sequence[str] = ()) -> None:
        """Let a waiting job start on any nodes of its partition, perhaps within another limit (s); see the contract."""
        raise RuntimeError(f"job {number} of {self.name} is not bound to nodes that it could be released from")

    def partitions(self) -> Sequence[Partition]:
        """The partitions as they are now, each with the processors that are free on its nodes."""
        listing = self._listing()
        missing = [name for name in self._wanted if name not in listing.queue_names()]
        if missing:
            raise RuntimeError(f"no {self.word} {missing[0]}, expected one of {', '.join(listing.queue_names())}")
        busy = {each.host for each in listing.instances if each.used}
        queues: dict[str, list[Instance]] = defaultdict(list)
        shared = Counter(each.host for each in listing.instances)
        for each in listing.instances:
            if not self._wanted or each.queue in self._wanted:
                queues[each.queue].append(each)
        found = []
        for name, own in queues.items():
            # What jobs of other partitions on its nodes leave of processors of its own, their sum does not tell.
            known = not self.apart or all(shared[each.host] == 1 for each in own)
            total = sum(each.slots for each in own if each.up) if known else None
            found.append(self._partition(name, own, busy, total))
        return found

    def _partition(self, name: str, own: Sequence[Instance], busy: Collection[str], total: int | None) -> Partition:
        state = ClusterState.make(
            f"{self.name}/{name}",
            [each.host for each in own],
            processors=[max(0, each.slots - each.used) for each in own],
            memory=[each.memory for each in own],
            jobs=[int(each.host in busy) for each in own],
            up=[each.up for each in own],
        )
        limits = [each.time_limit for each in own if each.time_limit is not None]
        limit = min(limits, default=None)
        return Partition(state, self._platform, self.name, name, limit, self._may_release(), limit, total)

    def queue(self) -> Sequence[QueuedJob]:
        """The jobs that run and wait; see the contract."""
        return self._listing().queue(time.time())

    def running(self) -> Sequence[StartedJob]:
        """The jobs that run now, each on processors of its own."""
        found, now = [], time.time()
        jobs = [job for job in self._listing().jobs if job.runs and job.since is not None]
        comments = self._comments(jobs) if jobs else {}
        for job in jobs:
            comment = comments.get(job.number, comments.get(job.number.partition(".")[0], ""))
            ran, mark = max(now - (job.since or now), 0.0), read_mark(comment)
            started = StartedJob(tuple(job.slots), tuple(job.slots.values()), ran, number=job.number)
            if mark is not None:
                started = replace(
                    started, application=mark.application, problem_size=mark.problem_size, settings=mark.settings
                )
            found.append(started)
        return found

    def bound(self) -> Sequence[BoundJob]:
        """The jobs with a placement in their mark that wait for certain hosts."""
        waiting = [job for job in self._listing().jobs if not job.runs and job.hosts]
        if not waiting:
            return []
        now, comments, found = time.time(), self._comments(waiting), []
        for job in waiting:
            if placement := placement_in(comments.get(job.number, "")):
                queue = job.queues[0] if job.queues else ""
                found.append(BoundJob(job.number, placement, job.hosts, queue, job.since or now))
        return found

    def accounted(self, since: float, until: float | None = None) -> JobLog | None:
        """All jobs that ended in a period (s); see the contract."""
        return logged(self._ended(), since, until)

    def fates(self, jobs: Collection[str]) -> Mapping[str, Fate]:
        """How each of these jobs ended; those that are not in the accounting yet are not settled."""
        # First, so that no job that ends meanwhile is in neither.
        there = {job.number for job in self._listing().jobs if job.number in jobs}
        found = {job.number: job.fate for job in self._ended() if job.number in jobs}
        unsettled = jobs if self.accounts_for_all else ()
        return dict.fromkeys(unsettled, Fate(None)) | found | dict.fromkeys(there, Fate(None))

    def finished(self, since: float) -> Sequence[EndedJob]:
        """Jobs that ended after a time (s), from the accounting, as far as it has all of their nodes."""
        return [
            self._ended_job(job)
            for job in self._ended()
            if job.nodes and job.end > max(since, job.start) and job.start > 0
        ]

    def _ended_job(self, job: AccountedJob) -> EndedJob:
        return EndedJob(
            scheduler=self.name,
            job=job.number,
            comment=job.comment,
            partition=job.queue,
            nodes=job.nodes,
            processors=job.slots,
            start=job.start,
            end=job.end,
            exit_status=job.exit_status or int(not job.completed),
            user=_uid(job.owner),
            name=plain(job.name.encode("utf-8", "surrogateescape")),
            submitted=job.submitted or None,
            kind=job.kind,
            numbers=job.numbers,
        )


def _uid(owner: str) -> str:
    """The number of a user, as in reports of hooks; the name if this host does not know it."""
    try:
        return str(pwd.getpwnam(owner).pw_uid)
    except (KeyError, ValueError):
        return owner
