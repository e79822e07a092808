"""The daemon and a real Grid Engine: jobs in shadow mode, then placed; jobs are taken whatever the daemon does."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from command_line import call, status_of

from metasched.doctor.grid_engine import settings_of
from metasched.installation.cell import GLOBAL, assign
from metasched.schedulers.grid_engine.commands import GridEngineCommands
from metasched.store.database.store import Store
from tests.service.daemons import teach
from tests.system import real_grid_engine
from tests.system.bad_daemons import FAULTS, Bad, changed, http
from tests.system.real_daemon import Daemon
from tests.system.real_grid_engine import HOSTS, GridEngine

pytestmark = [pytest.mark.system, pytest.mark.timeout(280)]

CONFIGURATION = (
    '[periods]\npartitions = 1.0\nconfirm = 0.5\nrelease = 2.0\n[[grid_engine]]\nname = "cell"\nroot = "{}"\n'
)
#: What each host has to spare: jobs are sent to the busy ones first, where nobody says otherwise.
CPU = {"n1": 0.3, "n2": 0.4, "n3": 1.0, "n4": 0.9}
#: Sleeps for as long as so much work takes on the host: hundredths of seconds of a free processor.
SLEEPER = """case $HOSTNAME in n1) c=30;; n2) c=40;; n3) c=100;; *) c=90;; esac
exec sleep $(awk "BEGIN {{ print {} / $c }}")
"""
SIZES = (60, 100, 140, 80, 120)
JOBS, LAST, APART = 30, 20, 0.7
#: What the site judges jobs by, with Grid Engine's own functions: a name that it refuses, and an address for mail.
SITE_VERIFIER = """#!/bin/bash
. /usr/share/gridengine/util/resources/jsv/jsv_include.sh
jsv_on_start() { return; }
jsv_on_verify() {
  [ "$(jsv_get_param N)" = forbidden ] && jsv_reject "the site refuses this name" && return
  jsv_set_param M "site@checked"
  jsv_correct "checked"
}
jsv_main
"""
#: What the site runs after each job of one queue.
SITE_EPILOG = '#!/bin/sh\necho "$JOB_ID" >>"$(dirname "$0")/epilogs"\n'
#: Takes its time, notes when it began, and has a job run again once.
SLOW_EPILOG = """#!/bin/sh
date +%s.%N >>"$(dirname "$0")/began.$JOB_ID"
sleep 1.5
[ "$(grep -c . "$(dirname "$0")/began.$JOB_ID")" -gt 1 ] || exit 99
"""
#: Which numbers are the problem size of jobs that say nothing else.
SIZES_STATED = """
[[problem_size]]
name = "solve_#"
application = "cg"
[[problem_size]]
name = "by-argument"
argument = "-n"
application = "cg"
[[problem_size]]
name = "by-script"
script = "N="
application = "cg"
"""


@pytest.fixture(scope="module")
def cell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GridEngine]:
    """A cell that is set up as an administrator does it; it has a verifier already, and one queue an epilog."""
    if why := real_grid_engine.why_not():
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("cell")
    with pytest.MonkeyPatch.context() as patch, real_grid_engine.running(folder, bare=True) as cell:
        patch.setenv("PATH", str(cell.commands), prepend=":")
        epilog, verifier = folder / "site-epilog", folder / "site-jsv"
        for script, text in ((epilog, SITE_EPILOG), (verifier, SITE_VERIFIER)):
            script.write_text(text)
            script.chmod(0o755)
        assign(GridEngineCommands.of(str(cell.folder), "default"), GLOBAL, "jsv_url", f"script:{verifier}")
        cell.run("qconf", "-rattr", "queue", "epilog", f"root@{epilog}", "old")
        before = state_of(cell)
        cell.hooks_folder = folder / "metasched"
        setup(cell, "--everywhere", "--yes")
        yield cell
        cell.wait(lambda: not cell.run("qstat", "-u", "*"))
        setup(cell, "--undo", "--yes")
        assert state_of(cell) == before


def setup(cell: GridEngine, *more: str) -> None:
    words = ["--folder", str(cell.hooks_folder), "--root", str(cell.folder), "--cell", "default"]
    words += ["--config", f"{cell.folder}/metasched.toml", "--state", f"{cell.folder}/state"]
    assert status_of("setup", "gridengine", *words, *more) == 0


def state_of(cell: GridEngine) -> list[dict[str, str]]:
    """What the cell and its queues say, however qconf breaks the lines."""
    found = [settings_of(cell.run("qconf", *each)) for each in (["-sconf"], ["-sq", "old"], ["-sq", "new"])]
    return [{key: " ".join(value.split()) for key, value in each.items()} for each in found]


def unchanged(cell: GridEngine, job: int) -> bool:
    answer = cell.job(job)
    requests = {key for key in answer if "resource_list" in key}
    return (answer["context"], answer["parallel environment"], answer["hard_queue_list"], requests) == (
        "metasched=app=cg,n=1400", "mpi range: 2", "new", set()
    )  # fmt: skip


def test_the_load_sensor_publishes_what_the_agents_measured_and_jobs_may_request_it(cell: GridEngine) -> None:
    commands, sensor = GridEngineCommands.of(str(cell.folder), "default"), cell.hooks_folder / "metasched-load-sensor"
    complexes = cell.folder / "complexes"
    complexes.write_text(
        cell.run("qconf", "-sc") + "metasched_cpu mcpu DOUBLE <= YES NO 0 0\nmetasched_bw mbw DOUBLE <= YES NO 0 0\n"
    )
    cell.run("qconf", "-Mc", str(complexes))
    (cell.hooks_folder / "load-sensor.conf").write_text(f"socket = {cell.folder}/agent.sock\ndeadline = 1\n")

    def sample(connection: Any) -> None:
        values = {"node": "n1", "time": time.time(), "available_cpu": 0.75, "available_bandwidth": 940.5}
        connection.sendall(http(json.dumps(values).encode()))

    def published() -> int:
        said = cell.run("qhost", "-F", "metasched_cpu,metasched_bw")
        return min(said.count("metasched_cpu=0.750000"), said.count("metasched_bw=940.500000"))

    assign(commands, GLOBAL, "load_sensor", str(sensor))
    try:
        # The hosts have networks of their own, so the agent that all of them ask listens at a socket.
        with closing(Bad(sample, f"{cell.folder}/agent.sock")):
            cell.wait(lambda: published() == len(HOSTS))
            few, many = (cell.qsub("-l", f"metasched_cpu={share}") for share in ("0.5", "0.9"))
            cell.wait_for({few})
            assert cell.job(many)["hard resource_list"] == "metasched_cpu=0.9"
            assert "usage" not in cell.run("qstat", "-j", str(many))
            cell.run("qdel", str(many))
        cell.wait(lambda: not published(), 120.0)
    finally:
        assign(commands, GLOBAL, "load_sensor", "none")


def test_what_a_job_exports_is_neither_run_nor_read_by_its_epilog_which_runs_as_root(
    cell: GridEngine, tmp_path: Path
) -> None:
    own, done = tmp_path / "own", tmp_path / "done"
    own.mkdir()
    for name in ("python3", "readlink", "dirname", "env"):
        (own / name).write_text(f"#!/bin/sh\ntouch {done}\n")
        (own / name).chmod(0o755)
    (own / "json.py").write_text(f"open({str(done)!r}, 'w')\n")
    given = f"PATH={own}:/usr/bin:/bin,PYTHONPATH={own},PE_HOSTFILE=/dev/zero"
    # In the other queue the epilog of the site follows, which has the variables of the job.
    number = cell.qsub("-q", "new", "-v", given, "-b", "y", "/bin/true", "x\x1cjob_owner=daemon")
    cell.wait(lambda: [*(cell.folder / "state").glob(f"ended.{number}.*.json")])
    (path,) = (cell.folder / "state").glob(f"ended.{number}.*.json")
    assert json.loads(path.read_text())["user"] == "0"
    assert not done.exists()


def test_jobs_are_taken_unchanged_whatever_the_daemon_does(cell: GridEngine) -> None:
    cell.run("qmod", "-d", "old", "new")
    words = ("-ac", "metasched=app=cg,n=1400", "-pe", "mpi", "2", "-q", "new")
    took, found = {}, {}
    try:
        for name, answer in FAULTS.items():
            # The master has a network of its own: the verifier reaches a daemon by its socket only.
            with closing(Bad(answer, str(cell.folder / "bad.sock"))):
                cell.hooks({"socket": f"{cell.folder}/bad.sock", "deadline": "0.2", "nodes": "b[1-2]"})
                began = time.perf_counter()
                job = cell.qsub(*words)
                took[name] = time.perf_counter() - began
                found[name] = unchanged(cell, job)
        with closing(Bad(changed(), str(cell.folder / "bad.sock"))):
            sound = cell.job(cell.qsub(*words))
        cell.run("qdel", "-u", "root")
    finally:
        cell.run("qmod", "-e", "old", "new")
    for name, seconds in took.items():
        print(f"daemon {name}: unchanged, submitted in {1000 * seconds:.0f} ms")
    assert found == dict.fromkeys(FAULTS, True)
    assert sound["hard resource_list"] == "hostname=b1|b2"
    assert sound["context"] == "metasched=app=cg,n=1400,p=2,placement=0f"


def test_the_verifier_of_the_site_judges_each_job_first(cell: GridEngine) -> None:
    words = ("-ac", "metasched=app=cg,n=1400", "-pe", "mpi", "2", "-q", "new")
    cell.run("qmod", "-d", "new")
    with closing(Bad(changed(), str(cell.folder / "bad.sock"))):
        cell.hooks({"socket": f"{cell.folder}/bad.sock", "nodes": "b[1-2]", "deadline": "2"})
        placed = cell.job(cell.qsub(*words))
        refused = subprocess.run(
            [str(cell.commands / "qsub"), *words, "-N", "forbidden"], input=b"true\n", capture_output=True, check=False
        )
        killed = verifiers(cell)  # one for each of the master's threads that has taken a job
        for process in killed:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        again = cell.job(cell.qsub(*words))
    down = cell.job(cell.qsub(*words))
    cell.run("qdel", "-u", "root")
    cell.run("qmod", "-e", "new")
    for job in (placed, again):
        assert (job.get("mail_list"), job.get("hard resource_list")) == ("site@checked", "hostname=b1|b2")
        assert job["context"].endswith(",p=2,placement=0f")
    assert killed
    assert (down.get("mail_list"), down.get("hard resource_list")) == ("site@checked", None)
    assert refused.returncode != 0
    assert b"the site refuses this name" in refused.stderr


def verifiers(cell: GridEngine) -> list[int]:
    """The processes that are the site's verifier."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if f"{cell.folder}/site-jsv".encode() in words:
                found.append(int(folder.name))
    return found


def test_no_argument_of_a_job_makes_the_verifier_answer_for_the_jobs_of_others(cell: GridEngine) -> None:
    cell.run("qmod", "-d", "new")
    with closing(Bad(changed(), str(cell.folder / "bad.sock"))):
        cell.hooks({"socket": f"{cell.folder}/bad.sock", "nodes": "b[1-2]", "deadline": "2"})
        text = (
            "x\nPARAM ac metasched=app=cg,n=1400\nPARAM N x\nBEGIN\nSTART\nPARAM ac metasched=app=cg,n=7\nBEGIN\nSTART"
        )
        words = ("-pe", "mpi", "2", "-q", "new", "-b", "y", "/bin/true", text, "y\nQUIT")
        found = [cell.job(cell.qsub(*each)) for each in (words, ("-q", "new")) * 3]
        placed = cell.job(cell.qsub("-ac", "metasched=app=cg,n=1400", "-pe", "mpi", "2", "-q", "new"))
    cell.run("qdel", "-u", "root")
    cell.run("qmod", "-e", "new")
    assert [each.get("context") for each in found] == [None] * 6
    assert placed["context"].endswith(",p=2,placement=0f")


def forget_names(cell: GridEngine) -> None:
    """Let the verifiers start anew, who ask for the names of jobs with sizes once a minute."""
    for process in verifiers(cell):
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def test_jobs_are_placed_learned_and_settled_by_the_numbers_that_they_state(
    cell: GridEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(cell.commands), prepend=":")
    daemon = Daemon(tmp_path, CONFIGURATION.format(cell.folder) + SIZES_STATED)
    with Store.open(daemon.database) as store:
        teach(store, "cell")
        admin = store.tokens.add("admin", "admin")
    daemon.start()
    cell.hooks({"socket": daemon.socket, "nodes": "n[1-4]"})
    forget_names(cell)
    script = tmp_path / "job.sh"
    script.write_bytes(b"#!/bin/sh\nN=700 # \xff\nsleep 0.2\n")
    plain = ("-pe", "mpi", "1")
    try:
        for mode in ("shadow", "act"):
            daemon.ask("PUT", "/v1/mode", {"mode": mode}, token=admin)
            loads(daemon)
            time.sleep(1.5)  # until placements see it
            given = [("-N", "solve_400"), ("-N", "solve_400"), ("-N", "solve_0")]
            named = [cell.qsub(*plain, *each, script=b"sleep 0.2\n") for each in given]
            worded = [
                cell.qsub(*plain, "-N", "by-argument", str(script), *each)
                for each in (("-n", "500"), ("-n", "600"), ())
            ]
            scripted = cell.qsub(*plain, "-N", "by-script", str(script))
            held, deleted = (cell.qsub(*plain, "-h", "-N", "solve_300", script=b"true\n") for _ in range(2))
            renamed = cell.qsub(*plain, "-l", "h_rt=999999", "-N", "solve_200", script=b"true\n")
            tasks = cell.qsub(*plain, "-t", "1-2", "-N", "solve_250", script=b"sleep 0.2\n")
            cell.run("qdel", str(deleted))
            cell.run("qalter", "-h", "U", str(held))
            cell.wait_for({*named, *worded, scripted, held, renamed, tasks})
            sized = {named[0]: 400, named[1]: 400, worded[0]: 500, worded[1]: 600}
            late = {scripted: 700, held: 300, renamed: 200}
            runs = daemon.learned(*sized, *late)
            assert {job: runs[job].run.problem_size for job in (*sized, *late)} == sized | late
            assert not daemon.runs(named[2], worded[2], deleted)
            placements: list[dict[str, Any]] = daemon.ask("GET", "/v1/placements?limit=1000")
            asked = {int(each["question"]["job"]): each for each in placements}
            assert {job: asked[job]["question"]["problem_size"] for job in sized} == sized
            assert not {named[2], worded[2], scripted, held, deleted, tasks} & set(asked)
            settled = {job: int(each["outcome"]["job"]) for job, each in asked.items() if each["outcome"]}
            assert all(job == other for job, other in settled.items())
            assert {*named[:2], *worded[:2]} <= set(settled)
            advised = {job: asked[job]["answer"]["placement"]["nodes"] for job in sized}
            assert mode == "shadow" or all(set(runs[job].run.nodes) == set(advised[job]) for job in sized)
    finally:
        daemon.stop()


def test_what_a_chained_epilog_does_changes_nothing_that_is_reported_of_a_job(cell: GridEngine) -> None:
    """It runs long after the job, and has it run once more, of which Grid Engine tells nothing but the end."""
    epilog = cell.folder / "site-epilog"
    epilog.write_text(SLOW_EPILOG)
    try:
        job = cell.qsub("-q", "old", "-b", "y", "/bin/sleep", "0.3")
        cell.wait(lambda: (cell.folder / f"began.{job}").exists())
        cell.wait_for({job})
    finally:
        epilog.write_text(SITE_EPILOG)
    kept = [json.loads(path.read_text()) for path in (cell.folder / "state").glob(f"ended.{job}.*.json")]
    began = [float(line) for line in (cell.folder / f"began.{job}").read_text().split()]
    first, second = sorted(kept, key=lambda each: float(each["start"]))
    assert first["end"] <= began[0] <= second["start"] <= second["end"] <= began[1]
    assert [(each["exit_status"], each["numbers"]) for each in (first, second)] == [(0, "$1=0.3"), (0, "$1=0.3")]


def loads(daemon: Daemon) -> None:
    for host in HOSTS:
        daemon.ask("POST", "/v1/loads", {"node": host, "samples": [[time.time(), CPU[host], 1000.0]]})


def submit(cell: GridEngine, daemon: Daemon, count: int) -> list[int]:
    jobs = []
    for number in range(count):
        loads(daemon)
        size = SIZES[number % len(SIZES)]
        script = SLEEPER.format(size).encode()
        jobs.append(cell.qsub("-ac", f"metasched=app=sleeper,n={size}", "-pe", "mpi", "1", script=script))
        time.sleep(APART)
    cell.wait_for(set(jobs))
    return jobs


def test_the_daemon_learns_in_shadow_and_jobs_it_places_are_faster(
    cell: GridEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control run is the one in shadow mode: the same jobs on the same hosts, of which nothing is changed."""
    monkeypatch.setenv("PATH", str(cell.commands), prepend=":")
    daemon = Daemon(tmp_path, CONFIGURATION.format(cell.folder))
    with Store.open(daemon.database) as store:
        admin = store.tokens.add("admin", "admin")
    daemon.start()
    cell.hooks({"socket": daemon.socket, "nodes": "n[1-4]"})
    try:
        control = submit(cell, daemon, JOBS)
        daemon.learned(*control)
        time.sleep(1.0)  # a run is stored a moment before it is learned
        judged = daemon.ask("GET", "/v1/status", token=admin)["verdict"]
        daemon.ask("PUT", "/v1/mode", {"mode": "act"}, token=admin)
        act = submit(cell, daemon, JOBS)
        runs = daemon.learned(*control, *act)
        placements: list[dict[str, Any]] = daemon.ask("GET", "/v1/placements?limit=1000")
        released(cell, daemon)
    finally:
        daemon.stop()
    plain = statistics.mean(runs[job].run.execution_time for job in control[-LAST:])
    last = statistics.mean(runs[job].run.execution_time for job in act[-LAST:])
    advised = {int(each["outcome"]["job"]): each["answer"]["placement"] for each in placements if each["outcome"]}
    errors = [
        100 * abs(advised[job]["execution_time"] / runs[job].run.execution_time - 1.0)
        for job in act[-LAST:]
        if advised.get(job)
    ]
    print(
        f"{JOBS} jobs in shadow mode, the last {LAST} took {plain:.2f} s; verdict: {judged}; of {JOBS} placed ones the "
        f"last {LAST} {last:.2f} s, {1 - last / plain:.0%} less; mean PPE {statistics.mean(errors):.1f} %"
    )
    assert len(errors) == LAST
    assert all(set(runs[job].run.nodes) == set(advised[job]["nodes"]) for job in act[-LAST:])
    assert last <= 0.75 * plain
    assert statistics.mean(errors) <= 25.0
    told = {int(number) for number in (cell.folder / "epilogs").read_text().split()}
    assert told & set(control)
    assert all(set(runs[job].run.nodes) & {"n1", "n2"} for job in told & set(control))


def released(cell: GridEngine, daemon: Daemon) -> None:
    """A job whose hosts are taken away before it starts runs on others."""
    words = ("-ac", "metasched=app=sleeper,n=100", "-pe", "mpi", "1", "-l", "h_rt=600")
    for _ in range(5):  # until the daemon has not seen yet that no host may be used
        loads(daemon)
        time.sleep(2.0)
        cell.run("qmod", "-d", "new", "old")
        job = cell.qsub(*words, script=b"sleep 0.2\n")
        requests = cell.job(job)["hard resource_list"]
        if "hostname=n" in requests:
            break
        cell.run("qdel", str(job))
        cell.run("qmod", "-e", "new", "old")
    (waiting,) = daemon.ask("GET", f"/v1/placements?job={job}")
    assert (waiting["question"]["job"], waiting["outcome"]) == (str(job), None)
    taken = requests.split("hostname=")[1].split("|")[0]
    cell.run("qmod", "-e", *(f"*@{host}" for host in HOSTS if host != taken))
    cell.wait_for({job})
    cell.run("qmod", "-e", "new", "old")


def test_jobs_are_submitted_to_the_queue_where_they_are_done_first_directly_and_by_psij(
    cell: GridEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(cell.commands), prepend=":")
    monkeypatch.chdir(tmp_path)
    with Store.open(tmp_path / "metasched.db") as store:
        teach(store, "cell")
    daemon = Daemon(tmp_path, CONFIGURATION.format(cell.folder))
    script = tmp_path / "job.sh"
    script.write_text('#!/bin/sh\necho "$1 on $NSLOTS in $QUEUE"\n')
    script.chmod(0o755)

    def submit(*words: str) -> str:
        capfd.readouterr()
        status, out, err = call(capfd, "submit", "--config", str(tmp_path / "metasched.toml"), *words)
        assert not status, err
        return out.strip() if "unchanged" not in err else f"unchanged {out.strip()}"

    direct = ("--", "-terse", "-h", "-ac", "metasched=app=cg,n=500", "-pe", "mpi", "2", str(script), "-q", "mine")
    portable = ("--through", "psij", "--", "-n", "2", "-t", "5", "--comment=metasched:app=cg,n=500", str(script), "it")
    daemon.start()
    try:
        for host in HOSTS:
            free = 1.0 if host in ("n3", "n4") else 0.2
            daemon.ask("POST", "/v1/loads", {"node": host, "samples": [[time.time(), free, 100.0]]})
        time.sleep(1.5)  # until placements see it
        job = cell.job(int(submit(*direct)))
        assert (job["hard_queue_list"], job["job_args"]) == ("new", "-q,mine")
        psij = int(submit(*portable))
        cell.wait_for({psij})
        assert (tmp_path / "job.sh.out").read_text() == "it on 2 in new\n"
    finally:
        daemon.stop()
    number = submit(*direct).removeprefix("unchanged ")
    assert "hard_queue_list" not in cell.job(int(number))
    (tmp_path / "job.sh.out").unlink()
    number = submit(*portable).removeprefix("unchanged ")
    cell.wait_for({int(number)})
    assert (tmp_path / "job.sh.out").read_text().startswith("it on 2 in ")
    cell.run("qdel", "-u", "root")
