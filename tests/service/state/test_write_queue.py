"""The thread that writes goes on whatever becomes of those who wait for it."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from metasched.advised_placements import AdvisedPlacement, Answer, Ask
from metasched.records import Load
from metasched.service.state import write_queue
from metasched.service.state.write_queue import WriteQueue
from metasched.store.database.ended_records import EndedRecord
from metasched.store.database.run_records import RecordedRun
from metasched.store.database.store import Store
from metasched.store.errors import StoreError
from tests.service.api.test_routes import until
from tests.service.daemons import runs


def placement(number: int) -> AdvisedPlacement:
    answer = Answer(id=f"{number:032x}", placed=False, mode="advise", steer="nodes", message="")
    return AdvisedPlacement(float(number), Ask(application="cg", problem_size=900.0), answer)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Another process holds the lock."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def test_rows_whose_request_was_given_up_are_stored_and_later_ones_too(tmp_path: Path) -> None:
    first, second = Load(1.0, "n0", 0.5, 90.0), Load(2.0, "n0", 0.6, 80.0)

    async def ask(writes: WriteQueue) -> None:
        given_up = asyncio.ensure_future(asyncio.wrap_future(writes.loads([first])))
        given_up.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await given_up
        writes.start()
        await asyncio.wait_for(asyncio.wrap_future(writes.loads([second])), 60.0)

    with Store.open(tmp_path / "metasched.db") as store:
        writes = WriteQueue(store)
        try:
            asyncio.run(ask(writes))
            assert [*store.loads.all().time] == [1.0, 2.0]
        finally:
            writes.stop()


def test_a_failure_that_goes_on_is_logged_once_and_told_until_it_is_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, away = tmp_path / "metasched.db", tmp_path / "away.db"
    with Store.open(path) as store:
        writes = WriteQueue(store)
        writes.start()
        try:
            assert not writes.failing
            path.rename(away)
            for second in range(20):
                with pytest.raises(StoreError):
                    writes.loads([Load(float(second), "n0", 0.5, 90.0)]).result(60.0)
            assert writes.failing
            assert caplog.text.count("were not stored") == 1
            away.rename(path)
            writes.loads([Load(50.0, "n0", 0.5, 90.0)]).result(60.0)
            assert not writes.failing
        finally:
            writes.stop()


def test_whatever_waits_for_a_locked_database_waits_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_queue, "PATIENCE", 0.1)
    monkeypatch.setattr(write_queue, "RETRY", 1e6)
    path, tried = tmp_path / "metasched.db", list[str]()
    with Store.open(path, timeout=0.3) as store:
        writes, (record, *_) = WriteQueue(store), runs("east", 1)

        def counted(kind: str, rows: Sequence[Any]) -> object:
            tried.append(kind)
            return by_kind[kind](rows)

        by_kind = writes._store_rows
        monkeypatch.setattr(writes, "_store_rows", {kind: partial(counted, kind) for kind in by_kind})
        waiting: list[Future[Any]] = [
            writes.loads([Load(1.0, "n0", 0.5, 90.0)]),
            writes.runs([record]),
            writes.ended(EndedRecord("0" * 32, RecordedRun(record.run, 0, True, "0" * 32))),
        ]
        with locked(path):
            writes.start()
            for each in waiting:
                with pytest.raises(StoreError, match="locked"):
                    each.result(60.0)
            assert tried == ["loads"]
        writes.stop()
        assert store.runs.all() == ()


def test_a_placement_made_while_the_database_takes_nothing_is_stored_once_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its question was answered from memory, so nobody asks again."""
    monkeypatch.setattr(write_queue, "PATIENCE", 0.1)
    monkeypatch.setattr(write_queue, "RETRY", 0.1)
    path = tmp_path / "metasched.db"
    with Store.open(path, timeout=0.2) as store:
        writes = WriteQueue(store)
        writes.start()
        with locked(path):
            done = writes.placements([placement(1), placement(2)])
            until(lambda: writes.failing)
            assert [each.made_at for each in writes.placements_between(2.0, 3.0)] == [2.0]
            assert not done.done()
        done.result(60.0)
        assert {each.made_at for each in store.placements.recent()} == {1.0, 2.0}
        assert writes.placements_between(0.0, 9.0) == []
        writes.stop()


def test_what_is_kept_is_stored_when_the_daemon_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_queue, "RETRY", 1e6)
    path = tmp_path / "metasched.db"
    with Store.open(path, timeout=0.2) as store:
        writes = WriteQueue(store)
        writes.start()
        with locked(path):
            writes.placements([placement(1)])
            until(lambda: writes.failing)
        writes.stop()
        assert len(store.placements.recent()) == 1


def test_of_too_many_placements_the_newest_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_queue, "RETRY", 1e6)
    monkeypatch.setattr(write_queue, "KEPT", 2)
    path = tmp_path / "metasched.db"
    with Store.open(path, timeout=0.2) as store:
        writes = WriteQueue(store)
        with locked(path):
            first, *_ = [writes.placements([placement(number)]) for number in range(3)]
            writes.start()
            with pytest.raises(StoreError, match="locked"):
                first.result(60.0)
        writes.stop()
        assert {each.made_at for each in store.placements.recent()} == {1.0, 2.0}


def test_the_outcome_of_a_job_waits_until_its_placement_is_stored(tmp_path: Path) -> None:
    with Store.open(tmp_path / "metasched.db") as store:
        writes, (record, *_) = WriteQueue(store), runs("east", 1)
        with store.engine.begin() as connection:
            connection.exec_driver_sql(
                "CREATE TRIGGER full BEFORE INSERT ON placements BEGIN SELECT raise(ABORT, 'disk is full'); END"
            )
        writes.placements([placement(1)])
        ended = writes.ended(EndedRecord(record.uid, record))
        writes.start()
        with pytest.raises(StoreError, match="full"):
            ended.result(60.0)
        assert store.runs.all() == ()
        with store.engine.begin() as connection:
            connection.exec_driver_sql("DROP TRIGGER full")
        assert writes.ended(EndedRecord(record.uid, record)).result(60.0) == {record.uid}
        assert len(store.placements.recent()) == 1
        writes.stop()


def test_that_the_database_takes_something_again_shows_without_anything_to_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_queue, "RETRY", 0.1)
    path = tmp_path / "metasched.db"
    with Store.open(path, timeout=0.2) as store:
        writes = WriteQueue(store)
        writes.start()
        with locked(path), pytest.raises(StoreError):
            writes.loads([Load(1.0, "n0", 0.5, 90.0)]).result(60.0)
        until(lambda: not writes.failing)
        writes.stop()
