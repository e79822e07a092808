"""What becomes of the rows that Slurm prints of jobs, cell by cell."""

from __future__ import annotations

from typing import Any

import pytest

from metasched.history.queue import QueuedJob
from metasched.jobs import EndedJob, Fate, Sibling, digest
from metasched.records import Settings
from metasched.schedulers.slurm.energy import accounted
from metasched.schedulers.slurm.job_rows import (
    ACCOUNTED,
    CONTROLLED,
    MOST_SIBLINGS,
    accounted_fate,
    accounted_job,
    ended_job,
    fate,
    siblings,
    started_job,
)
from metasched.schedulers.slurm.node_failures import SAME, counted, recorded_for
from metasched.schedulers.slurm.queue import COLUMNS, queued_job
from metasched.schedulers.slurm.restarts import HEARD_WITHIN, ended_meanwhile
from metasched.schedulers.task_ranges import MOST_TASKS

MARK = "metasched:app=cg,n=1400"
ROW = dict.fromkeys(CONTROLLED, "") | {
    "JobID": "7", "State": "COMPLETED", "Partition": "p", "NodeList": "n[1-2]", "NumCPUs": "4", "NumTasks": "4",
    "cpus-per-task": "1", "HetJobID": "N/A", "ArrayTaskID": "N/A", "BatchFlag": "1", "SubmitTime": "90",
    "EligibleTime": "90", "StartTime": "100", "EndTime": "160", "TimeUsed": "1:00", "ResizeTime": "N/A",
    "exit_code": "0", "UserID": "1000", "Name": "cg", "Command": "/bin/cg 5", "Comment": MARK,
}  # fmt: skip
LINE = dict.fromkeys(ACCOUNTED, "") | {
    "JobIDRaw": "7", "State": "COMPLETED", "Partition": "p", "NodeList": "n[1-2]", "AllocCPUS": "4", "Submit": "90",
    "Start": "100", "End": "160", "Suspended": "00:00:00", "ExitCode": "0:0", "UID": "1000", "JobName": "cg",
    "SubmitLine": "sbatch -n 4 /bin/cg 5", "Comment": MARK, "Resized": "",
}  # fmt: skip
COMMAND = digest(b"/bin/cg 5")
ENDED = EndedJob(
    "c",
    "7",
    MARK,
    "p",
    ("n1", "n2"),
    4,
    100.0,
    160.0,
    0,
    user="1000",
    name="cg",
    submitted=90.0,
    command=COMMAND,
    numbers="$1=5",
)


def test_siblings_of_a_job_are_those_of_its_user_and_name_that_were_submitted_about_when_it_was() -> None:
    others = (
        {"SubmitTime": "93", "EligibleTime": "93", "State": "PENDING", "Command": "(null)", "Comment": ""},
        {"SubmitTime": "95", "EligibleTime": "95"},
        {"UserID": "1001"},
        {"Name": "lu"},
        {"Comment": "metasched:off"},
        {"ArrayTaskID": "3"},
        {"tres-per-node": "gres:gpu:1"},
        {"EligibleTime": "1000"},
        {"SubmitTime": "N/A"},
    )
    rows = [ROW, *(ROW | {"JobID": str(number)} | cells for number, cells in enumerate(others, 8))]
    assert siblings(rows, {"7"}) == {"7": (Sibling("8", "", 4, 93.0, ""),)}
    crowd = [ROW | {"JobID": str(number)} for number in range(100)]
    assert [len(each) for each in siblings(crowd, {"7", "99"}).values()] == [MOST_SIBLINGS - 1, MOST_SIBLINGS]


@pytest.mark.parametrize(
    ("cells", "fields"),
    [
        ({}, {}),
        ({"Comment": "(null)", "Command": "(null)"}, {"comment": "", "command": "", "numbers": ""}),
        ({"NumTasks": "0"}, {"processors": None}),
        ({"State": "CANCELLED by 0"}, {"exit_status": 143}),
        ({"State": "TIMEOUT"}, {"exit_status": 143}),
        ({"State": "OUT_OF_MEMORY", "exit_code": "9"}, {"exit_status": 137}),
        ({"State": "FAILED", "exit_code": "256"}, {"exit_status": 1}),
        ({"State": "FAILED", "exit_code": "15"}, {"exit_status": 143}),
        ({"State": "FAILED", "exit_code": "139"}, {"exit_status": 139}),  # the eighth bit says that it left a core
        ({"cpus-per-task": "2"}, {"kind": "threaded", "threads": 2}),
        ({"HetJobID": "7", "cpus-per-task": "2"}, {"kind": "heterogeneous", "threads": 2}),
        ({"BatchFlag": "0"}, {"kind": "interactive"}),
        ({"NumTasks": "5"}, {"kind": "overcommitted", "processors": 5}),
        ({"ArrayTaskID": "3"}, {"kind": "array"}),
        ({"EligibleTime": "91"}, {"kind": "postponed"}),
        ({"EligibleTime": "91", "RestartCnt": "0"}, {"kind": "postponed"}),
        ({"EligibleTime": "91", "RestartCnt": "1"}, {}),  # as whatever is put back into the queue
        ({"EligibleTime": "Unknown"}, {}),
        ({"TimeUsed": "0:59"}, {"kind": "interrupted"}),
        ({"ResizeTime": "120", "BatchFlag": "0"}, {"kind": "interrupted"}),
        ({"SubmitTime": "Unknown", "EligibleTime": "95"}, {"submitted": None}),
    ],
    ids=str,
)  # fmt: skip
def test_a_row_of_the_controller_becomes_an_ended_job(cells: dict[str, str], fields: dict[str, Any]) -> None:
    expected = {name: getattr(ENDED, name) for name in ENDED.__slots__} | fields
    assert ended_job(ROW | cells, "c", None) == EndedJob(**expected)


@pytest.mark.parametrize("cell", ["0", "", "N/A", "Unknown", "(null)", "\u00b2", "\u0665"])
def test_a_time_that_is_none_is_none_in_every_table(cell: str) -> None:
    known = fate(ROW | {"SubmitTime": cell, "StartTime": cell, "EndTime": cell}, None)
    booked = accounted_fate(LINE | {"Submit": cell, "Start": cell, "End": cell}, None)
    assert {(each.submitted, each.started, each.ended) for each in (known, booked)} == {(None, None, None)}
    row = dict.fromkeys(COLUMNS, cell) | {"JobID": "7", "State": "RUNNING", "Partition": "p", "NumCPUs": "4"}
    queued = queued_job(row)
    assert queued is not None
    assert (queued.submitted, queued.started) == (None, None)
    metered = {"JobIDRaw": "7", "NodeList": "n1", "AllocCPUS": "4", "Start": cell, "End": "9", "ConsumedEnergyRaw": "7"}
    assert accounted([metered]) == {}


def test_devices_make_a_job_special() -> None:
    found = ended_job(ROW, "c", (("gpu", "a100"),))
    assert found is not None
    assert (found.kind, found.devices) == ("special", (("gpu", "a100"),))


@pytest.mark.parametrize(
    "cells",
    [
        {"State": "RUNNING"}, {"State": "REQUEUED"}, {"exit_code": "?"}, {"StartTime": "0"}, {"StartTime": "Unknown"},
        {"EndTime": "100"}, {"EndTime": "Unknown"}, {"NodeList": "n[1-"}, {"NumTasks": "x"},
    ],
    ids=str,
)  # fmt: skip
def test_a_row_of_no_job_that_ran_to_its_end_is_left_out(cells: dict[str, str]) -> None:
    assert ended_job(ROW | cells, "c", None) is None


@pytest.mark.parametrize(
    ("cells", "fields"),
    [
        ({}, {}),
        ({"State": "CANCELLED by 1000"}, {"exit_status": 143}),
        ({"State": "FAILED", "ExitCode": "3:0"}, {"exit_status": 3}),
        ({"State": "FAILED", "ExitCode": "0:9"}, {"exit_status": 137}),
        ({"State": "NODE_FAIL", "ExitCode": ""}, {"exit_status": 143}),
        ({"Suspended": "00:00:01"}, {"kind": "interrupted"}),
        ({"Resized": "yes"}, {"kind": "interrupted"}),
        ({"AllocCPUS": "0", "JobName": "a\nb"}, {"processors": None, "name": "a?b"}),
        ({"SubmitLine": "sbatch -n 4 cg.sh --size=400\n\udcff"}, {"numbers": "--size=400"}),
        ({"SubmitLine": ""}, {"numbers": ""}),
    ],
    ids=str,
)
def test_a_row_of_the_accounting_becomes_an_ended_job(cells: dict[str, str], fields: dict[str, Any]) -> None:
    known = {name: getattr(ENDED, name) for name in ENDED.__slots__} | {"command": "", "kind": "unknown"}
    assert accounted_job(LINE | cells, "c", None) == EndedJob(**(known | fields))


@pytest.mark.parametrize(("cell", "first"), [("0", True), ("1", False), ("", False), ("N/A", False)])
def test_the_controller_tells_whether_a_job_was_put_back_into_the_queue(cell: str, first: bool) -> None:
    assert fate(ROW | {"RestartCnt": cell}, None).first_run is first


@pytest.mark.parametrize(
    ("state", "completed"),
    [
        ("COMPLETED", True), ("FAILED", False), ("CANCELLED", False), ("REQUEUED", False), ("PENDING", False),
        ("SPECIAL_EXIT", False), ("RUNNING", None), ("SUSPENDED", None), ("COMPLETING", None),
    ],
)  # fmt: skip
def test_what_controller_and_accounting_say_of_the_fate_of_a_job(state: str, completed: bool | None) -> None:
    told = fate(ROW | {"State": state}, None)
    again = state in ("REQUEUED", "PENDING", "SPECIAL_EXIT")
    assert told == Fate(completed, 90.0, 100.0, 4, "", COMMAND, None, ended=160.0, numbers="$1=5", again=again)
    booked = accounted_fate(LINE | {"State": f"{state} by 0"}, None)
    assert booked == Fate(completed, 90.0, 100.0, kind="unknown", ended=160.0, numbers="$1=5")


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ({}, ((3, 2), 60.0, 300.0, False, "cg")),
        ({"NumCPUs": "1", "RestartCnt": "2"}, ((1, 1), 60.0, 300.0, True, "cg")),
        ({"StartTime": "170", "TimeLimit": "UNLIMITED"}, ((3, 2), 0.0, None, False, "cg")),
        ({"Comment": "night"}, ((3, 2), 60.0, 300.0, False, "")),
        ({"NodeList": ""}, None), ({"NumCPUs": "?"}, None), ({"StartTime": "Unknown"}, None),
    ],
    ids=str,
)  # fmt: skip
def test_a_row_of_a_running_job(cells: dict[str, str], expected: tuple[Any, ...] | None) -> None:
    row = {
        "JobID": "7", "UserName": "ann", "UserID": "7", "Partition": "p", "RestartCnt": "0", "NodeList": "n[1-2]",
        "NumCPUs": "5", "cpus-per-task": "1", "TimeLimit": "5:00", "StartTime": "100", "Comment": MARK,
    }  # fmt: skip
    found = started_job(row | cells, 160.0)
    told = found and (found.processors, found.running_for, found.time_limit, found.restarted, found.application)
    assert told == expected


@pytest.mark.parametrize(
    ("comment", "per_task", "threads"),
    [(MARK, "N/A", 1), (MARK, "2", 2), (f"{MARK},threads=4", "1", 4), (f"{MARK},threads=4", "2", 2)],
)
def test_a_running_job_has_the_settings_of_its_mark_and_the_threads_that_slurm_reports(
    comment: str, per_task: str, threads: int
) -> None:
    row = {
        "JobID": "7", "UserName": "ann", "UserID": "7", "Partition": "p", "RestartCnt": "0", "NodeList": "n1",
        "NumCPUs": "8", "cpus-per-task": per_task, "TimeLimit": "5:00", "StartTime": "100",
        "Comment": f"{comment},steps=100",
    }  # fmt: skip
    found = started_job(row, 160.0)
    assert found is not None
    assert found.settings == Settings.of(None, threads, {"steps": 100.0})


QUEUED = dict.fromkeys(COLUMNS, "N/A") | {
    "JobID": "7", "State": "PENDING", "Partition": "p,q", "NumCPUs": "4", "TimeLimit": "10:00", "Reason": "Priority",
    "SubmitTime": "90", "UserName": "ann", "Command": "/opt/x/solve.sh 4 --fast/y",
}  # fmt: skip
WAITS = {
    "number": "7", "partitions": frozenset("pq"), "processors": 4, "limit": 600.0, "submitted": 90.0, "user": "ann",
    "executable": "solve.sh", "numbers": "$1=4",
}  # fmt: skip
RUNS = WAITS | {"ran": 500.0, "nodes": ("n1", "n2"), "started": 95.0}
RUNNING = {"State": "RUNNING", "TimeUsed": "8:20", "NodeList": "n[1-2]", "StartTime": "95", "Reason": "None"}


@pytest.mark.parametrize(
    ("cells", "fields"),
    [
        ({}, WAITS),
        ({"Reason": "Dependency"}, WAITS | {"ready": False}),
        ({"EligibleTime": "95"}, WAITS | {"submitted": 95.0}),
        ({"SubmitTime": "0", "TimeLimit": "UNLIMITED"}, WAITS | {"submitted": None, "limit": None}),
        ({"StartTime": "200", "QOS": "high"}, WAITS | {"planned": 200.0, "qos": "high"}),
        ({"Account": "bio", "Name": "run"}, WAITS | {"account": "bio", "name": "run"}),
        (RUNNING, RUNS),
        (RUNNING | {"NodeList": "n[1-"}, RUNS | {"nodes": ()}),
        (RUNNING | {"TimeUsed": "INVALID"}, RUNS | {"ran": 0.0}),  # clocks differ
        (RUNNING | {"TimeUsed": "10:09"}, RUNS | {"ran": 609.0}),  # it is being killed
        (RUNNING | {"TimeLimit": "UNLIMITED", "TimeUsed": "9-00:00:00"}, RUNS | {"ran": 777_600.0, "limit": None}),
        (RUNNING | {"State": "CONFIGURING"}, RUNS),
        ({"ArrayTaskID": "1-9:2,12,20-21"}, WAITS | {"tasks": 8}),
        ({"ArrayTaskID": "4-40%3"}, WAITS | {"tasks": 3}),
        ({"ArrayTaskID": "1-9999999"}, WAITS | {"tasks": MOST_TASKS}),
        (RUNNING | {"ArrayTaskID": "7"}, RUNS),
        ({"Comment": f"night metasched:app=cg,n=9,placement={'1f' * 16}"}, WAITS | {"placement": "1f" * 16}),
        ({"Comment": "metasched:app=cg,n=9"}, WAITS),
        ({"State": "COMPLETING"}, None),
        ({"NumCPUs": "N/A"}, None),
    ],
)  # fmt: skip
def test_a_row_of_the_queue(cells: dict[str, str], fields: dict[str, Any] | None) -> None:
    assert queued_job(QUEUED | cells) == (None if fields is None else QueuedJob(**fields))


BEGUN, WENT_DOWN = ("", 5e8, 1e9, ""), ("n1", 6e8, 6e8 + 50.0, "DOWN")


@pytest.mark.parametrize(
    ("events", "struck", "expected"),
    [
        ([], [], (0, 0.0)),  # of which nothing is known, such as where slurmdbd shows no events
        ([BEGUN], [], (0, 1e9)),
        ([BEGUN, ("n1", 6e8, 6e8 + 50.0, "DOWN*")], [], (1, 1e9 - 50.0)),
        ([BEGUN, WENT_DOWN], [(6e8 + SAME, ["n1"])], (1, 1e9 - 50.0)),
        ([BEGUN, WENT_DOWN], [(6e8 - SAME, ["n1", "n2"])], (1, 1e9 - 50.0)),
        ([BEGUN, WENT_DOWN], [(6e8 + SAME + 0.5, ["n1"])], (2, 1e9 - 50.0)),
        ([BEGUN, WENT_DOWN], [(6e8, ["n2"])], (2, 1e9 - 50.0)),  # another node at the same moment
        ([BEGUN, ("n1", 6e8, 6e8 + 50.0, "FAIL"), ("n2", 6e8, 6e8 + 9.0, "DRAIN")], [], (1, 1e9 - 59.0)),
        ([("", 5e8, 1e9, "DOWN")], [(7e8, ["n1"])], (1, 1e9)),
        # A node takes all its jobs with it, and some jobs have more nodes than the one that failed.
        ([BEGUN], [(7e8, ["n1"])] * 5, (1, 1e9)),
        ([BEGUN], [(7e8, ["n1"]), (7e8, ["n2"])], (2, 1e9)),
        ([BEGUN], [(7e8, ["n1", "n2"]), (7e8, ["n2"]), (7e8, ["n2", "n3"])], (1, 1e9)),
        ([BEGUN], [(7e8, ["n1", "n2"]), (7e8, ["n2", "n3"]), (7e8, ["n1", "n3"])], (2, 1e9)),
        ([BEGUN], [(7e8 + SAME, ["n1"]), (7e8, ["n1"]), (7e8 + SAME + 0.5, ["n1"])], (2, 1e9)),
        ([BEGUN], [(7e8, [])], (0, 1e9)),  # which had no nodes any more
        # Nodes that the cluster has no more, one of them down until today.
        ([BEGUN, ("old", 6e8, 1e9, "DOWN")], [(7e8, ["old"]), (8e8, ["n1", "old"])], (1, 1e9)),
        ([("", 1e8, 1e9, ""), ("n1", 1e8, 3e8, "DOWN")], [], (1, 1.5e9)),  # begun before records count
    ],
)
def test_failures_and_the_time_in_which_nodes_were_up(
    events: list[tuple[str, float, float, str]], struck: list[tuple[float, list[str]]], expected: tuple[int, float]
) -> None:
    failures, seconds = counted(events, struck, {"n1", "n2"}, 2e8, 1e9)
    assert (failures, seconds) == (expected[0], pytest.approx(expected[1]))


@pytest.mark.parametrize(
    ("lines", "days"),
    [
        ("", 365.0),
        ("PurgeEventAfter        = NONE\nMaxQueryTimeRange      = UNLIMITED", 365.0),
        ("PurgeEventAfter        = 36 hours", 1.5),
        ("PurgeEventAfter        = 400 days\nPurgeJobAfter          = 1 months*", 28.0),
        ("PurgeStepAfter         = 1 days\nArchiveDir = 1 days", 365.0),
        ("MaxQueryTimeRange      = 60-00:01:00", 60.0),
        ("MaxQueryTimeRange      = 00:00:30", 0.0),
    ],
)
def test_records_reach_back_as_far_as_slurmdbd_has_and_shows_them(lines: str, days: float) -> None:
    assert recorded_for(lines) == days * 86_400.0


@pytest.mark.parametrize(
    ("started", "ended", "controller", "perhaps"),
    [
        (100.0, 199.5, 200.0, False), (100.0, 200.0, 200.0, True), (100.0, 200.0 + HEARD_WITHIN, 200.0, True),
        (100.0, 200.5 + HEARD_WITHIN, 200.0, False), (200.0, 210.0, 200.0, False), (199.5, 210.0, 200.0, True),
        (None, 210.0, 200.0, False), (100.0, None, 200.0, False), (100.0, 210.0, None, False),
    ],
)  # fmt: skip
def test_a_job_may_have_ended_before_the_controller_was_started(
    started: float | None, ended: float | None, controller: float | None, perhaps: bool
) -> None:
    assert ended_meanwhile(started, ended, controller) is perhaps
