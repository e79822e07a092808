"""A job that was sent to nodes runs elsewhere where these are not to be had: drained, reserved, or it is held."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from metasched.jobs import says_off
from tests.system.placing_daemon import placing
from tests.system.real_slurm import NODES, Slurm

pytestmark = [pytest.mark.system, pytest.mark.timeout(280)]

#: Slurm is asked for its nodes once only, so that jobs are sent to nodes that have been taken since.
CONFIGURATION = (
    'mode = "act"\n[periods]\npartitions = 3600.0\nrelease = 4.0\n[[slurm]]\nname = "proof"\nconfiguration = "{}"\n'
)
BEST = "b[2,4]"


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    cpu = {node: 0.95 if node in ("b2", "b4") else 0.3 for node in NODES}
    with placing(tmp_path_factory.mktemp("site"), CONFIGURATION, cpu) as (slurm, _):
        yield slurm


@contextmanager
def taken(slurm: Slurm) -> Iterator[int]:
    """The best nodes taken by another job, and one that was sent there and waits."""
    words = ("--partition=new", "-N2", "--exclusive", f"--nodelist={BEST}", "--comment=metasched:off")
    other = slurm.sbatch(*words, script=b"#!/bin/sh\nsleep 200\n").job
    slurm.wait(lambda: slurm.job(other)["JobState"] == "RUNNING")
    job = submit(slurm)
    answer = slurm.job(job)
    assert (answer["JobState"], answer["ReqNodeList"], answer["TimeLimit"]) == ("PENDING", BEST, "00:01:00")
    try:
        yield job
    finally:
        for each in (job, other):
            slurm.run("scancel", str(each))
        with suppress(subprocess.CalledProcessError):
            slurm.run("scontrol", "update", f"NodeName={BEST}", "State=RESUME")
        slurm.wait(lambda: not slurm.run("squeue", "--noheader"))


def submit(slurm: Slurm, *words: str) -> int:
    submitted = slurm.sbatch(
        "-n2", "--ntasks-per-node=1", "--comment=metasched:app=cg,n=500", *words, script=b"#!/bin/sh\nsleep 100\n"
    )
    assert submitted.job, submitted.said
    return submitted.job


def runs_elsewhere(slurm: Slurm, job: int) -> None:
    slurm.wait(lambda: slurm.job(job)["JobState"] == "RUNNING", 30.0)
    answer = slurm.job(job)
    assert answer["NodeList"] not in ("b2", "b4", BEST)
    assert (answer["TimeLimit"], answer["NumTasks"]) == ("00:05:00", "2")


def test_a_job_whose_nodes_are_taken_or_drained_before_its_start_runs_elsewhere(slurm: Slurm) -> None:
    with taken(slurm) as job:
        slurm.run("scontrol", "update", f"NodeName={BEST}", "State=DRAIN", "Reason=test")
        runs_elsewhere(slurm, job)


def test_a_job_whose_nodes_are_reserved_before_its_start_runs_elsewhere(slurm: Slurm) -> None:
    words = ("StartTime=now", "Duration=60", "Users=nobody", f"Nodes={BEST}", "Flags=MAINT,IGNORE_JOBS")
    slurm.run("scontrol", "create", "reservation", "ReservationName=works", *words)
    try:
        job = submit(slurm)
        assert slurm.job(job)["ReqNodeList"] == BEST
        runs_elsewhere(slurm, job)
        slurm.run("scancel", str(job))
    finally:
        slurm.run("scontrol", "delete", "ReservationName=works")


def test_held_jobs_are_not_bound(slurm: Slurm) -> None:
    held = submit(slurm, "--hold")
    answer = slurm.job(held)
    assert (answer["ReqNodeList"], answer["TimeLimit"], answer["Partition"]) == ("(null)", "00:05:00", "old")
    slurm.run("scancel", str(held))
    with taken(slurm) as job:
        slurm.run("scontrol", "hold", str(job))
        slurm.wait(lambda: slurm.job(job)["ReqNodeList"] == "(null)", 30.0)
        assert slurm.job(job)["JobState"] == "PENDING"


def test_a_job_that_is_put_back_into_the_queue_when_its_node_is_drained_runs_elsewhere(slurm: Slurm) -> None:
    job = submit(slurm)
    slurm.wait(lambda: slurm.job(job)["JobState"] == "RUNNING")
    assert slurm.job(job)["NodeList"] == BEST
    try:
        slurm.run("scontrol", "update", f"NodeName={BEST}", "State=DRAIN", "Reason=test")
        slurm.run("scontrol", "requeue", str(job))
        slurm.wait(lambda: slurm.job(job)["ReqNodeList"] == "(null)")
        slurm.run("scontrol", "update", f"JobId={job}", "StartTime=now")
        runs_elsewhere(slurm, job)
    finally:
        slurm.run("scancel", str(job))
        slurm.run("scontrol", "update", f"NodeName={BEST}", "State=RESUME")


def test_a_job_whose_user_named_its_nodes_stays_bound(slurm: Slurm) -> None:
    with taken(slurm):
        comment = "--comment=metasched:app=cg,n=500,placement=" + "0" * 32
        own = slurm.sbatch("--partition=new", f"--nodelist={BEST}", "-n2", comment)
        time.sleep(7.0)
        assert slurm.job(own.job)["ReqNodeList"] == BEST
        slurm.run("scancel", str(own.job))


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ("Partition=old", {"Partition": "old"}),
        ("Partition=old,new", {"Partition": "old,new"}),
        ("NumNodes=1-3", {"NumNodes": "1-3"}),
        ("Name=changed", {"Partition": "new,old", "NumNodes": "1-4"}),
        ("Comment=metasched:off", {"Partition": "new,old", "NumNodes": "1-4"}),
    ],
)
def test_what_a_user_changes_of_a_job_that_waits_stays_when_it_is_let_go(
    words: str, kept: dict[str, str], slurm: Slurm
) -> None:
    slurm.stand_still()
    job = slurm.sbatch("-n2", "--comment=metasched:app=cg,n=500").job
    try:
        before = slurm.job(job)
        assert (before["Partition"], before["NumNodes"], before["TimeLimit"]) == ("new", "1-1", "00:01:00")
        slurm.run("scontrol", "update", f"JobId={job}", words)
        slurm.wait(lambda: slurm.job(job)["ReqNodeList"] == "(null)", 30.0)
        after = slurm.job(job)
        assert {name: after[name] for name in kept} == kept
        assert after["TimeLimit"] == "00:05:00"
        assert says_off(after["Comment"]) == says_off(words)
    finally:
        slurm.run("scancel", str(job))
        slurm.stand_still(still=False)
