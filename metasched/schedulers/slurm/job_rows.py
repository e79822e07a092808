"""Jobs in the rows that Slurm prints: how each ended by the controller or the accounting, and those that run."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from metasched.history.argument_numbers import in_command, in_sbatch
from metasched.jobs import Devices, EndedJob, Fate, Kind, Sibling, digest, read_mark, says_off
from metasched.node_names import unfold
from metasched.placement.clusters.running_jobs import StartedJob
from metasched.records import InputError
from metasched.schedulers.slurm.cells import NONE, bytes_in, name_in, seconds_in, text_in
from metasched.slurm_times import span

#: States in which a job has ended, and the exit status of those that Slurm ended itself.
ENDED = {"COMPLETED": None, "FAILED": None, "CANCELLED": 143, "TIMEOUT": 143, "OUT_OF_MEMORY": 137, "NODE_FAIL": 143,
         "PREEMPTED": 143, "DEADLINE": 143, "BOOT_FAIL": 143}  # fmt: skip
#: States of a job that will run again, so that its earlier end was not a successful run.
AGAIN = frozenset({"PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT"})
#: What the controller reports of a job's generic resources; what it, and the accounting, report of a job.
TRES = ("tres-alloc", "tres-per-job", "tres-per-node", "tres-per-socket", "tres-per-task", "OverSubscribe", "NumTasks")
CONTROLLED = ("JobID", "State", "Partition", "NodeList", "NumCPUs", "cpus-per-task", "HetJobID", "ArrayTaskID",
              "BatchFlag", *TRES, "SubmitTime", "EligibleTime", "StartTime", "EndTime", "TimeUsed", "ResizeTime",
              "RestartCnt", "exit_code", "UserID", "Name", "Command", "Comment")  # fmt: skip
ACCOUNTED = ("JobIDRaw", "JobID", "State", "Partition", "NodeList", "AllocCPUS", "AllocTRES", "ReqTRES", "Submit",
             "Eligible", "Start", "End", "Suspended", "ExitCode", "UID", "JobName", "SubmitLine",
             "Comment")  # fmt: skip
#: The state of what a job did before its nodes changed; the accounting has it as a job of the same number.
RESIZED = "RESIZING"
#: Siblings are submitted within so many seconds, in which a placement of one may be taken for another's (s).
TOGETHER, MOST_SIBLINGS = 4.0, 64
#: Columns of running jobs.
STARTED = ("JobID", "UserName", "UserID", "Partition", "RestartCnt", "NodeList", "NumCPUs", "cpus-per-task",
           "StartTime", "TimeLimit", *TRES, "Comment")  # fmt: skip


def fate(row: Mapping[str, str], found: Devices | None) -> Fate:
    """How a job ended, by a row of the controller (:data:`CONTROLLED`) and the devices that it had."""
    return Fate(
        _completed(row["State"]),
        seconds_in(row["SubmitTime"]),
        seconds_in(row["StartTime"]),
        int(row["NumTasks"]) if row["NumTasks"].isdecimal() else None,
        _kind(row, found),
        _command(row),
        _threads(row),
        devices=found,
        ended=seconds_in(row["EndTime"]),
        numbers=in_command(row["Command"]),
        again=row["State"] in AGAIN,
        first_run=row["RestartCnt"].strip() == "0",
    )


def siblings(rows: Sequence[Mapping[str, str]], jobs: Collection[str]) -> dict[str, tuple[Sibling, ...]]:
    """The siblings of jobs among the rows of the controller (:data:`CONTROLLED`): no more than so many of each.

    Jobs that no placement is requested for are none.
    """
    together: dict[tuple[str, str], list[Sibling]] = {
        (row["UserID"], row["Name"]): [] for row in rows if row["JobID"] in jobs
    }
    for row in rows:
        if (own := together.get((row["UserID"], row["Name"]))) is None:
            continue
        submitted = seconds_in(row["SubmitTime"])
        devices = any(row[name].strip() not in NONE for name in TRES if name.startswith("tres-per-"))
        if submitted is None or devices or says_off(row["Comment"]) or _kind(row, None):
            continue
        processors = int(row["NumTasks"]) if row["NumTasks"].isdecimal() else None
        own.append(Sibling(row["JobID"], text_in(row["Comment"]), processors, submitted, _command(row)))
    found = {}
    for group in together.values():
        group.sort(key=lambda each: each.submitted)
        times = [each.submitted for each in group]
        for job in group:
            if job.job not in jobs:
                continue
            first = bisect_left(times, job.submitted - TOGETHER)
            last = min(bisect_right(times, job.submitted + TOGETHER), first + MOST_SIBLINGS)
            found[job.job] = tuple(each for each in group[first:last] if each is not job)
    return found


def _command(row: Mapping[str, str]) -> str:
    return "" if row["Command"] == "(null)" else digest(bytes_in(row["Command"]))


def accounted_jobs(rows: Iterable[Mapping[str, str]]) -> list[dict[str, str]]:
    """The rows of the accounting with one for each job, which says by ``Resized`` whether its nodes changed.

    >>> accounted_jobs([{"JobIDRaw": "7", "State": "RESIZING"}, {"JobIDRaw": "7", "State": "COMPLETED"}])
    [{'JobIDRaw': '7', 'State': 'COMPLETED', 'Resized': 'yes'}]
    """
    rows = list(rows)
    resized = {row["JobIDRaw"] for row in rows if row["State"] == RESIZED}
    return [{**row, "Resized": "yes" if row["JobIDRaw"] in resized else ""} for row in rows if row["State"] != RESIZED]


def accounted_fate(row: Mapping[str, str], found: Devices | None) -> Fate:
    """How a job ended, by a row of the accounting (:data:`ACCOUNTED`) and the devices that it had."""
    state = row["State"].partition(" ")[0]
    submitted, started, ended = (seconds_in(row[name]) for name in ("Submit", "Start", "End"))
    return Fate(
        _completed(state), submitted, started, kind=_accounted_kind(row, found), devices=found, ended=ended,
        numbers=in_sbatch(row["SubmitLine"]),
    )  # fmt: skip


def ended_job(row: Mapping[str, str], scheduler: str, found: Devices | None) -> EndedJob | None:
    """The job of a row of the controller; None if it has not ended, never ran, or its record is not complete."""
    if not row["exit_code"].isdecimal():
        return None
    # The wait status of a process: its exit status in the high byte, its signal in the low one.
    code = int(row["exit_code"])
    job = _ended(row, scheduler, row["JobID"], row["NumTasks"], row["SubmitTime"], row["StartTime"], row["EndTime"])
    known, status = fate(row, found), 128 + (code & 0x7F) if code & 0x7F else code >> 8
    return None if job is None else replace(
        job, exit_status=status or job.exit_status, user=row["UserID"], name=name_in(row["Name"]),
        kind=known.kind, threads=known.threads, command=known.command, devices=found,
        numbers=known.numbers,
    )  # fmt: skip


def accounted_job(row: Mapping[str, str], scheduler: str, found: Devices | None) -> EndedJob | None:
    """The job of a row of the accounting; None if it has not ended, never ran, or its record is not complete."""
    job = _ended(row, scheduler, row["JobIDRaw"], row["AllocCPUS"], row["Submit"], row["Start"], row["End"])
    # The accounting does not have the processors of each process.
    return None if job is None else replace(
        job, exit_status=_status(row["ExitCode"]) or job.exit_status, user=row["UID"], name=name_in(row["JobName"]),
        kind=_accounted_kind(row, found), devices=found, numbers=in_sbatch(row["SubmitLine"]),
    )  # fmt: skip


def _ended(
    row: Mapping[str, str], scheduler: str, job: str, processors: str, submitted: str, start: str, end: str
) -> EndedJob | None:
    state = row["State"].partition(" ")[0]
    try:
        if state not in ENDED or not float(end) > float(start) > 0:
            return None
        return EndedJob(
            scheduler=scheduler,
            job=job,
            comment=text_in(row["Comment"]),
            partition=row["Partition"],
            nodes=tuple(unfold(row["NodeList"], where="nodes")),
            processors=int(processors) or None,
            start=float(start),
            end=float(end),
            exit_status=ENDED[state] or 0,
            submitted=seconds_in(submitted),
        )
    except (InputError, ValueError):
        return None


def _completed(state: str) -> bool | None:
    return state == "COMPLETED" if state in ENDED or state in AGAIN else None


def _threads(row: Mapping[str, str]) -> int | None:
    """Processors for each process where they are several."""
    shown = row["cpus-per-task"]
    return int(shown) if shown.isdecimal() and int(shown) > 1 else None


def _accounted_kind(row: Mapping[str, str], found: Devices | None) -> Kind:
    """What of a job's kind the accounting knows: not how many processors each process had, nor what it may start on."""
    if row["Resized"] or span(row["Suspended"]):
        return "interrupted"
    if "+" in row["JobID"]:  # such as 6+1, the second part of job 6
        return "heterogeneous"
    if row["SubmitLine"].partition(" ")[0].rpartition("/")[2] in ("srun", "salloc"):
        return "interactive"
    # Of array 5 a task is 5_1.
    return "unadvised" if found or "_" in row["JobID"] or _postponed(row["Submit"], row["Eligible"]) else "unknown"


def _postponed(submitted: str, eligible: str) -> bool:
    since, from_then_on = seconds_in(submitted), seconds_in(eligible)
    return since is not None and from_then_on is not None and from_then_on > since


def _interrupted(row: Mapping[str, str]) -> bool:
    """Whether a job that has ended was suspended, or its nodes changed, by the controller."""
    if row["State"] not in ENDED:
        return False
    started, ended, ran = seconds_in(row["StartTime"]), seconds_in(row["EndTime"]), span(row["TimeUsed"])
    suspended = started is not None and ended is not None and ran is not None and started + ran < ended
    return suspended or row["ResizeTime"] not in NONE


def _kind(row: Mapping[str, str], found: Devices | None) -> Kind:
    if _interrupted(row):
        return "interrupted"
    if row["HetJobID"] not in NONE:
        return "heterogeneous"
    if row["BatchFlag"] == "0":
        return "interactive"
    if row["NumTasks"].isdecimal() and row["NumCPUs"].isdecimal() and int(row["NumTasks"]) > int(row["NumCPUs"]):
        return "overcommitted"
    if _threads(row) is not None:
        return "threaded"
    if row["ArrayTaskID"].isdecimal():
        return "array"
    if found:
        return "special"
    # A job that is put back into the queue is eligible some time later, too, and was not deferred by its user.
    restarted = row["RestartCnt"].strip() not in NONE
    return "postponed" if not restarted and _postponed(row["SubmitTime"], row["EligibleTime"]) else ""


def _status(text: str) -> int:
    status, _, signal = text.partition(":")
    return 128 + int(signal) if signal not in ("", "0") else int(status or 0)


def started_job(row: Mapping[str, str], now: float) -> StartedJob | None:
    """The job in a row of squeue; None where it is not whole.

    >>> row = {"JobID": "7", "UserName": "ann", "UserID": "7", "Partition": "p", "RestartCnt": "0",
    ...        "NodeList": "n[1-2]", "NumCPUs": "5", "cpus-per-task": "1", "TimeLimit": "5:00", "StartTime": "100",
    ...        "Comment": "metasched:app=cg,n=1400"}
    >>> job = started_job(row, 160.0)
    >>> job.nodes, job.processors, job.running_for, job.application, job.number, job.restarted
    (('n1', 'n2'), (3, 2), 60.0, 'cg', '7', False)
    """
    try:
        names = tuple(unfold(row["NodeList"], where="nodes"))
        each, more = divmod(int(row["NumCPUs"]), len(names))
        taken = tuple(max(each + (index < more), 1) for index in range(len(names)))
        running_for = max(now - float(row["StartTime"]), 0.0)
    except (InputError, ValueError, ZeroDivisionError):
        return None
    started = StartedJob(
        names, taken, running_for, number=row["JobID"], partition=row["Partition"], user=row["UserName"],
        user_number=row["UserID"], restarted=row["RestartCnt"].strip() not in NONE, time_limit=span(row["TimeLimit"]),
    )  # fmt: skip
    mark = read_mark(row["Comment"])
    if mark is None:
        return started
    comment = text_in(row["Comment"])
    return replace(
        started, application=mark.application, problem_size=mark.problem_size, comment=comment,
        settings=replace(mark.settings, threads=_threads(row) or mark.settings.threads),
    )  # fmt: skip
