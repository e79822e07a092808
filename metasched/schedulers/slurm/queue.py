"""Slurm's queue: the running and pending jobs that squeue prints."""

from __future__ import annotations

from collections.abc import Mapping

from metasched.history.queue import UNLIMITED, QueuedJob
from metasched.node_names import unfold
from metasched.records import InputError
from metasched.slurm_times import span

#: What a queue is asked for.
COLUMNS = ("JobID", "State", "Partition", "NumCPUs", "TimeLeft", "TimeLimit", "Reason", "NodeList", "SubmitTime",
           "EligibleTime", "StartTime", "UserName", "Account", "QOS", "Name", "Command")  # fmt: skip
#: Why jobs wait that are ahead of a new one; others wait for something else than processors.
WAITING = frozenset({"None", "Priority", "Resources"})


def queued_job(row: Mapping[str, str]) -> QueuedJob | None:
    """The job in a row of the ``COLUMNS``; None where it neither runs nor waits, or is not reported in full.

    Examples
    --------
    >>> row = dict.fromkeys(COLUMNS, "N/A") | {"JobID": "7", "State": "RUNNING", "Partition": "p", "NumCPUs": "4"}
    >>> job = queued_job(row | {"TimeLeft": "1:40", "TimeLimit": "10:00", "NodeList": "n[1-2]"})
    >>> job.ran, job.nodes
    (500.0, ('n1', 'n2'))
    """
    if row["State"] not in ("RUNNING", "PENDING") or not row["NumCPUs"].isdecimal():
        return None
    runs, limit = row["State"] == "RUNNING", span(row["TimeLimit"])
    submitted, eligible, start = (moment(row[name]) for name in ("SubmitTime", "EligibleTime", "StartTime"))
    try:
        nodes = tuple(unfold(row["NodeList"], where="nodes")) if runs else ()
    except InputError:
        nodes = ()
    ran = max((limit or UNLIMITED) - (span(row["TimeLeft"]) or UNLIMITED), 0.0) if runs else None
    return QueuedJob(
        row["JobID"], frozenset(row["Partition"].split(",")), int(row["NumCPUs"]), limit, ran, nodes,
        runs or row["Reason"] in WAITING, max(filter(None, (submitted, eligible)), default=None),
        start if runs else None, None if runs else start,
        user=_plain(row["UserName"]), name=_plain(row["Name"]), account=_plain(row["Account"]), qos=_plain(row["QOS"]),
        executable=executable_of(_plain(row["Command"])),
    )  # fmt: skip


def moment(text: str) -> float | None:
    """A time in seconds since 1970, None where there is none."""
    return float(text) if text.isdecimal() and int(text) else None


def executable_of(command: str) -> str:
    """The base name of the script or program of a command line, without its arguments.

    Examples
    --------
    >>> executable_of("/home/ada/cases/solve.sh 400 --fast"), executable_of("")
    ('solve.sh', '')
    """
    return command.partition(" ")[0].rpartition("/")[2]


def _plain(text: str) -> str:
    """A name, empty where there is none; bytes that are no text are replaced."""
    return "" if text in ("", "N/A", "(null)") else text.encode("utf-8", "surrogateescape").decode(errors="replace")
