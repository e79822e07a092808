"""``metasched run`` and ``runs`` as a user calls them: statuses, streams, signals, and what is stored."""

from __future__ import annotations

import json
import math
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from command_line import call, status_of

from metasched.records import Run
from metasched.store.database.run_records import RecordedRun
from metasched.store.database.store import Store
from metasched.store.files.runs import read_runs

ROOT = Path(__file__).parents[2]
RUN = ("run", "--application", "cg", "--problem-size", "1400", "--processors", "2")
Metasched = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return os.environ | {
        "PYTHONPATH": str(ROOT),
        "METASCHED_DB": str(tmp_path / "metasched.db"),
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }


@pytest.fixture
def metasched(environment: dict[str, str]) -> Metasched:
    def call(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "metasched", *map(str, arguments)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)

    return call


def python(script: str) -> tuple[str, ...]:
    return "--", sys.executable, "-c", script


def document(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.stderr.count("Traceback") == 0
    return json.loads(done.stdout)


def test_the_commands_streams_pass_through(metasched: Metasched) -> None:
    done = metasched(*RUN, *python("import sys, time; time.sleep(0.1); print('out'); print('err', file=sys.stderr)"))
    assert done.returncode == 0
    assert done.stdout == "out\n"
    assert done.stderr.startswith("err\n")
    assert "cg, N = 1400, P = 2" in done.stderr


def test_with_json_the_document_is_all_there_is_on_stdout(metasched: Metasched) -> None:
    done = metasched(*RUN, "--json", *python("import time; time.sleep(0.1); print('out')"))
    found = document(done)
    assert (found["application"], found["problem_size"], found["processors"]) == ("cg", 1400, 2)
    assert found["execution_time"] > 0.1
    assert found["learnable"] is True
    assert "out\n" in done.stderr


def test_runs_are_exported_without_those_that_failed(metasched: Metasched, tmp_path: Path) -> None:
    assert (
        metasched(*RUN, "--cluster", "c8", "--phase", "train", *python("import time; time.sleep(0.1)")).returncode == 0
    )
    assert metasched(*RUN, *python("import time; time.sleep(0.1); raise SystemExit(5)")).returncode == 5
    shown = document(metasched("runs", "--json"))
    assert [run["exit_status"] for run in shown["runs"]] == [0, 5]
    target = tmp_path / "runs.csv"
    assert document(metasched("runs", "-o", target, "--json")) == {
        "database": str(tmp_path / "metasched.db"),
        "stored": 2,
        "learnable": 1,
        "written": str(target),
    }
    (run,) = read_runs(target)
    assert (run.application, run.cluster, run.phase) == ("cg", "c8", "train")
    nothing = metasched("runs", "--application", "fft", "-o", tmp_path / "none.csv")
    assert nothing.returncode == 2
    assert "no run of fft on any cluster can be learned" in nothing.stderr
    assert not (tmp_path / "none.csv").exists()


def test_a_table_of_exported_runs_can_be_read_though_one_has_a_word_among_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, target = tmp_path / "m.db", tmp_path / "runs.csv"
    stated = ("100", "200", "1O0", "400")
    with Store.open(path) as store:
        store.runs.add_all(
            [
                RecordedRun(Run("cg", "c8", 900.0, 2, 0.9, 90.0, 5.0, float(start), extra={"parameter:steps": steps}))
                for start, steps in enumerate(stated)
            ]
        )
    status, out, err = call(capsys, "runs", "--db", path, "-o", target)
    assert (status, out) == (0, f"4 runs written to {target}\n")
    assert "warning: a run of cg that started at 2 states steps=1O0, expected a number, as in the other runs" in err
    assert [run.settings.parameters for run in read_runs(target)] == [
        (("steps", 100.0),), (("steps", 200.0),), (), (("steps", 400.0),)
    ]  # fmt: skip


def test_runs_are_forgotten_by_id_user_and_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "runs.db")
    with Store.open(path) as store:
        for at, user in ((1000.0, "ada"), (2000.0, "eve"), (86_400.0, "ada")):
            made = Run("cg", "c8", 100.0, 2, 1.0, 90.0, 5.0, at, extra={"user": user})
            store.runs.add_all([RecordedRun(made, uid=f"{at:032.0f}")])

    def forget(*which: str) -> int:
        status_of("runs", "forget", "--db", path, "--json", *which)
        return int(json.loads(capsys.readouterr().out)["forgotten"])

    assert forget("--user", "nobody") == 0
    assert forget("--user", "eve", "--application", "lu") == 0
    assert forget("--user", "eve") == 1
    assert forget("--since", "1970-01-02", "--user", "eve") == 0
    assert forget("--since", "1970-01-02") == 1
    assert forget("--id", f"{1000:032d}") == 1
    with Store.open(path) as store:
        assert store.runs.learnable() == ()
        assert len(store.runs.all()) == 3


@pytest.mark.parametrize(
    ("which", "says"),
    [
        ([], "no runs are named, expected ids, a user, or a time"),
        (["--since", "soon"], "--since is 'soon', expected seconds or a time"),
        (["--since", "1_700"], "--since is '1_700', expected seconds or a time"),
        (["--since", "9", "--until", "8"], "since is 9, expected a time before until, 8"),
        (["--since", "nan"], "since is nan, expected a time (s)"),
        (["--user", "ann", "--until", "nan"], "until is nan, expected a time (s)"),
        (["--user", "eve", "--url", "http://h"], "expected one of them"),
    ],
)
def test_what_cannot_be_forgotten_gets_one_line(
    which: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Store.open(tmp_path / "runs.db").close()
    assert status_of("runs", "forget", "--db", tmp_path / "runs.db", *which) == 2
    output = capsys.readouterr().err
    assert says in output
    assert output.count("\n") == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_job_and_its_status_is_passed_on(environment: dict[str, str], number: int) -> None:
    script = (
        f"import signal, time; signal.signal({int(number)}, signal.SIG_DFL); print('ready', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-m", "metasched", *RUN, *python(script)]
    # In a session of its own there is no terminal that could send the signal to the job too.
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert f"exit status {128 + number}, not learned" in err


def test_an_interrupt_from_the_terminal_reaches_the_job_once(environment: dict[str, str]) -> None:
    script = """
import signal, time
caught = []
signal.signal(signal.SIGINT, lambda *_: caught.append(1))
print("ready", flush=True)
while not caught:
    time.sleep(0.01)
time.sleep(0.5)
print("caught", len(caught), flush=True)
"""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(sys.executable, [sys.executable, "-m", "metasched", *RUN, *python(script)], environment)
    said = b""
    with suppress(OSError):  # the terminal goes away with the last process on it
        while more := os.read(terminal, 4096):
            if b"ready" in more:
                os.write(terminal, b"\x03")
            said += more
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert b"caught 1\r\n" in said


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ((*RUN, "--", "nonesuch-command"), 127, "metasched: nonesuch-command: command not found\n"),
        (RUN, 2, "Missing argument"),
        ((*RUN, "--interface", "bogus0", "--", "true"), 2, "no network interface bogus0"),
        ((*RUN, "--link-speed", "eth0", "--", "true"), 2, "--link-speed is eth0, expected INTERFACE=MBITS"),
        ((*RUN, "--link-speed", "eth0=fast", "--", "true"), 2, "--link-speed is eth0=fast, expected INTERFACE=MBITS"),
        ((*RUN, "--link-speed", "eth0=1_0", "--", "true"), 2, "--link-speed is eth0=1_0, expected INTERFACE=MBITS"),
        ((*RUN, "--link-speed", "eth0=0", "--", "true"), 2, "--link-speed is eth0=0, expected INTERFACE=MBITS"),
        ((*RUN[:-1], "0", "--", "true"), 2, "processors is 0"),
        ((*RUN[:-1], "1.5", "--", "true"), 2, "--processors is '1.5', expected a valid integer"),
        (("runs", "--db", "/nonexistent/metasched.db"), 2, "no such database"),
    ],
)
def test_wrong_use_gets_one_clear_line(
    arguments: tuple[str, ...], status: int, message: str, environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    found, out, err = call(capfd, *arguments)
    assert (found, out) == (status, "")
    assert message in err
    assert len(err.splitlines()) == 1


def test_a_job_runs_even_where_it_cannot_be_stored_and_is_stored_later(metasched: Metasched, tmp_path: Path) -> None:
    (tmp_path / "metasched.db").write_text("in the way, and long enough to be taken for a database\n" * 20)
    done = metasched(*RUN, *python("import time; time.sleep(0.1); print('done')"))
    assert done.returncode == 0
    assert done.stdout == "done\n"
    assert "warning: the run could not be stored" in done.stderr
    (tmp_path / "metasched.db").unlink()
    metasched(*RUN, *python("import time; time.sleep(0.1)"))
    assert document(metasched("runs", "--json"))["stored"] == 2


def test_what_was_not_measured_is_shown_as_such(metasched: Metasched, environment: dict[str, str]) -> None:
    with Store.open(environment["METASCHED_DB"]) as store:
        store.runs.add(Run("cg", "c8", 1400, 4, math.nan, math.nan, 12.25), learnable=False)
    (shown,) = document(metasched("runs", "--json"))["runs"]
    assert (shown["min_avg_avail_cpu"], shown["min_avg_avail_bw"]) == (None, None)
    words = metasched("runs").stdout.split()
    assert (words.count("not"), words.count("measured")) == (2, 2)


def test_a_run_keeps_its_layout_and_parameters(metasched: Metasched) -> None:
    fields = ("--processes-per-node", 2, "--parameter", "solver=amg", "--json")
    done = metasched(*RUN, *fields, *python("pass"))
    kept = document(metasched("runs", "--json"))["runs"]
    found = [(run["processes_per_node"], run["threads"], run["parameters"]) for run in (document(done), *kept)]
    assert found == [(2, 1, {"solver": "amg"})] * 2
