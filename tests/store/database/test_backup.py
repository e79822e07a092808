"""Backups hold everything and come back whole, or not at all."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sqlite3
import stat
import struct
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from command_line import call, status_of

from metasched.advised_placements import AdvisedPlacement, Answer, Ask, Outcome
from metasched.records import InputError, Load, Run
from metasched.store.database.backup import backup, new_file, restore, upgrade
from metasched.store.database.schema import HEAD
from metasched.store.database.store import Store
from metasched.store.errors import StoreError


def filled(path: Path) -> None:
    path.write_bytes(_filled())


@cache
def _filled() -> bytes:
    with TemporaryDirectory() as folder:
        _fill(Path(folder, "filled.db"))
        with closing(sqlite3.connect(Path(folder, "filled.db"))) as connection:
            return connection.serialize()


def _fill(path: Path) -> None:
    with Store.open(path) as store:
        store.runs.add(Run("cg", "c8", 1400, 4, 0.8, 93.5, 12.25, 100.5, ("n0", "n1")))
        store.loads.add([Load(float(second), f"n{second % 3}", 0.5, 90.0) for second in range(12_000)])
        store.models.save("cg", "c8", {"format": 1, "of": [1, 2.5, None]})
        asked = Ask(application="cg", problem_size=900)
        for uid in ("0a", "0b"):
            answer = Answer(id=uid, mode="act", steer="nodes", placed=False, message="none")
            store.placements.add([AdvisedPlacement(5.0, asked, answer)])
        store.placements.settle("0a", Outcome("c8", "p", ("n0",), 1, 9.0, 0))
        store.tokens.add("n1", "agent", node="n1")


def everything(path: Path) -> dict[str, list[tuple[object, ...]]]:
    with closing(sqlite3.connect(path)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: sorted(connection.execute(f"SELECT * FROM {name}"), key=str) for name in names}


def test_what_is_backed_up_comes_back_whole(tmp_path: Path) -> None:
    filled(tmp_path / "one.db")
    with Store.open(tmp_path / "one.db") as store:
        counts = backup(store, tmp_path / "backup.db")
    assert (counts["runs"], counts["loads"], counts["placements"]) == (1, 12_000, 2)
    assert (tmp_path / "backup.db").stat().st_mode & 0o077 == 0
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith((".", "backup"))) == ["backup.db"]
    with Store.open(tmp_path / "two.db") as store:
        assert restore(store, tmp_path / "backup.db") == counts
        store.runs.add(Run("cg", "c8", 1, 1, 0.8, 93.5, 1.0))
        assert [run.problem_size for run in store.runs.learnable()] == [1400, 1]
    assert everything(tmp_path / "two.db")["loads"] == everything(tmp_path / "one.db")["loads"]
    assert everything(tmp_path / "two.db")["tokens"] == everything(tmp_path / "one.db")["tokens"]


def test_a_database_that_holds_something_is_replaced_only_when_told(tmp_path: Path) -> None:
    filled(tmp_path / "one.db")
    with Store.open(tmp_path / "one.db") as store:
        backup(store, tmp_path / "backup.db")
        store.runs.add(Run("cg", "c8", 1, 1, 0.8, 93.5, 1.0))
        with pytest.raises(InputError, match=r"holds .* already"):
            restore(store, tmp_path / "backup.db")
        assert len(store.runs.learnable()) == 2
        restore(store, tmp_path / "backup.db", replace=True)
        assert len(store.runs.learnable()) == 1


def cut(good: Path, bad: Path) -> None:
    whole = good.read_bytes()
    bad.write_bytes(whole[: len(whole) // 2])


def changed(statement: str) -> Callable[[Path, Path], None]:
    def change(good: Path, bad: Path) -> None:
        shutil.copyfile(good, bad)
        with closing(sqlite3.connect(bad)) as connection:
            connection.execute(statement)
            connection.commit()

    return change


def flipped(good: Path, bad: Path) -> None:
    """One bit of a load, which leaves the file sound to SQLite."""
    whole, value = good.read_bytes(), struct.pack(">dd", 0.5, 90.0)
    assert whole.count(value[:7]) > 1000
    at = whole.index(value[:7]) + 6
    bad.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])


def of_nothing(_: Path, bad: Path) -> None:
    with Store.open(bad.parent / "nothing.db") as nothing:
        backup(nothing, bad)


DAMAGES: dict[str, Callable[[Path, Path], None]] = {
    "cut": cut,
    "garbage": lambda _, bad: bad.write_bytes(b"not a database" * 100) and None,
    "foreign": lambda _, bad: sqlite3.connect(bad).execute("CREATE TABLE x (y)").connection.close(),
    "missing": lambda _, bad: None,
    "a folder": lambda _, bad: bad.mkdir(),
    "empty": lambda _, bad: bad.touch(),
    "of an empty database": of_nothing,
    "an empty database": lambda _, bad: Store.open(bad).close(),
    "flipped": flipped,
    "a row less": changed("DELETE FROM loads WHERE time = 7"),
    "of another format": changed("UPDATE metasched_backup SET format = 2"),
    "of a newer schema": changed("UPDATE metasched_schema SET version_num = '9999'"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_backup_that_is_not_sound_changes_nothing(damage: str, tmp_path: Path) -> None:
    filled(tmp_path / "one.db")
    bad = tmp_path / "bad.db"
    with Store.open(tmp_path / "one.db") as store:
        backup(store, tmp_path / "good.db")
        DAMAGES[damage](tmp_path / "good.db", bad)
        with pytest.raises(InputError, match=r"bad\.db") as raised:
            restore(store, bad, replace=True)
        assert "\n" not in str(raised.value)
        assert len(store.runs.learnable()) == 1


def test_a_backup_of_before_there_were_manifests_is_restored(tmp_path: Path) -> None:
    filled(tmp_path / "one.db")
    with Store.open(tmp_path / "one.db") as store:
        backup(store, tmp_path / "backup.db")
    with closing(sqlite3.connect(tmp_path / "backup.db")) as connection:
        connection.execute("DROP TABLE metasched_backup")
        connection.execute("DROP TABLE leaders")
        for later in ("past_jobs", "sent_jobs", "known_sites", "waiting_jobs", "wait_errors"):
            connection.execute(f"DROP TABLE {later}")
        connection.execute("ALTER TABLE tokens DROP COLUMN user")
        connection.execute("UPDATE metasched_schema SET version_num = '0007'")
        connection.commit()
    with Store.open(tmp_path / "two.db") as store:
        assert restore(store, tmp_path / "backup.db")["loads"] == 12_000


def test_a_database_of_a_newer_version_stays_and_says_how_the_backup_can_still_be_restored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    filled(tmp_path / "one.db")
    with Store.open(tmp_path / "one.db") as store:
        backup(store, tmp_path / "backup.db")
    with closing(sqlite3.connect(tmp_path / "one.db")) as connection, connection:
        connection.execute("UPDATE metasched_schema SET version_num = '9999'")
    newer = (tmp_path / "one.db").read_bytes()

    def status(database: str) -> object:
        return status_of(
            "db", "restore", str(tmp_path / "backup.db"), "--replace", "--database", str(tmp_path / database)
        )

    assert status("one.db") == 2
    assert capsys.readouterr().err.split(", expected ")[1] == (
        "the newer metasched, a copy that it writes for this one (metasched db downgrade), or a new database\n"
    )
    assert (tmp_path / "one.db").read_bytes() == newer
    assert status("new.db") == 0


def test_a_backup_is_never_written_over_another_file(tmp_path: Path) -> None:
    filled(tmp_path / "one.db")
    (tmp_path / "backup.db").write_text("mine")
    with Store.open(tmp_path / "one.db") as store:
        with pytest.raises(InputError, match="already exists"):
            backup(store, tmp_path / "backup.db")
        with pytest.raises(InputError, match="no such folder"):
            backup(store, tmp_path / "nowhere" / "backup.db")
    assert (tmp_path / "backup.db").read_text() == "mine"


def test_what_is_in_the_way_of_a_restored_backup_is_counted_in_words(tmp_path: Path) -> None:
    with Store.open(tmp_path / "one.db") as store:
        store.runs.add(Run("cg", "c8", 1, 1, 0.8, 93.5, 1.0))
        backup(store, tmp_path / "backup.db")
        with pytest.raises(InputError, match="holds 1 run already"):
            restore(store, tmp_path / "backup.db")


def test_upgrading_tells_from_where_to_where(tmp_path: Path) -> None:
    location = str(tmp_path / "m.db")
    assert (upgrade(location).before, upgrade(location).before) == (None, HEAD)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_a_database_that_root_makes_by_an_upgrade_is_the_daemons(tmp_path: Path) -> None:
    os.chown(tmp_path, 4321, 4321)
    upgrade(str(tmp_path / "m.db"))
    found = (tmp_path / "m.db").stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (4321, 4321, 0o640)


def test_the_verbs_tell_in_json_what_they_did(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    filled(tmp_path / "one.db")

    def run(*words: str, database: str = "one.db") -> dict[str, object]:
        status, out, _ = call(capsys, "db", *words, "--database", str(tmp_path / database), "--json")
        assert status == 0
        output: dict[str, object] = json.loads(out)
        return output

    assert run("upgrade")["after"] == HEAD
    rows = run("backup", str(tmp_path / "b.db"))["rows"]
    assert run("restore", str(tmp_path / "b.db"), database="two.db")["rows"] == rows
    assert run("prune", "--loads", "1") == {
        "database": str(tmp_path / "one.db"),
        "loads": 12_000,
        "placements": 2,
        "past_jobs": 0,
    }


def test_a_file_that_another_has_made_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    def both() -> None:
        with new_file(tmp_path / "one") as fresh:
            fresh.write_text("ours")
            (tmp_path / "one").write_text("theirs")

    with pytest.raises(InputError, match=r"one: already exists, expected a new file$"):
        both()
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"one": "theirs"}


KILLED = """
import os, signal, sys
from metasched.store.database.backup import new_file
with new_file(sys.argv[1]) as fresh:
    fresh.write_text("half")
    print(fresh.parent, flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("killed", [True, False])
def test_what_a_killed_process_has_left_goes_with_the_next_file_and_what_is_in_use_stays(
    killed: bool, tmp_path: Path
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, tmp_path / "one"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    folder = Path(process.stdout.readline().strip())
    assert folder.parent == tmp_path
    if killed:
        process.kill()
        process.wait(60.0)
    assert folder.is_dir()
    os.utime(folder, (1e9, 1e9))
    (tmp_path / ".metasched-others").mkdir()
    with new_file(tmp_path / "two") as fresh:
        fresh.write_text("ours")
    process.communicate("", timeout=60.0)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {".metasched-others", "two"} | (set() if killed else {"one"})


def test_the_database_that_is_damaged_is_named_not_the_copy_that_is_made_of_it(tmp_path: Path) -> None:
    filled(tmp_path / "one.db")
    content = bytearray((tmp_path / "one.db").read_bytes())
    content[len(content) // 2 : len(content) // 2 + 40_960] = b"\xff" * 40_960
    (tmp_path / "one.db").write_bytes(content)
    with Store.open(tmp_path / "one.db") as store, pytest.raises(StoreError) as raised:
        backup(store, tmp_path / "b.db")
    assert str(raised.value) == f"{tmp_path / 'one.db'}: is damaged; restore it from a copy"
    assert not (tmp_path / "b.db").exists()


def test_the_folder_without_room_for_a_copy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(tmp_path / "one.db")
    with Store.open(tmp_path / "one.db") as store:
        backup(store, tmp_path / "b.db")

        def full(source: Path, target: Path) -> None:
            raise OSError(errno.ENOSPC, "No space left on device", str(source), None, str(target))

        monkeypatch.setattr(shutil, "copyfile", full)
        with pytest.raises(InputError, match=r"b\.db: cannot be copied to .*TMPDIR.*: no space left on device$"):
            restore(store, tmp_path / "b.db", replace=True)


def test_a_file_system_without_links_takes_a_new_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr("os.link", refused)
    with new_file(tmp_path / "one") as fresh:
        fresh.write_text("ours")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"one": "ours"}
