"""A database whose file is deleted, moved or replaced while it is open takes nothing that would be lost with it."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from itertools import count
from pathlib import Path
from threading import Barrier, Thread

import pytest

from metasched.records import Run
from metasched.store.database import opened_file
from metasched.store.database.engine import reading
from metasched.store.database.store import Store
from metasched.store.errors import StoreError


def run(size: float) -> Run:
    return Run("cg", "c8", size, 4, 0.8, 93.5, 12.25)


def sizes(path: Path) -> list[float]:
    """The problem sizes of the runs in a file that nobody has open."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return [size for (size,) in connection.execute("SELECT problem_size FROM runs ORDER BY 1")]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store of one run, with several connections open."""
    with Store.open(tmp_path / "m.db") as store:
        together = Barrier(3, timeout=60.0)

        def use() -> None:
            with store.engine.connect() as connection:
                connection.exec_driver_sql("SELECT 1 FROM runs")
                together.wait()

        threads = [Thread(target=use) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        store.runs.add(run(1.0))
        yield store


def test_nothing_is_taken_while_the_file_is_gone_and_everything_once_it_is_back(store: Store, tmp_path: Path) -> None:
    path, away = tmp_path / "m.db", tmp_path / "away.db"
    path.rename(away)
    for _ in range(5):
        with pytest.raises(StoreError, match=r"m\.db: was deleted, moved or replaced while it was open; put it back"):
            store.runs.add(run(2.0))
        with pytest.raises(StoreError, match="put it back"):
            store.runs.all()
    assert not path.exists()
    assert sizes(away) == [1.0]
    away.rename(path)
    store.runs.add(run(3.0))
    assert [each.run.problem_size for each in store.runs.all()] == [1.0, 3.0]


@pytest.mark.parametrize("looked", [1, 2], ids=["before", "after"])
def test_no_empty_file_is_made_where_the_file_goes_while_it_is_opened_again(
    looked: int, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file goes after it was looked at before it is opened, or before it is looked at once it is open."""
    path, away, looks = tmp_path / "m.db", tmp_path / "away.db", count(1)
    store.engine.dispose()
    identity = opened_file._identity

    def looking(name: str) -> tuple[int, int] | None:
        number = next(looks)
        found = identity(name) if number == looked == 1 else None
        if number == looked:
            path.rename(away)
        return found or identity(name)

    monkeypatch.setattr(opened_file, "_identity", looking)

    def opened_twice() -> None:
        with reading(store.engine), reading(store.engine):
            pass

    for _ in range(3):
        with pytest.raises(StoreError, match=r"m\.db"):
            opened_twice()
    assert not path.exists()
    away.rename(path)
    assert [each.run.problem_size for each in store.runs.all()] == [1.0]


@pytest.mark.parametrize("in_use", [False, True])
def test_a_file_that_replaces_it_is_used_and_not_damaged(store: Store, tmp_path: Path, in_use: bool) -> None:
    path, other = tmp_path / "m.db", tmp_path / "other.db"
    with Store.open(other) as another:
        another.runs.add(run(7.0))
    for number in range(200):
        store.runs.add(run(1000.0 + number))  # what the next file's log must not hold
    with ExitStack() as reading:
        if in_use:
            connection = reading.enter_context(store.engine.connect())
            connection.exec_driver_sql("SELECT 1 FROM runs").fetchone()
        os.replace(other, path)
        for _ in range(5):
            with suppress(StoreError):
                store.runs.add(run(8.0))
        if in_use:
            with pytest.raises(StoreError, match="put it back"):
                store.runs.add(run(8.0))
    store.runs.add(run(9.0))
    found = [each.run.problem_size for each in store.runs.all()]
    assert found == ([7.0, 9.0] if in_use else [7.0, *[8.0] * (len(found) - 2), 9.0])
    store.close()
    assert sizes(path) == found


@pytest.mark.parametrize("beside", [["-wal"], ["-shm"], ["-wal", "-shm"]])
def test_what_was_written_before_its_log_was_deleted_is_kept(store: Store, tmp_path: Path, beside: list[str]) -> None:
    store.runs.add(run(2.0))
    for end in beside:
        (tmp_path / f"m.db{end}").unlink()
    for _ in range(5):
        with suppress(StoreError):
            store.runs.add(run(3.0))
            break
    assert [each.run.problem_size for each in store.runs.all()] == [1.0, 2.0, 3.0]
    store.close()
    assert sizes(tmp_path / "m.db") == [1.0, 2.0, 3.0]


def test_a_file_that_is_written_over_in_place_is_read_as_it_is(tmp_path: Path) -> None:
    with Store.open(tmp_path / "m.db") as store, Store.open(tmp_path / "other.db") as other:
        store.runs.add(run(1.0))
        other.runs.add(run(7.0))
        name = store.name
    shutil.copyfile(tmp_path / "other.db", tmp_path / "m.db")
    with Store.open(name) as store:
        assert [each.run.problem_size for each in store.runs.all()] == [7.0]
