"""The spool: a run that cannot be stored waits, and is stored once, in the database that it was meant for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType

import pytest

from metasched.records import Run
from metasched.store import spool
from metasched.store.database.run_records import RecordedRun
from metasched.store.database.store import Store

RUN = Run("cg", "c8", 1400, 4, 0.8, 93.5, 12.25, 100.5, ("n0", "n1"), "train", MappingProxyType({"job": "77"}))


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def spoil(path: Path) -> None:
    path.write_text("not a database at all, and long enough to be read as one\n" * 20)


def test_a_run_is_stored_where_it_can_be(tmp_path: Path) -> None:
    assert spool.keep(RecordedRun(RUN), tmp_path / "a.db") == ()
    with Store.open(tmp_path / "a.db") as store:
        assert store.runs.learnable() == (RUN,)


def test_a_run_that_cannot_be_stored_waits_and_comes_with_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.db"
    spoil(path)
    first, second = RecordedRun(RUN, exit_status=3, learnable=False), RecordedRun(RUN)
    (warning,) = spool.keep(first, path)
    assert "is not a SQLite database" in warning
    assert "waits in" in warning
    path.unlink()
    monkeypatch.chdir(tmp_path)
    assert spool.keep(second, "a.db") == ()
    with Store.open(path) as store:
        assert {record.uid: record for record in store.runs.all()} == {first.uid: first, second.uid: second}
        assert [dict(record.run.extra) for record in store.runs.all()] == [{"job": "77"}] * 2
    assert list(spool.folder().iterdir()) == []


def test_several_runs_wait_beside_each_other(tmp_path: Path) -> None:
    spoil(tmp_path / "a.db")
    waiting = [RecordedRun(RUN), RecordedRun(RUN)]
    said = [spool.keep(each, tmp_path / "a.db")[0] for each in waiting]
    assert all("waits in" in each for each in said)
    (tmp_path / "a.db").unlink()
    with Store.open(tmp_path / "a.db") as store:
        assert spool.drain(store) == ()
        assert {each.uid for each in store.runs.all()} == {each.uid for each in waiting}


def test_a_run_waits_for_its_own_database(tmp_path: Path) -> None:
    spoil(tmp_path / "a.db")
    spool.keep(RecordedRun(RUN), tmp_path / "a.db")
    with Store.open(tmp_path / "b.db") as store:
        assert spool.drain(store) == ()
        assert store.runs.learnable() == ()
    assert len(list(spool.folder().iterdir())) == 1


@pytest.mark.parametrize("waits", [str, "sqlite:///{}".format])
@pytest.mark.parametrize("comes", [str, "sqlite:///{}".format])
def test_a_database_is_the_same_by_its_path_and_by_its_url(
    tmp_path: Path, waits: Callable[[Path], str], comes: Callable[[Path], str]
) -> None:
    path = tmp_path / "a.db"
    spoil(path)
    spool.keep(RecordedRun(RUN), waits(path))
    path.unlink()
    with Store.open(comes(path)) as store:
        assert spool.drain(store) == ()
        assert store.runs.learnable() == (RUN,)
    assert list(spool.folder().iterdir()) == []


def test_no_password_waits_on_the_disk_and_only_the_user_reads_the_file() -> None:
    (warning,) = spool.keep(RecordedRun(RUN), "postgresql+psycopg://ann:hush@/runs?host=/nowhere")
    assert "waits in" in warning
    (path,) = spool.folder().iterdir()
    assert "hush" not in path.read_text()
    assert "ann" in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_run_for_what_is_no_database_is_not_lost(tmp_path: Path) -> None:
    (warning,) = spool.keep(RecordedRun(RUN), "my sql://ann@/runs")
    assert "is not the URL of a database" in warning
    assert "waits in" in warning
    with Store.open(tmp_path / "a.db") as store:
        assert spool.drain(store) == ()
    assert len(list(spool.folder().iterdir())) == 1


def test_a_file_that_names_its_database_by_a_whole_url_is_still_stored(tmp_path: Path) -> None:
    database = tmp_path / "a.db"
    spoil(database)
    spool.keep(RecordedRun(RUN), database)
    (path,) = spool.folder().iterdir()
    path.write_text(json.dumps(json.loads(path.read_text()) | {"database": f"sqlite:///{database}"}))
    database.unlink()
    with Store.open(database) as store:
        assert spool.drain(store) == ()
        assert store.runs.learnable() == (RUN,)


def test_a_spooled_run_that_was_stored_already_is_not_stored_twice(tmp_path: Path) -> None:
    record = RecordedRun(RUN)
    spoil(tmp_path / "a.db")
    spool.keep(record, tmp_path / "a.db")
    (tmp_path / "a.db").unlink()
    with Store.open(tmp_path / "a.db") as store:
        store.runs.add_all([record])
        spool.drain(store)
        assert len(store.runs.learnable()) == 1


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"format": 2}', '{"format": 1, "run": {}}'])
def test_a_damaged_file_is_reported_and_left_alone(tmp_path: Path, text: str) -> None:
    spool.folder().mkdir(parents=True)
    (spool.folder() / "x.json").write_text(text)
    with Store.open(tmp_path / "a.db") as store:
        (warning,) = spool.drain(store)
    assert "x.json is not a spooled run" in warning
    assert (spool.folder() / "x.json").read_text() == text


def test_keeping_never_raises_even_where_nothing_can_be_written(tmp_path: Path, state: Path) -> None:
    spoil(tmp_path / "a.db")
    state.write_text("in the way")
    (warning,) = spool.keep(RecordedRun(RUN), tmp_path / "a.db")
    assert "is lost" in warning


def test_a_run_that_another_process_stores_meanwhile_is_not_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(tmp_path / "a.db")
    spool.keep(RecordedRun(RUN), tmp_path / "a.db")
    (tmp_path / "a.db").unlink()
    read = spool.read_text

    def stored_first(path: Path) -> str:
        with Store.open(tmp_path / "a.db") as other:
            monkeypatch.setattr(spool, "read_text", read)
            assert spool.drain(other) == ()
        return read(path)

    monkeypatch.setattr(spool, "read_text", stored_first)
    with Store.open(tmp_path / "a.db") as store:
        assert spool.drain(store) == ()
        assert store.runs.learnable() == (RUN,)
