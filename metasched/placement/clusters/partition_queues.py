"""The queues of partitions that may share nodes, and how long a job would wait in each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import compress

from metasched.history.queue import Left, Line, PrecedingJob, QueuedJob, by_limit
from metasched.placement.clusters.partition import Partition
from metasched.placement.clusters.queue_wait import QueueWait

#: Jobs, each task of an array being one, that are simulated in the line of a partition, those of highest priority.
MOST_WAITING = 10_000


def partition_lines(
    partitions: Sequence[Partition], jobs: Iterable[QueuedJob], left: Left = by_limit
) -> dict[str, Line]:
    """The jobs that have processors of each partition of one scheduler, or wait for it, by its name.

    Parameters
    ----------
    partitions : with the processors that are free in each.
    jobs : that run or wait, those that wait in the order of their priority. A job that runs holds processors in all
        partitions that its nodes are in, and one that waits is ahead in all that share nodes with its own. What a job
        holds on a node that is not up, such as one that is being drained, nobody gets when it ends.
    left : how long each possibly runs on.
    """
    members = {each.name: frozenset(each.state.nodes) for each in partitions}
    in_use = {each.name: frozenset(compress(each.state.nodes, each.state.up.tolist())) for each in partitions}
    running: dict[str, list[PrecedingJob]] = {name: [] for name in members}
    waiting: dict[str, list[PrecedingJob]] = {name: [] for name in members}
    ahead_in: dict[frozenset[str], list[str]] = {}
    for job in jobs:
        if job.ran is not None:
            shares = _shares(job, in_use)
            possible = left(job) if shares else ()
            for name, share in shares.items():
                running[name].append(PrecedingJob(math.ceil(share * job.processors), job.holds, possible, job.number))
        elif job.ready:
            if job.partitions not in ahead_in:
                wanted = frozenset().union(*(members.get(name, ()) for name in job.partitions))
                ahead_in[job.partitions] = [
                    name for name, own in members.items() if name in job.partitions or own & wanted
                ]
            if found := ahead_in[job.partitions]:
                preceding = PrecedingJob(job.processors, job.holds, left(job), job.number)
                for name in found:
                    waiting[name] += [preceding] * min(job.tasks, MOST_WAITING - len(waiting[name]))
    # Partitions of the same nodes have the same line, which takes long to simulate where thousands of jobs wait.
    made: dict[tuple[object, ...], Line] = {}
    lines = {}
    for each in partitions:
        line = _free(each, running[each.name]), tuple(running[each.name]), tuple(waiting[each.name])
        lines[each.name] = made[line] = made.get(line) or Line(*line)
    return lines


def _free(partition: Partition, running: Sequence[PrecedingJob]) -> int:
    """The free processors: at most those that are left by jobs that have started since the nodes were read."""
    free = int(partition.state.processors[partition.state.up].sum())
    if partition.total is None:
        return free
    return max(min(free, partition.total - sum(job.processors for job in running)), 0)


def queue_waits(partitions: Sequence[Partition], jobs: Sequence[QueuedJob]) -> Mapping[str, QueueWait]:
    """How long a job would wait in each partition, by its name, where jobs run for as long as they may.

    The parameters are those of :func:`partition_lines`.

    Four processors are free, but a job that is ahead waits for eight of them; the four others are freed in 100 s.
    Partition q has one of the two nodes of p, and so half of what runs. The job ahead is too large for it.

    >>> from metasched.placement.clusters.state import ClusterState
    >>> p, q = (
    ...     Partition(ClusterState.make(name, nodes, processors=2), name, "c", name)
    ...     for name, nodes in (("p", ["n1", "n2"]), ("q", ["n2"]))
    ... )
    >>> runs = QueuedJob("1", frozenset("p"), 4, 600.0, ran=500.0, nodes=("n1", "n2"))
    >>> waits_first = QueuedJob("2", frozenset("p"), 8, 300.0)
    >>> waits = queue_waits([p, q], [runs, waits_first])
    >>> waits["p"].at([1, 8]).tolist(), waits["q"].at([2, 4]).tolist()
    ([400.0, 400.0], [0.0, 100.0])
    """
    return {name: QueueWait(*line.steps()) for name, line in partition_lines(partitions, jobs).items()}


def with_queue_waits(
    partitions: Sequence[Partition], jobs: Sequence[QueuedJob], lines: Mapping[str, Line]
) -> tuple[Partition, ...]:
    """The partitions with the waits in their queues; partitions without pending jobs have no waits."""
    waited_for = frozenset().union(*(job.partitions for job in jobs if job.ran is None and job.ready))
    contested = frozenset().union(*(each.state.nodes for each in partitions if each.name in waited_for))
    return tuple(
        replace(each, state=replace(each.state, queue_wait=QueueWait(*lines[each.name].steps())))
        if each.name in lines and contested & frozenset(each.state.nodes)
        else each
        for each in partitions
    )


def _shares(job: QueuedJob, members: Mapping[str, frozenset[str]]) -> Mapping[str, Fraction]:
    """The part of a running job's nodes that is in each partition; all of it in its own where its nodes are not known.

    A partition without any of them is left out.
    """
    own = frozenset(job.nodes)
    if not own:
        return {name: Fraction(1) for name in job.partitions if name in members}
    found = {name: Fraction(len(own & names), len(own)) for name, names in members.items()}
    return {name: share for name, share in found.items() if share}
