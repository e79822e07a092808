"""Jobs that are changed while they wait and run, and job numbers that come again, on a real Slurm."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import until

from metasched.node_names import unfold
from metasched.schedulers.slurm.source import SlurmSource
from metasched.store.database.run_records import RecordedRun
from metasched.store.database.store import Store
from tests.system import real_accounting, real_slurm
from tests.system.placing_daemon import hooked
from tests.system.real_daemon import Daemon
from tests.system.real_slurm import Slurm

pytestmark = [pytest.mark.system, pytest.mark.timeout(280)]

CONFIGURATION = (
    'mode = "shadow"\n[periods]\npartitions = 1.0\nconfirm = 0.5\n[[slurm]]\nname = "proof"\nconfiguration = "{}"\n'
)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[tuple[Slurm, Daemon]]:
    if why := real_slurm.why_not() or real_accounting.why_not():
        pytest.skip(why)
    own = tmp_path / "daemon"
    own.mkdir()
    with (
        real_accounting.keeping(tmp_path / "accounting", tmp_path / "slurm" / "munge.sock") as accounting,
        real_slurm.running(tmp_path / "slurm", accounting=accounting) as slurm,
        hooked(slurm, own, CONFIGURATION) as daemon,
    ):
        yield slurm, daemon


def submitted(slurm: Slurm, size: int, seconds: float, *words: str) -> int:
    """The number of a job of a problem size, which tells the jobs apart."""
    return submitted_line(slurm, size, f"sleep {seconds}", *(words or ("-n1",)))


def submitted_until(slurm: Slurm, size: int, there: Path, *words: str) -> int:
    """The number of a job that ends once a file is there."""
    return submitted_line(slurm, size, f"while [ ! -e '{there}' ]; do sleep 0.1; done", *words)


def submitted_line(slurm: Slurm, size: int, line: str, *words: str) -> int:
    """The number of a job that runs a line of shell."""
    script = f"#!/bin/sh\n{line}\n".encode()
    found = slurm.sbatch(*words, f"--comment=metasched:app=cg,n={size}", script=script)
    assert found.job, found.said
    return found.job


def started(slurm: Slurm, *jobs: int) -> None:
    slurm.wait(lambda: all(slurm.job(job)["JobState"] == "RUNNING" for job in jobs))


def runs(daemon: Daemon) -> dict[int, RecordedRun]:
    """The stored runs by their problem size."""
    with Store.open(daemon.database) as store:
        return {int(each.run.problem_size): each for each in store.runs.all()}


def learned(daemon: Daemon, size: int) -> RecordedRun:
    """The run of a problem size, once it is learned from."""

    def found() -> RecordedRun | None:
        run = runs(daemon).get(size)
        return run if run and run.learnable else None

    learned: RecordedRun = until(found, why=f"not learned from: {size}", pause=0.2)
    return learned


def test_a_job_that_was_suspended_or_lost_nodes_is_kept_and_not_learned(site: tuple[Slurm, Daemon]) -> None:
    slurm, daemon = site
    changed = slurm.folder / "changed"
    two = ("-N2", "-n2", "--ntasks-per-node=1", "--exclusive", "-pnew")
    suspended = submitted_until(slurm, 1, changed, "-n1")
    shrunk, crippled = submitted_until(slurm, 2, changed, *two), submitted_until(slurm, 3, changed, *two, "--no-kill")
    started(slurm, suspended, shrunk, crippled)
    slurm.run("scontrol", "suspend", str(suspended))
    lost = unfold(slurm.job(crippled)["NodeList"], where="nodes")[1]
    time.sleep(2.0)
    slurm.run("scontrol", "update", f"NodeName={lost}", "State=DOWN", "Reason=test")
    slurm.run("scontrol", "update", f"JobId={shrunk}", "NumNodes=1")
    slurm.run("scontrol", "resume", str(suspended))
    changed.touch()
    slurm.wait_for([suspended, shrunk, crippled])
    time.sleep(1.0)
    submitted(slurm, 900, 0.3)
    learned(daemon, 900)
    found = runs(daemon)
    assert [(found[size].exit_status, found[size].learnable) for size in (1, 2, 3)] == [(0, False)] * 3
    # The accounting has what two of them did before and after as a job each.
    source = SlurmSource("proof", configuration=str(slurm.folder / "slurm.conf"))
    numbers = {str(job) for job in (suspended, shrunk, crippled)}
    table = {row["JobIDRaw"]: bool(row["Resized"]) for row in source._accounting(f"--jobs={','.join(numbers)}")}
    assert table == {str(suspended): False, str(shrunk): True, str(crippled): True}
    assert {each.kind for each in source.finished(0.0) if each.job in numbers} == {"interrupted"}


def test_jobs_whose_numbers_come_again_are_not_taken_for_each_other(site: tuple[Slurm, Daemon]) -> None:
    slurm, daemon = site
    jobs = [submitted(slurm, size, 1) for size in (1, 2, 3)]
    running = submitted(slurm, 4, 60)
    started(slurm, running)
    slurm.wait_for(jobs)
    before = {size: learned(daemon, size).run.execution_time for size in (1, 2, 3)}
    slurm.lose_state()
    time.sleep(5.0)  # until the nodes have ended the job that nobody knows any more
    off = slurm.folder / "metasched.off"
    cancelled, again = submitted(slurm, 11, 60), submitted(slurm, 12, 1)
    assert (cancelled, again) == tuple(jobs[:2])
    started(slurm, cancelled)
    slurm.wait_for([again])
    submitted(slurm, 13, 0.3)
    slurm.wait_for([jobs[2]])
    off.touch()
    unseen = submitted(slurm, 14, 3)
    assert unseen == running
    started(slurm, unseen)
    off.unlink()
    slurm.run("scancel", str(cancelled))
    slurm.wait_for([cancelled, unseen])
    submitted(slurm, 900, 0.3)
    learned(daemon, 900)
    found = runs(daemon)
    assert {size: each.run.execution_time for size, each in found.items() if size < 4} == before
    assert (found[11].exit_status, found[11].learnable) == (143, False)
    assert learned(daemon, 12).run.execution_time < 5.0
    # It began while the hooks were off; its predecessor's start is none of its.
    assert 14 not in found


def test_a_job_whose_number_is_another_ones_when_it_is_reported_is_not_taken_for_it(site: tuple[Slurm, Daemon]) -> None:
    slurm, daemon = site
    daemon.stop()
    late = submitted(slurm, 21, 0.3)
    slurm.wait_for([late])
    slurm.wait(lambda: any((slurm.folder / "hooks").glob("ended.*.json")))
    slurm.lose_state()
    for size in range(late):
        other = submitted(slurm, 30 + size, 0.3, "-n2", "--hold")
    assert other == late
    daemon.start()
    slurm.run_epilog("--tell")

    def settled() -> bool:
        with Store.open(daemon.database) as store:
            return 21 in runs(daemon) and not store.waiting.all()

    slurm.wait(settled)
    found = runs(daemon)[21]
    # It went well and had one process; whether it was cancelled nobody knows any more.
    assert (found.exit_status, found.run.processors, found.learnable) == (0, 1, False)
