"""From version 0.1.0 to this one and back: its database and its hooks, as that version made them."""

from __future__ import annotations

import json
import math
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from command_line import call
from fastapi.testclient import TestClient

from metasched.records import Request, Run
from metasched.service.app import make_app
from metasched.store.database.run_records import RecordedRun
from metasched.store.database.schema import HEAD
from metasched.store.database.store import Store
from tests.service.daemons import running

RELEASE = Path(__file__).parent / "release-0.1.0"
#: What version 0.1.0 predicted for N = 1400 on 2 processors with 0.8 of each and 100 Mbit/s (s).
PREDICTED = 34.246
SECRETS = json.loads((RELEASE / "secrets.json").read_text())


@pytest.fixture
def database(tmp_path: Path) -> Path:
    with closing(sqlite3.connect(tmp_path / "metasched.db")) as connection:
        connection.executescript((RELEASE / "metasched.sql").read_text())
    return tmp_path / "metasched.db"


def test_a_database_of_the_last_release_is_upgraded_with_all_that_it_holds(database: Path) -> None:
    with Store.open(database) as store:
        assert (len(store.runs.all()), len(store.placements.recent()), len(store.tokens.all())) == (17, 3, 3)
        assert store.loads.all(node="e1").available_cpu.tolist() == [0.9] * 20
        [outcome] = [each.outcome for each in store.placements.recent() if each.outcome is not None]
        assert outcome.execution_time == pytest.approx(20.0, abs=0.02)
        found = store.models.predictor("cg", "east").predict(Request(1400, 2, 0.8, 100.0))
    assert found.execution_time == pytest.approx(PREDICTED, rel=0.1)


def test_a_daemon_goes_on_where_the_last_release_ended(database: Path) -> None:
    with running(database.parent) as daemon:
        client = TestClient(make_app(daemon))
        admin, slurm = ({"Authorization": f"Bearer {SECRETS[name]}"} for name in ("admin", "slurm"))
        assert client.get("/v1/mode", headers=admin).json()["mode"] == "advise"
        end = time.monotonic() + 60.0
        while not daemon.models.all() and time.monotonic() < end:
            time.sleep(0.05)
        question = json.loads((RELEASE / "question.json").read_text())
        assert client.post("/v1/placements", json=question, headers=slurm).json()["placed"]
        job = told_by_epilog(database.parent)
        assert client.post("/v1/jobs", json=job, headers=slurm).json()["stored"]
        assert job["job"] in {run.extra.get("job") for run in daemon.store.runs.learnable()}


def told_by_epilog(folder: Path) -> dict[str, object]:
    """What the epilog of the last release sends of a job that ended just now."""
    sent: list[dict[str, object]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    shutil.copytree(RELEASE / "slurm", folder / "slurm")
    (folder / "hooks").mkdir()
    (folder / "hooks" / "start.77").write_text(f"{time.time() - 30.0:.2f}")
    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        address = f"127.0.0.1:{server.server_address[1]}"
        (folder / "slurm" / "hooks.conf").write_text(f"address = {address}\nstate = {folder}/hooks\ncluster = east\n")
        environment = {
            "SLURM_JOB_ID": "77", "SLURM_JOB_NODELIST": "e1", "SLURM_JOB_CPUS_PER_NODE": "2", "SLURM_JOB_UID": "1000",
            "SLURM_JOB_PARTITION": "", "SLURM_JOB_COMMENT": "metasched:app=cg,n=1400,p=2",
        }  # fmt: skip
        epilog = [sys.executable, str(folder / "slurm" / "metasched-epilog")]
        subprocess.run(epilog, env=environment | {"PATH": os.environ["PATH"]}, timeout=60, check=True)
        thread.join(60.0)
    [job] = sent
    return job


def test_a_backup_of_before_the_upgrade_is_untouched_by_it(database: Path, tmp_path: Path) -> None:
    before = tmp_path / "before.db"
    shutil.copyfile(database, before)
    copy = before.read_bytes()
    with Store.open(database):
        pass
    assert before.read_bytes() == copy
    with closing(sqlite3.connect(database)) as connection:  # what makes an older version refuse it
        assert connection.execute("SELECT * FROM metasched_schema").fetchone()[0] == HEAD > "0006"


def test_a_downgraded_copy_is_what_the_last_release_makes_and_reads(database: Path, tmp_path: Path) -> None:
    before = rows_of(database)
    with Store.open(database) as store:
        run = Run("cg", "east", 900.0, 2, 0.8, 90.0, 12.0)
        unmeasured = Run("cg", "east", 900.0, 2, math.nan, math.nan, 12.0)
        store.runs.add_all([RecordedRun(run), RecordedRun(unmeasured)])
        store.tokens.add("alice", "reader", user="alice")
    held = rows_of(database)
    main_says(["db", "downgrade", str(tmp_path / "older.db"), "--database", str(database)])
    assert rows_of(database) == held
    after = rows_of(tmp_path / "older.db")
    assert shape_of(tmp_path / "older.db") == shape_of(None)
    kept = before.keys() - {"models", "placements", "runs"}
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
    assert after["models"] == after["placements"] == []
    learned = len(before["runs"][0]) - 1
    assert [row[:learned] for row in after["runs"][:-1]] == [row[:learned] for row in before["runs"]]
    assert {row[learned] for row in after["runs"]} == {0}  # so that all of them are learned again
    assert after["runs"][-1][5:8] == (2, 0.8, 90.0)
    with Store.open(tmp_path / "older.db") as again:  # and this version takes it up once more
        assert len(again.runs.to_learn()) == len(after["runs"])


def test_a_copy_that_cannot_be_made_is_refused_in_one_line(database: Path, tmp_path: Path) -> None:
    (tmp_path / "there.db").write_text("mine")
    for words, line in (
        (["there.db"], "there.db: already exists, expected a new file"),
        (["new.db", "--to", "0.0.1"], "0.0.1: is no release whose schema is known, expected 0.1.0"),
        (["nowhere/new.db"], "nowhere/new.db: cannot be written: no such file or directory"),
    ):
        words[0] = str(tmp_path / words[0])
        said = main_says(["db", "downgrade", *words, "--database", str(database)], status=2)
        assert line in said
    assert (tmp_path / "there.db").read_text() == "mine"
    assert not (tmp_path / "new.db").exists()


def main_says(words: list[str], status: int = 0) -> str:
    done = subprocess.run([sys.executable, "-m", "metasched", *words], capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    return done.stdout + done.stderr


def rows_of(path: Path) -> dict[str, list[tuple[object, ...]]]:
    with closing(sqlite3.connect(path)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: list(connection.execute(f"SELECT * FROM {name} ORDER BY 1")) for name in names}


def shape_of(path: Path | None) -> dict[str, list[tuple[object, ...]]]:
    """The columns of each table; those of the last release where there is no path."""
    with closing(sqlite3.connect(path or ":memory:")) as connection:
        if path is None:
            connection.executescript((RELEASE / "metasched.sql").read_text())
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: list(connection.execute(f"PRAGMA table_info({name})")) for name in names}


def test_setup_beside_the_hooks_of_the_last_release_says_what_is_left_and_is_undone_to_the_byte(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slurm = tmp_path / "slurm"
    shutil.copytree(RELEASE / "slurm", slurm)
    (slurm / "slurm.conf").write_text(
        f"ClusterName=east\nSlurmUser=root\nJobSubmitPlugins=lua\nPrologSlurmctld={slurm}/metasched-prolog\n"
        f"EpilogSlurmctld={slurm}/metasched-epilog\n"
    )
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    words = [
        "setup",
        "slurm",
        "--slurm-conf",
        f"{slurm}/slurm.conf",
        "--config",
        f"{tmp_path}/metasched.toml",
        "--json",
    ]

    def setup(*more: str) -> dict[str, list[str]]:
        status, out, _ = call(capsys, *words, *more)
        assert not status
        document: dict[str, list[str]] = json.loads(out)
        return document

    by_hand = "\n".join(setup("--state", f"{tmp_path}/hooks", "--yes")["left_to_you"])
    for expected in (
        f"remove {slurm}/job_submit.lua, a hook of another version",
        f"set PrologSlurmctld={slurm}/metasched/metasched-prolog",
        f"set EpilogSlurmctld={slurm}/metasched/metasched-epilog",
        f"changed in {slurm}/hooks.conf to {slurm}/metasched/hooks.conf",
        f"changed in {slurm}/rules.lua to {slurm}/metasched/rules.lua",
    ):
        assert expected in by_hand
    assert {path: path.read_bytes() for path in before} == before
    setup("--undo", "--yes")
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
