"""A database with flipped bits is found out, whether SQLite stumbles over them or not."""

from __future__ import annotations

import json
import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from command_line import call

from metasched.store.database.integrity import check, damage
from metasched.store.database.store import Store
from metasched.store.errors import StoreError
from tests.store.database.test_backup import filled

FIRST_PAGE = 4096


def flip(path: Path, count: int, seed: int) -> None:
    """Flip bits of a database anywhere but on its first page, which tells how to read the others."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA journal_mode = DELETE")
    data, draw = bytearray(path.read_bytes()), random.Random(seed)
    for _ in range(count):
        data[draw.randrange(FIRST_PAGE, len(data))] ^= 1 << draw.randrange(8)
    path.write_bytes(data)


def sound(path: Path) -> bool:
    try:
        with Store.open(path) as store:
            return not damage(store)
    except StoreError:
        return False


def test_sixty_flipped_bits_are_found(tmp_path: Path) -> None:
    filled(tmp_path / "good.db")
    found = []
    for seed in range(10):
        bad = tmp_path / f"{seed}.db"
        bad.write_bytes((tmp_path / "good.db").read_bytes())
        flip(bad, 60, seed)
        found.append(not sound(bad))
    assert sound(tmp_path / "good.db")
    assert found == [True] * 10


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE models SET document = substr(document, 2)",
        "UPDATE models SET document = CAST(x'80ff' AS TEXT)",
        "UPDATE runs SET processors = -4",
        "UPDATE placements SET answer = '{}'",
        "INSERT INTO waiting_jobs VALUES ('0a', 5.0, '{}')",
        "INSERT INTO wait_errors VALUES ('slurm', '{}')",
        "INSERT INTO load_blocks VALUES (60, '[\"n0\"]', x'00')",
        "INSERT INTO load_blocks VALUES ('soon', '[\"n0\"]', x'00')",
        "INSERT INTO load_blocks VALUES (60, '5', 'x')",
        "UPDATE runs SET processors = 'four'",
        "UPDATE placements SET question = '[]'",
        "UPDATE loads SET available_cpu = 'half' WHERE time = 7",
        "INSERT INTO load_means VALUES (300, 'now', 'n0', 0.5, 90.0, 5)",
        "INSERT INTO past_jobs (uid, cluster, submit_time, run_time, processors) VALUES (5, 'c', 1.0, 'long', 4)",
    ],
)
def test_a_row_that_cannot_be_what_was_written_is_told(
    statement: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "m.db"
    filled(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE models SET document = ?", (json.dumps({"format": 1}),))
        connection.execute(statement)
        connection.commit()
    with Store.open(path) as store:
        assert damage(store) == ""
        assert len(check(store)) > int("models" not in statement)
    status, _, err = call(capsys, "db", "check", "--database", str(path))
    assert status == 1
    assert f"metasched: {path}" in err
