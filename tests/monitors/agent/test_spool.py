"""The spool at its limits: the last sample that fits, the first that does not, and whose samples are read."""

from __future__ import annotations

import errno
import math
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from monitors.agent.spool import Spool
from monitors.sources.contract import Sample


def sample(moment: float, node: str = "n0") -> Sample:
    return Sample(node, moment, 0.5, 90.0)


def moments(spool: Spool) -> list[float]:
    return [each.time for _, each in spool.oldest(1000)]


@pytest.mark.parametrize(
    ("kept", "left", "logged"),
    [(4, [0.0, 1.0, 2.0, 3.0], 0), (5, [1.0, 2.0, 3.0, 4.0], 1), (9, [5.0, 6.0, 7.0, 8.0], 1)],
)
def test_a_spool_that_is_just_full_has_lost_nothing(
    kept: int, left: list[float], logged: int, caplog: pytest.LogCaptureFixture
) -> None:
    spool = Spool(Path(":memory:"), 4)
    for moment in range(kept):
        spool.keep(sample(float(moment)))
    assert (moments(spool), len(spool), len(caplog.messages)) == (left, 4, logged)


def test_a_smaller_spool_than_before_keeps_the_newest(tmp_path: Path) -> None:
    before = Spool(tmp_path / "new" / "spool.db", 100)
    for moment in range(9):
        before.keep(sample(float(moment)))
    before.close()
    after = Spool(tmp_path / "new" / "spool.db", 3)
    assert len(after) == 9
    after.keep(sample(9.0))
    assert (moments(after), len(after)) == ([7.0, 8.0, 9.0], 3)


def test_samples_are_read_after_a_number_up_to_a_count_and_without_those_of_a_node() -> None:
    spool = Spool(Path(":memory:"))
    for moment, node in enumerate(("a", "b", "a", "b")):
        spool.keep(sample(float(moment), node))
    assert [(number, each.node, each.time) for number, each in spool.oldest(2)] == [(1, "a", 0.0), (2, "b", 1.0)]
    assert [number for number, _ in spool.oldest(9, after=2)] == [3, 4]
    assert [number for number, _ in spool.oldest(9, other_than="a")] == [2, 4]
    spool.forget(2)
    assert (moments(spool), len(spool)) == ([2.0, 3.0], 2)
    spool.forget(2)
    assert len(spool) == 2
    # Numbers are not given again, even where all samples have gone.
    spool.forget(4)
    spool.keep(sample(7.0))
    assert [number for number, _ in spool.oldest(9)] == [5]


def test_a_sample_that_cannot_be_stored_is_not_counted() -> None:
    spool = Spool(Path(":memory:"))
    with pytest.raises(sqlite3.Error):
        spool.keep(Sample("n0", 1.0, 0.5, math.nan))
    spool.keep(sample(2.0))
    assert (moments(spool), len(spool)) == ([2.0], 1)


def refusing(code: int) -> Callable[[sqlite3.Connection], int]:
    """What a spool gets from SQLite in place of its samples."""

    def refused(_: sqlite3.Connection) -> int:
        error = sqlite3.OperationalError("the disk refuses")
        error.sqlite_errorcode = code
        raise error

    return refused


@pytest.mark.parametrize("code", [sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR_WRITE])
def test_a_disk_that_refuses_at_the_start_leaves_no_node_unmonitored(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    read_only = code == sqlite3.SQLITE_READONLY
    with monkeypatch.context() as patched:
        patched.setattr("monitors.agent.spool._prepared", refusing(code))
        patched.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=os.ST_RDONLY * read_only))
        spool = Spool(tmp_path / "later" / "agent.db")
        assert "it is opened when its disk can be written" in caplog.text
        with pytest.raises(sqlite3.Error, match="the disk refuses"):
            spool.keep(sample(1.0))
        assert (len(spool), spool.oldest(10)) == (0, [])
    spool.keep(sample(2.0))
    assert moments(spool) == [2.0]
    spool.close()


@pytest.mark.parametrize("code", [sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN])
def test_a_file_that_is_not_the_agents_to_write_is_refused_on_a_disk_that_can_be_written(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("monitors.agent.spool._prepared", refusing(code))
    with pytest.raises(ValueError, match=r"agent\.db: the disk refuses, expected a spool that can be written$"):
        Spool(tmp_path / "agent.db")


def test_a_second_agent_on_a_spool_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    first = Spool(path)
    first.keep(sample(1.0))
    (tmp_path / "link.db").symlink_to(path)
    for named in (path, tmp_path / "link.db"):
        with pytest.raises(ValueError, match=r"\.db: another agent uses it, expected a spool for each agent$"):
            Spool(named)
    assert moments(first) == [1.0]
    first.close()
    again = Spool(path)
    assert moments(again) == [1.0]
    again.close()


def test_a_folder_that_cannot_be_made_on_a_full_disk_is_made_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "mkdir", full)
        spool = Spool(tmp_path / "later" / "agent.db")
        with pytest.raises(sqlite3.Error, match="No space left on device"):
            spool.keep(sample(1.0))
    spool.keep(sample(2.0))
    assert len(spool) == 1
    spool.close()
