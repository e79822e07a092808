"""The daemon and a real Slurm together: jobs placed by load, learned from when they end; hostile ones harm nobody."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from command_line import call
from waiting import until

from metasched.cli import main
from metasched.schedulers.slurm.source import SlurmSource
from metasched.store.database.run_records import RecordedRun
from metasched.store.database.store import Store
from tests.service.daemons import teach
from tests.system import real_slurm
from tests.system.real_daemon import Daemon
from tests.system.real_slurm import NODES, Slurm

pytestmark = [pytest.mark.system, pytest.mark.timeout(280)]

CONFIGURATION = (
    'mode = "act"\n[periods]\npartitions = 1.0\nconfirm = 0.5\n[[slurm]]\nname = "proof"\nconfiguration = "{}"\n'
)


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    if why := real_slurm.why_not():
        pytest.skip(why)
    with real_slurm.running(tmp_path_factory.mktemp("slurm")) as slurm:
        yield slurm


@pytest.fixture(scope="module")
def daemon(slurm: Slurm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    folder = tmp_path_factory.mktemp("daemon")
    with Store.open(folder / "metasched.db") as store:
        teach(store, "proof")
    daemon = Daemon(folder, CONFIGURATION.format(slurm.folder / "slurm.conf"))
    daemon.start()
    slurm.hooks({"socket": daemon.socket})
    try:
        yield daemon
    finally:
        daemon.stop()


def test_a_shadow_changes_nothing_and_yet_finds_what_became_of_its_advice(
    slurm: Slurm, daemon: Daemon, tmp_path: Path
) -> None:
    tmp_path.joinpath("metasched.db").write_bytes(Path(daemon.database).read_bytes())
    shadow = Daemon(tmp_path, CONFIGURATION.replace('"act"', '"shadow"').format(slurm.folder / "slurm.conf"))
    with Store.open(shadow.database) as store:
        admin = store.tokens.add("admin", "admin")
    shadow.start()
    slurm.hooks({"socket": shadow.socket}, 'return { { application = "cg", name = "^cg%-(%d+)$" } }\n')
    try:
        load(shadow)
        jobs = {}
        for size in (500, 600, 700):
            marked = ("--comment=metasched:app=cg,n=" + str(size),) if size == 600 else (f"--job-name=cg-{size}",)
            submitted = slurm.sbatch("--ntasks=2", *marked, script=b"#!/bin/sh\nsleep 0.5\n")
            assert "metasched" not in submitted.said
            jobs[submitted.job] = size
            answer = slurm.job(submitted.job)
            assert (answer["Partition"], answer["ReqNodeList"], answer["TimeLimit"]) == ("old", "(null)", "00:05:00")
            assert answer.get("Comment") == (marked[0].removeprefix("--comment=") if size == 600 else None)
        for job, size in jobs.items():
            record = run_of(shadow, job)
            assert (record.learnable, record.run.problem_size, record.run.processors) == (True, size, 2)
        end = time.monotonic() + 150.0  # A run is stored a moment before its advice is judged by it.
        outcomes: dict[str, dict[str, Any]] = {}
        while len(outcomes) < len(jobs) and time.monotonic() < end:
            outcomes = {each["outcome"]["job"]: each for each in shadow.ask("GET", "/v1/placements") if each["outcome"]}
            time.sleep(0.2)
        assert {int(job): each["question"]["problem_size"] for job, each in outcomes.items()} == jobs
        answer = shadow.ask("GET", "/v1/status")
        assert answer["quality"]["jobs"] == answer["quality"]["judged"] == len(jobs)
        assert [(each["application"], each["cluster"], each["judged"]) for each in answer["by_application"]] == [
            ("cg", "proof", len(jobs))
        ]
        # An admin lets it act: the next job is placed already, and those after a restart.
        shadow.ask("PUT", "/v1/mode", {"mode": "act"}, token=admin)
        for size in (800, 900):
            submitted = slurm.sbatch("--ntasks=2", f"--job-name=cg-{size}", script=b"#!/bin/sh\nsleep 30\n")
            assert f"metasched: cg n={size} on 2 processors" in submitted.said
            assert slurm.job(submitted.job)["ReqNodeList"] != "(null)"
            slurm.run("scancel", str(submitted.job))
            if size == 800:
                shadow.stop()
                shadow.start()
    finally:
        shadow.stop()
        slurm.hooks({"socket": daemon.socket})


def load(daemon: Daemon, **cpu: float) -> None:
    for node in NODES:
        sample = [time.time(), cpu.get(node, 0.4), 100.0]
        daemon.ask("POST", "/v1/loads", {"node": node, "samples": [sample]})
    time.sleep(1.5)  # until placements see it


def run_of(daemon: Daemon, job: int) -> RecordedRun:
    """The run of a job, once it is known how it ended: until then it has status 0 and is not learned from."""

    def found() -> RecordedRun | None:
        runs = daemon.runs(job)
        assert len(runs) <= 1
        return runs[0] if runs and (runs[0].learnable or runs[0].exit_status) else None

    run: RecordedRun = until(found, why=f"job {job} was not reported", pause=0.2)
    return run


def test_jobs_go_to_the_least_loaded_nodes_and_are_learned_from(slurm: Slurm, daemon: Daemon) -> None:
    load(daemon, b2=0.95, b4=0.9)
    submitted = slurm.sbatch(
        "--ntasks=2", "--ntasks-per-node=1", "--comment=metasched:app=cg,n=500", script=b"#!/bin/sh\nsleep 1.5\n"
    )
    assert "metasched: cg n=500 on 2 processors of new (b[2,4])" in submitted.said
    job = slurm.job(submitted.job)
    assert (job["Partition"], job["ReqNodeList"], job["TimeLimit"]) == ("new", "b[2,4]", "00:01:00")
    record = run_of(daemon, submitted.job)
    assert record.learnable
    assert record.run.nodes == ("b2", "b4")
    assert (record.run.processors, record.run.cluster) == (2, "proof")
    assert record.run.execution_time == pytest.approx(1.5, abs=0.5)
    assert record.run.min_avg_avail_cpu == pytest.approx(0.9)
    (placement,) = (each for each in daemon.ask("GET", "/v1/placements") if each["outcome"])
    assert placement["outcome"]["job"] == str(submitted.job)


def test_failed_and_killed_jobs_are_kept_and_not_learned_from(slurm: Slurm, daemon: Daemon) -> None:
    load(daemon)
    comment = "--comment=metasched:app=cg,n=500"
    failed = slurm.sbatch(comment, script=b"#!/bin/sh\nsleep 0.2; exit 3\n")
    killed = slurm.sbatch(comment, script=b"#!/bin/sh\nsleep 60\n")
    slurm.wait(lambda: slurm.job(killed.job)["JobState"] == "RUNNING")
    slurm.run("scancel", str(killed.job))
    assert (run_of(daemon, failed.job).exit_status, run_of(daemon, failed.job).learnable) == (3, False)
    assert not run_of(daemon, killed.job).learnable


def test_what_ends_while_the_daemon_is_down_is_told_exactly_once_it_is_back(slurm: Slurm, daemon: Daemon) -> None:
    daemon.kill()
    job = slurm.sbatch("--ntasks=1", "--comment=metasched:app=cg,n=700", script=b"#!/bin/sh\nsleep 0.3\n")
    slurm.wait_for([job.job])
    kept = slurm.folder / "hooks"
    slurm.wait(lambda: list(kept.glob("ended.*.json")))
    daemon.start()
    slurm.run(str(slurm.folder / "metasched-epilog"), "--tell")  # as the daemon's unit does when it has started
    assert not list(kept.glob("ended.*"))
    record = run_of(daemon, job.job)
    assert (record.run.problem_size, record.learnable) == (700.0, True)
    assert record.run.start_time != round(record.run.start_time)  # not Slurm's own whole seconds


def test_what_no_epilog_told_is_caught_up_with_once_from_slurms_own_records(slurm: Slurm, daemon: Daemon) -> None:
    daemon.kill()
    job = slurm.sbatch("--ntasks=1", "--comment=metasched:app=cg,n=900", script=b"#!/bin/sh\nsleep 1.2\n")
    slurm.wait_for([job.job])
    kept = slurm.folder / "hooks"
    slurm.wait(lambda: list(kept.glob("ended.*.json")))
    (answer,) = kept.glob("ended.*.json")
    late = answer.rename(slurm.folder / answer.name)
    daemon.start()
    assert run_of(daemon, job.job).run.problem_size == 900.0
    # An epilog that comes late all the same brings it once more.
    late.rename(answer)
    later = slurm.sbatch("--ntasks=1", "--comment=metasched:app=cg,n=800")
    run_of(daemon, later.job)
    run_of(daemon, job.job)
    slurm.wait(lambda: not list(kept.glob("ended.*")))


def test_the_doctor_finds_a_whole_installation_well_and_a_broken_one_not(
    slurm: Slurm, daemon: Daemon, capsys: pytest.CaptureFixture[str]
) -> None:
    load(daemon)

    def wrong() -> set[str]:
        capsys.readouterr()
        with suppress(SystemExit):
            main(["doctor", "--config", str(daemon.folder / "metasched.toml"), "--json"])
        return {each["check"] for each in json.loads(capsys.readouterr().out) if each["state"] == "wrong"}

    assert wrong() == set()
    epilog = slurm.folder / "metasched-epilog"
    epilog.chmod(0o644)
    try:
        assert wrong() == {"proof: epilog"}
    finally:
        epilog.chmod(0o755)


def test_a_job_goes_where_it_is_done_soonest_and_unchanged_where_nobody_can_tell(
    slurm: Slurm, daemon: Daemon, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    configuration = daemon.folder / "metasched.toml"
    text = configuration.read_text().replace(
        "[listen]", '[[slurm]]\nname = "gone"\nconfiguration = "/nowhere"\n[listen]'
    )
    two = daemon.folder / "two.toml"
    two.write_text(text)
    words = ("--", "--ntasks=4", "--parsable", "--output=/dev/null", "--comment=metasched:app=cg,n=500", "--hold",
             str(tmp_path / "job.sh"))  # fmt: skip
    (tmp_path / "job.sh").write_text("#!/bin/sh\ntrue\n")

    def submit(config: Path, *more: str) -> tuple[int, str, str]:
        capfd.readouterr()
        return call(capfd, "submit", "--config", str(config), *more, *words)

    # The default partition is full for an hour.
    full = slurm.sbatch(
        "--nodes=4", "--exclusive", "--time=50", "--comment=metasched:off", script=b"#!/bin/sh\nsleep 600\n"
    )
    slurm.wait(lambda: slurm.job(full.job)["JobState"] == "RUNNING")
    try:
        status, out, err = submit(two, "--json")
        output = json.loads(out)
        assert (status, output["chosen"]["cluster"], output["chosen"]["partition"]) == (0, "proof", "new")
        by_name = {each["partition"]: each for each in output["estimates"]}
        assert by_name["new"]["wait"] == 0.0
        assert 2000.0 < by_name["old"]["wait"] <= 3000.0
        assert "gone is left out" in err
        job = slurm.job(int(output["said"]))
        assert job["Partition"] == "new"
        slurm.run("scancel", output["said"])
    finally:
        slurm.run("scancel", str(full.job))
    # PSI/J hands it over as well, and its output comes back.
    script, printed = tmp_path / "job.sh", tmp_path / "printed"
    script.write_text('#!/bin/sh\necho "$1 in $SLURM_JOB_PARTITION"\n')
    script.chmod(0o755)
    portable = ("--through", "psij", "--", "-n", "2", "-p", "new", "-t", "5", "-o", str(printed))
    code, out, err = call(
        capfd, "submit", "--config", str(two), *portable, "--comment=metasched:app=cg,n=500", str(script), "it"
    )
    number = int(out)
    assert not code
    slurm.wait_for([number])
    assert printed.read_text() == "it in new\n"
    script.write_text("#!/bin/sh\ntrue\n")
    # A daemon that does not answer: submitted all the same.
    lonely = daemon.folder / "lonely.toml"
    lonely.write_text(configuration.read_text().replace(daemon.socket, str(tmp_path / "nobody.sock")))
    status, out, err = submit(lonely)
    assert (status, "submitted unchanged" in err) == (0, True)
    assert slurm.job(int(out))["JobState"] == "PENDING"
    slurm.run("scancel", out.strip())


HOSTILE = (
    b"'; touch MARKER; '", b'"; touch MARKER; "', b"$(touch MARKER)", b"`touch MARKER`", b"|touch MARKER", b"a\nb\r\n",
    b"%s%n%d%99999999s", b"\xff\xfe\x80\xc3\x28", b"{}[]()^$.*+-?%", b"\\\\\\", b"' OR 1=1; DROP TABLE runs; --",
    b"<script>alert(1)</script>", b"../../../../etc/passwd", b"metasched:app=../x,n=1e999", b"metasched:app=cg,n=0x41",
    b"metasched:app=cg,n=1e308", b"metasched:app=cg,n=1,p=0-999999999999", b"metasched:" + b"a=b," * 2000,
)  # fmt: skip


@pytest.mark.parametrize("mark", [b"metasched:app=cg,n=500 ", b""])
def test_hostile_comments_and_names_harm_nobody(mark: bytes, slurm: Slurm, daemon: Daemon) -> None:
    load(daemon)
    marker = slurm.folder / "executed"
    jobs = []
    for text in HOSTILE:
        text = text.replace(b"MARKER", bytes(marker))
        for words in ((b"--comment=" + mark + text,), (b"--comment=" + mark, b"--job-name=" + text)):
            jobs.append(slurm.sbatch(*words).job)
    # Slurm takes scripts of this size, and refuses such comments itself, in time.
    text = (b"# $(touch " + bytes(marker) + b") '\"\\\n") * 20_000
    jobs.append(slurm.sbatch(script=b"#!/bin/sh\n#SBATCH --comment='" + mark + b"'\n" + text[:1_000_000]).job)
    assert not slurm.sbatch("--hold", script=b"#!/bin/sh\n#SBATCH --comment=" + b"x" * 1_000_000 + b"\n").job
    jobs = [job for job in jobs if job]
    assert len(jobs) >= 2 * len(HOSTILE) - 2  # Slurm itself refuses some names
    slurm.wait_for(jobs)
    good = slurm.sbatch("--ntasks=1", "--comment=metasched:app=cg,n=500")
    assert run_of(daemon, good.job).learnable
    assert not marker.exists()
    assert daemon.ask("GET", "/v1/health")["status"] == "ok"
    assert slurm.run("scontrol", "ping")
    assert not list(Path("/tmp").glob("executed*"))


def test_asking_the_daemon_costs_little(slurm: Slurm, daemon: Daemon, tmp_path_factory: pytest.TempPathFactory) -> None:
    load(daemon)
    with real_slurm.running(tmp_path_factory.mktemp("plain"), hook=False) as plain:
        slurm.stand_still()
        plain.stand_still()
        seconds: dict[str, list[float]] = {"with": [], "without": []}
        for _ in range(60):
            for name, cluster in (("with", slurm), ("without", plain)):
                submitted = cluster.sbatch("--ntasks=1", "--comment=metasched:app=cg,n=500")
                assert submitted.job
                assert ("metasched: cg" in submitted.said) == (name == "with")
                seconds[name].append(submitted.seconds)
    with suppress(Exception):
        slurm.run("scancel", "--user=root")
    slurm.stand_still(False)
    extra = statistics.median(seconds["with"]) - statistics.median(seconds["without"])
    print(f"sbatch placed by the daemon: median {1000 * statistics.median(seconds['with']):.1f} ms")
    print(f"overhead of hook and daemon: median {1000 * extra:.1f} ms")


def test_slurm_tells_which_jobs_run_where(slurm: Slurm) -> None:
    slurm.sbatch(
        "--ntasks=2", "--ntasks-per-node=1", "--comment=metasched:app=lu,n=700", script=b"#!/bin/sh\nsleep 6\n"
    )
    source = SlurmSource("proof", configuration=str(slurm.folder / "slurm.conf"))
    (job,) = until(
        lambda: [job for job in source.running() if job.application == "lu"],
        30.0,
        "the job was not reported",
        pause=0.2,
    )
    assert (job.problem_size, job.processors, job.dedicated) == (700.0, (1, 1), True)
    assert len(job.nodes) == 2
    assert 0.0 <= job.running_for < 30.0
