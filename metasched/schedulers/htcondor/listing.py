"""Reads the JSON of ``condor_status``, ``condor_q`` and ``condor_history``: lists of ClassAds.

HTCondor has no queues. A partition is the machines whose ClassAd says so by ``MetaschedPartition``; all others are the
partition ``pool``. A job has one machine.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Any

from metasched.jobs import Kind
from metasched.schedulers.accounted_jobs import AccountedJob
from metasched.schedulers.commands import count, seconds
from metasched.schedulers.listing import Instance, ListedJob

#: The partition of machines that name none.
POOL = "pool"
#: The attributes with the partition of a machine or a job, and with the mark of a job.
PARTITION, MARK = "MetaschedPartition", "Metasched"
#: Ended jobs that are asked for at most, the newest first.
MOST_ENDED = 10_000
_SLOTS = ("Machine", "Name", "SlotType", "State", "Cpus", "TotalCpus", "TotalMemory", PARTITION)
_JOB = ("ClusterId", "ProcId", "JobStatus", "JobUniverse", "Owner", "JobBatchName", "Cmd", "RequestCpus", "QDate",
        "JobCurrentStartDate", "AllowedJobDuration", MARK, PARTITION)  # fmt: skip
#: The words that print slots, jobs, and jobs that have ended.
STATUS = ("condor_status", "-json", "-attributes", ",".join(_SLOTS))
JOBS = ("condor_q", "-json", "-allusers", "-attributes", ",".join((*_JOB, "RemoteHost")))
ENDED = (
    "condor_history", "-json", "-limit", str(MOST_ENDED), "-attributes",
    ",".join((*_JOB, "LastRemoteHost", "CompletionDate", "CumulativeSuspensionTime", "ExitBySignal", "ExitSignal",
              "ExitCode")),
)  # fmt: skip
#: States of a slot in which a job holds its processors, and those in which HTCondor may start none.
_HELD, _SHUT = frozenset({"Claimed", "Preempting", "Matched"}), frozenset({"Owner", "Drained", "Backfill", "Delete"})
#: JobStatus of jobs that wait, run, are held, and have completed; the universe of jobs on several machines.
_IDLE, _RUNNING, _HOLD, _COMPLETED, _PARALLEL = 1, (2, 6, 7), 5, 4, 11


def instances(slots: Any) -> tuple[Instance, ...]:
    """The machines, each with the slots of its jobs.

    >>> whole = {"Machine": "n1.site", "State": "Unclaimed", "Cpus": 5, "TotalCpus": 8, "TotalMemory": 16000}
    >>> found = instances([whole, whole | {"State": "Claimed", "Cpus": 3}])[0]
    >>> found.queue, found.host, found.slots, found.used, found.up
    ('pool', 'n1', 8, 3, True)
    """
    used: Counter[str] = Counter()
    up: dict[str, bool] = {}
    last: dict[str, Any] = {}
    for each in slots:
        host = _host(each["Machine"])
        if not host:
            raise ValueError(f"a machine is called {str(each['Machine'])[:40]!r}")
        cpus = count(each["Cpus"])
        used[host] += cpus if each["State"] in _HELD else 0
        up[host] = up.get(host, True) and each["State"] not in _SHUT
        last[host] = each
    return tuple(
        Instance(
            _partition(each) or POOL,
            host,
            count(int(each["TotalCpus"])),
            used[host],
            up[host],
            None,
            float(count(each["TotalMemory"])) if "TotalMemory" in each else math.nan,
        )
        for host, each in last.items()
    )


def listed(jobs: Any) -> tuple[ListedJob, ...]:
    """The jobs that run and wait; those on several machines are left out."""
    return tuple(
        _listed(each)
        for each in jobs
        if each["JobStatus"] in (_IDLE, _HOLD, *_RUNNING) and each.get("JobUniverse") != _PARALLEL
    )


def _listed(job: Any) -> ListedJob:
    host = _host(job.get("RemoteHost")) if job["JobStatus"] in _RUNNING else ""
    named = _partition(job)
    return ListedJob(
        _number(job),
        _name(job),
        str(job["Owner"]),
        {host: _cpus(job)},
        job["JobStatus"] == _IDLE,
        (named,) if named else (),
        seconds(job.get("AllowedJobDuration")),
        frozenset(),
        seconds(job.get("JobCurrentStartDate" if host else "QDate")),
        comment=comment(job.get(MARK)),
    )


def ended(jobs: Any) -> tuple[AccountedJob, ...]:
    """The jobs that have ended, as far as they ran."""
    found = []
    for job in jobs:
        start, end = seconds(job.get("JobCurrentStartDate")), seconds(job.get("CompletionDate"))
        host = _host(job.get("LastRemoteHost"))
        if start is None or end is None or not host or job.get("JobUniverse") == _PARALLEL:
            continue
        status = 128 + _whole(job.get("ExitSignal")) if job.get("ExitBySignal") else _whole(job.get("ExitCode", 1))
        kind: Kind = "array" if count(job["ProcId"]) else ""
        if seconds(job.get("CumulativeSuspensionTime")):
            kind = "interrupted"
        found.append(
            AccountedJob(
                _number(job), _partition(job) or POOL, (host,), str(job["Owner"]), _name(job),
                seconds(job.get("QDate")) or 0.0, start, end, job["JobStatus"] != _COMPLETED, status, _cpus(job),
                seconds(job.get("AllowedJobDuration")), kind, comment(job.get(MARK)),
            )
        )  # fmt: skip
    return tuple(found)


def comment(mark: Any) -> str:
    """The mark in a job's ClassAd, in the form of a comment; empty if there is none.

    >>> comment("app=cg,n=1400")
    'metasched:app=cg,n=1400'
    """
    return f"metasched:{mark}" if isinstance(mark, str) and mark else ""


def _number(job: Any) -> str:
    return f"{count(job['ClusterId'])}.{count(job['ProcId'])}"


def _name(job: Any) -> str:
    return str(job.get("JobBatchName") or str(job.get("Cmd", "")).rpartition("/")[2])


def _cpus(job: Any) -> int:
    # An expression is printed as a text, of which only its slot knows the value.
    return max(1, _whole(job.get("RequestCpus")))


def _whole(value: Any) -> int:
    """A number of a job, whose user may have set it to anything; 0 where it is no whole number from 0 on."""
    try:
        return count(value) if isinstance(value, int) else 0
    except ValueError:
        return 0


def _host(name: Any) -> str:
    """A machine's name without its domain and its slot: ``n1`` of ``slot1_2@n1.site``; empty where it is none."""
    found = re.fullmatch(r"(?:[^@\s]*@)?(\w[\w-]{0,254})(?:\.[\w.-]*)?", str(name or ""), re.ASCII)
    return "" if found is None else found[1]


def _partition(advert: Any) -> str:
    named = advert.get(PARTITION)
    return named if isinstance(named, str) else ""
