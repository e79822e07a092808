"""The epilog keeps each job until the daemon has taken it, whatever the daemon says, on any Python from 3.6 on."""

from __future__ import annotations

import ast
import importlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from metasched.jobs import digest
from tests.system.bad_daemons import Bad

SLURM = Path(__file__).parents[2] / "deploy" / "slurm"
EPILOG = SLURM / "metasched-epilog"
SHARED = [SLURM.parent / "hooks" / f"metasched_{name}.py" for name in ("hooks", "numbers")]

Answer = Callable[[dict[str, str]], int]


@contextmanager
def answering(answer: Answer) -> Iterator[tuple[str, list[str]]]:
    """A daemon that answers with a status for each job; its address, and the jobs it received."""
    shown: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            job = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            shown.append(job["job"])
            if (status := answer(job)) == 0:
                self.connection.close()
                return
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}", shown
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The epilog with its state, where three jobs are kept already, and the controller's folder with a script."""
    for path in (EPILOG, *SHARED):
        shutil.copy(path, tmp_path)
    (tmp_path / "hooks").mkdir()
    for number in (1, 2, 3):
        path = tmp_path / "hooks" / f"ended.{number}.5.0.json"
        path.write_text(json.dumps({"job": str(number)}))
        os.utime(path, (1e9 + number, 1e9 + number))
    (tmp_path / "slurm.conf").write_text(f"# statesavelocation=/no\nStateSaveLocation = {tmp_path}/state\n")
    (tmp_path / "state" / "hash.7" / "job.17").mkdir(parents=True)
    (tmp_path / "state" / "hash.7" / "job.17" / "script").write_bytes(b"#!/bin/sh\ntrue -n 400\n\0")
    os.utime(tmp_path / "state" / "hash.7" / "job.17" / "script", (1e9, 1e9))
    return tmp_path


def run(
    folder: Path, address: str, *words: str, python: str = sys.executable, check: bool = True, **environment: str
) -> subprocess.CompletedProcess[str]:
    (folder / "hooks.conf").write_text(f"address = {address}\nstate = {folder}/hooks\ncluster = c\n")
    return subprocess.run(
        [python, str(folder / "metasched-epilog"), *words],
        env={"PATH": os.environ["PATH"]} | environment, capture_output=True, text=True, timeout=60, check=check,
    )  # fmt: skip


def kept(folder: Path, kind: str = "json") -> set[str]:
    return {path.name.split(".")[1] for path in (folder / "hooks").glob(f"ended.*.{kind}")}


@pytest.mark.parametrize("status", [401, 403, 404, 408, 429, 500, 502, 503, 504, 507, 302, 0])
def test_what_the_daemon_cannot_store_now_is_kept_and_told_of_later(folder: Path, status: int) -> None:
    with answering(lambda job: status) as (address, answer):
        run(folder, address, "--tell")
        assert answer
        assert kept(folder) == {"1", "2", "3"}
    with answering(lambda job: 200) as (address, answer):
        run(folder, address, "--tell")
        assert sorted(answer) == ["1", "2", "3"]
        assert kept(folder) == kept(folder, "refused") == set()


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_job_that_cannot_be_taken_at_all_is_put_aside_and_holds_up_no_other(folder: Path, status: int) -> None:
    with answering(lambda job: status if job["job"] == "1" else 200) as (address, answer):
        run(folder, address, "--tell")
        assert answer == ["1", "2", "3"]
    assert kept(folder, "refused") == {"1"}
    assert kept(folder) == set()


def test_of_epilogs_that_run_at_once_each_tells_of_other_jobs(folder: Path) -> None:
    begun, going = threading.Event(), threading.Event()

    def answer(job: dict[str, str]) -> int:
        begun.set()
        return 200 if job["job"] != "1" or going.wait(30) else 500

    with answering(answer) as (address, shown):
        first = threading.Thread(target=run, args=(folder, address, "--tell"))
        first.start()
        assert begun.wait(30)
        run(folder, address, **ENDED, SLURM_JOB_START_TIME="1500")
        assert shown == ["1", "2", "3", "17"]
        assert kept(folder) == {"1"}
        going.set()
        first.join()
    assert (kept(folder), shown) == (set(), ["1", "2", "3", "17"])


@pytest.mark.parametrize("status", [500, 0])
def test_a_job_that_breaks_the_daemon_holds_up_no_other(folder: Path, status: int) -> None:
    with answering(lambda job: status if job["job"] == "1" else 200) as (address, _):
        run(folder, address, "--tell")
        run(folder, address, "--tell")
    assert kept(folder) == {"1"}


@pytest.mark.parametrize("kind", ["folder", "pipe", "loop", "huge"])
def test_what_is_no_file_of_a_job_holds_up_none(kind: str, folder: Path) -> None:
    for number in range(60):  # more than are told at once
        path = folder / "hooks" / f"ended.{100 + number}.5.0.json"
        if kind == "folder":
            path.mkdir()
        elif kind == "pipe":
            os.mkfifo(path)
        elif kind == "loop":
            path.symlink_to(path)
        else:
            with path.open("wb") as file:
                file.truncate(2**40)
        os.utime(path, (1e8, 1e8), follow_symlinks=kind != "loop")
    with answering(lambda job: 200) as (address, answer):
        run(folder, address, "--tell")
        assert answer == ["1", "2", "3"]
    assert len(kept(folder, "refused")) == (60 if kind == "huge" else 0)


def test_a_file_that_cannot_be_read_holds_up_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    read = Path.read_bytes

    def refusing(path: Path) -> bytes:
        if path.name == "ended.1.5.0.json":
            raise PermissionError(13, "Permission denied", str(path))
        return read(path)

    monkeypatch.syspath_prepend(str(folder))
    hooks = importlib.import_module("metasched_hooks")
    monkeypatch.setattr(Path, "read_bytes", refusing)
    with answering(lambda job: 200) as (address, answer):
        hooks.tell({"address": address}, sorted((folder / "hooks").iterdir()))
        assert answer == ["2", "3"]
    assert "Permission denied" in capsys.readouterr().err


def test_a_daemon_whose_answer_does_not_end_is_waited_for_no_longer(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def drip(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
        while True:
            connection.send(b"x")
            time.sleep(0.01)

    monkeypatch.syspath_prepend(str(folder))
    hooks = importlib.import_module("metasched_hooks")
    monkeypatch.setattr(hooks, "PATIENCE", 0.3)
    waiting = sorted((folder / "hooks").iterdir())
    with closing(Bad(drip)) as daemon, pytest.raises(OSError, match=r"no answer in time|timed out"):
        hooks.tell({"address": daemon.address}, waiting)
    assert kept(folder) == {"1", "2", "3"}


def test_a_job_is_on_the_disk_before_it_counts_as_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(folder))
    hooks = importlib.import_module("metasched_hooks")
    flushed: list[tuple[str, bool]] = []
    kept, fsync = folder / "hooks" / "ended.17.5.0.json", os.fsync

    def noted(handle: int) -> None:
        flushed.append((os.path.basename(os.readlink(f"/proc/self/fd/{handle}")), kept.exists()))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", noted)
    hooks.keep({"state": str(kept.parent)}, {"job": "17", "start": 5.0, "comment": ""})
    assert json.loads(kept.read_text())["job"] == "17"
    assert flushed == [(f"ended.17.5.0.{os.getpid()}.new", False), ("hooks", True)]


def test_of_two_epilogs_of_one_job_neither_tears_what_the_other_keeps(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(folder))
    hooks = importlib.import_module("metasched_hooks")
    job, state = {"job": "17", "start": 5.0, "comment": ""}, folder / "hooks"
    other = [sys.executable, "-c", f"import metasched_hooks as h; h.keep({{'state': {str(state)!r}}}, {job!r})"]
    fsync, seen = os.fsync, []

    def late(handle: int) -> None:
        if not seen:
            seen.append("once")
            subprocess.run(other, cwd=folder, check=True, timeout=60)
        fsync(handle)

    monkeypatch.setattr(os, "fsync", late)
    kept = hooks.keep({"state": str(state)}, job)
    assert kept[-1] == state / "ended.17.5.0.json"
    assert json.loads(kept[-1].read_text()) == job
    assert not [*state.glob("*.new")]


def test_what_a_killed_epilog_has_left_is_told_if_it_is_whole_and_goes(folder: Path) -> None:
    left = {"17.5.0.99": '{"job": "17"}', "18.5.0.99": '{"job": "1', "2.5.0.99": '{"job": "2"}', "19.5.0.99": "{}"}
    for name, text in left.items():
        path = folder / "hooks" / f"ended.{name}.new"
        path.write_text(text)
        if name != "19.5.0.99":  # that of an epilog at work
            os.utime(path, (1e9, 1e9))
    with answering(lambda job: 200) as (address, answer):
        run(folder, address, "--tell")
    assert sorted(answer) == ["1", "17", "2", "3"]
    assert [path.name for path in (folder / "hooks").glob("ended.*")] == ["ended.19.5.0.99.new"]


@pytest.mark.parametrize("kind", ["full", "gone"])
def test_a_job_that_cannot_be_kept_is_told_at_once(folder: Path, kind: str) -> None:
    start = {"SLURM_JOB_START_TIME": "1500"}
    with answering(lambda job: 200) as (address, answer):
        if kind == "gone":
            shutil.rmtree(folder / "hooks")
            said = run(folder, address, **ENDED, **start)
        else:
            limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (5, 5))\n"
            (folder / EPILOG.name).write_text(limit + EPILOG.read_text())
            said = run(folder, address, **ENDED, **start)
            assert not [*(folder / "hooks").glob("*17*")]
        assert "metasched: " in said.stderr
        assert answer[:1] == ["17"]


def test_while_nobody_listens_jobs_are_kept(folder: Path) -> None:
    with answering(lambda job: 200) as (address, _):
        pass
    assert "metasched: " in run(folder, address, "--tell").stderr
    assert kept(folder) == {"1", "2", "3"}


ENDED = {"SLURM_JOB_ID": "17", "SLURM_JOB_NODELIST": "n[1-2]", "SLURM_JOB_CPUS_PER_NODE": "4(x2),2",
         "SLURM_JOB_EXIT_CODE2": "0:0", "SLURM_JOB_UID": "1000", "SLURM_JOB_NAME": "x"}  # fmt: skip


@pytest.mark.parametrize(
    ("more", "kind"),
    [({}, None), ({"SLURM_ARRAY_JOB_ID": "17"}, "array"), ({"SLURM_HET_JOB_ID": "17"}, "heterogeneous")],
)
def test_a_job_that_has_ended_is_told_of_with_what_it_is_known_by(
    folder: Path, more: dict[str, str], kind: str | None
) -> None:
    (folder / "hooks" / "start.17").write_text("1500.25\n")
    with answering(lambda job: 503) as (address, _):
        run(folder, address, **ENDED, **more)
    (path,) = (folder / "hooks").glob("ended.17.*.json")
    job = json.loads(path.read_text())
    assert (job["scheduler"], job["processors"], job["start"], job["user"]) == ("c", 10, 1500.25, "1000")
    assert job["numbers"] == "script:-n=400"
    assert (job["script"], job["submitted"]) == (digest(b"#!/bin/sh\ntrue -n 400\n"), 1e9)
    assert job.get("kind") == kind


@pytest.mark.parametrize("kind", ["beside", "above", "included"])
def test_the_script_is_found_where_the_configuration_says_that_slurm_uses(folder: Path, kind: str) -> None:
    conf, hooks = folder / "slurm.conf", folder
    if kind == "included":
        text = conf.read_text().replace(f"= {folder}", f'= \\\n"{folder}')
        (folder / "more").mkdir()
        (folder / "more" / "state.conf").write_text(f'{text.strip()}"\n')
        conf.write_text("# include none.conf\nInclude more/state.conf\n")
    elif kind == "above":
        hooks = folder / "metasched"
        hooks.mkdir()
        for path in (EPILOG, *SHARED):
            shutil.copy(path, hooks)
    (folder / "hooks" / "start.17").write_text("1500.25\n")
    with answering(lambda job: 503) as (address, _):
        (hooks / "hooks.conf").write_text(f"address = {address}\nstate = {folder}/hooks\ncluster = c\n")
        subprocess.run([sys.executable, str(hooks / "metasched-epilog")], env=ENDED, timeout=60, check=True)
    (path,) = (folder / "hooks").glob("ended.17.*.json")
    assert json.loads(path.read_text())["script"] == digest(b"#!/bin/sh\ntrue -n 400\n")


def test_a_job_that_never_started_is_not_told_of(folder: Path) -> None:
    with answering(lambda job: 503) as (address, answer):
        run(folder, address, **ENDED)
        assert sorted(answer) == ["1", "2", "3"]
    assert kept(folder) == {"1", "2", "3"}


@pytest.mark.parametrize("noted", ["", "nan", "inf", "-1", "1e300", "x"])
@pytest.mark.parametrize(("known", "start"), [("1400", 1400.0), ("", None), ("0", None), ("x", None), ("nan", None)])
def test_where_the_prolog_could_not_note_the_start_that_of_slurm_counts(
    folder: Path, noted: str, known: str, start: float | None
) -> None:
    if noted:
        (folder / "hooks" / "start.17").write_text(noted)
    with answering(lambda job: 503) as (address, answer):
        run(folder, address, **ENDED, SLURM_JOB_START_TIME=known)
        assert set(answer) >= {"1", "2", "3"}
    found = [json.loads(path.read_text())["start"] for path in (folder / "hooks").glob("ended.17.*")]
    assert found == ([] if start is None else [start])


@cache
def pythons() -> list[str]:
    """Interpreters of this machine from 3.6 on: those on the path, and those that pyenv has installed."""
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    named = [path for minor in range(6, 15) if (path := shutil.which(f"python3.{minor}"))]
    found: dict[str, str] = {}
    for each in (*map(str, sorted(kept.glob("3.*/bin/python3"))), *named, sys.executable):
        ask = [each, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        done = subprocess.run(ask, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode == 0 and tuple(map(int, done.stdout.split("."))) >= (3, 6):
            found.setdefault(done.stdout.strip(), each)
    return list(found.values())


@pytest.mark.parametrize("python", pythons())
def test_every_python_from_3_6_on_keeps_a_job_and_tells_of_it(python: str, folder: Path) -> None:
    (folder / "hooks" / "start.17").write_text("1500.25\n")
    with answering(lambda job: 503) as (address, _):
        done = run(folder, address, python=python, **ENDED)
    assert done.stderr == ""
    assert kept(folder) == {"1", "2", "3", "17"}
    with answering(lambda job: 200) as (address, answer):
        run(folder, address, "--tell", python=python)
        run(folder, address, "--check", python=python)
    assert sorted(answer) == ["1", "17", "2", "3"]
    assert kept(folder) == set()


def test_a_file_stops_the_epilog(folder: Path) -> None:
    (folder / "hooks" / "start.17").write_text("1500.25\n")
    (folder / "metasched.off").touch()
    with answering(lambda job: 200) as (address, answer):
        run(folder, address, **ENDED)
    assert (answer, kept(folder)) == ([], {"1", "2", "3"})
    assert not (folder / "hooks" / "start.17").exists()  # a later job may have the same number


def test_an_epilog_that_was_killed_before_it_kept_its_job_keeps_it_when_it_runs_again(folder: Path) -> None:
    """Slurm's controller kills the epilogs that run when it is restarted, and then runs them again."""
    (folder / "hooks" / "start.17").write_text("1500.25\n")
    epilog = folder / EPILOG.name
    with answering(lambda job: 200) as (address, answer):
        epilog.write_text(f"import os\nos.fsync = lambda file: os._exit(9)\n{EPILOG.read_text()}")
        assert run(folder, address, check=False, **ENDED).returncode == 9
        assert answer == []
        epilog.write_text(EPILOG.read_text())
        run(folder, address, **ENDED)
        run(folder, address, **ENDED)
    assert sorted(answer) == ["1", "17", "2", "3"]


def test_an_epilog_that_runs_again_does_not_change_what_it_has_kept(folder: Path) -> None:
    with answering(lambda job: 503) as (address, _):
        found = []
        for _ in range(2):
            (folder / "hooks" / "start.17").write_text("1500.25\n")
            run(folder, address, **ENDED)
            (path,) = (folder / "hooks").glob("ended.17.*")
            found.append(json.loads(path.read_text()))
    assert found[0] == found[1]


def test_what_keeps_the_epilog_from_its_work_is_told(folder: Path) -> None:
    with answering(lambda job: 200) as (address, _):
        assert run(folder, address, "--check").stderr == ""
    done = run(folder, address, "--check", check=False)
    assert (done.returncode, "metasched: " in done.stderr) == (1, True)
    with answering(lambda job: 200) as (address, _):
        for path in (folder / "hooks").iterdir():
            path.unlink()
        (folder / "hooks").rmdir()
        done = run(folder, address, "--check", check=False)
    assert (done.returncode, "hooks" in done.stderr) == (1, True)


@pytest.mark.parametrize("off", [False, True])
def test_the_prolog_notes_the_start_unless_a_file_stops_it(off: bool, folder: Path) -> None:
    shutil.copy(SLURM / "metasched-prolog", folder)
    (folder / "hooks.conf").write_text(f"state = {folder}/hooks\n")
    (folder / "hooks" / "start.17").write_text("1500.25\n")  # of an earlier job of the same number
    if off:
        (folder / "metasched.off").touch()
    environment = {"SLURM_JOB_ID": "17", "SLURM_CLUSTER_NAME": "c"}
    subprocess.run([str(folder / "metasched-prolog")], env=environment, check=True, timeout=60)
    started = [float(path.read_text()) for path in (folder / "hooks").glob("start.*")]
    assert started == [] if off else started[0] > 1.7e9


def test_clusters_that_keep_their_jobs_in_one_folder_do_not_take_their_starts_for_each_others(folder: Path) -> None:
    clusters = {"c": folder, "ü/d": folder / "other"}
    for name, there in clusters.items():
        there.mkdir(exist_ok=True)
        for path in (EPILOG, *SHARED, SLURM / "metasched-prolog"):
            shutil.copy(path, there)
        (there / "hooks.conf").write_text(f"address = 127.0.0.1:1\nstate = {folder}/hooks\ncluster = {name}\n")
        subprocess.run([str(there / "metasched-prolog")], env={"SLURM_JOB_ID": "17"}, check=True, timeout=60)
    started = {float(path.read_text()) for path in (folder / "hooks").glob("start.*")}
    for there in clusters.values():
        subprocess.run([sys.executable, str(there / "metasched-epilog")], env=ENDED, check=True, timeout=60)
    jobs = [json.loads(path.read_text()) for path in (folder / "hooks").glob("ended.17.*")]
    assert {each["scheduler"] for each in jobs} == clusters.keys()
    assert {each["start"] for each in jobs} == {round(start, 2) for start in started}
    assert [*(folder / "hooks").glob("start.*")] == []


def oldest_python(script: Path) -> tuple[int, int]:
    """The oldest Python that has the syntax and the library that a script uses."""
    words = [str(Path(sys.executable).with_name("vermin")), "--eval-annotations", "--no-tips", str(script)]
    found = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False).stdout
    versions = re.search(r"Minimum required versions:.*?3\.(\d+)", found)
    assert versions is not None, found
    return 3, int(versions[1])


DEPLOYED = SLURM.parent
ROOMS = ("hooks", "flux", "gridengine", "htcondor", "oar", "pbs")
HOOKS = [EPILOG, *(path for room in ROOMS for path in (DEPLOYED / room).glob("*.py"))]


@pytest.mark.parametrize("hook", HOOKS, ids=lambda path: path.name)
def test_hooks_run_on_python_3_6(hook: Path, tmp_path: Path) -> None:
    ast.parse(hook.read_text(), feature_version=(3, 6))
    assert oldest_python(hook) <= (3, 6)
    newer = tmp_path / "newer.py"
    newer.write_text(hook.read_text() + "\nfrom pathlib import Path\nPath('x').unlink(missing_ok=True)\n")
    assert oldest_python(newer) == (3, 8)
