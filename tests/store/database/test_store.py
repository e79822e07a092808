"""The database: what goes in comes out, many processes write at once, and what cannot be opened is refused clearly."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import event
from sqlalchemy.exc import OperationalError

from metasched.records import InputError, Load, Run, Settings
from metasched.store.database.engine import READ_ONLY, connect, default_location, reading, writing
from metasched.store.database.model_records import HISTORY
from metasched.store.database.run_records import RecordedRun, Selection
from metasched.store.database.schema import HEAD, VERSION_TABLE, bring_up, revision_of, script, upgrade
from metasched.store.database.store import Store
from metasched.store.database.tables import Base
from metasched.store.errors import StoreError

RUN = Run("cg", "c8", 1400, 4, 0.8, 93.5, 12.25, 100.5, ("n0", "n1"), "train", MappingProxyType({"job": "77"}))
REVISIONS = [revision.revision for revision in script().walk_revisions()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "metasched.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with Store.open(path) as store:
        yield store


def another(number: int, application: str = "cg") -> Run:
    return Run(application, "c8", 100 + number, 1, 0.5, 90.0, 1.0 + number)


def test_a_run_comes_out_as_it_went_in(store: Store) -> None:
    store.runs.add(RUN)
    (back,) = store.runs.learnable()
    assert back == RUN
    assert back.extra == RUN.extra


def test_runs_are_filtered_and_come_in_the_order_stored(store: Store) -> None:
    for number in range(5):
        store.runs.add(another(number, "cg" if number % 2 else "fft"))
    assert [run.problem_size for run in store.runs.learnable(application="fft")] == [100, 102, 104]
    assert store.runs.learnable(application="cg", platform="c9") == ()
    assert len(store.runs.learnable(platform="c8")) == 5
    assert store.runs.learnable(platform="c8", last=2) == store.runs.learnable(platform="c8")[-2:]
    assert store.runs.learnable(application="fft", last=9) == store.runs.learnable(application="fft")


def test_failed_runs_are_kept_and_not_learned_from(store: Store) -> None:
    store.runs.add(another(1), exit_status=137, learnable=False)
    store.runs.add(another(2))
    assert [run.problem_size for run in store.runs.learnable()] == [102]
    assert [(record.exit_status, record.learnable) for record in store.runs.all()] == [(137, False), (0, True)]


def test_storing_a_run_twice_stores_it_once(store: Store) -> None:
    record = RecordedRun(RUN)
    assert len(store.runs.add_all([record, RecordedRun(another(1))])) == 2
    assert store.runs.add_all([record, following := RecordedRun(another(2))]) == {following.uid}
    assert len(store.runs.learnable()) == 3


def test_loads_come_back_by_node_and_time_each_moment_once(store: Store) -> None:
    assert store.loads.add(Load(10.0 * k, node, 0.5, 90 + k) for k in range(4) for node in ("n1", "n0")) == 8
    assert store.loads.add([Load(0.0, "n0", 0.9, 1.0), Load(40.0, "n0", 1.0, 94.0)]) == 1
    loads = store.loads.all(node="n0", since=10, until=40)
    np.testing.assert_array_equal(loads.time, [10, 20, 30])
    np.testing.assert_array_equal(loads.available_bandwidth, [91, 92, 93])
    assert store.loads.all().nodes == ("n0", "n1")
    assert len(store.loads.all(node="n9")) == 0


def test_models_are_versioned_and_their_history_is_bounded(store: Store) -> None:
    versions = [store.models.save("cg", "c8", {"fit": number}) for number in range(HISTORY + 3)]
    assert versions == list(range(1, HISTORY + 4))
    assert store.models.document("cg", "c8") == {"fit": HISTORY + 2}
    assert store.models.document("cg", "c8", version=4) == {"fit": 3}
    with pytest.raises(InputError, match="holds no model version 3 of cg on c8"):
        store.models.document("cg", "c8", version=3)
    with pytest.raises(InputError, match="holds no model of fft on c8"):
        store.models.document("fft", "c8")


def test_the_list_of_models_has_the_newest_version_of_each_and_its_time(store: Store) -> None:
    before = time.time()
    for application, platform in (("fft", "c9"), ("cg", "c8"), ("fft", "c9"), ("cg", "c7")):
        store.models.save(application, platform, {})
    listed = store.models.all()
    assert [row[:3] for row in listed] == [("cg", "c7", 1), ("cg", "c8", 1), ("fft", "c9", 2)]
    assert all(before <= at <= time.time() for *_, at in listed)


def test_a_model_that_is_not_json_is_refused(store: Store) -> None:
    with pytest.raises(InputError, match="is not JSON"):
        store.models.save("cg", "c8", {"coefficient": float("nan")})
    with pytest.raises(InputError, match="is not JSON"):
        store.models.save("cg", "c8", {"function": len})


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("min_avg_avail_cpu", 7, "min_avg_avail_cpu is 7"),
        ("processors", "four", "processors is 'four', expected a whole number"),
        ("execution_time", "soon", "execution_time is 'soon', expected a number"),
        ("nodes", b"\xff", r"nodes is b'\xff', expected text"),
        ("extra", "[1]", "extra is [1], expected a table"),
        ("extra", "null", "extra is None, expected a table"),
        ("extra", '{"energy": []}', "energy is '[]', expected a number"),
    ],
)
def test_a_row_spoiled_by_hand_is_named_and_hides_no_other(
    store: Store, path: Path, caplog: pytest.LogCaptureFixture, column: str, value: object, said: str
) -> None:
    store.runs.add(RUN)
    store.runs.add(replace(RUN, problem_size=7.0))
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute(f"UPDATE runs SET {column} = ? WHERE id = 1", (value,))
    for found in (store.runs.learnable(), tuple(each.run for each in store.runs.to_learn())):
        assert [each.problem_size for each in found] == [7.0]
    assert f"metasched.db, run 1: {said}" in caplog.text


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"processors": 2**70}, "holds no whole number of more than 64 bits"),
        ({"application": "a\udcff"}, r"'a\\udcff': expected UTF-8"),
        ({"cluster": "\ud800"}, r"'\\ud800': expected UTF-8"),
    ],
)
def test_what_no_column_can_hold_is_refused_in_one_line(store: Store, changed: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=rf"^[^\n]*metasched\.db: {said}$"):
        store.runs.add(replace(RUN, **changed))
    assert store.runs.all() == ()


def test_forgetting_many_runs_takes_few_statements(store: Store) -> None:
    store.runs.add_all(RecordedRun(replace(RUN, application=f"a{k % 50}", start_time=float(k))) for k in range(400))
    said: list[str] = []
    event.listen(store.engine, "before_cursor_execute", lambda *arguments: said.append(arguments[2]))
    found = store.runs.forget(Selection(since=100.0))
    assert (found.runs, len(found.models)) == (300, 50)
    assert len(said) < 10
    assert len(store.runs.learnable()) == 100


WRITER = """
import sys
from metasched.records import Load, Run
from metasched.store.database.store import Store
path, process = sys.argv[1], int(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
with Store.open(path, timeout=60) as store:
    for number in range(20):
        store.runs.add(Run("cg", "c8", 100 + 100 * process + number, 1, 0.5, 90.0, 1.0))
        store.loads.add([Load(float(number), node, 0.5, 90.0) for node in (f"n{process}", "shared")])
        store.models.save("cg", "c8", {"process": process, "number": number})
"""


def test_many_processes_open_a_fresh_file_at_once_and_lose_nothing(path: Path) -> None:
    count = 4
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, path, str(process)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for process in range(count)
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate()
    assert [writer.returncode for writer in writers] == [0] * count
    with Store.open(path) as store:
        sizes = sorted(run.problem_size for run in store.runs.learnable())
        assert sizes == [100 + 100 * process + number for process in range(count) for number in range(20)]
        assert np.diff(store.loads.all().offsets).tolist() == [20] * (count + 1)
        assert store.models.save("cg", "c8", {}) == 20 * count + 1
    with closing(sqlite3.connect(path)) as raw:
        assert raw.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert raw.execute("PRAGMA journal_mode").fetchone() == ("wal",)


@pytest.mark.parametrize("older", [*REVISIONS, None])
def test_a_database_of_any_older_schema_is_upgraded_with_its_runs(path: Path, older: str | None) -> None:
    if older:
        engine = connect(path, 1)
        with writing(engine) as connection:
            upgrade(connection, older)
        with engine.begin() as connection:
            assert revision_of(connection) == older
            connection.exec_driver_sql(
                "INSERT INTO runs (uid, application, cluster, problem_size, processors, min_avg_avail_cpu,"
                " min_avg_avail_bw, execution_time, nodes, extra, exit_status, learnable)"
                " VALUES ('a', 'cg', 'c8', 1400, 4, 0.8, 93.5, 12.25, '', '{}', 0, 1)"
            )
        engine.dispose()
    with Store.open(path) as store:
        assert [run.execution_time for run in store.runs.learnable()] == ([12.25] if older else [])


def test_the_newest_revision_is_the_one_that_the_code_expects() -> None:
    assert script().get_heads() == [HEAD]


def test_the_upgraded_schema_is_the_one_that_the_code_uses(path: Path) -> None:
    engine = connect(path, 1)
    bring_up(engine)
    with reading(engine) as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE, "compare_type": True})
        assert compare_metadata(context, Base.metadata) == []
    engine.dispose()


def test_a_newer_schema_is_refused(path: Path) -> None:
    Store.open(path).close()
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute(f"UPDATE {VERSION_TABLE} SET version_num = '9999'")
    with pytest.raises(InputError, match="has schema 9999, newer than schema"):
        Store.open(path)


def test_another_programs_database_is_refused_and_left_alone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("CREATE TABLE photographs (id)")
    before = path.read_bytes()
    with pytest.raises(InputError, match="is a database of another program"):
        Store.open(path)
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_refused(path: Path) -> None:
    path.write_bytes(b"phase,application,cluster\n" * 100)
    with pytest.raises(InputError, match=r"metasched\.db: is not a SQLite database"):
        Store.open(path)


def test_a_damaged_database_is_refused(path: Path) -> None:
    with Store.open(path) as store:
        store.runs.add_all(RecordedRun(another(number)) for number in range(500))
    data = bytearray(path.read_bytes())
    data[4096:] = os.urandom(len(data) - 4096)
    path.write_bytes(data)
    with pytest.raises(StoreError, match="is damaged"), Store.open(path) as store:
        store.runs.learnable()


def test_a_locked_database_is_refused_after_a_while(path: Path) -> None:
    with Store.open(path, timeout=0.05) as store, closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="is locked by another process"):
            store.runs.add(RUN)
        assert store.runs.learnable() == ()
        other.execute("COMMIT")
        store.runs.add(RUN)
        assert store.runs.learnable() == (RUN,)


def test_a_place_that_is_none_is_refused(tmp_path: Path) -> None:
    for location in (tmp_path, tmp_path / "nowhere" / "metasched.db"):
        with pytest.raises(InputError, match="cannot be opened"):
            Store.open(location)
    with pytest.raises(InputError, match="no driver is installed"):
        Store.open("nonsense://host/name")
    for url in ("sqlite://:::/", "sqlite://host/name", "postgresql://host:port/name"):
        with pytest.raises(InputError, match="is not the URL of a database"):
            Store.open(url)


def _read_only(path: Path, answer: object) -> None:
    if os.getuid() == 0:
        os.setuid(65534)
    with Store.open(path) as store:
        found = len(store.runs.learnable())
        try:
            store.runs.add(RUN)
        except StoreError as error:
            answer.send((found, str(error)))  # type: ignore[attr-defined]


def test_a_database_that_may_not_be_written_is_still_read() -> None:
    # Root writes to everything, so a child that is nobody tries; the tests' own folder would keep it out altogether.
    with tempfile.TemporaryDirectory() as name:
        folder, path = Path(name), Path(name, "metasched.db")
        with Store.open(path) as store:
            store.runs.add(RUN)
            path.chmod(0o444)
            folder.chmod(0o555)
            ours, theirs = multiprocessing.Pipe()
            child = multiprocessing.get_context("fork").Process(target=_read_only, args=(path, theirs))
            child.start()
            child.join()
            folder.chmod(0o755)
        assert ours.poll()
        assert ours.recv() == (1, f"{path}: is read-only")


def test_the_default_place_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("METASCHED_DB", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_location() == str(tmp_path / "metasched" / "metasched.db")
    with Store.open() as store:
        assert store.name == default_location()
    monkeypatch.setenv("METASCHED_DB", str(tmp_path / "mine.db"))
    assert default_location() == str(tmp_path / "mine.db")


def test_a_password_is_not_told() -> None:
    with pytest.raises((InputError, StoreError)) as caught:
        Store.open("postgresql+psycopg://user:secret@localhost:1/metasched")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("error", "said", "meaning"),
    [
        ("ReadOnlySqlTransaction", "FEHLER: kann INSERT nicht in einer Read-Only-Transaktion ausführen", READ_ONLY),
        ("LockNotAvailable", "ERREUR: annulation de la requête", "is locked by another process"),
        ("DiskFull", "FEHLER: kein Speicherplatz mehr verfügbar", "cannot grow: the disk is full"),
        ("DiskFull", "could not extend file", "cannot grow: the disk is full"),
    ],
)
def test_what_a_server_says_in_another_language_is_known_by_its_state(
    path: Path, error: str, said: str, meaning: str
) -> None:
    psycopg = pytest.importorskip("psycopg", reason="psycopg is in the extra postgresql")
    refusal = getattr(psycopg.errors, error)(said)
    with Store.open(path) as store, pytest.raises(StoreError, match=meaning), reading(store.engine):
        raise OperationalError("INSERT INTO runs", {}, refusal)


@pytest.mark.parametrize("location", [":memory:", "sqlite://", "sqlite:///:memory:"])
def test_a_database_in_memory_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, location: str) -> None:
    monkeypatch.chdir(tmp_path)
    with Store.open(location):
        assert not [*tmp_path.iterdir()]


def test_what_was_not_measured_is_null_in_the_database_and_nan_in_the_record(path: Path) -> None:
    with Store.open(path) as store:
        store.runs.add(Run("cg", "c8", 1400, 4, math.nan, 93.5, 12.25))
        store.runs.add(Run("cg", "c8", 1400, 4, 0.5, math.nan, 12.25))
        first, second = store.runs.learnable()
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT min_avg_avail_cpu, min_avg_avail_bw FROM runs ORDER BY id").fetchall()
    assert rows == [(None, 93.5), (0.5, None)]
    assert math.isnan(first.min_avg_avail_cpu)
    assert math.isnan(second.min_avg_avail_bw)
    assert (first.min_avg_avail_bw, second.min_avg_avail_cpu) == (93.5, 0.5)


def test_a_record_comes_back_from_what_it_shows() -> None:
    cells = Settings(2, 3, (("steps", 7.0),), 2400.0).cells | {"energy": "5400.5", "energy_covers": "node"}
    run = Run("cg", "c8", 1400, 4, math.nan, 93.5, 12.25, 100.5, ("n0", "n1"), "train", cells | {"user": "1000"})
    record = RecordedRun(run, 1, learnable=False)
    back = RecordedRun.of_dict(json.loads(json.dumps(record.as_dict())))
    assert (back.as_dict(), back.run.extra) == (record.as_dict(), run.extra)
    with pytest.raises(InputError, match="is not a stored run"):
        RecordedRun.of_dict({"application": "cg"})
