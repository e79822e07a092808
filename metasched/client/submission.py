"""The cluster and partition that a job is submitted to: where it should complete first, within a deadline."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from metasched.client.completion import Ask, Estimate, estimates
from metasched.client.soundness import NAME
from metasched.placement.clusters.partition_queues import queue_waits
from metasched.placement.clusters.queue_wait import QueueWait
from metasched.records import InputError
from metasched.schedulers.contract import Source
from metasched.schedulers.submission import JobRequest

#: How long the choice may take in all (s).
DEADLINE = 10.0

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Choice:
    """Where a job is submitted.

    Parameters
    ----------
    source : the cluster.
    partition : empty to leave it as the job states it.
    estimates : completions that were compared, the earliest first; empty where the job is submitted unchanged.
    why_unchanged : the reason for that; empty where there are estimates.
    """

    source: Source
    partition: str
    estimates: Sequence[Estimate]
    why_unchanged: str = ""


def choose(asked: JobRequest, candidates: Sequence[Source], ask: Ask, note: Callable[[str], None]) -> Choice:
    """Choose the partition where a job should complete first; the first cluster, unchanged, where none can be named.

    Parameters
    ----------
    asked : the requests of the job.
    candidates : clusters that it can be submitted to, at least one.
    ask : asks the daemon.
    note : called with a line for each cluster that is left out, and where parameters cannot count.
    """
    answering: list[Source] = []
    try:
        found, why = _within(DEADLINE, lambda: _estimates(asked, candidates, ask, note, answering)), ""
    except (RuntimeError, InputError) as error:
        found, why = [], str(error)
    if found:
        source = next(each for each in candidates if each.name == found[0].cluster)
        return Choice(source, "" if len(asked.partitions) == 1 else found[0].partition, found)
    why = why or asked.why_no_mark or "the daemon has no model of the application"
    return Choice((answering or candidates)[0], "", (), why)


def _within(seconds: float, compute: Callable[[], Found]) -> Found:
    """The result of a computation within a time limit (s); failures are RuntimeErrors or InputErrors."""
    found: list[Found] = []
    wrong: list[Exception] = []

    def work() -> None:
        try:
            found.append(compute())
        except Exception as error:
            wrong.append(error)

    # Nobody waits at the end for a thread of this kind, whatever it still waits for.
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    if found:
        return found[0]
    if not wrong:
        raise RuntimeError(f"no choice within {seconds:g} s")
    if isinstance(wrong[0], RuntimeError | InputError):
        raise wrong[0]
    raise RuntimeError(f"an answer cannot be used: {type(wrong[0]).__name__} {wrong[0]}")


def _estimates(
    asked: JobRequest, candidates: Sequence[Source], ask: Ask, note: Callable[[str], None], answering: list[Source]
) -> list[Estimate]:
    """When the job would complete where, the earliest first; the clusters that answer are added meanwhile."""
    mark = asked.mark
    if mark is None and len(candidates) == 1:
        return []
    count = (mark.processors if mark else None) or asked.processors
    settings = asked.settings
    needed = count * settings.threads
    waits: dict[tuple[str, str], QueueWait] = {}
    silent, too_small = "", False
    for each in candidates:
        try:
            partitions = each.partitions()
            answering.append(each)
            found = queue_waits(partitions, each.queue())
        except RuntimeError as error:
            silent = str(error)
            note(f"{each.name} is left out: {silent}")
            continue
        if mark is None:
            return []
        for partition in partitions:
            if partition.name not in (asked.partitions or found) or not NAME.fullmatch(partition.name):
                continue
            most = [each for each in (partition.total, partition.limits(asked.holder).processors) if each is not None]
            if min(most, default=math.inf) < needed:
                too_small = True
            else:
                waits[each.name, partition.name] = found[partition.name]
    if mark is None:
        return []
    if not waits:
        open_to_it = f"no partition that is open to the job has {needed} processors" if too_small else ""
        raise RuntimeError(silent or open_to_it or "no partition is open to the job")
    return estimates(ask, mark.application, mark.problem_size, count, waits, settings.within(count), note)
