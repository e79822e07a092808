"""Jobs that end when a real Slurm's controller is started anew are learned as long as they ran, or not at all."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import until

from metasched.store.database.run_records import RecordedRun
from tests.system import real_slurm
from tests.system.placing_daemon import hooked
from tests.system.real_daemon import Daemon
from tests.system.real_slurm import Slurm

pytestmark = [pytest.mark.system, pytest.mark.timeout(580)]

CONFIGURATION = (
    'mode = "shadow"\n[periods]\npartitions = 1.0\nconfirm = 0.5\n[[slurm]]\nname = "proof"\nconfiguration = "{}"\n'
)
MARK = "--comment=metasched:app=cg,n={}"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[tuple[Slurm, Daemon]]:
    if why := real_slurm.why_not():
        pytest.skip(why)
    own = tmp_path / "daemon"
    own.mkdir()
    with real_slurm.running(tmp_path / "slurm") as slurm, hooked(slurm, own, CONFIGURATION) as daemon:
        yield slurm, daemon


def run_of(daemon: Daemon, job: int) -> RecordedRun:
    """The run of a job, once its epilog has reported it."""
    runs: list[RecordedRun] = until(lambda: daemon.runs(job), why=f"job {job} was not reported", pause=0.2)
    (run,) = runs
    return run


def run_before(slurm: Slurm, hook: str, line: str) -> None:
    """Let a line of shell run before the prolog or the epilog, each time that Slurm calls it."""
    called, own = slurm.folder / f"metasched-{hook}", slurm.folder / f"own-{hook}"
    called.rename(own)
    called.write_text(f"#!/bin/sh\n{line}\nexec {own}\n")
    called.chmod(0o755)


def test_a_job_whose_epilog_was_killed_with_the_controller_is_learned_as_long_as_it_ran(
    site: tuple[Slurm, Daemon],
) -> None:
    slurm, daemon = site
    begun = slurm.folder / "begun"
    run_before(slurm, "epilog", f"echo >>{begun}; sleep 6")
    job = slurm.sbatch("-n1", MARK.format(500), script=b"#!/bin/sh\nsleep 0.5\n").job
    slurm.wait(begun.exists)
    time.sleep(2.0)
    slurm.restart()
    assert daemon.learned(job)[job].run.execution_time < 4.0  # not the 6 s of its epilog, twice
    assert begun.read_text().count("\n") == 2
    assert not (slurm.folder / "hooks" / f"start.{job}").exists()


def test_a_job_that_ended_while_the_controller_was_away_is_kept_and_not_learned(site: tuple[Slurm, Daemon]) -> None:
    """Slurm dates its end when the controller is back; nobody knows how long it took."""
    slurm, daemon = site
    job = slurm.sbatch("-n1", MARK.format(500), script=b"#!/bin/sh\nsleep 2\n").job
    slurm.wait(lambda: slurm.job(job)["JobState"] == "RUNNING")
    slurm.end()
    time.sleep(6.0)
    slurm.resume()
    later = slurm.sbatch("-n1", MARK.format(600), script=b"#!/bin/sh\nsleep 0.5\n").job
    daemon.learned(later)
    slurm.wait_for([job])
    kept = run_of(daemon, job)
    time.sleep(3.0)
    assert not run_of(daemon, job).learnable
    assert kept.run.execution_time > 5.0


def test_jobs_whose_prolog_is_slow_are_learned_once_though_the_daemon_is_started_again(
    site: tuple[Slurm, Daemon],
) -> None:
    """The prolog notes a start seconds after Slurm's, which tells of the same jobs when the daemon starts."""
    slurm, daemon = site
    off = slurm.folder / "metasched.off"
    run_before(slurm, "prolog", "sleep 4")
    job = slurm.sbatch("-n1", MARK.format(500), script=b"#!/bin/sh\nsleep 1\n").job
    daemon.learned(job)
    daemon.stop()
    off.touch()
    unreported = slurm.sbatch("-n1", MARK.format(600), script=b"#!/bin/sh\nsleep 0.5\n").job
    slurm.wait_for([unreported])
    off.unlink()
    daemon.start()
    run_of(daemon, unreported)
    assert [each.run.extra["job"] for each in daemon.runs()] == [str(job), str(unreported)]
