"""Each job its own outcome on a real Slurm, whatever users write into their comments, and however soon it forgets."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import until

from metasched.schedulers.slurm.source import SlurmSource
from metasched.store.database.store import Store
from tests.system import real_slurm
from tests.system.real_daemon import Daemon
from tests.system.real_slurm import Slurm

pytestmark = [pytest.mark.system, pytest.mark.timeout(580)]

CONFIGURATION = (
    'mode = "shadow"\n[periods]\npartitions = 1.0\nconfirm = 0.5\n[[slurm]]\nname = "proof"\nconfiguration = "{}"\n'
)
RULES = """return {
  { application = "cg", script = "cg%.x (%d+)" },
  { application = "ft", command = " size=(%d+)" },
}
"""


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    if why := real_slurm.why_not():
        pytest.skip(why)
    # Short enough to forget jobs during the test, long enough to be asked about them once.
    with real_slurm.running(tmp_path_factory.mktemp("slurm"), memory=8) as slurm:
        yield slurm


@pytest.fixture(scope="module")
def daemon(slurm: Slurm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path_factory.mktemp("daemon"), CONFIGURATION.format(slurm.folder / "slurm.conf"))
    daemon.start()
    hooked(slurm, daemon)
    try:
        yield daemon
    finally:
        daemon.stop()


def hooked(slurm: Slurm, daemon: Daemon) -> None:
    """Let the hooks ask a daemon, and wait as long as they may: a job that got no answer is not known."""
    slurm.hooks({"socket": daemon.socket, "deadline": "2"}, RULES)


def outcomes(daemon: Daemon) -> dict[int, dict[str, Any]]:
    return {
        int(each["outcome"]["job"]): each for each in daemon.ask("GET", "/v1/placements?limit=1000") if each["outcome"]
    }


def test_jobs_of_a_loop_that_end_in_any_order_each_keep_what_they_were(slurm: Slurm, daemon: Daemon) -> None:
    sizes, by_command = {}, slurm.folder / "by_command.sh"
    by_command.write_text("#!/bin/sh\nsleep $2\n")
    for number in range(24):
        size, seconds = 100 + 10 * number, f"{1.6 - 0.06 * number:.2f}"
        if number % 3:
            submitted = slurm.sbatch("-n1", script=f"#!/bin/sh\nsleep {seconds} # cg.x {size}\n".encode())
        else:
            submitted = slurm.sbatch("-n1", str(by_command), f"size={size}", seconds)
        assert submitted.job, submitted.said
        assert slurm.job(submitted.job).get("Comment") is None
        sizes[submitted.job] = ("cg" if number % 3 else "ft", size)
    found = daemon.learned(*sizes)
    assert {job: (each.run.application, each.run.problem_size) for job, each in found.items()} == sizes
    assert {each.run.processors for each in found.values()} == {1}
    answer = outcomes(daemon)
    assert {job: (answer[job]["application"], answer[job]["question"]["problem_size"]) for job in sizes} == sizes


def test_of_two_equal_jobs_none_gets_the_placement_that_was_made_for_one_of_them(slurm: Slurm, daemon: Daemon) -> None:
    """As where the hook of the other got no answer in time; here it did not ask."""
    off, script = slurm.folder / "metasched.off", b"#!/bin/sh\nsleep 1 # cg.x 390\n"
    time.sleep(4.0)  # No job that was submitted before is one of them.
    off.touch()
    unasked = slurm.sbatch("-n1", script=script).job
    off.unlink()
    asked = slurm.sbatch("-n1", script=script).job
    time.sleep(4.0)
    alone = slurm.sbatch("-n1", script=script).job
    found = daemon.learned(unasked, asked, alone)
    assert {each.run.problem_size for each in found.values()} == {390.0}
    assert outcomes(daemon).keys() & {unasked, asked, alone} == {alone}


def test_what_is_no_ordinary_job_is_left_alone_or_learned_with_its_own_processes(slurm: Slurm, daemon: Daemon) -> None:
    script = b"#!/bin/sh\nsleep 0.3 # cg.x 400\n"
    ordinary = slurm.sbatch("-n2", script=script).job
    array = slurm.sbatch("-n2", "--array=1-3", script=script).job
    marked = slurm.sbatch("-n2", "--array=1-2", "--comment=metasched:app=lu,n=7", script=script).job
    threaded = [
        slurm.sbatch("-n2", "-c2", *more, script=script).job for more in ((), ("--comment=metasched:app=lu,n=8",))
    ]
    gpus = [
        slurm.sbatch("-n2", *more, *mark, script=script).job
        for more in (("--gres=gpu:1",), ("--gpus=1",), ("--gpus-per-task=1",))
        for mark in ((), ("--comment=metasched:app=lu,n=11",))
    ]
    after = slurm.sbatch("-n2", f"--dependency=afterany:{ordinary}", script=script).job
    job = str(slurm.folder / "job.sh")
    Path(job).write_bytes(script)
    mixed = slurm.sbatch("-n1", "--comment=metasched:app=lu,n=9", ":", "-n1", job).job
    crowded = slurm.sbatch("-n8", "-N1", "--overcommit", "--comment=metasched:app=lu,n=12", script=script).job
    assert all((ordinary, array, marked, *threaded, *gpus, after, mixed, crowded))
    mark = "--comment=metasched:app=lu,n=10"
    for words in (("srun", "-n2", mark, "true"), ("salloc", "-n2", "true"), ("salloc", "-n2", mark, "true"),
                  ("salloc", "-n2", mark, "srun", "hostname")):  # fmt: skip
        subprocess.run(words, env=slurm.environment, check=True, capture_output=True, timeout=60)
    slurm.wait(lambda: not slurm.run("squeue", "--noheader"), 60.0)
    daemon.learned(ordinary)
    until(
        lambda: sum(each.learnable and each.run.application == "lu" for each in daemon.runs()) >= 6,
        20.0, "the marked array and the marked jobs with GPUs and with -c were not learned from", pause=0.5,
    )  # fmt: skip
    time.sleep(2.0)
    found = [each for each in daemon.runs() if int(each.run.extra["job"]) >= ordinary and each.learnable]
    assert {
        (each.run.application, each.run.problem_size, each.run.processors, each.run.settings.threads) for each in found
    } == {("cg", 400.0, 2, 1), ("lu", 7.0, 2, 1), ("lu", 8.0, 2, 2), ("lu", 11.0, 2, 1)}
    assert len(found) == 7
    assert {job for job in outcomes(daemon) if job >= ordinary} == {ordinary}


def test_a_job_that_says_nothing_is_not_taken_for_one_of_its_name_whose_comment_says_what_it_is(
    slurm: Slurm, daemon: Daemon
) -> None:
    mark, name = "--comment=metasched:app=is,n=21", "--job-name=pair"
    marked = slurm.sbatch("-n1", mark, name, script=b"#!/bin/sh\nsleep 3\n").job
    silent = slurm.sbatch("-n1", name, script=b"#!/bin/sh\nsleep 0.3\n").job
    assert marked
    assert silent
    slurm.wait_for([silent, marked])
    # A job after them shows that both were looked at.
    after = slurm.sbatch("-n1", mark, script=b"#!/bin/sh\nsleep 0.3\n").job
    found = daemon.learned(marked, after)
    assert {each.run.problem_size for each in found.values()} == {21.0}
    assert not daemon.runs(silent)
    assert outcomes(daemon)[marked]["question"]["problem_size"] == 21.0


def test_a_job_on_gpus_is_learned_as_what_slurm_gave_it_whatever_its_comment_says(slurm: Slurm, daemon: Daemon) -> None:
    """Nodes a1 and a2 have GPUs of type a100, a3 and a4 some without a type, and the others none."""
    script = b"#!/bin/sh\nsleep 0.3\n"
    expected = {}
    for words, parameters in (
        (("-wa1", "--gres=gpu:a100:2"), {"gpu": "a100", "gpus": 2.0}),
        (("-wa1", "--gres=gpu:1"), {"gpu": "a100", "gpus": 1.0}),
        (("-wa[1-2]", "-N2", "--gpus-per-node=1"), {"gpu": "a100", "gpus": 2.0}),
        (("-wa2", "--gpus=a100:1"), {"gpu": "a100", "gpus": 1.0}),
        (("-wa2", "--gpus-per-task=1"), {"gpu": "a100", "gpus": 2.0}),
        (("-wa2", "--gpus-per-socket=1", "--sockets-per-node=1"), {"gpu": "a100"}),
        (("-wa3", "--gpus=1"), {"gpu": "unknown", "gpus": 1.0}),
        (("-wa3", "--gres=gpu:2"), {"gpu": "unknown", "gpus": 2.0}),
        (("-wa1",), {}),
        (("-wb1", "-pnew"), {}),
    ):
        job = slurm.sbatch("-n2", "-N1", *words, "--comment=metasched:app=bt,n=11", script=script).job
        expected[job] = parameters
    contradicted = slurm.sbatch("-wa1", "--gres=gpu:a100:1", "--comment=metasched:app=bt,n=11,gpu=v100", script=script)
    assert "gpu=v100 and the job requests gpu:a100, which counts" in contradicted.said
    expected[contradicted.job] = {"gpu": "a100", "gpus": 1.0}
    unmanaged = slurm.sbatch("-wb1", "-pnew", "--comment=metasched:app=bt,n=11,gpu=h100", script=script)
    expected[unmanaged.job] = {"gpu": "h100"}
    assert len(expected) == 12
    found = daemon.learned(*expected)
    assert {job: dict(each.run.settings.parameters) for job, each in found.items()} == expected


BREAKS = ("\n", "\r\n", "\v", "\f", "\x1c", "\x1d", "\x1e", "\u0085", "\u2028", "\u2029", "|")


def test_no_comment_forges_running_or_finished_jobs(slurm: Slurm, daemon: Daemon) -> None:
    source = SlurmSource("proof", configuration=str(slurm.folder / "slurm.conf"))
    jobs = []
    for broken in BREAKS:
        forged = broken.join(("x", "a[1-4]|16|1|metasched:app=cg,n=9", "77|COMPLETED|1", "a1|1|2|3|4|5|6", ""))
        submitted = slurm.sbatch(
            "-n1", f"--comment={forged}", f"--job-name={forged[:200]}", script=b"#!/bin/sh\nsleep 2\n"
        )
        jobs.append(submitted.job)
    assert all(jobs)
    slurm.wait(lambda: len(source.running()) == len(jobs), 30.0)
    assert {len(each.nodes) for each in source.running()} == {1}
    slurm.wait_for(jobs)
    finished = {int(each.job) for each in source.finished(time.time() - 20.0)}
    assert set(jobs) <= finished
    assert set(source.fates({*map(str, jobs), "77"})) == set(map(str, jobs))
    assert 77 not in finished


def test_a_job_that_slurm_has_forgotten_holds_up_no_other(slurm: Slurm, daemon: Daemon) -> None:
    """A daemon that was down hears of a job by its epilog only when Slurm has forgotten it."""
    daemon.stop()
    job = slurm.sbatch("-n1", "--comment=metasched:app=mg,n=5", script=b"#!/bin/sh\nsleep 0.2\n").job
    cancelled = slurm.sbatch("-n1", "--comment=metasched:app=mg,n=6", script=b"#!/bin/sh\nsleep 60\n").job
    slurm.wait(lambda: slurm.job(cancelled)["JobState"] == "RUNNING")
    slurm.run("scancel", str(cancelled))
    slurm.wait(
        lambda: not {job, cancelled} & {int(n) for n in slurm.run("squeue", "-h", "-tall", "-o%A").split()}, 90.0
    )
    daemon.start()
    slurm.run_epilog("--tell")
    following = slurm.sbatch("-n1", "--comment=metasched:app=mg,n=7", script=b"#!/bin/sh\nsleep 0.2\n").job
    daemon.learned(following)
    assert [each.learnable for each in daemon.runs(job, cancelled)] == [False, False]
    assert (daemon.folder / "daemon.log").read_text().count(f"job {job} of proof is not learned") == 1


def test_a_job_that_says_off_before_it_or_while_it_runs_is_never_learned(slurm: Slurm, daemon: Daemon) -> None:
    """Its scheduler tells of it where its epilog did not: when the daemon was down at its end."""
    script = slurm.folder / "off.sh"
    script.write_text("#!/bin/sh\nsleep $2\n")
    mark, off = "--comment=metasched:app=sp,n=31", "--comment=metasched:off"
    jobs = [
        slurm.sbatch("-n1", *words, str(script), "size=31", "5").job
        for words in ((), (off,), (mark,), (f"{mark} {off[10:]}",))
    ]
    assert all(jobs)
    slurm.wait(lambda: all(slurm.job(job)["JobState"] == "RUNNING" for job in jobs))
    slurm.run("scontrol", "update", f"JobId={jobs[2]}", "Comment=metasched:off")
    daemon.stop()
    slurm.wait_for(jobs)
    daemon.start()
    daemon.learned(jobs[0])
    following = slurm.sbatch("-n1", "--comment=metasched:app=sp,n=32", script=b"#!/bin/sh\nsleep 0.2\n").job
    daemon.learned(following)
    assert daemon.runs(*jobs[1:]) == []
    assert daemon.runs(jobs[0])[0].run.extra["placement"] == outcomes(daemon)[jobs[0]]["id"]


@pytest.mark.parametrize("words", [("--comment=metasched:app=sp,n=5",), ()], ids=["marked", "recognised"])
def test_a_requeued_job_teaches_by_its_last_run_only(words: tuple[str, ...], slurm: Slurm, daemon: Daemon) -> None:
    script = b"#!/bin/sh\n# cg.x 5\n[ $SLURM_RESTART_COUNT ] && exec sleep 0.3\nsleep 60\n"
    job = slurm.sbatch("-n1", *words, script=script).job
    slurm.wait(lambda: slurm.job(job)["JobState"] == "RUNNING")
    first = 10.0
    time.sleep(first)
    slurm.run("scontrol", "requeue", str(job))
    # It would wait for two minutes. Nodes do not start it in the second in which they ended its first run.
    slurm.wait(lambda: slurm.job(job)["Reason"] == "BeginTime")
    time.sleep(1.0)
    slurm.run("scontrol", "update", f"JobId={job}", "StartTime=now")
    run = daemon.learned(job)[job].run
    assert (run.application, run.problem_size) == ("sp" if words else "cg", 5.0)
    assert run.execution_time < first


def test_an_error_in_a_comment_is_told_in_one_line_and_the_job_accepted(slurm: Slurm, daemon: Daemon) -> None:
    for comment, wrong in (
        ("metasched:app=cg,n=abc", "app=cg,n=abc"),
        ("metasched:n=5", "names no application"),
        ("metasched:app=cg,n=5,n=7", "n=5 and n=7 in the comment"),
        ("metasched:app=cg,n=5,p=4-2", "p=4-2"),
        ("metasched:app=cg,n=5,p=" + "9" * 400, "p=999"),
    ):
        submitted = slurm.sbatch("--hold", f"--comment={comment}")
        assert submitted.job
        assert submitted.said.count("\n") == 1
        assert wrong in submitted.said
        assert slurm.job(submitted.job)["Comment"] == comment
        slurm.run("scancel", str(submitted.job))
    kept = [json.loads(path.read_text()) for path in (slurm.folder / "hooks").glob("*.refused")]
    assert kept == []


@pytest.mark.parametrize("ahead", [-300, 300])
def test_a_job_is_found_although_the_clock_of_the_daemons_host_differs_from_that_of_the_controllers(
    ahead: int, slurm: Slurm, daemon: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "other_clock.so"
    source = Path(__file__).with_name("other_clock.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True)
    monkeypatch.setenv("LD_PRELOAD", str(library))
    monkeypatch.setenv("OTHER_CLOCK", str(ahead))
    other = Daemon(tmp_path, CONFIGURATION.format(slurm.folder / "slurm.conf"))
    other.start()
    monkeypatch.delenv("LD_PRELOAD")
    try:
        hooked(slurm, other)
        job = slurm.sbatch("-n1", script=b"#!/bin/sh\nsleep 0.3 # cg.x 310\n").job
        assert other.learned(job)[job].run.problem_size == 310
        assert abs(other.ask("GET", "/v1/placements")[0]["made_at"] - time.time() - ahead) < 60.0
        assert outcomes(other).keys() == {job}
    finally:
        hooked(slurm, daemon)
        other.stop()


def test_a_job_that_nothing_marks_is_learned_although_the_daemon_is_killed_before_it_is_confirmed(
    slurm: Slurm, tmp_path: Path
) -> None:
    slow = CONFIGURATION.replace("confirm = 0.5", "confirm = 3.0")
    daemon = Daemon(tmp_path, slow.format(slurm.folder / "slurm.conf"))
    daemon.start()
    slurm.remember(600)  # however long the daemon takes to start again
    try:
        hooked(slurm, daemon)

        def waiting() -> set[int]:
            with Store.open(daemon.database) as store:
                return {int(each.job.job) for each in store.waiting.all()}

        while True:  # until one is seen to wait: it may be confirmed at once
            job = slurm.sbatch("-n1", script=b"#!/bin/sh\nsleep 0.3 # cg.x 300\n").job
            slurm.wait(lambda job=job: job in waiting() or daemon.runs(job))
            if job in waiting():
                break
        daemon.kill()
        daemon.start()
        assert daemon.learned(job)[job].run.problem_size == 300
        assert outcomes(daemon)[job]["question"]["problem_size"] == 300
        assert waiting() == set()
    finally:
        daemon.stop()
