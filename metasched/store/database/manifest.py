"""The manifest of a backup: its format, its schema, the number of rows of each table, and a digest of them.

The manifest is a table of one row in the backup's own file. It makes the file known as a backup, whole and unchanged,
before anything is replaced by it.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from metasched.records import InputError
from metasched.store.database.schema import HEAD, VERSION_TABLE
from metasched.store.database.tables import kept_tables

TABLE = "metasched_backup"
FORMAT = 1
#: The last schema whose backups had no manifest.
UNSEALED = "0007"


def seal(path: Path, source: str) -> None:
    """Write the manifest of a complete backup, which no other process has open.

    Parameters
    ----------
    path : of the backup, a SQLite file at the newest schema.
    source : the name of the database that it was taken of.
    """
    with closing(sqlite3.connect(path)) as file:
        tables = [table.name for table in kept_tables()]
        rows, digest = _digest(file, tables)
        file.execute(f"CREATE TABLE {TABLE} (format, schema, made_at, source, rows, digest)")
        row = (FORMAT, HEAD, time.time(), source, json.dumps(rows), digest)
        file.execute(f"INSERT INTO {TABLE} VALUES (?, ?, ?, ?, ?, ?)", row)  # noqa: S608 - a name of ours
        file.commit()


def prove(path: Path) -> Mapping[str, int]:
    """Make sure that a file is a backup, whole and unchanged; the file is not changed.

    A backup of a metasched that wrote no manifest is one by its schema, where SQLite finds it sound.

    Returns
    -------
    Mapping
        How many rows of each table it holds.

    Raises
    ------
    InputError : when it is not, or it holds nothing.
    """
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as file:
            rows = _proven(file)
    except (sqlite3.Error, ValueError, OverflowError) as error:
        fault = str(error) if isinstance(error, InputError) else f"is damaged: {' '.join(str(error).split())}"
        raise InputError(f"{fault}, expected a file that metasched db backup wrote", where=str(path)) from None
    if not any(rows.values()):
        raise InputError("holds nothing, expected a backup with something to restore", where=str(path))
    return rows


def _proven(file: sqlite3.Connection) -> dict[str, int]:
    there = {name for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if VERSION_TABLE not in there:
        raise InputError("is not a backup: it has no schema of metasched")
    (schema,) = file.execute(f"SELECT version_num FROM {VERSION_TABLE}").fetchone() or (None,)  # noqa: S608
    if (fault := file.execute("PRAGMA integrity_check(1)").fetchone()[0]) != "ok":
        raise InputError(f"is damaged: {' '.join(fault.split())}")
    if TABLE not in there:
        if str(schema) > UNSEALED:
            raise InputError("is not a backup: it has no manifest")
        known = [table.name for table in kept_tables() if table.name in there]
        return _digest(file, known)[0]
    columns = "format, schema, rows, digest"
    form, of, said, digest = file.execute(f"SELECT {columns} FROM {TABLE}").fetchone()  # noqa: S608
    if form != FORMAT:
        raise InputError(f"has format {form!r}, newer than format {FORMAT} that this metasched knows")
    rows: dict[str, int] = json.loads(said)
    if of != schema or not set(rows) <= there or (rows, digest) != _digest(file, list(rows)):
        raise InputError("is damaged: its content differs from what was written")
    return rows


def _digest(file: sqlite3.Connection, tables: list[str]) -> tuple[dict[str, int], str]:
    """The number of rows of some tables, and a SHA-256 digest of all of them in the order of their keys."""
    rows, digest = dict.fromkeys(tables, 0), hashlib.sha256()
    for name in tables:
        keys = [column for _, column, _, _, _, key in file.execute(f'PRAGMA table_info("{name}")') if key]
        digest.update(name.encode())
        for row in file.execute(f'SELECT * FROM "{name}" ORDER BY {", ".join(keys)}'):  # noqa: S608
            digest.update(repr(row).encode("utf-8", "surrogatepass"))
            rows[name] += 1
    return rows, digest.hexdigest()
