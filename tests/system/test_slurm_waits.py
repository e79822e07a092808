"""Waits by what jobs are expected to run, on a real Slurm whose own plan rests on time limits thirty times as long."""

from __future__ import annotations

import getpass
import json
import os
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from metasched.placement.clusters.partition_queues import partition_lines
from metasched.schedulers.slurm.source import SlurmSource
from metasched.store.database.store import Store
from tests.system import real_slurm
from tests.system.real_daemon import ROOT, Daemon

pytestmark = [pytest.mark.system, pytest.mark.timeout(280)]

#: How long each job runs, and what it asks for (s).
RUNS, LIMIT = 20, 600
CONFIGURATION = """mode = "shadow"
[periods]
partitions = 1.0
confirm = 0.5
[[slurm]]
name = "proof"
configuration = "{}"
"""


def metasched(daemon: Daemon, *words: str) -> Any:
    """What a verb of the command line answers."""
    configured = dict(os.environ, METASCHED_CONFIG=str(daemon.folder / "metasched.toml"))
    done = subprocess.run(
        [sys.executable, "-m", "metasched", *words, "--json"], cwd=ROOT, env=configured, capture_output=True,
        check=True, text=True,
    )  # fmt: skip
    return json.loads(done.stdout)


def test_a_job_starts_when_what_is_known_of_those_ahead_says(tmp_path: Path) -> None:
    if real_slurm.why_not():
        pytest.skip(real_slurm.why_not())
    with real_slurm.running(tmp_path / "slurm", hook=False) as slurm:
        daemon = Daemon(tmp_path, CONFIGURATION.format(slurm.folder / "slurm.conf"))
        user, now = getpass.getuser(), time.time()
        rows = [f"{n},{now - 9000 + 60 * n:.0f},{RUNS},16,{LIMIT},{user},short,old,0,COMPLETED" for n in range(40)]
        log = ["job,submit_time,run_time,processors,requested_time,user,name,partition,wait,state", *rows]
        (tmp_path / "log.csv").write_text("\n".join(log))
        assert metasched(daemon, "history", "import", str(tmp_path / "log.csv"))["stored"] == 40
        daemon.start()
        try:
            slurm.hooks({"socket": daemon.socket})
            words = ("--partition=old", "--ntasks=16", "--time=10", "--job-name=short")
            script = slurm.folder / "short.sh"
            script.write_text("#!/bin/sh\nsleep 20\n")
            script.chmod(0o755)
            first, *others = [slurm.sbatch(*words, str(script), "argument").job for _ in range(3)]
            slurm.wait(lambda: slurm.job(first)["JobState"] == "RUNNING")
            slurm.wait(lambda: len([each for each in daemon.ask("GET", "/v1/waits") if each["wait"] is not None]) == 2)
            asked_at = time.time()
            answer = [metasched(daemon, "wait", str(job)) for job in others]
            more = metasched(
                daemon, "wait", "--partition=old", "--processors=16", f"--requested={LIMIT}", "--name=short"
            )
            slurm.wait(lambda: daemon.ask("GET", f"/v1/waits/{others[1]}")["scheduler_start"] is not None)
            planned = daemon.ask("GET", f"/v1/waits/{others[1]}")["scheduler_wait"]
            slurm.wait_for([first, *others])
            really = [datetime.fromisoformat(slurm.job(job)["StartTime"]).timestamp() - asked_at for job in others]
            slurm.wait(lambda: len(stored_executables(daemon)) == 43, 60.0)
            assert stored_executables(daemon).count("short.sh") == 3
        finally:
            daemon.stop()
    for each, actual in zip(answer, really, strict=True):
        interval = f"{each['low']:.0f} to {each['high']:.0f}"
        print(f"job {each['job']}: wait {each['wait']:.0f} s ({interval}), really {actual:.0f} s")
    print(f"one more: {more['wait']:.0f} s; Slurm plans the last in {planned:.0f} s")
    assert [abs(each["wait"] - actual) < 15.0 for each, actual in zip(answer, really, strict=True)] == [True, True]
    assert 40 < more["wait"] < 3 * RUNS + 15
    assert planned > LIMIT


def test_the_queue_has_every_task_that_waits_and_nothing_of_nodes_that_are_drained(tmp_path: Path) -> None:
    if real_slurm.why_not():
        pytest.skip(real_slurm.why_not())
    script = b"#!/bin/sh\nsleep 100\n"
    with real_slurm.running(tmp_path / "slurm", bare=True) as slurm:
        whole = ("--partition=old", "--ntasks=16", "--time=2")
        first = slurm.sbatch("--partition=old", "--ntasks=8", "--time=2", "--array=1-40%3", script=script).job
        second = slurm.sbatch(*whole, "--array=1-199:2,301-399", script=script).job  # squeue cuts so many off
        comment = "--comment=metasched:app=cg,n=500,placement=" + "1f" * 16
        third = slurm.sbatch(*whole, comment, script=script).job
        source = SlurmSource("proof", configuration=str(slurm.folder / "slurm.conf"))
        slurm.wait(lambda: [job.ran is not None for job in source.queue()].count(True) == 2)
        tasks = {job.number: job.tasks for job in source.queue() if job.ran is None}
        assert [tasks[f"{number}"] for number in (first, second)] == [3, 199]
        placements = {job.number: job.placement for job in source.queue()}
        assert (placements[f"{second}"], placements[f"{third}"]) == ("", "1f" * 16)
        line = partition_lines(source.partitions(), source.queue())["old"]
        starts = line.starts()
        assert starts[f"{second}"] == pytest.approx(120.0 * 201, abs=30.0)  # after two times two tasks of the first
        slurm.run("scontrol", "update", "NodeName=a3", "State=DRAIN", "Reason=test")
        slurm.wait(lambda: partition_lines(source.partitions(), source.queue())["old"].processors == 12)


def stored_executables(daemon: Daemon) -> list[str]:
    """What the past jobs that are stored ran, empty where that is not known."""
    with Store.open(daemon.database) as store:
        return store.past_jobs.log().named("executable")
