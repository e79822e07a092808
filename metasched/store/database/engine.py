"""The connection to the database: its location, and its errors in one line.

SQLite needs a few things set that its driver leaves as they were twenty years ago. Transactions are begun here and
not by the driver, which would begin them too late; those that will write take the write lock at once, since two readers
that both decide to write would otherwise end in a deadlock that no waiting resolves. With write-ahead logging readers
never wait; ``synchronous=NORMAL`` then survives the death of any process, and costs at most the last few runs in a
power cut.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from json import JSONDecodeError
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DataError, NoSuchModuleError, StatementError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from metasched.records import InputError
from metasched.store.database.answer_limits import limit_answers
from metasched.store.database.opened_file import MovedFileError, OpenedFile
from metasched.store.errors import StoreError
from metasched.store.files.user_folders import data_folder

_NO_URL = "is not the URL of a database"
_NO_DATABASE = "is not a SQLite database"
_DAMAGED = "is damaged; restore it from a copy"
_NO_ACCESS = "cannot be opened: there is no such folder, no permission, or its disk is read-only"
READ_ONLY = "is read-only: its server is a standby, or was set so"
#: What a driver says before it lists the servers that it has tried.
_ATTEMPTS = "All failures were: - "
_LOCKED, _FULL = "is locked by another process", "cannot grow: the disk is full"
#: What the states of PostgreSQL mean to the user (appendix "PostgreSQL Error Codes" of its manual): its messages are in
#: the language of the server.
_STATES = {"25006": READ_ONLY, "55P03": _LOCKED, "53100": _FULL}
#: What the messages of SQLite and of the driver for PostgreSQL mean to the user.
_MEANINGS = {
    "readonly": "is read-only",
    "is locked": _LOCKED,
    "not a database": _NO_DATABASE,
    "malformed": _DAMAGED,
    "unable to open": _NO_ACCESS,
    "Could not decode": _DAMAGED,
    "disk is full": _FULL,
    "too large to convert": "holds no whole number of more than 64 bits",
    "connection timeout expired": "cannot be reached: the server does not answer",
}
#: What SQLite's driver raises for numbers of more than 64 bits, and for names that are no Unicode.
_UNSTORABLE = (OverflowError, UnicodeEncodeError)


def default_location() -> str:
    """The default location of the database: ``$METASCHED_DB``, else ``metasched.db`` in the user's data folder."""
    if named := os.environ.get("METASCHED_DB"):
        return named
    return str(data_folder() / "metasched.db")


def connect(location: str | os.PathLike[str], timeout: float) -> Engine:
    """Make an engine for a URL, or for the path of a SQLite file.

    Parameters
    ----------
    location : URL, or path of a SQLite file.
    timeout : how long a lock is waited for, and a server's answer (s).
    """
    url = url_of(location)
    try:
        engine = _engine(url)
    except (NoSuchModuleError, ModuleNotFoundError) as error:
        raise InputError(f"no driver is installed for it ({error})", where=name_of(url)) from None
    except (ArgumentError, ValueError):
        raise InputError(_NO_URL) from None
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", lambda connection, _: _prepare(connection, timeout))
        event.listen(engine, "begin", _begin)
        if not _in_memory(engine):
            OpenedFile(engine)
    limit_answers(engine, timeout)
    return engine


def url_of(location: str | os.PathLike[str]) -> URL:
    """The URL of a database that is given as one, or as the path of a SQLite file.

    Raises
    ------
    InputError : when it looks like a URL and is none of a database.
    """
    text = os.fspath(location)
    try:
        return make_url(text) if "://" in text else URL.create("sqlite", database=text)
    except (ArgumentError, ValueError):
        raise InputError(_NO_URL) from None


def file_of(engine: Engine) -> Path | None:
    """The file of a SQLite database; None for one in memory, by an address of SQLite's own, or on a server."""
    if engine.dialect.name != "sqlite" or _in_memory(engine):
        return None
    return Path(engine.url.database or "")


def make_as_folder_owner(path: Path) -> None:
    """Create a file as root, and give it to the owner of its folder; do nothing where it is there, or as another user.

    An administrator makes the first token, or looks around, as root; the daemon has to use the file as its own user.
    """
    if os.geteuid() != 0:
        return
    try:
        folder = os.stat(path.parent)
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o640))
        os.chown(path, folder.st_uid, folder.st_gid)
    except OSError:
        return  # It is there already, or cannot be created: whoever opens it next says so.


def _in_memory(engine: Engine) -> bool:
    """Whether a SQLite database is no file, or one that SQLite finds by an address of its own."""
    return engine.url.database in (None, "", ":memory:") or "uri" in engine.url.query


def _engine(url: URL) -> Engine:
    """An engine whose connections hold little: one is used again before the next, and none keeps its statements.

    Each connection that is used has a cache of its own, and a statement kept by SQLite's driver keeps the last values
    that it was given, blocks of megabytes among them.
    """
    held = {"connect_args": {"cached_statements": 0}} if url.get_backend_name() == "sqlite" else {}
    try:
        return create_engine(url, pool_use_lifo=True, **held)
    except TypeError:  # a database in memory has no such pool
        return create_engine(url, **held)


def name_of(url: URL) -> str:
    """The name of the database in messages: the path of a file, else the URL without its password."""
    return url.database or "memory" if url.get_backend_name() == "sqlite" else url.render_as_string(hide_password=True)


@contextmanager
def reading(engine: Engine, *, long: bool = False) -> Iterator[Connection]:
    """A transaction that sees one consistent state and writes nothing.

    ``long`` says that a statement may take a server minutes.
    """
    with said_clearly(engine), engine.execution_options(long=long).connect() as connection:
        yield connection


@contextmanager
def writing(engine: Engine, *, long: bool = False) -> Iterator[Connection]:
    """A transaction that holds the write lock from its beginning; committed at the end, undone by any exception.

    ``long`` says that a statement may take a server minutes.
    """
    with said_clearly(engine), engine.execution_options(begin="IMMEDIATE", long=long).begin() as connection:
        yield connection


@contextmanager
def said_clearly(engine: Engine) -> Iterator[None]:
    """What this database refuses, as an error of ours that names it."""
    try:
        yield
    except MovedFileError:
        engine.dispose()  # its connections are to a file that is not there
        raise
    except (StatementError, PoolTimeoutError, *_UNSTORABLE) as error:
        given = getattr(error, "orig", None) or error
        said = f"{given.object!a}: expected UTF-8" if isinstance(given, UnicodeEncodeError) else str(given)
        said = " ".join(said.split()).rpartition(_ATTEMPTS)[2]
        found = _STATES.get(getattr(given, "sqlstate", None) or "")
        meaning = found or next((meaning for sign, meaning in _MEANINGS.items() if sign in said), said)
        # Only a value that no column can hold is the fault of whoever gave it.
        kind = InputError if isinstance(error, DataError) or isinstance(given, _UNSTORABLE) else StoreError
        raise kind(meaning, where=name_of(engine.url)) from error
    except (JSONDecodeError, UnicodeDecodeError) as error:
        raise StoreError(_DAMAGED, where=name_of(engine.url)) from error


@contextmanager
def opening() -> Iterator[None]:
    """While a database is opened, a place where none can be is wrong input: somebody has just named it."""
    try:
        yield
    except StoreError as error:
        if str(error).endswith((_NO_DATABASE, _NO_ACCESS)):
            raise InputError(str(error)) from error
        raise


def _prepare(connection: Any, timeout: float) -> None:
    connection.isolation_level = None
    connection.execute(f"PRAGMA busy_timeout = {int(1000 * timeout)}")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA foreign_keys = ON")


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql(f"BEGIN {connection.get_execution_options().get('begin', 'DEFERRED')}")
