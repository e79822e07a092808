"""Slurm's queue: the running and pending jobs that squeue prints."""

from __future__ import annotations

from collections.abc import Mapping

from metasched.history.argument_numbers import in_command
from metasched.history.queue import QueuedJob
from metasched.jobs import placement_in
from metasched.schedulers.slurm.cells import nodes_in, seconds_in, text_in
from metasched.schedulers.task_ranges import task_count
from metasched.slurm_times import span

#: What a queue is asked for.
COLUMNS = ("JobID", "State", "Partition", "NumCPUs", "TimeUsed", "TimeLimit", "Reason", "NodeList", "SubmitTime",
           "EligibleTime", "StartTime", "UserName", "Account", "QOS", "Name", "Command", "ArrayTaskID",
           "Comment")  # fmt: skip
#: Why jobs wait that are ahead of a new one; others wait for something else than processors.
WAITING = frozenset({"None", "Priority", "Resources"})
#: States of jobs that hold processors: where nodes are booted for a job, it has them from then on.
RUNNING = frozenset({"RUNNING", "CONFIGURING"})


def queued_job(row: Mapping[str, str]) -> QueuedJob | None:
    """The job in a row of the ``COLUMNS``; None where it neither runs nor waits, or is not reported in full.

    >>> row = dict.fromkeys(COLUMNS, "N/A") | {"JobID": "7", "State": "RUNNING", "Partition": "p", "NumCPUs": "4"}
    >>> job = queued_job(row | {"TimeUsed": "8:20", "TimeLimit": "10:00", "NodeList": "n[1-2]"})
    >>> job.ran, job.nodes
    (500.0, ('n1', 'n2'))
    """
    if row["State"] not in RUNNING | {"PENDING"} or not row["NumCPUs"].isdecimal():
        return None
    runs, limit = row["State"] in RUNNING, span(row["TimeLimit"])
    submitted, eligible, start = (seconds_in(row[name]) for name in ("SubmitTime", "EligibleTime", "StartTime"))
    nodes = nodes_in(row["NodeList"]) if runs else ()
    ran = (span(row["TimeUsed"]) or 0.0) if runs else None
    return QueuedJob(
        row["JobID"], frozenset(row["Partition"].split(",")), int(row["NumCPUs"]), limit, ran, nodes,
        runs or row["Reason"] in WAITING, max(filter(None, (submitted, eligible)), default=None),
        start if runs else None, None if runs else start,
        user=text_in(row["UserName"]), name=text_in(row["Name"]), account=text_in(row["Account"]),
        qos=text_in(row["QOS"]), executable=executable_of(text_in(row["Command"])),
        tasks=1 if runs else task_count(row["ArrayTaskID"]), placement=placement_in(text_in(row["Comment"])),
        numbers=in_command(text_in(row["Command"])),
    )  # fmt: skip


def executable_of(command: str) -> str:
    """The base name of the script or program of a command line, without its arguments.

    >>> executable_of("/home/ada/cases/solve.sh 400 --fast"), executable_of("")
    ('solve.sh', '')
    """
    return command.partition(" ")[0].rpartition("/")[2]
