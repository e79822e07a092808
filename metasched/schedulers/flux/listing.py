"""Reads ``flux resource R``, ``flux config get queues`` and ``flux jobs``: resources (RFC 20), queues and jobs.

``flux jobs`` tells nothing of the attribute that holds a job's mark: jobs are matched with placements by user, name and
time of submission.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from metasched.node_names import unfold
from metasched.schedulers.accounted_jobs import AccountedJob
from metasched.schedulers.commands import count, seconds
from metasched.schedulers.listing import Instance, ListedJob

#: The partition of an instance without queues.
ANONYMOUS = "default"
#: Jobs that are asked for at most, those that have ended among them.
MOST = 10_000
#: The words that print resources in some state, queues, and jobs.
RESOURCES, QUEUES = ("flux", "resource", "R", "-s"), ("flux", "config", "get", "--default={}", "queues")
JOBS, ENDED = ("flux", "jobs", "-A", "--json"), ("flux", "jobs", "-A", "-a", f"--count={MOST}", "--json")
_WAITS, _RUNS = frozenset({"DEPEND", "PRIORITY", "SCHED"}), frozenset({"RUN", "CLEANUP"})


def cores(document: Any) -> dict[str, int]:
    """Cores of each node of a set of resources; empty if the set is.

    >>> lite = [{"rank": "0", "children": {"core": "0-3"}}, {"rank": "1-2", "children": {"core": "0,2-3"}}]
    >>> cores({"version": 1, "execution": {"R_lite": lite, "nodelist": ["n[1-2],m1"]}})
    {'n1': 4, 'n2': 3, 'm1': 3}
    """
    names, ranks = _names(document), _by_rank(document)
    return {names[rank]: held for rank, held in ranks.items()}


def properties(document: Any) -> dict[str, frozenset[str]]:
    """The properties of nodes by which administrators define queues, by node."""
    names, ranks = _names(document), list(_by_rank(document))
    known = document.get("execution", {}).get("properties", {})
    held = {name: frozenset(_ids(text)) for name, text in known.items()}
    return {names[rank]: frozenset(name for name, those in held.items() if rank in those) for rank in ranks}


def _names(document: Any) -> dict[int, str]:
    """Names of nodes by rank, which the list of nodes has in order."""
    execution = document.get("execution", {})
    listed = [name for text in execution.get("nodelist", []) for name in unfold(text, where="nodelist")]
    return dict(zip(sorted(_by_rank(document)), listed, strict=True))


def _by_rank(document: Any) -> dict[int, int]:
    found: dict[int, int] = {}
    for each in document.get("execution", {}).get("R_lite", []):
        held = len(_ids(each["children"]["core"]))
        found |= dict.fromkeys(_ids(each["rank"]), held)
    return found


def _ids(text: Any) -> list[int]:
    """The numbers of an idset such as ``0-2,5``."""
    found: list[int] = []
    for part in str(text).split(","):
        low, _, high = part.partition("-")
        last = count(high or low)
        if last - count(low) > 10_000_000:
            raise ValueError(f"{str(text)[:40]!r} is not a set of numbers")
        found += range(count(low), last + 1)
    return found


def instances(
    total: Mapping[str, int], free: Mapping[str, int], down: Mapping[str, int], held: Mapping[str, frozenset[str]],
    queues: Any,
) -> tuple[Instance, ...]:  # fmt: skip
    """Each queue's part on the nodes that have the properties that it requires.

    Parameters
    ----------
    total, free : processors of each node, and how many of them no job has.
    down : processors of the nodes that are down.
    held : properties of each node.
    queues : the document of the queues.
    """
    found = []
    for queue, what in (queues or {ANONYMOUS: {}}).items():
        wanted = frozenset(what.get("requires", []))
        for node, slots in total.items():
            if wanted <= held[node]:
                used = slots - min(slots, free.get(node, 0))
                found.append(Instance(queue, node, slots, used, node not in down, None, math.nan))
    return tuple(found)


def listed(document: Any) -> tuple[ListedJob, ...]:
    """The jobs that run and wait."""
    found = []
    for job in document["jobs"]:
        runs = job["state"] in _RUNS and bool(job.get("nodelist"))
        if runs or job["state"] in _WAITS:
            slots = _slots(job) if runs else {"": _processors(job)}
            ready, limit = job["state"] == "SCHED", seconds(job.get("duration"))
            since = seconds(job.get("t_run" if runs else "t_submit"))
            user = str(job.get("username") or job.get("userid", ""))
            found.append(ListedJob(_number(job), str(job["name"]), user, slots, ready, _queue(job), limit, since=since))
    return tuple(found)


def ended(document: Any) -> tuple[AccountedJob, ...]:
    """The jobs that have ended, as far as they ran."""
    found = []
    for job in document["jobs"]:
        start, end = seconds(job.get("t_run")), seconds(job.get("t_cleanup"))
        if job["state"] != "INACTIVE" or start is None or end is None or not job.get("nodelist"):
            continue
        status, queue = job.get("returncode", 0), (_queue(job) or (ANONYMOUS,))[0]
        found.append(
            AccountedJob(
                _number(job), queue, tuple(_slots(job)), str(job["userid"]), str(job["name"]),
                seconds(job.get("t_submit")) or 0.0, start, end, job.get("result") != "COMPLETED",
                128 - status if isinstance(status, int) and status < 0 else int(status or 0), _processors(job),
                seconds(job.get("duration")),
            )
        )  # fmt: skip
    return tuple(found)


def _number(job: Any) -> str:
    number = job["id"]
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < 1 << 64:
        raise ValueError(f"a job is called {str(number)[:40]!r}")
    return str(number)


def _processors(job: Any) -> int:
    return max(1, count(job.get("ncores") or job.get("ntasks") or 1))


def _slots(job: Any) -> dict[str, int]:
    """Cores by node, as many on every node as there are on average."""
    names = unfold(str(job["nodelist"]), where="nodelist")
    each, more = divmod(_processors(job), len(names))
    return {name: max(1, each + (place < more)) for place, name in enumerate(names)}


def _queue(job: Any) -> tuple[str, ...]:
    return (str(job["queue"]),) if job.get("queue") else ()
