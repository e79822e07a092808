"""Files are replaced whole; devices and pipes are written to, and stay what they are."""

from __future__ import annotations

import gzip
import os
import stat
import tempfile
import tracemalloc
from pathlib import Path

import pytest
from other_user import as_user

from metasched.records import InputError
from metasched.store.files import whole_files
from metasched.store.files.whole_files import check_writable, read_text, write_text_atomically


def test_what_can_be_written_is_told_before_and_nothing_changes(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("kept")
    for name in ("old", "new"):
        check_writable(tmp_path / name)
    assert ((tmp_path / "old").read_text(), os.listdir(tmp_path)) == ("kept", ["old"])
    with pytest.raises(InputError, match="is a directory, expected a file"):
        check_writable(tmp_path)
    with pytest.raises(InputError, match="new: cannot be written: not a directory"):
        check_writable(tmp_path / "old" / "new")


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    held = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # so that no writer waits for a reader
    write_text_atomically(path, "hello")
    got = os.read(held, 100)
    os.close(held)
    assert (got, stat.S_ISFIFO(path.stat().st_mode), os.listdir(tmp_path)) == (b"hello", True, ["pipe"])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may replace a device")
def test_a_device_is_never_replaced_by_a_file(tmp_path: Path) -> None:
    path = tmp_path / "null"
    os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    write_text_atomically(path, "hello")
    assert stat.S_ISCHR(path.stat().st_mode)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
@pytest.mark.parametrize("mode", [None, 0o600])
def test_a_replaced_file_keeps_its_owner_its_group_and_its_permissions(tmp_path: Path, mode: int | None) -> None:
    path = tmp_path / "metasched.toml"
    path.write_text("old")
    os.chown(path, 1234, 5678)
    path.chmod(0o640)
    write_text_atomically(path, "new", mode)
    found = path.stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (1234, 5678, mode or 0o640)
    assert path.read_text() == "new"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_who_may_not_give_a_file_away_writes_it_as_the_own() -> None:
    with tempfile.TemporaryDirectory() as folder:  # in one that others may enter
        os.chmod(folder, 0o777)
        path = Path(folder, "shared")
        path.write_text("old")
        path.chmod(0o604)
        assert as_user(4321, lambda: write_text_atomically(path, "new")) == (0, "", "")
        found = path.stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (4321, 4321, 0o604)


def test_a_link_to_itself_is_refused_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "loop"
    path.symlink_to("loop")
    for use in (lambda: write_text_atomically(path, "x"), lambda: read_text(path)):
        with pytest.raises(InputError, match=r"loop: .*too many levels of symbolic links"):
            use()
    assert path.is_symlink()


def test_a_name_that_no_file_can_have_is_refused() -> None:
    with pytest.raises(InputError, match="embedded null byte"):
        read_text("a\0b")


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_of_more_bytes_than_memory_should_hold_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: bool
) -> None:
    monkeypatch.setattr(whole_files, "MOST_BYTES", 1000)
    path = tmp_path / ("most.csv.gz" if packed else "most.csv")
    for bytes_ in (1000, 1001):
        path.write_bytes(gzip.compress(b"x" * bytes_) if packed else b"x" * bytes_)
        if bytes_ == 1000:
            assert len(read_text(path)) == 1000
        else:
            with pytest.raises(InputError, match=r"most\.csv.*: has more than 1000 bytes"):
                read_text(path)


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="a device that never ends")
def test_a_device_that_never_ends_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_files, "MOST_BYTES", 1000)
    with pytest.raises(InputError, match=r"^/dev/zero: has more than 1000 bytes"):
        read_text("/dev/zero")


@pytest.mark.parametrize("name", ["few.csv", "few.csv.gz"])
def test_a_small_file_takes_little_memory_however_large_files_may_be(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(b"few") if name.endswith("gz") else b"few")
    tracemalloc.start()
    try:
        assert read_text(path) == "few"
        assert tracemalloc.get_traced_memory()[1] < 2**23
    finally:
        tracemalloc.stop()
