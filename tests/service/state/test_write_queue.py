"""The thread that writes goes on whatever becomes of those who wait for it."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest

from metasched.records import Load
from metasched.service.state.write_queue import WriteQueue
from metasched.store.database.store import Store
from metasched.store.errors import StoreError


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
