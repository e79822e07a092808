"""A real Slurm behind a real sshd as a site of a grid: jobs run there, and one that waits is sent to another site.

Both sites submit to the same Slurm, but only the first one's daemon knows its queue. It predicts slow runs: that a job
is done sooner at the other site is certain then, although nothing has shown yet how far the waits may be off.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from waiting import until

from metasched.store.database.store import Store
from tests.service.daemons import CLUSTERS, learned_database, teach
from tests.system import real_slurm, real_sshd
from tests.system.real_daemon import ROOT, Daemon
from tests.system.real_slurm import NODES, Slurm

WHY_NOT = real_slurm.why_not() or real_sshd.why_not()
pytestmark = [pytest.mark.system, pytest.mark.timeout(600), pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)]

HOME = '[periods]\npartitions = 2.0\n[[slurm]]\nname = "proof"\nconfiguration = "{}"\n'
SITE = '[[site]]\nname = "{name}"\nurl = "../{name}/d.sock"\nbandwidth = 800.0\nssh = "site"\ndeadline = 20.0\n'
NAME = f"metasched-sites-{os.getpid()}"


@dataclass
class Grid:
    slurm: Slurm
    home: Daemon
    far: Daemon
    grid: Daemon
    sshd: real_sshd.Sshd

    def verb(self, *words: str) -> subprocess.CompletedProcess[str]:
        config = self.grid.folder / "metasched.toml"
        state = {"XDG_STATE_HOME": str(self.grid.folder / "state"), "PATH": self.sshd.path}
        return subprocess.run(
            [sys.executable, "-m", "metasched", "sites", words[0], "--config", str(config), *words[1:]],
            cwd=ROOT, capture_output=True, text=True, timeout=300, env=os.environ | {"COLUMNS": "160"} | state,
        )  # fmt: skip

    def submit(self, script: Path, *options: str) -> int:
        job = ("-J", NAME, "-n", "4", "--comment=metasched:app=cg,n=900", str(script))
        done = self.verb("submit", "--data", "0", *options, "--", *job)
        assert done.returncode == 0, done.stderr
        assert "submitted to home as job " in done.stdout
        return int(done.stdout.split("as job ")[1].split()[0])

    def sent(self, job: int) -> dict[str, Any]:
        jobs = self.grid.ask("GET", "/v1/sites")["jobs"]
        return next(each for each in jobs if each["job"] == str(job))


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grid]:
    above = tmp_path_factory.mktemp("grid")
    for name in ("home", "far", "grid", "ssh"):
        (above / name).mkdir()
    with Store.open(above / "home" / "metasched.db") as store:
        teach(store, "proof", slower=40.0)
    (above / "far" / "metasched.db").write_bytes(learned_database())
    (above / "far" / "clusters.toml").write_text(CLUSTERS)
    with real_slurm.running(above / "slurm", bare=True) as slurm:
        sshd = real_sshd.Sshd(above / "ssh", slurm=slurm.folder / "slurm.conf")
        home = Daemon(above / "home", HOME.format(slurm.folder / "slurm.conf"))
        far = Daemon(above / "far", 'clusters = "clusters.toml"')
        tables = "".join(SITE.format(name=name) for name in ("home", "far"))
        made = Grid(slurm, home, far, Daemon(above / "grid", f"{tables}[periods]\nsites = 1.0\nresend = 1.0\n"), sshd)
        try:
            home.start()
            made.grid.start()
            for node in NODES:
                home.ask("POST", "/v1/loads", {"node": node, "samples": [[time.time(), 0.95, 100.0]]})
            yield made
        finally:
            for daemon in (home, far, made.grid):
                daemon.stop()
            sshd.stop()
            for each in Path.home().glob(f"{NAME}*.out"):
                each.unlink()


def script_of(folder: Path, seconds: int) -> Path:
    script = folder / "job.sh"
    script.write_text(f'#!/bin/sh\necho "it\'s $SLURM_JOB_ID" >> {folder}/ran\nsleep {seconds}\n')
    script.chmod(0o755)
    return script


def test_a_job_runs_in_a_real_slurm_behind_sshd_and_its_outcome_comes_back(grid: Grid, tmp_path: Path) -> None:
    job = grid.submit(script_of(tmp_path, 15))
    grid.slurm.wait(lambda: grid.slurm.job(job)["JobState"] in ("RUNNING", "COMPLETED"))
    known = grid.slurm.job(job)
    assert (known["JobName"], known["Comment"], known["NumCPUs"]) == (NAME, "metasched:app=cg,n=900", "4")
    until(lambda: grid.sent(job)["state"] == "ended", 120.0)
    assert 10.0 < grid.sent(job)["took"] < 60.0
    assert (tmp_path / "ran").read_text() == f"it's {job}\n"


def test_a_job_that_a_busy_slurmctld_takes_after_sbatch_has_given_up_is_submitted_nowhere_else(
    grid: Grid, tmp_path: Path
) -> None:
    controller = int((grid.slurm.folder / "slurmctld.pid").read_text())
    grid.far.start()
    os.kill(controller, signal.SIGSTOP)
    try:
        job = ("-J", f"{NAME}-late", "-n", "4", "--comment=metasched:app=cg,n=900", str(script_of(tmp_path, 1)))
        done = grid.verb("submit", "--data", "0", "--", *job)
    finally:
        os.kill(controller, signal.SIGCONT)
        grid.far.stop()
    assert done.returncode == 1, done.stdout
    assert "may have accepted the job, look there before you submit it again: " in done.stderr
    until(lambda: (tmp_path / "ran").exists(), 60.0)
    assert grid.slurm.run("squeue", "--noheader", "--states=all", f"--name={NAME}-late").count("\n") == 1


def test_a_job_that_waits_is_sent_to_another_site_and_runs_once(grid: Grid, tmp_path: Path) -> None:
    slurm, script = grid.slurm, script_of(tmp_path, 1)
    blockers = [
        slurm.sbatch(f"--partition={part}", "-N4", "-n16", "--time=60", script=b"#!/bin/sh\nsleep 3000\n").job
        for part in ("old", "new")
    ]
    slurm.wait(lambda: {slurm.job(each)["JobState"] for each in blockers} == {"RUNNING"})
    asked = {"application": "cg", "problem_size": 900, "processors": [4], "data": 0.0}
    until(lambda: grid.grid.ask("POST", "/v1/sites/rankings", asked)["sites"][0]["wait"] > 0.0, 120.0)
    job = grid.submit(script, "--resend")
    until(lambda: any(each["job"] == str(job) and each["wait"] for each in grid.home.ask("GET", "/v1/waits")), 120.0)

    def stays() -> str:
        alone = grid.verb("resend")
        assert (alone.returncode, f"{NAME} " in alone.stdout) == (0, True), alone.stderr
        return alone.stdout

    # At first it stays because it was submitted only just now.
    until(lambda: "no other site can take it" in stays(), 60.0)
    grid.far.start()
    script.write_text("#!/bin/sh\nexit 9\n")
    sent = grid.verb("resend")
    assert sent.returncode == 0, sent.stderr
    assert "it is at far now, as job " in sent.stdout, sent.stdout
    again = int(sent.stdout.split("as job ")[1].split()[0])
    assert slurm.job(job)["JobState"] == "CANCELLED"
    assert slurm.job(again)["JobState"] == "PENDING"
    assert not slurm.job(again)["Reason"].startswith("JobHeld")
    assert (grid.sent(again)["site"], grid.sent(again)["resent"]) == ("far", 1)
    slurm.run("scancel", *map(str, blockers))
    slurm.wait(lambda: slurm.job(again)["JobState"] == "COMPLETED")
    # Once, and as it was submitted.
    assert (tmp_path / "ran").read_text() == f"it's {again}\n"
