"""Backups hold everything and come back whole, or not at all."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from metasched.cli import main
from metasched.records import InputError, Load, Run
from metasched.store.database import Store
from metasched.store.keeping import backup, restore, upgrade
from metasched.store.placements import Advice, Placements
from metasched.store.schema import HEAD
from metasched.store.tokens import Tokens


def filled(path: Path) -> None:
    with Store.open(path) as store:
        store.add_run(Run("cg", "c8", 1400, 4, 0.8, 93.5, 12.25, 100.5, ("n0", "n1")))
        store.add_loads([Load(float(second), f"n{second % 3}", 0.5, 90.0) for second in range(12_000)])
        store.save_model("cg", "c8", {"format": 1, "of": [1, 2.5, None]})
        Placements(store).add(
            [Advice("0a", 5.0, "cg", {"q": 1}, {"a": [1]}, {"o": 2}), Advice("0b", 6.0, "cg", {}, {})]
        )
        Tokens(store).add("n1", "agent", node="n1")


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
        store.add_run(Run("cg", "c8", 1, 1, 0.8, 93.5, 1.0))
        assert [run.problem_size for run in store.runs()] == [1400, 1]
    assert everything(tmp_path / "two.db")["loads"] == everything(tmp_path / "one.db")["loads"]
    assert everything(tmp_path / "two.db")["tokens"] == everything(tmp_path / "one.db")["tokens"]


def test_a_database_that_holds_something_is_replaced_only_when_told(tmp_path: Path) -> None:
    filled(tmp_path / "one.db")
    with Store.open(tmp_path / "one.db") as store:
        backup(store, tmp_path / "backup.db")
        store.add_run(Run("cg", "c8", 1, 1, 0.8, 93.5, 1.0))
        with pytest.raises(InputError, match=r"holds .* already"):
            restore(store, tmp_path / "backup.db")
        assert len(store.runs()) == 2
        restore(store, tmp_path / "backup.db", replace=True)
        assert len(store.runs()) == 1


@pytest.mark.parametrize("damage", ["cut", "garbage", "foreign", "missing"])
def test_a_backup_that_is_not_sound_changes_nothing(damage: str, tmp_path: Path) -> None:
    filled(tmp_path / "one.db")
    bad = tmp_path / "bad.db"
    with Store.open(tmp_path / "one.db") as store:
        if damage == "cut":
            backup(store, bad)
            whole = bad.read_bytes()
            bad.write_bytes(whole[: len(whole) // 2])
        elif damage == "garbage":
            bad.write_bytes(b"not a database" * 100)
        elif damage == "foreign":
            with closing(sqlite3.connect(bad)) as connection:
                connection.execute("CREATE TABLE x (y)")
        with pytest.raises(InputError, match=r"bad\.db") as told:
            restore(store, bad, replace=True)
        assert "\n" not in str(told.value)
        assert len(store.runs()) == 1


def test_a_backup_is_never_written_over_another_file(tmp_path: Path) -> None:
    filled(tmp_path / "one.db")
    (tmp_path / "backup.db").write_text("mine")
    with Store.open(tmp_path / "one.db") as store:
        with pytest.raises(InputError, match="there already"):
            backup(store, tmp_path / "backup.db")
        with pytest.raises(InputError, match="no such folder"):
            backup(store, tmp_path / "nowhere" / "backup.db")
    assert (tmp_path / "backup.db").read_text() == "mine"


def test_upgrading_tells_from_where_to_where(tmp_path: Path) -> None:
    location = str(tmp_path / "m.db")
    assert (upgrade(location).before, upgrade(location).before) == (None, HEAD)


def test_the_verbs_tell_in_json_what_they_did(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    filled(tmp_path / "one.db")

    def run(*words: str, database: str = "one.db") -> dict[str, object]:
        with pytest.raises(SystemExit) as left:
            main(["db", *words, "--database", str(tmp_path / database), "--json"])
        assert left.value.code == 0
        told: dict[str, object] = json.loads(capsys.readouterr().out)
        return told

    assert run("upgrade")["after"] == HEAD
    rows = run("backup", str(tmp_path / "b.db"))["rows"]
    assert run("restore", str(tmp_path / "b.db"), database="two.db")["rows"] == rows
    assert run("prune", "--loads", "1") == {"database": str(tmp_path / "one.db"), "loads": 12_000, "placements": 2}
