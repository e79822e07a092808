"""Samples on disk until the daemon has them: :class:`Spool`, which loses nothing that it said it kept.

SQLite with full synchronisation: when :meth:`Spool.keep` returns, the sample survives a crash and a power cut. When the
spool is full the oldest samples go first, and are counted.
"""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

from monitors.sources.contract import Sample


class Spool:
    """A queue of samples in one file.

    Parameters
    ----------
    path : the file; its folder is made where it is missing.
    capacity : how many samples are kept at most.

    Raises
    ------
    ValueError : the file cannot be opened or is no spool.

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
        self.capacity = capacity
        self.lost = 0
        self._lock = threading.Lock()
        try:
            if str(path) != ":memory:":
                path.parent.mkdir(parents=True, exist_ok=True)
            self._file = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=10.0)
            self._file.execute("PRAGMA journal_mode=WAL")
            self._file.execute("PRAGMA synchronous=FULL")
            self._file.execute("PRAGMA cache_size=-256")
            self._file.execute(
                "CREATE TABLE IF NOT EXISTS samples (number INTEGER PRIMARY KEY AUTOINCREMENT,"
                " node TEXT NOT NULL, time REAL NOT NULL, cpu REAL NOT NULL, bandwidth REAL NOT NULL)"
            )
            self._count = int(self._file.execute("SELECT count(*) FROM samples").fetchone()[0])
        except (OSError, sqlite3.Error) as error:
            raise ValueError(f"{path}: {error}, expected a spool that can be written") from None

    def __len__(self) -> int:
        return self._count

    def keep(self, sample: Sample) -> None:
        """Put a sample on disk; it is there when this returns.

        Raises
        ------
        sqlite3.Error : it could not be written, and is not kept; so one whose bandwidth is unknown.
        """
        with self._lock:
            self._file.execute(
                "INSERT INTO samples (node, time, cpu, bandwidth) VALUES (?, ?, ?, ?)",
                (sample.node, sample.time, sample.available_cpu, sample.available_bandwidth),
            )
            self._count += 1
            if self._count > self.capacity:
                self._drop_oldest(self._count - self.capacity)

    def oldest(self, count: int) -> list[tuple[int, Sample]]:
        """The oldest samples with their numbers, ascending."""
        with self._lock:
            rows = self._file.execute(
                "SELECT number, node, time, cpu, bandwidth FROM samples ORDER BY number LIMIT ?", (count,)
            ).fetchall()
        return [(number, Sample(*values)) for number, *values in rows]

    def forget(self, last: int) -> None:
        """Drop all samples up to this number: the daemon has them."""
        with self._lock:
            self._count -= self._file.execute("DELETE FROM samples WHERE number <= ?", (last,)).rowcount

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._file.close()

    def _drop_oldest(self, count: int) -> None:
        dropped = self._file.execute(
            "DELETE FROM samples WHERE number IN (SELECT number FROM samples ORDER BY number LIMIT ?)", (count,)
        ).rowcount
        self._count -= dropped
        self.lost += dropped
