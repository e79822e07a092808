"""The first controller of a real Slurm is killed: hooks and daemon go on with the second, and with the first again."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator

import pytest

from tests.system import real_slurm
from tests.system.real_daemon import Daemon
from tests.system.real_slurm import BACKUP, Slurm

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]

CONFIGURATION = (
    'mode = "shadow"\n[periods]\npartitions = 1.0\nconfirm = 0.5\n[[slurm]]\nname = "proof"\nconfiguration = "{}"\n'
)


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    if why := real_slurm.why_not():
        pytest.skip(why)
    with real_slurm.running(tmp_path_factory.mktemp("slurm"), backup=True) as slurm:
        yield slurm


@pytest.fixture(scope="module")
def daemon(slurm: Slurm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path_factory.mktemp("daemon"), CONFIGURATION.format(slurm.folder / "slurm.conf"))
    daemon.start()
    slurm.hooks({"socket": daemon.socket})
    try:
        yield daemon
    finally:
        daemon.stop()


def asked(daemon: Daemon) -> list[float]:
    """The problem sizes of the jobs that the hook asked about."""
    return [each["question"]["problem_size"] for each in daemon.ask("GET", "/v1/placements?limit=1000")]


def submitted(slurm: Slurm, size: int, seconds: float) -> int:
    script = f"#!/bin/sh\nsleep {seconds}\n".encode()
    job = slurm.sbatch("-n1", f"--comment=metasched:app=cg,n={size}", script=script)
    assert job.job, job.said
    return job.job


def up(slurm: Slurm) -> set[str]:
    """The controllers that answer."""
    said = subprocess.run(["scontrol", "ping"], env=slurm.environment, capture_output=True, text=True, check=False)
    return {line.split()[2] for line in said.stdout.splitlines() if line.endswith(" is UP")}


def test_jobs_before_during_and_after_a_failover_are_asked_about_and_learned(slurm: Slurm, daemon: Daemon) -> None:
    slurm.wait(lambda: BACKUP in up(slurm) and len(up(slurm)) == 2)
    across = submitted(slurm, 101, 25.0)
    time.sleep(8.0)  # Slurm saves the state of its jobs every few seconds
    unsaved = submitted(slurm, 102, 4.0)
    slurm.wait(lambda: slurm.job(unsaved)["JobState"] == "RUNNING")
    slurm.kill()
    during = submitted(slurm, 103, 1.0)
    assert up(slurm) == {BACKUP}
    assert 1.0 <= daemon.learned(during)[during].run.execution_time < 4.0
    assert 25.0 <= daemon.learned(across)[across].run.execution_time < 28.0
    assert {each["cluster"] for each in daemon.ask("GET", "/v1/clusters")} == {"proof/old", "proof/new"}
    # Killed as a second copy of itself by the new controller, which did not know that it ran.
    assert not [each for each in daemon.runs(unsaved) if each.learnable and each.run.execution_time < 4.0]
    assert asked(daemon).count(103) == 1

    slurm.resume()
    slurm.wait(lambda: len(up(slurm)) == 2)
    after = submitted(slurm, 104, 1.0)
    assert 1.0 <= daemon.learned(after)[after].run.execution_time < 4.0
    assert asked(daemon).count(104) == 1
