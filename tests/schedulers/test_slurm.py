"""What Slurm's commands print becomes partitions and finished jobs; here the commands are scripts that print it."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from metasched.blocks.entry import Entry, Kind, Quantity
from metasched.blocks.failures import FailureRate
from metasched.jobs import UNKNOWN_DEVICES, Devices, digest
from metasched.placement.clusters.memory_limits import MemoryLimits
from metasched.placement.clusters.partition import Holder, JobLimits
from metasched.placement.clusters.partition_queues import partition_lines, with_queue_waits
from metasched.records import InputError
from metasched.schedulers.slurm import devices
from metasched.schedulers.slurm import source as slurm_source
from metasched.schedulers.slurm.commands import SlurmCommands
from metasched.schedulers.slurm.node_failures import failure_rate
from metasched.schedulers.slurm.source import SlurmSource
from monitors.sensors.power.ipmi import MOST_WATTS

SINFO = json.loads((Path(__file__).parents[1] / "placement" / "clusters" / "slurm-22.05" / "sinfo.json").read_text())


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    (tmp_path / "sinfo.json").write_text(json.dumps(SINFO))
    limits = [{"PartitionName": "racka", "Time": "1:00:00"}, {"PartitionName": "all", "Time": "infinite"}]
    table(tmp_path / "sinfo", limits, otherwise=SINFO)
    failing(tmp_path / "squeue")
    failing(tmp_path / "sacct")
    # The one of this host would wait for a controller.
    saying(tmp_path / "scontrol", "AccountingStorageType = accounting_storage/none")
    return tmp_path


TABLE = """#!{python} -IS
import json, os, sys
answers = json.load(open({data!r}))
words = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
if words.get("--starttime", "").isdigit():  # as the real sacct does
    sys.exit("sacct: Invalid time specification")
if "--state" in words and "--starttime" in words and "--endtime" not in words:
    sys.exit()
if "--Format" in words:
    columns = [part.split(":", 1) for part in words["--Format"].split(",")]
elif "--format" in words:
    columns = [(name, words["--delimiter"]) for name in words["--format"].split(",")]
else:
    json.dump(answers["otherwise"], sys.stdout)
    sys.exit()
for row in answers["rows"]:
    text = "".join(row.get(name, "N/A") + mark for name, mark in columns) + chr(10)
    sys.stdout.buffer.write(os.fsencode(text))
"""


def table(path: Path, rows: list[dict[str, str]], otherwise: Any = None) -> None:
    """A command that prints the columns that it is asked for, each ended as asked, as Slurm's commands do."""
    data = path.with_suffix(".rows")
    data.write_text(json.dumps({"rows": rows, "otherwise": otherwise}))
    path.write_text(TABLE.format(python=sys.executable, data=str(data)))
    path.chmod(0o755)


def failing(path: Path) -> None:
    path.write_text("#!/bin/sh\necho disabled >&2\nexit 1\n")
    path.chmod(0o755)


JOB = {"JobID": "3", "State": "COMPLETED", "Partition": "racka", "NodeList": "a1", "NumTasks": "2", "NumCPUs": "2",
       "cpus-per-task": "1", "BatchFlag": "1", "SubmitTime": "90", "EligibleTime": "90", "StartTime": "100",
       "EndTime": "200", "exit_code": "0", "UserID": "1000", "Name": "job.sh", "Command": "/home/job.sh 400",
       "Comment": "metasched:app=cg,n=5"}  # fmt: skip
ACCOUNTED = {"JobIDRaw": "7", "State": "COMPLETED", "Partition": "racka", "NodeList": "a[1-2]", "AllocCPUS": "4",
             "Submit": "990", "Start": "1000", "End": "1010", "Suspended": "00:00:00", "ExitCode": "0:0", "UID": "1000",
             "JobName": "x", "Comment": ""}  # fmt: skip


def test_partitions_have_their_nodes_and_time_limits(commands: Path) -> None:
    racka, every = SlurmSource("c").partitions()
    assert (racka.state.name, racka.scheduler, racka.name, racka.time_limit) == ("c/racka", "c", "racka", 3600.0)
    assert set(racka.state.nodes) < set(every.state.nodes)
    assert every.time_limit is None


def test_nodes_are_those_of_scontrol_where_sinfo_lists_some_together(commands: Path) -> None:
    before = SlurmSource("c").partitions()
    limits = [{"PartitionName": "racka", "Time": "1:00:00"}, {"PartitionName": "all", "Time": "infinite"}]
    table(commands / "sinfo", limits, otherwise={"sinfo": [{"nodes": {"nodes": ["a1", "a2"]}}], "errors": []})
    later = [
        node | {"state": [node["state"].upper()], "features": [], "free_mem": {"set": True}} for node in SINFO["nodes"]
    ]
    table(commands / "scontrol", [], otherwise={"nodes": later, "errors": [], "warnings": []})
    found = SlurmSource("c").partitions()
    assert [each.state.nodes for each in found] == [each.state.nodes for each in before]
    assert [each.state.processors.tolist() for each in found] == [each.state.processors.tolist() for each in before]


def test_a_partition_without_nodes_keeps_no_other_from_being_followed(commands: Path) -> None:
    rows = [{"PartitionName": name, "Time": "1:00:00", "DefaultTime": "10:00"} for name in ("hollow", "racka", "all")]
    table(commands / "sinfo", rows, otherwise=SINFO)
    assert [each.name for each in SlurmSource("c").partitions()] == ["racka", "all"]
    with pytest.raises(RuntimeError, match=r"^no partition has nodes, of hollow$"):
        SlurmSource("c", ["hollow"]).partitions()


def test_a_controller_that_knows_no_nodes_yet_has_not_answered(commands: Path) -> None:
    rows = [{"PartitionName": "racka", "Time": "1:00:00", "DefaultTime": "10:00"}]
    table(commands / "sinfo", rows, otherwise=SINFO | {"nodes": []})
    with pytest.raises(RuntimeError, match=r"^no partition has nodes, of racka$"):
        SlurmSource("c").partitions()


def test_switches_are_those_that_the_topology_describes_now(commands: Path) -> None:
    names = [node["name"] for node in SINFO["nodes"]]
    topology = commands / "topology.conf"
    source = SlurmSource("c", ["racka"], configuration=str(commands / "slurm.conf"))
    assert [each.state.name for each in source.partitions()] == ["c/racka"]
    topology.write_text(f"SwitchName=s Nodes={','.join(names[1:])}\n")
    with pytest.raises(InputError, match=names[0]):
        source.partitions()
    topology.write_text(f"SwitchName=s Nodes={','.join(names)}\n")
    assert [each.state.name for each in source.partitions()] == ["c/racka"]
    topology.write_bytes(b"SwitchName=\xff\n")
    with pytest.raises(InputError):
        source.partitions()
    (commands / "topology.yaml").write_text("---\n")  # beside which Slurm reads no other
    (found,) = source.partitions()
    assert getattr(found.state.network, "switches", None) == ("c/racka",)


def test_a_partition_that_is_not_there_is_named(commands: Path) -> None:
    with pytest.raises(RuntimeError, match="no partition gpu"):
        SlurmSource("c", ["gpu"]).partitions()


def test_finished_jobs_come_from_the_accounting_too(commands: Path) -> None:
    table(
        commands / "sacct",
        [
            ACCOUNTED | {"Comment": "metasched:app=cg,n=5 | more"},
            ACCOUNTED | {"JobIDRaw": "8", "State": "FAILED", "ExitCode": "3:0", "End": "1004"},
            ACCOUNTED | {"JobIDRaw": "9", "State": "CANCELLED by 0", "ExitCode": "0:15", "End": "1002"},
            ACCOUNTED | {"JobIDRaw": "10", "State": "CANCELLED by 0", "NodeList": "None assigned", "Start": "Unknown"},
            ACCOUNTED | {"JobIDRaw": "11", "State": "CANCELLED by 0", "Start": "0"},
        ],
    )
    table(commands / "squeue", [])
    jobs = SlurmSource("c").finished(0.0)
    assert [(job.job, job.exit_status, job.kind) for job in jobs] == [
        ("9", 143, "unknown"), ("8", 3, "unknown"), ("7", 0, "unknown")
    ]  # fmt: skip
    assert jobs[2].nodes == ("a1", "a2")
    assert (jobs[2].comment, jobs[2].user, jobs[2].submitted) == ("metasched:app=cg,n=5 | more", "1000", 990.0)


def test_the_accounting_tells_of_jobs_that_were_suspended_or_resized(commands: Path) -> None:
    table(
        commands / "sacct",
        [
            ACCOUNTED | {"JobIDRaw": "7", "Suspended": "00:00:08"},
            ACCOUNTED | {"JobIDRaw": "8", "State": "RESIZING", "AllocCPUS": "8", "End": "1005"},
            ACCOUNTED | {"JobIDRaw": "8", "Submit": "1005"},
            ACCOUNTED | {"JobIDRaw": "9"},
        ],
    )
    table(commands / "squeue", [])
    source, kinds = SlurmSource("c"), {"7": "interrupted", "8": "interrupted", "9": "unknown"}
    assert {job.job: job.kind for job in source.finished(0.0)} == kinds
    fates = source.fates([*kinds])
    assert {number: fate.kind for number, fate in fates.items()} == kinds
    assert {fate.completed for fate in fates.values()} == {True}


def test_no_name_of_a_job_forges_a_row_of_the_log(commands: Path) -> None:
    saying(commands / "scontrol", "AccountingStorageType = accounting_storage/slurmdbd")
    row = {"JobIDRaw": "7", "User": "ann", "Account": "physics", "Partition": "racka", "QOS": "normal", "Submit": "990",
           "Eligible": "990", "Start": "1000", "End": "1010", "ElapsedRaw": "10", "AllocCPUS": "4", "TimelimitRaw": "5",
           "State": "COMPLETED"}  # fmt: skip
    forged = "|".join((row | {"JobIDRaw": "8", "User": "bob", "ElapsedRaw": "9999"}).values())
    line = f"sbatch x.sh -n 400 | tee\n{forged}|z\x85"
    table(commands / "sacct", [row | {"JobName": f"x|y\n{forged}|z\x85{forged}|z", "SubmitLine": line}])
    log = SlurmSource("c").accounted(0.0)
    assert log is not None
    assert (log.run_time.tolist(), log.named("user")) == ([10.0], ["ann"])
    assert log.named("name") == [f"x|y {forged}|z {forged}|z"]
    assert log.named("numbers")[0].startswith("-n=400 ")
    table(commands / "sacct", [])
    assert SlurmSource("c").accounted(0.0) is None


@pytest.mark.parametrize(
    ("started", "interrupted"), [("139", False), ("140", True), ("200", True), ("201", False), ("unknown", False)]
)
def test_the_end_of_a_job_that_ran_when_the_controller_was_started_is_not_known_soon_after(
    started: str, interrupted: bool, commands: Path
) -> None:
    """It may have ended while the controller was away, which dates it when it is back."""
    table(commands / "squeue", [JOB])
    table(commands / "sacct", [ACCOUNTED | {"Start": "100", "End": "200"}])
    saying(commands / "scontrol", f"BOOT_TIME               = {started}\nClusterName = site")
    source = SlurmSource("c")
    fates, jobs = source.fates(["3", "7"]), source.finished(0.0)
    assert [fates[job].kind == "interrupted" for job in ("3", "7")] == [interrupted] * 2
    assert {job.job: job.kind == "interrupted" for job in jobs} == {"3": interrupted, "7": interrupted}


@pytest.mark.parametrize(
    ("state", "status"),
    [("COMPLETED", 0), ("CANCELLED by 0", 143), ("TIMEOUT", 143), ("OUT_OF_MEMORY", 137), ("NODE_FAIL", 143),
     ("PREEMPTED", 143), ("DEADLINE", 143), ("BOOT_FAIL", 143)],
)  # fmt: skip
def test_jobs_that_slurm_ended_have_the_status_of_its_signal(state: str, status: int, commands: Path) -> None:
    table(commands / "sacct", [ACCOUNTED | {"State": state}])
    table(commands / "squeue", [])
    assert [job.exit_status for job in SlurmSource("c").finished(0.0)] == [status]


def test_without_accounting_they_come_from_the_controllers_memory(commands: Path) -> None:
    table(
        commands / "squeue",
        [
            JOB | {"State": "FAILED", "exit_code": "768"},
            JOB | {"JobID": "4", "State": "RUNNING", "EndTime": "900"},
            JOB | {"JobID": "5", "State": "CANCELLED", "StartTime": "0"},
            JOB | {"JobID": "6", "State": "CANCELLED", "StartTime": "N/A"},
        ],
    )
    (ended,) = SlurmSource("c").finished(150.0)
    assert (ended.job, ended.exit_status, ended.processors, ended.user, ended.name) == ("3", 3, 2, "1000", "job.sh")
    assert SlurmSource("c").finished(250.0) == []


#: What Python takes for the end of a line, and what could be taken for the end of a field.
BREAKS = ["\n", "\r\n", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029", "|", ",", ":", "\t", "\x1f"]


@pytest.mark.parametrize("broken", BREAKS)
def test_no_comment_forges_a_job(commands: Path, broken: str) -> None:
    forged = f"x{broken}4{broken}COMPLETED{broken}n9|1|100|metasched:app=cg,n=9{broken}"
    rows = [JOB | {"Comment": forged, "Name": forged, "Command": forged}, JOB | {"JobID": "5", "State": "RUNNING"}]
    table(commands / "squeue", rows)
    table(commands / "sacct", [ACCOUNTED | {"Comment": forged, "JobName": forged}])
    source = SlurmSource("c")
    assert [job.job for job in source.finished(0.0)] == ["3", "7"]
    assert {job.comment for job in source.finished(0.0)} == {forged}
    assert {tuple(job.nodes) for job in source.running()} == {("a1",)}
    table(commands / "sacct", [])
    assert set(source.fates(["3", "4", "5"])) == {"3", "5"}


def test_bytes_that_are_no_text_are_replaced(commands: Path) -> None:
    table(commands / "squeue", [JOB | {"Comment": os.fsdecode(b"metasched:app=cg,n=5 \xff\xfe"), "Name": "\udcff"}])
    (job,) = SlurmSource("c").finished(0.0)
    assert (job.comment, job.name) == ("metasched:app=cg,n=5 \ufffd\ufffd", "?")


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({}, ""),
        ({"HetJobID": "3"}, "heterogeneous"),
        ({"BatchFlag": "0"}, "interactive"),
        ({"cpus-per-task": "2"}, "threaded"),
        ({"NumCPUs": "1"}, "overcommitted"),
        ({"NumCPUs": "4"}, ""),
        ({"ArrayTaskID": "0"}, "array"),
        ({"tres-per-node": "gres:gpu:1"}, "special"),
        ({"tres-per-job": "gres:gpu:1"}, "special"),
        ({"tres-per-task": "gres:gpu:1"}, "special"),
        ({"tres-per-socket": "gres:gpu:1"}, "special"),
        ({"tres-per-node": "gres:fpga:1"}, "special"),
        ({"EligibleTime": "95"}, "postponed"),
        ({"TimeUsed": "1:40"}, ""),
        ({"TimeUsed": "1:30"}, "interrupted"),
        ({"TimeUsed": "1:30", "ArrayTaskID": "0"}, "interrupted"),
        ({"ResizeTime": "150"}, "interrupted"),
    ],
)
def test_the_controller_tells_how_a_job_ended_and_of_which_kind_it_is(
    commands: Path, change: dict[str, str], kind: str
) -> None:
    table(commands / "squeue", [JOB | change])
    (fate,) = SlurmSource("c").fates(["3"]).values()
    assert (fate.completed, fate.submitted, fate.started, fate.processes, fate.kind) == (True, 90.0, 100.0, 2, kind)
    assert fate.threads == (2 if kind == "threaded" else None)
    assert fate.command == digest(b"/home/job.sh 400")


def gpus(kind: str, number: float | None = None) -> Devices:
    return (("gpu", kind), *((("gpus", number),) if number else ()))


#: Two nodes of each kind: of one type of GPUs, of GPUs without a type, of two types, and of none.
NODES = [("a", "gpu:a100:2(S:0-1)"), ("u", "gpu:4"), ("m", "gpu:a100:1,gpu:v100:1"), ("c", "(null)")]


@pytest.fixture
def equipped(commands: Path) -> Path:
    rows = [{"NodeList": f"{name}{number}", "Gres": told} for name, told in NODES for number in (1, 2)]
    table(commands / "sinfo", rows, otherwise=SINFO)
    return commands


@pytest.mark.parametrize(
    ("change", "devices"),
    [
        # As 22.05 prints it.
        ({"tres-per-node": "gres:gpu:a100:2"}, gpus("a100", 2)),
        ({"tres-per-node": "gres:gpu:1"}, gpus("a100", 1)),
        ({"tres-per-node": "gres:gpu:1", "NodeList": "a[1-2]"}, gpus("a100", 2)),
        ({"tres-per-node": "gres:gpu:1", "NodeList": "u1"}, gpus("unknown", 1)),
        ({"tres-per-node": "gres:gpu", "NodeList": "m1"}, gpus("unknown", 1)),
        ({"tres-per-node": "gres:gpu:v100:1", "NodeList": "m1"}, gpus("v100", 1)),
        ({"tres-per-job": "gres:gpu:a100:1,gres:gpu:v100:1", "NodeList": "m1"}, gpus("a100+v100", 2)),
        ({"tres-per-job": "gres:gpu:2"}, gpus("a100", 2)),
        ({"tres-per-task": "gres:gpu:1"}, gpus("a100", 2)),
        ({"tres-per-socket": "gres:gpu:1"}, gpus("a100")),
        ({"tres-per-socket": "gres:gpu:1", "tres-alloc": "cpu=2,gres/gpu=2"}, gpus("a100", 2)),
        ({"tres-per-job": "gres:gpu:a100:2", "tres-alloc": "cpu=2,gres/gpu=2", "NodeList": "m1"}, gpus("a100", 2)),
        ({"tres-per-job": "gres:gpu:2", "tres-alloc": "gres/gpu=2,gres/gpu:a100=1,gres/gpu:v100=1", "NodeList": "m1"},
         gpus("a100+v100", 2)),
        ({"tres-per-node": "gres:fpga:1"}, (("gres", "fpga"),)),
        ({"tres-per-node": "gres:gpu:1,gres:shard:4"}, (*gpus("a100", 1), ("gres", "shard"))),
        ({"tres-per-node": "gres:gpu:80:1", "NodeList": "u1"}, gpus("_80", 1)),
        # As 23.02 and later print it, after their documentation; from 23.11 on processors stand there as well.
        ({"tres-per-node": "gres/gpu:a100:2"}, gpus("a100", 2)),
        ({"tres-per-job": "gres/gpu:a100=2"}, gpus("a100", 2)),
        ({"tres-per-task": "cpu=1,gres/gpu:a100=1"}, gpus("a100", 2)),
        # No GPU on a node that has some, and on one that has none; a job alone on its nodes gets all of theirs unasked.
        ({"tres-per-task": "cpu=1"}, ()),
        ({}, ()),
        ({"OverSubscribe": "NO", "tres-alloc": "cpu=4,gres/gpu=2"}, None),
        ({"NodeList": "c1"}, None),
    ],
)  # fmt: skip
def test_the_controller_tells_which_gpus_a_job_had(
    equipped: Path, change: dict[str, str], devices: Devices | None
) -> None:
    table(equipped / "squeue", [JOB | change, JOB | change | {"JobID": "4", "State": "RUNNING"}])
    source = SlurmSource("c")
    assert source.fates(["3"])["3"].devices == devices
    assert [job.devices for job in source.finished(0.0)] == [devices]
    assert [job.devices for job in source.running() if job.number == "4"] == [devices or ()]


@pytest.mark.parametrize(
    ("counted", "node", "allocated", "asked", "devices"),
    [
        ("cpu,gres/gpu", "a1", "cpu=4,gres/gpu=2", "cpu=4,gres/gpu=2", gpus("a100", 2)),
        ("cpu,gres/gpu", "u1", "cpu=4,gres/gpu=2", "cpu=4,gres/gpu=2", gpus("unknown", 2)),
        ("cpu,gres/gpu,gres/gpu:a100", "m1", "gres/gpu:a100=1,gres/gpu=1", "gres/gpu=1", gpus("a100", 1)),
        ("cpu,gres/gpu", "a1", "cpu=4", "cpu=4", ()),
        ("cpu,gres/gpu", "a1", "cpu=4,gres/gpu=2", "cpu=4", UNKNOWN_DEVICES),  # alone on its node
        ("cpu,mem", "a1", "cpu=4", "cpu=4", UNKNOWN_DEVICES),
        ("cpu,gres/gpu:v100", "a1", "cpu=4", "cpu=4", UNKNOWN_DEVICES),
        ("cpu,mem", "c1", "cpu=4", "cpu=4", None),
    ],
)
def test_the_accounting_tells_which_gpus_a_job_had_where_it_counts_them(
    equipped: Path, counted: str, node: str, allocated: str, asked: str, devices: Devices | None
) -> None:
    saying(equipped / "scontrol", f"AccountingStorageTRES   = {counted}")
    table(equipped / "squeue", [])
    table(equipped / "sacct", [ACCOUNTED | {"NodeList": node, "AllocTRES": allocated, "ReqTRES": asked}])
    source = SlurmSource("c")
    assert [job.devices for job in source.finished(0.0)] == [devices]
    assert source.fates(["7"])["7"].devices == devices


@pytest.mark.parametrize(
    ("state", "completed"),
    [("COMPLETED", True), ("FAILED", False), ("CANCELLED", False), ("TIMEOUT", False), ("PENDING", False),
     ("RUNNING", None), ("COMPLETING", None)],
)  # fmt: skip
def test_only_a_job_that_completed_went_well(commands: Path, state: str, completed: bool | None) -> None:
    table(commands / "squeue", [JOB | {"State": state}])
    assert SlurmSource("c").fates(["3"])["3"].completed is completed


def test_the_accounting_tells_of_jobs_that_the_controller_has_forgotten(commands: Path) -> None:
    table(commands / "squeue", [JOB])
    assert set(SlurmSource("c").fates(["3", "7"])) == {"3"}
    table(commands / "sacct", [ACCOUNTED | {"State": "CANCELLED by 0"}])
    fates = SlurmSource("c").fates(["3", "7"])
    assert (fates["3"].completed, fates["7"].completed, fates["7"].kind) == (True, False, "unknown")


def accounting_of(commands: Path, rows: list[dict[str, str]] | None) -> None:
    """A Slurm that has an accounting, which does not answer where it has no rows."""
    saying(commands / "scontrol", "AccountingStorageType = accounting_storage/slurmdbd")
    if rows is None:
        failing(commands / "sacct")
    else:
        table(commands / "sacct", rows)


def test_a_job_waits_for_an_accounting_that_does_not_answer_and_others_do_not(commands: Path) -> None:
    table(commands / "squeue", [JOB])
    accounting_of(commands, None)
    source = SlurmSource("c")
    assert {job: fate.completed for job, fate in source.fates(["3", "7"]).items()} == {"3": True, "7": None}
    with pytest.raises(RuntimeError, match="disabled"):  # older jobs are not known to be none
        source.finished(0.0)
    accounting_of(commands, [ACCOUNTED])
    assert source.fates(["7"])["7"].completed is True
    assert [job.job for job in source.finished(0.0)] == ["3", "7"]


def test_a_job_that_the_accounting_lacks_may_come_there_for_some_time(
    commands: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The controller keeps what its accounting missed, and tells it some seconds after that is back."""
    table(commands / "squeue", [])
    accounting_of(commands, [ACCOUNTED])
    saying_which_jobs(commands)
    source, now = SlurmSource("c"), [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    assert {job: fate.completed for job, fate in source.fates(["7", "8"]).items()} == {"7": True, "8": None}
    now[0] += slurm_source.ACCOUNTED_WITHIN - 1.0
    assert {job: fate.completed for job, fate in source.fates(["8", "9"]).items()} == {"8": None, "9": None}
    now[0] += 1.0
    assert {job: fate.completed for job, fate in source.fates(["8", "9"]).items()} == {"9": None}


def test_of_more_forgotten_jobs_than_the_accounting_is_asked_for_at_once_none_is_lost(
    commands: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm_source, "MOST_NAMED", 2)
    table(commands / "squeue", [])
    accounting_of(commands, [ACCOUNTED | {"JobIDRaw": str(number)} for number in range(5)])
    waiting, source = {str(number) for number in range(5)}, SlurmSource("c")
    saying_which_jobs(commands)
    for left in (3, 1, 0):
        fates = source.fates(sorted(waiting))
        assert fates.keys() == waiting
        waiting -= {job for job, fate in fates.items() if fate.completed}
        assert len(waiting) == left


def saying_which_jobs(commands: Path) -> None:
    """Let sacct print only the jobs that it is asked for."""
    text = (commands / "sacct").read_text()
    named = 'answers["rows"] = [row for row in answers["rows"] if row["JobIDRaw"] in words["--jobs"].split(",")]'
    (commands / "sacct").write_text(text.replace('if "--state" in words', f'{named}\nif "--state" in words', 1))


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        ({}, "unknown"),
        ({"JobIDRaw": "8", "JobID": "7+1"}, "heterogeneous"),
        ({"JobIDRaw": "7", "JobID": "7+0", "SubmitLine": "srun -n1 a : -n1 b"}, "heterogeneous"),
        ({"JobIDRaw": "8", "JobID": "7_1"}, "unadvised"),
        ({"Eligible": "991"}, "unadvised"),
        ({"Eligible": "990"}, "unknown"),
        ({"SubmitLine": "srun -n4 ./cg"}, "interactive"),
        ({"SubmitLine": "/usr/bin/salloc -n4"}, "interactive"),
        ({"SubmitLine": "sbatch --wrap srun"}, "unknown"),
        ({"SubmitLine": "salloc"}, "interactive"),
        ({"JobID": "7_1", "Suspended": "00:00:08"}, "interrupted"),
    ],
    ids=str,
)
def test_the_accounting_tells_what_kind_a_job_was(commands: Path, cells: dict[str, str], kind: str) -> None:
    row = {"JobIDRaw": "7", "JobID": "7", "Eligible": "990"} | cells
    table(commands / "squeue", [])
    table(commands / "sacct", [ACCOUNTED | row])
    source = SlurmSource("c")
    assert [job.kind for job in source.finished(0.0)] == [kind]
    assert source.fates([row["JobIDRaw"]])[row["JobIDRaw"]].kind == kind


def test_energy_is_that_of_the_longest_step_where_the_nodes_were_the_jobs_own(
    commands: Path,
) -> None:
    cpus = {node["name"]: node["cpus"] for node in SINFO["nodes"]}
    whole = {"JobIDRaw": "3", "AllocCPUS": str(cpus["a1"]), "NodeList": "a1", "ConsumedEnergyRaw": "0",
             "Start": "100", "End": "200", "TotalCPU": "00:30.000"}  # fmt: skip
    steps = [whole | {"JobIDRaw": f"3.{step}", "ConsumedEnergyRaw": joules} for step, joules in
             (("batch", "900"), ("extern", "1000"), ("0", "700"))]  # fmt: skip
    table(commands / "squeue", [JOB])

    def energy(plugin: str, *rows: dict[str, str]) -> tuple[float | None, str]:
        saying(commands / "scontrol", f"AcctGatherEnergyType    = {plugin}")
        table(commands / "sacct", list(rows))
        source = SlurmSource("c")
        source.partitions()
        fate, (ended,) = source.fates(["3"])["3"], source.finished(150.0)
        assert (ended.energy, ended.energy_covers) == (fate.energy, fate.energy_covers)
        return fate.energy, fate.energy_covers

    assert energy("acct_gather_energy/ipmi", whole, *steps) == (1000.0, "node")
    assert energy("rapl", whole, *steps) == (1000.0, "package+memory")
    assert energy("(null)", whole, *steps) == (None, "")
    assert energy("acct_gather_energy/none", whole, *steps) == (None, "")
    assert energy("acct_gather_energy/ipmi", whole | {"ConsumedEnergyRaw": ""}) == (None, "")


def test_jobs_that_shared_a_node_share_its_energy_by_processor_time_and_idle_power_by_processors(
    commands: Path,
) -> None:
    hardware = Entry("n", Kind.cluster, "", {"idle_power": Quantity(40.0, "W", "measured")})
    (count,) = (node["cpus"] for node in SINFO["nodes"] if node["name"] == "a1")
    common = {"AllocCPUS": str(count // 2), "NodeList": "a1", "Start": "100", "End": "200"}
    jobs = {"3": "01:30.500", "4": "00:30.500"}
    rows = [common | {"JobIDRaw": number, "TotalCPU": used, "ConsumedEnergyRaw": ""} for number, used in jobs.items()]
    rows += [common | {"JobIDRaw": f"{number}.0", "TotalCPU": "", "ConsumedEnergyRaw": "12000"} for number in jobs]
    table(commands / "squeue", [JOB, JOB | {"JobID": "4"}])
    table(commands / "sacct", [*rows, rows[0] | {"JobIDRaw": "9", "NodeList": "None assigned", "Start": "Unknown"}])
    saying(commands / "scontrol", "AcctGatherEnergyType    = ipmi")
    source = SlurmSource("c", hardware=hardware)
    source.partitions()
    told = {number: fate.energy for number, fate in source.fates(["3", "4"]).items()}
    idle, worked = 40.0 * 100.0 / 2, 12000.0 - 40.0 * 100.0
    assert told == {number: pytest.approx(idle + worked * used / 121.0) for number, used in (("3", 90.5), ("4", 30.5))}
    assert sum(each or 0.0 for each in told.values()) == pytest.approx(12000.0)


@pytest.mark.parametrize(
    ("line", "covers", "alone", "shared"),
    [
        ({}, "package+memory", 8000.0, 8000.0),  # what a node draws idle its packages alone do not
        ({"node_offset": (60.0, "W"), "node_factor": (1.2, "1")}, "node", 15_600.0, 15_600.0 - 0.5 * 4000.0),
    ],
)
def test_packages_that_slurm_measures_become_the_node_where_the_line_is_known_and_have_no_idle_power_else(
    commands: Path, line: dict[str, tuple[float, str]], covers: str, alone: float, shared: float
) -> None:
    values = {name: Quantity(*cell, "measured") for name, cell in ({"idle_power": (40.0, "W")} | line).items()}
    (count,) = (node["cpus"] for node in SINFO["nodes"] if node["name"] == "a1")
    job = {"JobIDRaw": "3", "NodeList": "a1", "Start": "100", "End": "200", "TotalCPU": "", "ConsumedEnergyRaw": ""}
    table(commands / "squeue", [JOB])
    saying(commands / "scontrol", "AcctGatherEnergyType    = rapl")
    source = SlurmSource("c", hardware=Entry("n", Kind.cluster, "", values))
    source.partitions()
    told = []
    for held in (count, count // 2):
        row = job | {"AllocCPUS": str(held)}
        table(commands / "sacct", [row, row | {"JobIDRaw": "3.0", "ConsumedEnergyRaw": "8000"}])
        fate = source.fates(["3"])["3"]
        told.append((fate.energy_covers, pytest.approx(fate.energy)))
    assert told == [(covers, alone), (covers, shared)]


@pytest.mark.parametrize("told", [str(2**64 - 2), str(2**64 - 1), str(int(MOST_WATTS * 100) + 1)])
def test_energies_that_no_node_can_take_are_not_believed(commands: Path, told: str) -> None:
    job = {"AllocCPUS": "2", "NodeList": "a1", "Start": "100", "End": "200", "TotalCPU": "", "ConsumedEnergyRaw": ""}
    rows = [job | {"JobIDRaw": number} for number in "345"]
    rows += [job | {"JobIDRaw": step, "ConsumedEnergyRaw": joules} for step, joules in
             (("3.batch", told), ("4.batch", told), ("4.0", "8000"), ("5.batch", "8000"))]  # fmt: skip
    table(commands / "squeue", [JOB | {"JobID": number} for number in "345"])
    table(commands / "sacct", rows)
    saying(commands / "scontrol", "AcctGatherEnergyType    = ipmi")
    source = SlurmSource("c")
    source.partitions()
    found = {number: fate.energy for number, fate in source.fates(["3", "4", "5"]).items()}
    assert found == {"3": None, "4": pytest.approx(8000.0 / 3), "5": pytest.approx(8000.0 / 3)}


def test_processor_times_come_from_the_accounting_where_there_is_one(commands: Path) -> None:
    row = {"AllocCPUS": "2", "NodeList": "a1", "Start": "100", "End": "200", "ConsumedEnergyRaw": ""}
    rows = [row | {"JobIDRaw": "3", "TotalCPU": "1-00:01:30"}, row | {"JobIDRaw": "4", "TotalCPU": "00:00:00"}]
    table(commands / "sacct", [*rows, row | {"JobIDRaw": "5", "TotalCPU": "00:09.000", "End": "Unknown"}])
    saying(commands / "scontrol", "AccountingStorageType = accounting_storage/slurmdbd")
    assert SlurmSource("c").processor_times(["3", "4", "5"]) == {"3": 86_490.0}
    assert SlurmSource("c").processor_times([]) == {}
    saying(commands / "scontrol", "AccountingStorageType = accounting_storage/none")
    assert SlurmSource("c").processor_times(["3"]) == {}


def test_jobs_ahead_in_the_queue_make_a_partition_wait_until_processors_are_free(commands: Path) -> None:
    def waits() -> list[float]:
        source = SlurmSource("c")
        partitions, jobs = source.partitions(), source.queue()
        known = with_queue_waits(partitions, jobs, partition_lines(partitions, jobs))
        return [float(each.state.queue_wait.at(1)) for each in known]

    free = sum(each.state.processors[each.state.up].sum() for each in SlurmSource("c", ["racka"]).partitions())
    names = ("State", "Partition", "NumCPUs", "TimeUsed", "TimeLimit", "Reason", "NodeList")

    def queue(*rows: str) -> None:
        table(commands / "squeue", [dict(zip(names, row.split("|"), strict=True)) for row in rows])

    queue(
        "RUNNING|racka|4|8:20|10:00|None|a1",
        f"PENDING|racka|{free + 4}|0:00|5:00|Resources|",
        "PENDING|all|100000|0:00|5:00|Dependency|",
        "PENDING|all|x|0:00|5:00|Resources|",
    )
    assert waits() == [400.0, 0.0]
    queue("RUNNING|racka,all|4|8:20|10:00|None|a1", f"PENDING|all|{free}|0:00|1-0:0:0|JobHeldUser|")
    assert waits() == [0.0, 0.0]
    # What waits for the partition of all nodes, and what runs there, is ahead in each rack of them.
    queue("RUNNING|all|4|8:20|10:00|None|a1", f"PENDING|all|{free + 4}|0:00|5:00|Resources|")
    assert waits() == [400.0, 0.0]
    failing(commands / "squeue")
    with pytest.raises(RuntimeError, match=r"squeue .* failed"):
        waits()


def test_jobs_of_a_partition_of_a_higher_tier_are_ahead_whatever_their_priority(commands: Path) -> None:
    names = ("JobID", "State", "Partition", "NumCPUs", "TimeLimit", "Reason")
    rows = [("1", "low"), ("2", "low,high"), ("3", "unknown"), ("4", "high"), ("5", "low")]
    cells = [(number, "PENDING", partition, "4", "5:00", "Priority") for number, partition in rows]
    table(commands / "squeue", [dict(zip(names, each, strict=True)) for each in cells])
    assert [job.number for job in SlurmSource("c").queue()] == ["1", "2", "3", "4", "5"]
    described = "PartitionName=high PriorityTier=10\nPartitionName=low PriorityTier=1"
    scontrol(commands, "accounting_storage/none", described)
    assert [job.number for job in SlurmSource("c").queue()] == ["2", "4", "1", "5", "3"]


def test_node_failures_are_counted_over_the_time_that_nodes_were_up(commands: Path) -> None:
    now = 4_000_000.0
    events = ["|1000000|0|", "a1|1500000|1600000|DOWN*", "a2|2000000|2100000|DRAIN", "a2|3999000|\u00b2|DOWN"]
    (commands / "sacctmgr").write_text("#!/bin/sh\ncat <<'END'\n" + "\n".join(events) + "\nEND\n")
    (commands / "sinfo").write_text("#!/bin/sh\nprintf 'a1\\na1\\na2\\n'\n")
    (commands / "sacctmgr").chmod(0o755)
    table(
        commands / "sacct",
        [{"End": end, "NodeList": nodes} for end, nodes in (("1500010", "a1"), ("3000000", "a[1-2]"))],
    )
    rate = failure_rate(SlurmCommands.of(), now)
    assert rate.shape == 3.5  # two nodes that went down, and a job that was struck between
    assert rate.shape / rate.mean == pytest.approx(2 * 3_000_000 - 100_000 - 100_000 - 1_000)
    failing(commands / "sacctmgr")
    with pytest.raises(RuntimeError, match=r"sacctmgr .* failed with status 1: disabled"):
        failure_rate(SlurmCommands.of(), now)


def test_partitions_know_how_often_their_nodes_fail_once_records_tell(
    commands: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, year = SlurmSource("c", ["racka"]), 365 * 86_400.0

    def known() -> FailureRate | None:
        source.learn_failures()
        return source.partitions()[0].state.failures

    def answer(rate: FailureRate | None) -> None:
        def answered(commands: SlurmCommands) -> FailureRate:
            if rate is None:
                raise InputError("nodes were watched for 0 node seconds")
            return rate

        monkeypatch.setattr(slurm_source, "failure_rate", answered)

    scontrol(commands, "accounting_storage/slurmdbd")
    for few in (FailureRate.observed(0, 0.9 * year), FailureRate.observed(1, 0.9 * year), None):
        answer(few)
        assert known() is None
    for failures in (0, 1):
        answer(rate := FailureRate.observed(failures, 1.1 * year))
        assert known() == rate
    monkeypatch.undo()
    monkeypatch.setenv("PATH", str(commands), prepend=":")
    failing(commands / "sacctmgr")
    with pytest.raises(RuntimeError, match="sacctmgr"):
        source.learn_failures()
    assert source.partitions()[0].state.failures == rate
    scontrol(commands, "accounting_storage/none")
    (fresh := SlurmSource("c", ["racka"])).learn_failures()  # asks nobody
    assert fresh.partitions()[0].state.failures is None


ACCOUNTING = """#!/bin/sh
case "$*" in
*" qos "*) echo 'normal||||||'; echo 'small||cpu=4,node=2|cpu=3|||01:00:00'; echo 'wide|OverPartQOS|node=9||||';;
*cluster=site*) echo 'root||||||'; echo 'bio|||root||cpu=6|'; echo 'bio|ann|||node=1||00:30:00';;
esac
"""


def test_the_limits_of_the_accounting_and_of_partitions_are_asked_for(commands: Path) -> None:
    (commands / "sacctmgr").write_text(ACCOUNTING)
    (commands / "sacctmgr").chmod(0o755)
    ann = Holder("normal", "ann", "bio")

    def of(holder: Holder, partition: str = "racka") -> JobLimits:
        return next(each for each in SlurmSource("c").partitions() if each.name == partition).limits(holder)

    scontrol(commands, "accounting_storage/slurmdbd")
    assert of(Holder("small")) == JobLimits(3, 2, 3600.0)
    assert of(ann) == of(replace(ann, account="")) == JobLimits(6, 1, 1800.0)
    assert of(replace(ann, qos="small")) == JobLimits(3, 2, 3600.0)
    scontrol(commands, "accounting_storage/slurmdbd", "PartitionName=racka MaxNodes=5 MaxTime=UNLIMITED QoS=small")
    assert of(ann) == JobLimits(3, 2, 3600.0)
    assert of(Holder("wide")) == JobLimits(3, 5, 3600.0)
    scontrol(commands, "accounting_storage/slurmdbd", enforced="associations")
    assert of(ann) == JobLimits()
    scontrol(commands, "accounting_storage/none")
    assert of(ann) == JobLimits()
    scontrol(commands, "accounting_storage/slurmdbd")
    failing(commands / "sacctmgr")
    assert of(ann) == JobLimits()


@pytest.mark.parametrize(
    ("fields", "admitted", "refused"),
    [
        ("AllowAccounts=Bio,chem", Holder(account="bio"), Holder(account="physics")),
        ("AllowAccounts=bio", Holder(account="bio"), Holder()),
        ("AllowAccounts=ALL DenyAccounts=bio", Holder(), Holder(account="bio")),
        ("AllowQos=normal,long", Holder(), Holder("short")),
        ("AllowQos=ALL DenyQos=short", Holder("long"), Holder("short")),
        ("RootOnly=YES ReqResv=NO", Holder(user="root"), Holder(user="ann")),
        ("ReqResv=YES", None, Holder(user="root")),
    ],
)
def test_a_partition_gives_nothing_to_whom_it_does_not_admit(
    fields: str, admitted: Holder | None, refused: Holder, commands: Path
) -> None:
    scontrol(commands, "accounting_storage/none", f"PartitionName=racka {fields}")
    limits = next(each for each in SlurmSource("c").partitions() if each.name == "racka").limits
    assert limits(refused).processors == 0
    assert admitted is None or limits(admitted) == JobLimits()


def test_what_a_partition_gives_of_each_node_and_how_many_is_asked_for(commands: Path) -> None:
    given = "MinNodes=2 MaxNodes=3 MaxCPUsPerNode=2 DefMemPerCPU=400 DefMemPerNode=UNLIMITED"
    scontrol(commands, "accounting_storage/none", f"PartitionName=racka {given}", "no\nSelectTypeParameters = CR_CORE")
    before = next(each for each in SlurmSource("c").partitions() if each.name == "all")
    racka = next(each for each in SlurmSource("c").partitions() if each.name == "racka")
    assert before.state.processors.max() > 2
    assert racka.state.processors.max() == 2
    assert racka.total == 2 * len(racka.state.nodes)
    limits = racka.limits(Holder())
    assert [limits.admit(count) for count in (1, 2, 3, 4)] == [False, True, True, False]
    assert (racka.memory, racka.memory_per_processor) == (None, None)
    counted = "no\nSelectTypeParameters = CR_CORE_MEMORY\nDefMemPerNode = 900"
    scontrol(commands, "accounting_storage/none", f"PartitionName=racka {given}", counted)
    found = {each.name: (each.memory, each.memory_per_processor) for each in SlurmSource("c").partitions()}
    assert (found["racka"], found["all"]) == ((None, 400), (900, None))


@pytest.mark.parametrize("named", [True, False])
def test_what_nodes_keep_for_the_system_is_not_for_jobs(commands: Path, named: bool) -> None:
    """Releases before 23.02 name the memory in the text of scontrol alone."""
    nodes = [
        node | {"real_memory": 1000, "cpus": 4, "alloc_cpus": 0, "tres": "cpu=3,mem=1000M"} for node in SINFO["nodes"]
    ]
    if named:
        nodes = [node | {"specialized_memory": 300} for node in nodes]
    limits = [{"PartitionName": "all", "Time": "infinite"}]
    table(commands / "sinfo", limits, otherwise=SINFO | {"nodes": nodes})
    text = "".join(
        f"NodeName={node['name']} Arch=x86_64 OS=Linux  RealMemory=1000 Boards=1 MemSpecLimit=300 State=IDLE Reason=x\n"
        for node in nodes
    )
    (commands / "scontrol").write_text(
        "#!/bin/sh\n"
        f"case \"$*\" in *node*) {'exit 1;' if named else ''} printf '%s' '{text}';;"
        " *partition*) ;; *) echo SelectTypeParameters = CR_CORE_MEMORY;; esac\n"
    )
    (commands / "scontrol").chmod(0o755)
    (every,) = SlurmSource("c").partitions()
    assert set(every.state.memory) == {700.0}
    assert set(every.state.processors) == {3}
    assert every.total == 3 * every.state.up.sum()


@pytest.mark.parametrize("counted", ["CR_CORE", "CR_CORE_MEMORY"])
def test_what_jobs_may_request_of_memory_is_the_partitions_limit_else_the_clusters(
    commands: Path, counted: str
) -> None:
    configured = f"no\nSelectTypeParameters = {counted}\nMaxMemPerCPU = 250"
    given = "DefMemPerNode=UNLIMITED MaxMemPerNode=400"
    scontrol(commands, "accounting_storage/none", f"PartitionName=racka {given}", configured)
    found = {each.name: each.memory_limits for each in SlurmSource("c").partitions()}
    assert (found["racka"], found["all"]) == (MemoryLimits(per_node=400.0), MemoryLimits(per_processor=250.0))
    scontrol(commands, "accounting_storage/none", "PartitionName=racka MaxMemPerNode=UNLIMITED", "no")
    assert {each.memory_limits for each in SlurmSource("c").partitions()} == {MemoryLimits()}


def scontrol(commands: Path, kind: str, partitions: str = "", enforced: str = "associations,limits") -> None:
    configured = f"AccountingStorageType = {kind}\nAccountingStorageEnforce = {enforced}\nClusterName = site\n"
    (commands / "scontrol").write_text(
        f"#!/bin/sh\ncase \"$*\" in *partition*) echo '{partitions}';; *) echo '{configured}';; esac\n"
    )
    (commands / "scontrol").chmod(0o755)


BOUND = {"JobID": "5", "ReqNodes": "n[1-2]", "Partition": "racka", "SubmitTime": "100", "TimeLimit": "10:00",
         "MaxNodes": "2", "Comment": "metasched:app=cg,n=5,placement=0a"}  # fmt: skip


def test_jobs_that_wait_for_the_nodes_of_a_placement_are_told_of_and_no_others(commands: Path) -> None:
    others = ({"JobID": "6", "ReqNodes": ""}, {"JobID": "7", "Comment": "metasched:app=cg,n=5"},
              {"JobID": "8", "ReqNodes": "n[1-"})  # fmt: skip
    table(commands / "squeue", [BOUND, *(BOUND | other for other in others)])
    (job,) = SlurmSource("c").bound()
    assert (job.number, job.placement, job.nodes, job.partition) == ("5", "0a", frozenset({"n1", "n2"}), "racka")
    assert job.since == 100.0
    assert (job.time_limit, job.most_nodes) == (600.0, 2)


@pytest.mark.parametrize(("told", "limit"), [("1-00:00:00", 86_400.0), ("UNLIMITED", math.inf), ("INVALID", 0.0)])
def test_what_a_waiting_job_may_run_is_told(told: str, limit: float, commands: Path) -> None:
    table(commands / "squeue", [BOUND | {"TimeLimit": told}])
    assert [job.time_limit for job in SlurmSource("c").bound()] == [limit]


def saying(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\necho \"$@\" >>{path}.asked\ncat <<'END'\n{text}\nEND\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("uid", "accounting", "level", "may"),
    [
        (0, "none", "", True),
        (64030, "none", "", True),
        (1, "none", "", False),
        (1, "slurmdbd", "None", False),
        (1, "slurmdbd", "Operator", True),
        (1, "slurmdbd", "Administrator", True),
    ],
)
def test_jobs_may_be_let_go_by_root_slurms_user_and_operators(
    uid: int, accounting: str, level: str, may: bool, commands: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saying(
        commands / "scontrol",
        f"AccountingStorageType = accounting_storage/{accounting}\nSlurmUser               = slurm(64030)",
    )
    saying(commands / "sacctmgr", level)
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    assert {each.releases for each in SlurmSource("c").partitions()} == {may}


def test_a_job_that_is_let_go_gets_its_limit_and_its_freedom_back(commands: Path) -> None:
    saying(commands / "scontrol", "")
    SlurmSource("c").release("5", 90.0, 4)
    SlurmSource("c").release("6", None, None, ["p", "q"])
    assert (commands / "scontrol.asked").read_text().splitlines() == [
        "update JobId=5 ReqNodeList= TimeLimit=2 NumNodes=1-4",
        "update JobId=6 ReqNodeList= TimeLimit=UNLIMITED Partition=p,q",
    ]


def test_a_partition_tells_what_a_job_without_a_limit_may_run(commands: Path) -> None:
    limits = [{"PartitionName": "racka", "Time": "1:00:00", "DefaultTime": "10:00"},
              {"PartitionName": "all", "Time": "2:00:00", "DefaultTime": "none"}]  # fmt: skip
    table(commands / "sinfo", limits, otherwise=SINFO)
    assert [each.default_time for each in SlurmSource("c").partitions()] == [600.0, 7200.0]


@pytest.mark.parametrize(("unit", "times"), [("", 1), ("K", 1024), ("M", 1024**2), ("G", 1024**3), ("T", 1024**4)])
def test_generic_resources_may_be_counted_in_units(unit: str, times: int) -> None:
    assert devices.counts(f"gres/bandwidth=3{unit}") == {("bandwidth", ""): 3 * times}
