"""How long a job would wait in each partition, from the jobs that run and those that are ahead of it.

Running jobs hold their processors until their time limit, and those ahead start in their order, each for its limit:
what Slurm's own plan rests on. Jobs mostly end sooner and small ones start out of turn, so it is an upper estimate.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from fractions import Fraction
from types import MappingProxyType

from metasched.node_names import unfold
from metasched.placement.clusters.queue_wait import QueueWait, earliest_start
from metasched.records import InputError
from metasched.slurm_times import span

#: What a queue is asked for: state, partitions, processors, time left, time limit, why a job is not started, and its
#: nodes.
COLUMNS = ("State", "Partition", "NumCPUs", "TimeLeft", "TimeLimit", "Reason", "NodeList")
#: Why jobs wait that are ahead of a new one; others wait for something else than processors.
WAITING = frozenset({"None", "Priority", "Resources"})
#: What a job without a limit is taken to need (s).
UNLIMITED = 86_400.0


def queue_waits(
    rows: Iterable[Mapping[str, str]],
    free: Mapping[str, int],
    nodes: Mapping[str, Collection[str]] = MappingProxyType({}),
    *,
    everywhere: bool = False,
) -> dict[str, QueueWait]:
    """The wait in each partition by the number of processors; nothing is said of partitions where nobody waits.

    Parameters
    ----------
    rows : the ``COLUMNS`` of each job that runs or waits, those that wait in the order of their priority.
    free : processors that are free in each partition.
    nodes : names of each partition's nodes. A job that runs holds processors in all partitions that its nodes are in,
        and one that waits is ahead in all that share nodes with its own; by their names alone where they are not given.
    everywhere : tell of all partitions, as a job must know that may wait where nobody does yet.

    Examples
    --------
    Four processors are free, but a job that is ahead waits for eight of them; the four others are freed in 100 s.

    >>> runs = dict(zip(COLUMNS, ("RUNNING", "p", "4", "1:40", "10:00", "None", "n[1-2]")))
    >>> waits = dict(zip(COLUMNS, ("PENDING", "p", "8", "INVALID", "5:00", "Resources", "")))
    >>> queue_waits([runs, waits], {"p": 4, "q": 2})["p"].at([1, 8]).tolist()
    [400.0, 400.0]

    Partition q has one of the two nodes of p, and so half of what runs. The job ahead is too large for it.

    >>> waits = queue_waits([runs, waits], {"p": 4, "q": 2}, {"p": ["n1", "n2"], "q": ["n2"]})
    >>> waits["q"].at([2, 4]).tolist()
    [0.0, 100.0]
    """
    members = {partition: frozenset(names) for partition, names in nodes.items()}
    running: dict[str, list[tuple[int, float]]] = {}
    ahead: dict[str, list[tuple[int, float]]] = {}
    for state, partitions, processors, left, limit, reason, folded in ([row[name] for name in COLUMNS] for row in rows):
        if not processors.isdecimal():
            continue
        asked = frozenset(partitions.split(","))
        if state == "RUNNING":
            for partition, share in _shares(asked, folded, members).items():
                taken = math.ceil(share * int(processors))
                running.setdefault(partition, []).append((taken, span(left) or UNLIMITED))
        elif state == "PENDING" and reason in WAITING:
            wanted = frozenset().union(*(members.get(partition, ()) for partition in asked))
            for partition in asked | {other for other, own in members.items() if own & wanted}:
                ahead.setdefault(partition, []).append((int(processors), span(limit) or UNLIMITED))
    return {
        partition: earliest_start(free[partition], running.get(partition, ()), ahead.get(partition, ()))
        for partition in (free if everywhere else ahead)
        if partition in free
    }


def _shares(partitions: Collection[str], folded: str, members: Mapping[str, frozenset[str]]) -> Mapping[str, Fraction]:
    """The part of a running job's nodes that is in each partition; all of it in its own where its nodes are not known.

    A partition without any of them is left out.
    """
    try:
        own = frozenset(unfold(folded, where="nodes")) if members else frozenset[str]()
    except InputError:
        own = frozenset()
    if not own:
        return dict.fromkeys(partitions, Fraction(1))
    found = {partition: Fraction(len(own & names), len(own)) for partition, names in members.items()}
    return {partition: share for partition, share in found.items() if share}
