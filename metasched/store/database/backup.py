"""Backup and restore of a whole database; a backup is always a SQLite file.

So one taken from SQLite restores into PostgreSQL and the other way, and no program of the server is needed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Select, Table, delete, func, insert, select, text

from metasched.plain_numbers import number_of
from metasched.records import InputError
from metasched.store.database.engine import reading, said_clearly, writing
from metasched.store.database.integrity import damage
from metasched.store.database.leadership import led
from metasched.store.database.manifest import prove, seal
from metasched.store.database.schema import HEAD
from metasched.store.database.store import Store
from metasched.store.database.tables import kept_tables
from metasched.store.errors import StoreError
from metasched.store.files.whole_files import refusal

#: Rows that are copied at once.
TOGETHER = 5000
#: How the name of a folder begins in which a file is written until it is whole, and how long after its last change
#: such a folder may be an abandoned one (s): it is not locked in the moment when it is made.
UNFINISHED, ABANDONED = ".metasched-db-", 60.0


@dataclass(frozen=True, slots=True)
class Upgraded:
    """The schema before (None where there was no database yet) and after."""

    database: str
    before: str | None
    after: str


def upgrade(location: str | None) -> Upgraded:
    """Bring a database to the newest schema, making it where there is none.

    Raises
    ------
    InputError : when there is no database and none can be made there, or it is another program's, or of a newer schema.
    """
    with Store.open(location) as store:
        return Upgraded(store.name, store.schema_before, HEAD)


def backup(store: Store, to: str | os.PathLike[str]) -> Mapping[str, int]:
    """Write everything as it is at one moment into a new SQLite file; the database may be in use meanwhile.

    Returns
    -------
    Mapping
        How many rows of each table.

    Raises
    ------
    InputError : when there is such a file already, or it cannot be written; nothing is left behind then.
    """
    if not (folder := Path(to).parent).is_dir():
        raise InputError("there is no such folder", where=str(folder))
    with new_file(to) as fresh:
        with Store.open(fresh) as copy, _snapshot(store) as source, writing(copy.engine) as target:
            counts = _copied(source, target)
        with _opened_alone(fresh):
            pass
        seal(fresh, store.name)
    return counts


def restore(store: Store, backed_up: str | os.PathLike[str], *, replace: bool = False) -> Mapping[str, int]:
    """Put everything that a backup holds into a database, all or nothing; an older backup is upgraded on the way.

    The file proves itself a backup, whole and unchanged, before the database is touched.

    Parameters
    ----------
    store : where to; empty, unless ``replace`` says that what it holds may go.
    backed_up : the backup's file, which stays as it is.
    replace : remove what the database holds first.

    Raises
    ------
    InputError : when the file is no sound backup, or the database is not empty, or a daemon runs on it.
    """
    path = Path(backed_up)
    if not path.is_file():
        raise InputError("is no file, expected one that metasched db backup wrote", where=str(path))
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "backup.db")
        try:
            _copy_file(path, copy)
            prove(copy)
            with (
                _opened_alone(copy) as backed,
                reading(backed.engine) as source,
                led(store.engine),
                writing(store.engine, long=True) as target,
            ):
                if not replace and (rows := held(target)):
                    raise InputError(
                        f"holds {rows} already, expected an empty database, or --replace", where=store.name
                    )
                for table in reversed(kept_tables()):
                    target.execute(delete(table))
                return _copied(source, target)
        except (InputError, StoreError, OSError) as error:
            if str(copy) not in str(error):
                raise
            raise InputError(str(error).replace(str(copy), str(path))) from None


@contextmanager
def new_file(to: str | os.PathLike[str]) -> Iterator[Path]:
    """The path of a file that becomes a new one where all goes well; nothing is left behind otherwise.

    Raises
    ------
    InputError : when there is such a file already, or it cannot be written.
    """
    path = Path(to)
    if path.exists():
        raise InputError("already exists, expected a new file", where=str(path))
    _remove_abandoned(path.parent)
    try:
        # A folder of its own, which nobody else may read: the file holds the tokens' digests.
        folder = tempfile.mkdtemp(prefix=UNFINISHED, dir=path.parent)
    except OSError as error:
        raise InputError(f"cannot be written: {refusal(error)}", where=str(path)) from None
    in_use = _locked(folder)
    try:
        fresh = Path(folder, "new.db")
        yield fresh
        fresh.chmod(0o600)
        _put(fresh, path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if in_use is not None:
            os.close(in_use)


def _remove_abandoned(where: Path) -> None:
    """Remove what processes that were killed have left of files that they wrote here; those in use are locked."""
    for folder in where.glob(f"{UNFINISHED}*"):
        with suppress(OSError):
            abandoned = time.time() - folder.lstat().st_mtime > ABANDONED and folder.lstat().st_uid == os.geteuid()
            if abandoned and (free := _locked(folder)) is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(free)


def _locked(folder: str | Path) -> int | None:
    """A lock on a folder, which ends with its process; None where another has it, or the file system has no locks."""
    file = None
    try:
        file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        if file is not None:
            os.close(file)
        return None
    return file


def _copy_file(path: Path, copy: Path) -> None:
    try:
        shutil.copyfile(path, copy)
    except OSError as error:
        refused = f"cannot be copied to {copy.parent.parent}, the folder for temporary files (TMPDIR): {refusal(error)}"
        raise InputError(refused, where=str(path)) from None


def _put(fresh: Path, path: Path) -> None:
    """Give a file its name, which a link takes from no file that has come by it meanwhile."""
    try:
        os.link(fresh, path)
    except FileExistsError:
        raise InputError("already exists, expected a new file", where=str(path)) from None
    except OSError:  # a file system without links
        os.replace(fresh, path)


def copied(source: Connection, rows: Select[Any], target: Connection, into: Table) -> int:
    """Insert rows of one database into a table of another, some at a time; how many there were.

    Either database is named where it fails, whichever of their transactions is the inner one.
    """
    count = 0
    for some in _read(source, rows):
        target.execute(insert(into), some)
        count += len(some)
    return count


def _read(source: Connection, rows: Select[Any]) -> Iterator[list[dict[str, Any]]]:
    with said_clearly(source.engine):
        found = source.execution_options(stream_results=True).execute(rows).mappings()
        for some in found.partitions(TOGETHER):
            yield [dict(row) for row in some]


@contextmanager
def _snapshot(store: Store) -> Iterator[Connection]:
    """A transaction in which nothing changes: SQLite's always are, PostgreSQL's where requested."""
    engine = store.engine
    if engine.dialect.name == "postgresql":
        engine = engine.execution_options(isolation_level="REPEATABLE READ")
    with reading(engine, long=True) as connection:
        yield connection


@contextmanager
def _opened_alone(path: Path) -> Iterator[Store]:
    """A SQLite file that nobody else has open, checked and with nothing left in files beside it."""
    with Store.open(path) as store:
        if fault := damage(store):
            raise InputError(f"is damaged: {fault}", where=str(path))
        yield store
        raw = store.engine.raw_connection()
        raw.cursor().execute("PRAGMA journal_mode = DELETE")
        raw.close()


def _copied(source: Connection, target: Connection) -> dict[str, int]:
    counts = {}
    for table in kept_tables():
        counts[table.name] = copied(source, select(table), target, table)
    if target.dialect.name == "postgresql":
        # The numbers that PostgreSQL gives to new runs go on after those that were copied.
        last = "(SELECT coalesce(max(id), 0) + 1 FROM runs)"
        target.execute(text(f"SELECT setval(pg_get_serial_sequence('runs', 'id'), {last}, false)"))
    return counts


def held(connection: Connection) -> str:
    """What a database holds first, such as "12 runs"; empty where it holds nothing."""
    for table in kept_tables():
        if count := connection.scalar(select(func.count()).select_from(table)):
            return number_of(count, table.name.replace("_", " ").removesuffix("s"))
    return ""
