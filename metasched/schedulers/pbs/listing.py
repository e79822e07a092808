"""Reads the JSON of OpenPBS's ``pbsnodes`` and ``qstat``: nodes, queues, and running, pending and ended jobs.

A vnode is a part of a host; a host's vnodes are taken together, since loads are measured for hosts.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import unescape
from typing import Any

from metasched.history.argument_numbers import in_words
from metasched.schedulers.accounted_jobs import AccountedJob
from metasched.schedulers.commands import count
from metasched.schedulers.durations import seconds
from metasched.schedulers.listing import Instance, ListedJob
from metasched.schedulers.pbs.submission import VARIABLE, comment, processors

#: The words that print nodes, queues, the server, jobs with the tasks of arrays, and those that ended too.
NODES, QUEUES, SERVER = ("pbsnodes", "-a", "-F", "json"), ("qstat", "-Q", "-f", "-F", "json"), (
    "qstat", "-B", "-f", "-F", "json",
)  # fmt: skip
JOBS, ENDED = ("qstat", "-f", "-t", "-F", "json"), ("qstat", "-x", "-f", "-t", "-F", "json")
#: States in which no job starts on a node, and those in which it has no processor free.
_DOWN = frozenset(
    {"down", "offline", "stale", "state-unknown", "unresolvable", "provisioning", "wait-provisioning", "maintenance",
     "sleep", "initializing"}
)  # fmt: skip
_FULL = frozenset({"job-busy", "job-exclusive", "resv-exclusive", "busy"})
_KILOBYTES = {"b": 1 / 1024.0, "kb": 1.0, "mb": 1024.0, "gb": 1024.0**2, "tb": 1024.0**3}


@dataclass(frozen=True, slots=True)
class Host:
    """A host: its processors, those in use, whether jobs may start, its free memory (MB), and its queues."""

    slots: int
    used: int
    up: bool
    memory: float
    queue: str
    lists: frozenset[str]


def hosts(document: Any) -> dict[str, Host]:
    """The hosts that ``pbsnodes`` prints, by their names.

    >>> vnode = {"state": "free", "resources_available": {"host": "n1", "ncpus": 8, "mem": "1048576kb"},
    ...          "resources_assigned": {"ncpus": 3, "mem": "524288kb"}}
    >>> host = hosts({"nodes": {"n1[0]": vnode}})["n1"]
    >>> host.slots, host.used, host.up, host.memory
    (8, 3, True, 512.0)

    Where the host has less memory than was assigned, since its share was lowered, none is left.

    >>> hosts({"nodes": {"n1": vnode | {"resources_assigned": {"mem": "2097152kb"}}}})["n1"].memory
    0.0
    """
    found: dict[str, Host] = {}
    for vnode, each in document["nodes"].items():
        has, taken = each.get("resources_available", {}), each.get("resources_assigned", {})
        states = set(str(each["state"]).split(","))
        slots = count(has.get("ncpus", each.get("pcpus", 0)))
        used = slots if states & _FULL else min(slots, count(taken.get("ncpus", 0)))
        lists = frozenset(filter(None, str(has.get("Qlist", "")).split(",")))
        memory = max(megabytes(has.get("mem", "0kb")) - megabytes(taken.get("mem", "0kb")), 0.0)
        part = Host(slots, used, not states & _DOWN, memory, str(each.get("queue", "")), lists)
        name = str(has.get("host", vnode))
        there = found.get(name)
        found[name] = part if there is None else Host(
            there.slots + slots, there.used + used, there.up and part.up, there.memory + part.memory, part.queue, lists
        )  # fmt: skip
    return found


def instances(queues: Any, known: Mapping[str, Host]) -> tuple[Instance, ...]:
    """Each queue's part on the hosts that its jobs may run on."""
    found = []
    for name, each in queues["Queue"].items():
        if each.get("queue_type") != "Execution":
            continue
        limit = seconds(str(each.get("resources_max", {}).get("walltime", "")))
        opened = each.get("enabled") == "True" and each.get("started") == "True"
        wanted = each.get("default_chunk", {}).get("Qlist", "")
        own = [host for host, what in known.items() if what.queue == name]
        for host, what in known.items():
            if wanted in what.lists if wanted else (host in own or not (own or what.queue)):
                used = what.used
                found.append(Instance(name, host, what.slots, used, opened and what.up, limit, what.memory))
    return tuple(found)


def listed(document: Any) -> tuple[ListedJob, ...]:
    """The jobs that run and wait."""
    return tuple(_jobs(document, "RQHWTSEU", _listed))


def ended(document: Any) -> tuple[AccountedJob, ...]:
    """The jobs that have ended, as long as the server remembers them (``job_history_enable``)."""
    return tuple(job for job in _jobs(document, "FX", _ended) if job is not None)


def _jobs(document: Any, states: str, make: Any) -> Iterator[Any]:
    for name, job in document.get("Jobs", {}).items():
        # Of an array there is a line for each task, and one for all of it.
        if job["job_state"] in states and "[]" not in name:
            yield make(number(name), job)


def _listed(name: str, job: Any) -> ListedJob:
    asks = job.get("Resource_List", {})
    select, runs = str(asks.get("select", f"ncpus={asks.get('ncpus', 1)}")), job["job_state"] in "RESU"
    slots = placed_on(str(job.get("exec_vnode", ""))) if runs else {}
    return ListedJob(
        name,
        _name(job),
        str(job["Job_Owner"]).partition("@")[0],
        slots or {"": processors(select)},
        job["job_state"] == "Q",
        (str(job["queue"]),),
        seconds(str(asks.get("walltime", ""))),
        bound_to(select),
        moment(job.get("stime" if slots else "qtime", "")),
        comment=_mark(job),
    )


def _ended(name: str, job: Any) -> AccountedJob | None:
    start, ran = moment(job.get("stime", "")), seconds(str(job.get("resources_used", {}).get("walltime", "")))
    slots = placed_on(str(job.get("exec_vnode", "")))
    if start is None or not slots or "Exit_status" not in job:
        return None
    status = int(job["Exit_status"])
    return AccountedJob(
        name,
        str(job["queue"]),
        tuple(slots),
        str(job["Job_Owner"]).partition("@")[0],
        _name(job),
        moment(job.get("qtime", "")) or 0.0,
        start,
        start + (ran or 0.0),
        status < 0,
        exit_status(status),
        sum(slots.values()),
        seconds(str(job.get("Resource_List", {}).get("walltime", ""))),
        "array" if "[" in name else "",
        _mark(job),
        in_words(words(str(job.get("argument_list", "")))),
    )


def words(argument_list: str) -> list[str]:
    """The words after the program, of a job that was submitted as a command (``qsub -- ./solve -n 400``).

    Examples
    --------
    >>> words("<jsdl-hpcpa:Argument>-n</jsdl-hpcpa:Argument><jsdl-hpcpa:Argument>a&lt;b</jsdl-hpcpa:Argument>")
    ['-n', 'a<b']
    """
    found = re.findall("<jsdl-hpcpa:Argument>([^<]*)</jsdl-hpcpa:Argument>", argument_list)
    return [unescape(word) for word in found]


def _name(job: Any) -> str:
    """A job's name as its user typed it, perhaps ``null`` or another word of JSON, which some versions take it for."""
    name = job.get("Job_Name", "")
    return name if isinstance(name, str) else json.dumps(name)


def _mark(job: Any) -> str:
    return comment(str(job.get("Variable_List", {}).get(VARIABLE, "")))


def number(name: str) -> str:
    """A job's number without its server: ``7`` of ``7.pbs``, ``7[2]`` of ``7[2].pbs``."""
    found = re.match(r"\d{1,12}(\[\d{0,9}\])?(?=\.|$)", name)
    if found is None:
        raise ValueError(f"a job is called {name[:40]!r}")
    return found[0]


def exit_status(status: int) -> int:
    """A job's exit status as in shells: PBS adds 256 to a signal's number, and it is negative if PBS failed.

    >>> [exit_status(status) for status in (0, 3, 255, 271, -1, -2)]
    [0, 3, 255, 143, 1, 1]
    """
    return 1 if status < 0 else 128 + status - 256 if status >= 256 else status


def placed_on(exec_vnode: str) -> dict[str, int]:
    """Processors by host of a job that has started; vnodes are called after their host.

    >>> placed_on("(n1[0]:ncpus=2:mem=4kb+n1[1]:ncpus=1)+(n2:ncpus=1)")
    {'n1': 3, 'n2': 1}
    """
    found: Counter[str] = Counter()
    for vnode, rest in re.findall(r"([\w.-]{1,255})(?:\[\d+\])?((?::[^()+:]*)+)", exec_vnode, re.ASCII):
        cpus = re.search(r":ncpus=(\d{1,7})(?=:|$)", rest)
        found[vnode] += int(cpus[1]) if cpus else 0
    return {host: cpus for host, cpus in found.items() if cpus}


def bound_to(select: str) -> frozenset[str]:
    """The hosts of a selection; empty unless each of its chunks names one.

    >>> sorted(bound_to("1:ncpus=2:host=n1+1:ncpus=1:host=n2")), bound_to("1:ncpus=1:host=n1+4:ncpus=1")
    (['n1', 'n2'], frozenset())
    """
    named = [re.search(r":host=([\w.-]+)(?=:|$)", chunk) for chunk in select.split("+")]
    return frozenset(each[1] for each in named if each) if all(named) else frozenset()


def freed(select: str) -> str:
    """The selection without hosts.

    >>> freed("1:ncpus=2:host=n1+1:ncpus=1:host=n2:mem=1gb")
    '1:ncpus=2+1:ncpus=1:mem=1gb'
    """
    return re.sub(r":host=[^:+]*", "", select)


def moment(text: Any) -> float | None:
    """A time such as ``Wed Apr 14 23:34:17 2021``, of this host's zone, in s since 1970; None where there is none.

    >>> moment("yesterday") is None
    True
    """
    try:
        return time.mktime(time.strptime(str(text), "%a %b %d %H:%M:%S %Y"))
    except (ValueError, OverflowError):
        return None


def megabytes(text: Any) -> float:
    """A size such as 527672488kb in MB of 1024 KB.

    >>> megabytes("2gb"), megabytes("2048kb")
    (2048.0, 2.0)
    """
    found = re.fullmatch(r"(\d{1,15})([kmgt]?b)", str(text))
    if found is None:
        raise ValueError(f"{str(text)[:40]!r} is not a size")
    return int(found[1]) * _KILOBYTES[found[2]] / 1024.0
