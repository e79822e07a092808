"""Samples on disk until the daemon has them: :class:`Spool`, which never loses a stored sample.

SQLite with full synchronisation: when :meth:`Spool.keep` returns, the sample survives a crash and a power cut. When the
spool is full the oldest samples go first, which is logged when it begins. A file that turns out to be damaged is set
aside under another name, where an administrator may inspect it, and a new one is begun: a node is not left unmonitored
for it. Nor is it for a disk that is full or read-only when the agent starts: the file is opened with a later sample.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TextIO, TypeVar

from monitors.sources.contract import Sample

_log = logging.getLogger(__name__)
_T = TypeVar("_T")

#: SQLite's errors for a file that is damaged or not a database.
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
#: SQLite's errors for a disk that is full or faulty; for one that is read-only, or a file that only others may write.
_REFUSED = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
_NOT_WRITABLE = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)
#: Number of damaged files that are kept, the newest ones.
KEPT_ASIDE = 3
_COLUMNS = ("number", "node", "time", "cpu", "bandwidth")


class _InUseError(OSError):
    """Another agent has the spool: each would take its own samples for all that there are."""


class _DamagedError(Exception):
    """The file does not have the contents that this spool has written."""


class Spool:
    """A queue of samples in one file.

    Parameters
    ----------
    path : the file; its folder is made where it is missing.
    capacity : how many samples are kept at most.

    Raises
    ------
    ValueError : the file cannot be opened or written, or another agent uses it; a disk that is full or read-only is no
        error.

    Examples
    --------
    >>> spool = Spool(Path(":memory:"))
    >>> spool.keep(Sample("n0", 10.0, 0.5, 90.0))
    >>> [(number, sample.time) for number, sample in spool.oldest(10)]
    [(1, 10.0)]
    >>> spool.forget(1)
    >>> len(spool)
    0
    """

    def __init__(self, path: Path, capacity: int = 1_000_000) -> None:
        self.capacity, self._full = capacity, False
        self._path, self._lock = path, threading.Lock()
        #: None while the disk does not let it be opened.
        self._file: sqlite3.Connection | None = None
        self._count = 0
        self._own: TextIO | None = None
        try:
            self._begin()
        except _InUseError as error:
            raise ValueError(f"{path}: {error}, expected a spool for each agent") from None
        except (OSError, sqlite3.Error) as error:
            if not self._disk_refuses(error):
                raise ValueError(f"{path}: {error}, expected a spool that can be written") from None
            _log.error("%s: %s; it is opened when its disk can be written", path, error)

    def __len__(self) -> int:
        return self._count

    def keep(self, sample: Sample) -> None:
        """Put a sample on disk; it is there when this returns.

        Raises
        ------
        sqlite3.Error : it could not be written, and is not kept; so one whose bandwidth is unknown.
        """
        values = (sample.node, sample.time, sample.available_cpu, sample.available_bandwidth)

        def insert(file: sqlite3.Connection) -> None:
            file.execute("INSERT INTO samples (node, time, cpu, bandwidth) VALUES (?, ?, ?, ?)", values)
            self._count += 1
            if self._count > self.capacity:
                self._drop_oldest(file, self._count - self.capacity)

        with self._lock:
            if self._file is None:
                try:
                    self._begin()
                except OSError as error:
                    raise sqlite3.OperationalError(str(error)) from None
        self._done(insert)

    def oldest(self, count: int, after: int = 0, other_than: str = "") -> list[tuple[int, Sample]]:
        """The oldest samples after a number, with their numbers, ascending; without those of a node."""

        def read(file: sqlite3.Connection) -> list[tuple[int, Sample]]:
            columns = ", ".join(_COLUMNS)
            query = f"SELECT {columns} FROM samples WHERE number > ? AND node != ? ORDER BY number LIMIT ?"  # noqa: S608 - names of ours
            rows = file.execute(query, (after, other_than, count)).fetchall()
            if not all(isinstance(node, str) and {*map(type, values)} == {float} for _, node, *values in rows):
                raise _DamagedError("a sample is not what was written")
            return [(number, Sample(*values)) for number, *values in rows]

        return [] if self._file is None else self._done(read)

    def forget(self, last: int) -> None:
        """Drop all samples up to this number: the daemon has them."""

        def delete(file: sqlite3.Connection) -> None:
            self._count -= file.execute("DELETE FROM samples WHERE number <= ?", (last,)).rowcount
            self._full = False

        self._done(delete)

    def close(self) -> None:
        """Close the file; the spool cannot be used any more."""
        with self._lock:
            if self._file is not None:
                self._file.close()
            if self._own is not None:
                self._own.close()

    def _begin(self) -> None:
        """Open the file, a new one where it is damaged, and keep other agents from it."""
        if str(self._path) != ":memory:":
            self._path.parent.mkdir(parents=True, exist_ok=True)
            if self._own is None:
                self._own = _taken(Path(f"{os.path.realpath(self._path)}-agent"))
        try:
            self._open()
        except (sqlite3.Error, _DamagedError) as error:
            if not _damaged(error):
                raise
            self._begin_anew(error)

    def _open(self) -> None:
        file = sqlite3.connect(self._path, check_same_thread=False, isolation_level=None, timeout=10.0)
        try:
            self._count = _prepared(file)
        except BaseException:
            file.close()
            raise
        self._file = file

    def _disk_refuses(self, error: Exception) -> bool:
        """Whether the disk of the file is full, faulty or read-only."""
        code = (getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF
        if code in _REFUSED or getattr(error, "errno", None) in (errno.ENOSPC, errno.EROFS, errno.EIO, errno.EDQUOT):
            return True
        there = next((each for each in self._path.parents if each.is_dir()), Path())
        return code in _NOT_WRITABLE and bool(os.statvfs(there).f_flag & os.ST_RDONLY)

    def _done(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Do something with the file, with a new one where it turns out to be damaged."""
        with self._lock:
            try:
                return work(self._open_file)
            except (sqlite3.Error, _DamagedError) as error:
                if not _damaged(error):
                    raise
                try:
                    self._begin_anew(error)
                except OSError as failure:
                    raise sqlite3.OperationalError(f"a damaged spool cannot be set aside: {failure}") from error
                return work(self._open_file)

    @property
    def _open_file(self) -> sqlite3.Connection:
        if self._file is None:
            raise sqlite3.OperationalError("the spool is not open")
        return self._file

    def _begin_anew(self, error: Exception) -> None:
        """Set the file aside, and begin a new one."""
        if self._file is not None:
            self._file.close()
            self._file = None
        aside = self._path.with_name(f"{self._path.name}.damaged-{time.time_ns()}")
        self._path.rename(aside)
        for beside in ("-wal", "-shm"):  # they belong to the damaged file, and must not be taken for the new one's
            log = self._path.with_name(self._path.name + beside)
            if log.exists():
                log.rename(aside.with_name(aside.name + beside))
        reason = " ".join(str(error).split())
        _log.error("%s is damaged (%s): it is renamed to %s, and a new spool is created", self._path, reason, aside)
        named = self._path.parent.glob(f"{self._path.name}.damaged-*")
        kept = sorted(each for each in named if each.suffix[-1].isdigit())
        for old in kept[:-KEPT_ASIDE]:
            for each in (old, old.with_name(f"{old.name}-wal"), old.with_name(f"{old.name}-shm")):
                each.unlink(missing_ok=True)
        self._open()

    def _drop_oldest(self, file: sqlite3.Connection, count: int) -> None:
        dropped = file.execute(
            "DELETE FROM samples WHERE number IN (SELECT number FROM samples ORDER BY number LIMIT ?)", (count,)
        ).rowcount
        self._count -= dropped
        if not self._full:
            _log.warning("%s is full: the oldest samples are dropped, %d are kept", self._path, self.capacity)
        self._full = True


def _taken(path: Path) -> TextIO:
    """A lock file that this process has, until it is closed or the process ends in any way."""
    try:
        file = path.open("a")
    except PermissionError:  # another user made it
        file = path.open()
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise _InUseError("another agent uses it") from None
    except OSError:  # its file system has no locks
        pass
    return file


def _prepared(file: sqlite3.Connection) -> int:
    """How many samples a file holds that has just been opened, with its table where it had none."""
    for setting in ("journal_mode=WAL", "synchronous=FULL", "cache_size=-256"):
        file.execute(f"PRAGMA {setting}")
    if (result := file.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
        raise _DamagedError(result)
    file.execute(
        "CREATE TABLE IF NOT EXISTS samples (number INTEGER PRIMARY KEY AUTOINCREMENT,"
        " node TEXT NOT NULL, time REAL NOT NULL, cpu REAL NOT NULL, bandwidth REAL NOT NULL)"
    )
    if tuple(row[1] for row in file.execute("PRAGMA table_info(samples)")) != _COLUMNS:
        raise _DamagedError("it has a table of samples with other columns")
    return int(file.execute("SELECT count(*) FROM samples").fetchone()[0])


def _damaged(error: Exception) -> bool:
    """Whether an error says that the file is damaged; one that is full, locked or not ours to write is not."""
    return isinstance(error, _DamagedError) or (getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF in _DAMAGED
