"""Keeps the connections to a SQLite database in its file.

A file that is deleted, moved or replaced while it is open can still be written: what was written is lost when it is
closed, or damages the file that lies in its place. SQLite does not look whether the file is still there, so each
connection is compared with it before it is used. The same holds for the log of its changes, which lies beside it.
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from pathlib import Path
from sqlite3 import Error
from threading import Lock
from typing import Any

from sqlalchemy import Engine, event

from metasched.store.errors import StoreError

_log = logging.getLogger(__name__)

Identity = tuple[int, int]


class MovedFileError(StoreError):
    """The file of the database, or the log of its changes, is no longer where it was opened."""


class OpenedFile:
    """The file that an engine's connections are to.

    Nothing is read or written while it is gone. If another file lies in its place, that is used once no connection to
    the first one is open.

    Parameters
    ----------
    engine : of a SQLite database that is a file.
    """

    def __init__(self, engine: Engine) -> None:
        self._path = os.path.abspath(engine.url.database or "")
        self._name = engine.url.database or ""
        self._file: Identity | None = None
        self._open: set[int] = set()
        self._lock = Lock()
        event.listen(engine, "do_connect", self._before_opening)
        event.listen(engine, "connect", self._opened)
        event.listen(engine, "checkout", self._before_use)
        event.listen(engine, "checkin", self._after_use)
        event.listen(engine, "close", self._before_closing)

    def _before_opening(self, _: object, __: object, words: list[Any], options: dict[str, Any]) -> None:
        with self._lock:
            if self._file is None:
                return
            # SQLite would make an empty file in its place if it went from now on.
            words[0], options["uri"] = f"{Path(self._path).as_uri()}?mode=rw", True
            found = _identity(self._path)
            if found == self._file:
                return
            if found is None or self._open:
                raise self._moved()
            _log.warning("%s was replaced while it was open; what was only in the earlier file is lost", self._name)
            self._file = found

    def _opened(self, connection: Any, record: Any) -> None:
        """Note the file; refuse a connection to one that has gone since, which the path would not tell any more."""
        with self._lock:
            found = _identity(self._path)
            if found is None or self._file not in (None, found):
                connection.close()
                raise self._moved()
            self._file = record.info["file"] = found
            self._open.add(id(connection))

    def _before_use(self, connection: Any, record: Any, _: object) -> None:
        if self._is_elsewhere(record):
            raise self._moved()

    def _after_use(self, connection: Any, record: Any) -> None:
        """Note the log, opened with the first transaction; close a connection whose file has gone meanwhile."""
        if connection is not None and self._is_elsewhere(record):
            record.invalidate()
        elif connection is not None and "log" not in record.info and (found := _identity(f"{self._path}-wal")):
            record.info["log"] = found

    def _before_closing(self, connection: Any, record: Any) -> None:
        """Leave nothing in a log that the next file would take for its own."""
        if self._is_elsewhere(record):
            with suppress(Error):
                connection.execute("PRAGMA busy_timeout = 0")
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        with self._lock:
            self._open.discard(id(connection))

    def _is_elsewhere(self, record: Any) -> bool:
        log = record.info.get("log")
        return _identity(self._path) != record.info.get("file") or (
            log is not None and _identity(f"{self._path}-wal") != log
        )

    def _moved(self) -> MovedFileError:
        return MovedFileError("was deleted, moved or replaced while it was open; put it back", where=self._name)


def _identity(path: str) -> Identity | None:
    """What tells a file from others; None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
