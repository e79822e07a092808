"""Releases jobs that are bound to nodes and do not start there, so that they may run on any others.

A placement names the nodes that were the best ones when it was made. A job that starts at once has them. One that waits
would be bound for as long as they are drained, reserved or taken, and what was known of their loads is out of date by
then: it is given back to its scheduler, with the time limit that its user asked for, and where it was sent to one of
several partitions, with all of these that admit it: all nodes of the one may be drained.
"""

from __future__ import annotations

import logging
import math

from metasched.advised_placements import AdvisedPlacement
from metasched.node_names import unfold
from metasched.records import InputError
from metasched.schedulers.contract import Source
from metasched.service.advice.advisor import usable_for
from metasched.service.advice.answers import holder_of
from metasched.service.state.live_clusters import View
from metasched.store.database.placement_records import PlacementRecords

_log = logging.getLogger(__name__)


def release(source: Source, placements: PlacementRecords, view: View, submitted_before: float) -> int:
    """Release the jobs that were submitted before a time (s), by their scheduler's clock; return how many.

    Jobs whose user named the nodes stay bound. No limit becomes shorter, nor longer than a user has made it meanwhile,
    and the partitions and the number of nodes that a user has set meanwhile stay.

    Raises
    ------
    RuntimeError
        When the scheduler does not tell of its jobs.
    StoreError
        When placements cannot be read.
    """
    released, failed = 0, dict[str, str]()
    for job in source.bound():
        advice = placements.find(job.placement) if job.since <= submitted_before else None
        if advice is None or advice.answer.steer != "nodes" or advice.answer.scheduler != source.name:
            continue
        try:
            if job.nodes != frozenset(unfold(advice.answer.nodes, where="nodes")):
                continue
        except InputError:
            continue
        sent = advice.answer
        # Its user may have put it into another partition meanwhile, or into several: the default is that of the first.
        known = (view.find(source.name, name) for name in (*job.partition.split(","), sent.partition))
        partition = next((each for each in known if each is not None), None)
        asked = advice.question
        limit = asked.time_limit or (partition.default_time if partition else job.time_limit) or math.inf
        # Its user may have lowered it meanwhile, or an operator raised it.
        lowered = 0.0 < job.time_limit < min(limit, _advised_limit(advice))
        limit = job.time_limit if lowered else max(limit, job.time_limit)
        spread = asked.per_node is None and job.most_nodes in (None, sent.node_count)
        most = len(partition.state.nodes) if partition and spread else None
        try:
            moved = job.partition != sent.partition
            others = [] if moved else _partitions(advice, view, source.name, job.partition, limit)
            source.release(job.number, limit if math.isfinite(limit) else None, most, others)
        except RuntimeError as error:
            failed[job.number] = f"stays bound to {advice.answer.nodes}: {error}"
        else:
            released += 1
            _log.info("job %s of %s is no longer bound to %s", job.number, source.name, advice.answer.nodes)
    if failed:  # A job that has started or ended meanwhile could not be released, and need not be.
        for number in failed.keys() & {each.number for each in source.bound()}:
            _log.warning("job %s of %s %s", number, source.name, failed[number])
    return released


def _advised_limit(advice: AdvisedPlacement) -> float:
    """The time limit (s) that the job was given for its nodes, in whole minutes; infinite where it was given none."""
    limit = advice.answer.time_limit
    return math.inf if limit is None else 60.0 * math.ceil(limit / 60.0)


def _partitions(advice: AdvisedPlacement, view: View, scheduler: str, own: str, limit: float) -> list[str]:
    """Where a job might have been sent as it is now, its own partition first; none where that is the only one."""
    names, holder, processors = [own], holder_of(advice.question), advice.answer.processors or 1
    for each in usable_for(view, advice.question):
        allowed = each.limits(holder)
        room = min(most for most in (each.total, allowed.processors, math.inf) if most is not None)
        admitted = allowed.admit(advice.answer.node_count or 1) and limit <= each.longest(holder) and processors <= room
        if each.scheduler == scheduler and each.name != own and admitted:
            names.append(each.name)
    return names if len(names) > 1 else []
