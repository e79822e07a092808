"""Reads ``oarnodes -J`` and ``oarstat -f -J``: resources and jobs.

A resource of OAR's type ``default`` is one processor of a node. OAR's queues are classes of priority that share all
resources; a property of the resources, such as ``cluster``, makes partitions: ``attribute``, empty where none does.
``known`` are the processors by their numbers, ``jobs`` what ``oarstat -f -J`` prints.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from metasched.history.argument_numbers import in_command
from metasched.schedulers.accounted_jobs import AccountedJob
from metasched.schedulers.commands import count, seconds
from metasched.schedulers.listing import Instance, ListedJob

#: The partition if no property distinguishes any.
ANONYMOUS = "default"
#: The words that print resources and jobs; ``ended`` gives those that print jobs that have ended.
RESOURCES, JOBS = ("oarnodes", "-J"), ("oarstat", "-f", "-J")
#: Jobs that have ended are asked for as long as this after their end (s).
REMEMBERED = 2 * 86_400.0
_RUNS = frozenset({"Launching", "Running", "Suspended", "Resuming", "Finishing"})
_WAITS = frozenset({"Waiting", "Hold", "toLaunch", "toAckReservation"})
#: Requested resources and time limit of a job: ``R=4,W=2:0:0,...``.
_ASKED = re.compile(r"R=(\d{1,9}),W=(\d{1,6}):(\d{1,2}):(\d{1,2})(?!\d)")


@dataclass(frozen=True, slots=True)
class Resource:
    """One processor.

    Parameters
    ----------
    node, partition : where it is.
    up : whether jobs may start on it.
    """

    node: str
    partition: str
    up: bool


def ended(now: float) -> tuple[str, ...]:
    """The words that print the jobs that have ended, as long as they are remembered.

    Parameters
    ----------
    now : seconds since 1970.

    Examples
    --------
    >>> ended(1_700_172_800.0)[-1]
    "state IN ('Terminated', 'Error') AND stop_time > 1700000000"
    """
    return (*JOBS, "--sql", f"state IN ('Terminated', 'Error') AND stop_time > {max(0.0, now - REMEMBERED):.0f}")


def resources(document: Any, attribute: str) -> dict[int, Resource]:
    """The processors by their numbers, from what ``oarnodes -J`` prints.

    >>> one = {"resource_id": 7, "network_address": "n1", "type": "default", "state": "Alive", "cluster": "new"}
    >>> resources({"7": one}, "cluster")
    {7: Resource(node='n1', partition='new', up=True)}
    """
    found = {}
    for each in document.values():
        where = each.get(attribute) if attribute else ANONYMOUS
        if each["type"] == "default" and where is not None and each["network_address"]:
            up = each["state"] == "Alive" and each.get("drain", "NO") == "NO"
            found[count(each["resource_id"])] = Resource(str(each["network_address"]), str(where), up)
    return found


def instances(known: Mapping[int, Resource], jobs: Any) -> tuple[Instance, ...]:
    """Each partition's part on its nodes, without the processors that jobs hold."""
    held = {number for job in jobs.values() for number in _assigned(job)}
    slots, used, up = Counter[tuple[str, str]](), Counter[tuple[str, str]](), set[tuple[str, str]]()
    for number, each in known.items():
        part = each.partition, each.node
        slots[part] += 1
        used[part] += number in held or not each.up
        up |= {part} if each.up else set()
    return tuple(
        Instance(*part, number, used[part], part in up, None, math.nan) for part, number in sorted(slots.items())
    )


def listed(jobs: Any, known: Mapping[int, Resource], attribute: str) -> tuple[ListedJob, ...]:
    """The jobs that run and wait."""
    found = []
    for job in jobs.values():
        state, held = str(job["state"]), [known[number] for number in _assigned(job) if number in known]
        runs = state in _RUNS and bool(held)
        if not runs and state not in _WAITS:
            continue
        asked, limit = _asked(job)
        slots = Counter(each.node for each in held) if runs else {"": asked}
        queues = _partitions(held) if runs else partitions_in(str(job.get("properties") or ""), attribute)
        since = seconds(job.get("startTime" if runs else "submissionTime"))
        found.append(
            ListedJob(
                _number(job), _name(job), str(job["owner"]), slots, state != "Hold", queues, limit, since=since,
                comment=comment(str(job.get("command") or "")),
            )
        )  # fmt: skip
    return tuple(found)


def accounted(jobs: Any, known: Mapping[int, Resource]) -> tuple[AccountedJob, ...]:
    """The jobs that have ended, as far as they ran."""
    found = []
    for job in jobs.values():
        start, end = seconds(job.get("startTime")), seconds(job.get("stopTime"))
        held = [known[number] for number in _assigned(job) if number in known]
        if start is None or end is None or not held:
            continue
        status = job.get("exit_code")
        found.append(
            AccountedJob(
                _number(job), (*_partitions(held), ANONYMOUS)[0], tuple(dict.fromkeys(each.node for each in held)),
                str(job["owner"]), _name(job), seconds(job.get("submissionTime")) or 0.0, start, end,
                job["state"] != "Terminated", 1 if status is None else count(status) >> 8 or count(status) & 0xFF,
                len(held), _asked(job)[1], comment=comment(str(job.get("command") or "")),
                numbers=in_command(str(job.get("command") or "")),
            )
        )  # fmt: skip
    return tuple(found)


def comment(command: str) -> str:
    """The text with the mark of a job: the variable at the beginning of its command.

    >>> comment("METASCHED=app=cg,n=1400 ./cg.sh METASCHED=app=x")
    'metasched:app=cg,n=1400'
    """
    found = re.match(r"METASCHED=(\S{1,500})(?:\s|\Z)", command)
    return "" if found is None else f"metasched:{found[1]}"


def partitions_in(properties: str, attribute: str) -> tuple[str, ...]:
    """The partition that a condition in SQL names; empty if it names none.

    >>> partitions_in("((cluster = 'new') AND desktop_computing = 'NO') AND drain='NO'", "cluster")
    ('new',)
    """
    if not attribute:
        return ()
    return tuple(re.findall(rf"\b{re.escape(attribute)}\s*=\s*'([\w.-]{{1,255}})'", properties, re.ASCII)[:1])


def _partitions(held: Iterable[Resource]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.partition for each in held))[:1]


def _number(job: Any) -> str:
    return str(count(job["Job_Id"]))


def _name(job: Any) -> str:
    return str(job.get("name") or "")


def _assigned(job: Any) -> list[int]:
    return [count(each) for each in job["assigned_resources"]] if job["state"] not in _WAITS else []


def _asked(job: Any) -> tuple[int, float | None]:
    """The requested number of processors of a job, and its time limit (s)."""
    found = _ASKED.match(str(job.get("message") or ""))
    limit = seconds(job.get("walltime"))
    if found is None:
        return 1, limit
    hours, minutes, rest = (int(each) for each in found.groups()[1:])
    return max(1, int(found[1])), limit or float(3600 * hours + 60 * minutes + rest) or None
