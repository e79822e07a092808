"""A job that writes checkpoints is moved by the daemon when its node becomes busy, and ends where it was sent."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.system.placing_daemon import placing
from tests.system.real_daemon import ROOT, Daemon
from tests.system.real_slurm import NODES, Slurm

pytestmark = [pytest.mark.system, pytest.mark.timeout(400)]

CONFIGURATION = (
    'mode = "act"\n[periods]\npartitions = 2.0\nconfirm = 1.0\n[moving]\nact = true\nevery = 2.0\nrestart = 1.0\n'
    '[[slurm]]\nname = "proof"\nconfiguration = "{}"\n'
)
STEPS = 120


def test_a_job_moves_when_its_node_becomes_busy_and_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    with placing(tmp_path, CONFIGURATION, {}) as (slurm, daemon):
        _moves(slurm, daemon, tmp_path)


def _moves(slurm: Slurm, daemon: Daemon, folder: Path) -> None:
    # The hook leaves the job alone, so that it begins where it is told.
    comment = "--comment=metasched:app=cg,n=1800,checkpoint=1"
    program = f"#!/bin/sh\nexec python3 {ROOT}/examples/checkpoints.py {folder}/state.json 100 {STEPS} 0.5\n"
    words = ("--partition=old", "--nodelist=a1", "-n1", "--requeue", "--open-mode=append", f"--output={folder}/out")
    _load(daemon, {})
    job = slurm.sbatch(comment, *words, script=program.encode()).job
    slurm.wait(lambda: slurm.job(job)["JobState"] == "RUNNING")
    was, limit = slurm.job(job)["NodeList"], slurm.job(job)["TimeLimit"]
    other = slurm.sbatch(
        "--comment=metasched:app=cg,n=1800", "--partition=old", f"--nodelist={was}", "-n1", "--requeue",
        script=b"#!/bin/sh\nsleep 200\n",
    ).job  # fmt: skip
    slurm.wait(lambda: slurm.job(other)["JobState"] == "RUNNING")
    time.sleep(4.0)
    assert slurm.job(job)["Restarts"] == "0"
    _load(daemon, {was: 0.05})
    slurm.wait(lambda: slurm.job(job)["Restarts"] == "1" and slurm.job(job)["JobState"] == "RUNNING", 60.0)
    now = slurm.job(job)
    assert now["NodeList"] != was
    assert ",done=0." in now["Comment"]
    assert now["TimeLimit"] == limit
    # One that does not say that it may be moved stays.
    assert (slurm.job(other)["NodeList"], slurm.job(other)["Restarts"]) == (was, "0")
    asked = daemon.ask("POST", "/v1/running-jobs/advice", {"job": str(other)})
    assert asked["move"] is True
    slurm.run("scancel", str(other))
    slurm.wait(lambda: slurm.job(job)["JobState"] == "COMPLETED", 120.0)
    begun, ended, again, last = (
        line for line in (folder / "out").read_text().splitlines() if line.startswith(("begins", "ends"))
    )
    assert begun == "begins at step 0"
    assert again.removeprefix("begins at ") == ended.split(" with ")[0].removeprefix("ends at ")
    assert last.startswith(f"ends at step {STEPS} ")
    slurm.wait(lambda: sum(daemon.ask("GET", "/v1/status")["moves"].values()) == 1, 60.0)
    own = [run for run in daemon.ask("GET", "/v1/runs?application=cg")["runs"] if run["start_time"] is not None]
    assert [run["learnable"] for run in own] == [False] * len(own)


def _load(daemon: Daemon, busy: dict[str, float]) -> None:
    for node in NODES:
        sample = [time.time(), busy.get(node, 0.95), 100.0]
        daemon.ask("POST", "/v1/loads", {"node": node, "samples": [sample]})
    time.sleep(1.5)
