"""Which daemon leads where several are started on one database: only one may write, or runs would be learned by halves.

A SQLite file has a lock file beside it, which the system releases when its process ends in any way. On a
PostgreSQL server an advisory lock belongs to a session, and goes with it. A leader whose session was lost, and who does
not know it yet, writes nothing: each of its transactions looks whether the lock is still its own.
"""

from __future__ import annotations

import fcntl
import os
import socket
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine, create_engine, delete, event, func, insert, select, text, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from metasched.records import InputError
from metasched.store.database.answer_limits import limit_answers
from metasched.store.database.engine import (
    READ_ONLY,
    file_of,
    make_as_folder_owner,
    name_of,
    reading,
    said_clearly,
    writing,
)
from metasched.store.database.tables import LeaderRow
from metasched.store.errors import StoreError
from metasched.store.files.whole_files import refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Any fixed number below 2 ** 31: the advisory lock of a database's leader.
KEY = 0x6D657461
#: Time that a new leader waits before it reads the data (s), until the former one has noticed.
SETTLED = 3.0
#: How long the server's answer is waited for in the leader's session (s).
ANSWERED = 3.0
#: A leader's session is given up by the server when its host has been silent for some 5 s.
_KEEPALIVES = "SET tcp_keepalives_idle = 2; SET tcp_keepalives_interval = 1; SET tcp_keepalives_count = 3"
_OURS = text(
    "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND classid = 0 AND objid = :key AND pid = :session"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)
#: Which of a server's histories this is: each promotion of a standby begins another, which may lack the last commits.
_TIMELINE = text("SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)")


class Leadership:
    """The lead of one database, held or not.

    >>> import tempfile, pathlib
    >>> from metasched.store.database.store import Store
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Store.open(pathlib.Path(folder.name, "metasched.db")) as store:
    ...     one, other = Leadership(store.engine), Leadership(store.engine)
    ...     one.take(), other.take()
    ...     one.release()
    ...     other.take()
    ...     other.release()
    (True, False)
    True
    >>> folder.cleanup()
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._file: int | None = None
        self._session: Connection | None = None
        self._session_id: int | None = None
        self._number: int | None = None
        self._timeline: str | None = None
        self.name = f"{socket.gethostname()}, process {os.getpid()}"

    @property
    def shared(self) -> bool:
        """Whether several daemons may wait for the lead: on a server, not on a file."""
        return self._engine.dialect.name == "postgresql"

    def take(self) -> bool:
        """Become the leader, if there is none.

        Raises
        ------
        StoreError : when the database cannot be asked.
        InputError : when its file has several names, each of which would have a lock and a log of its own.
        """
        if self.shared:
            return self._take_session()
        path = file_of(self._engine)
        if path is None:
            return True
        with suppress(OSError):
            if (names := os.stat(path).st_nlink) > 1:
                why = f"has {names} hard links, expected one: SQLite has a log for each name"
                raise InputError(why, where=str(path))
        return self._take_file(f"{os.path.realpath(path)}-leader")

    def holds(self) -> bool:
        """Whether the lead is still held."""
        if self._session is None:
            return not self.shared
        try:
            return bool(self._session.scalar(_OURS, {"key": KEY, "session": self._session_id}))
        except SQLAlchemyError:
            self._drop_session()
            return False

    def note(self) -> bool:
        """Record the leader in the database; return whether that has changed by this daemon alone since it last led.

        Another may have led since, or a standby have been promoted that lacks what was stored last.
        """
        with writing(self._engine) as connection:
            last = connection.scalar(select(func.max(LeaderRow.number))) or 0
            timeline = connection.scalar(_TIMELINE) if self.shared else None
            alone = self._number in (None, last) and self._timeline in (None, timeline)
            self._number, self._timeline = last + 1, timeline
            row = {"number": self._number, "name": self.name, "since": time.time()}
            connection.execute(insert(LeaderRow), row)
            connection.execute(delete(LeaderRow).where(LeaderRow.number < self._number))
        return alone

    def superseded(self) -> bool:
        """Whether another daemon has led since this one last did.

        Where it has not and the lead is taken, a session of this daemon that was given up still has it: the server does
        not know yet.
        """
        with reading(self._engine) as connection:
            return connection.scalar(select(func.max(LeaderRow.number))) != self._number

    def leader(self) -> str:
        """The present or the latest leader; empty if there was none."""
        with reading(self._engine) as connection:
            return connection.scalar(select(LeaderRow.name).order_by(LeaderRow.number.desc()).limit(1)) or ""

    def guard(self) -> None:
        """From now on nothing is written through this engine unless the lead is held."""
        if self.shared:
            event.listen(self._engine, "begin", self._check)

    def release(self) -> None:
        """Give up the lead, so that another daemon can take over at once."""
        if self._session is not None:
            # A session that is closed has its lock until the server notices.
            with suppress(SQLAlchemyError):
                self._session.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": KEY})
        self._drop_session()
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _check(self, connection: Connection) -> None:
        if connection.get_execution_options().get("begin") != "IMMEDIATE":
            return
        if self._session_id is None or connection.scalar(_OURS, {"key": KEY, "session": self._session_id}) != 1:
            raise StoreError("this daemon does not lead", where=name_of(self._engine.url))

    def _take_file(self, path: str) -> bool:
        make_as_folder_owner(Path(path))
        try:
            try:
                file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
            except PermissionError:  # another user made it
                file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise StoreError(f"cannot be locked: {refusal(error)}", where=path) from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
            return False
        self._file = file
        return True

    def _take_session(self) -> bool:
        self._drop_session()
        # A session of its own, which no transaction of others can end.
        alone = create_engine(self._engine.url, isolation_level="AUTOCOMMIT", poolclass=NullPool)
        limit_answers(alone, ANSWERED)
        with said_clearly(self._engine):
            session = alone.connect()
            session.exec_driver_sql(_KEEPALIVES)
            # A standby has locks of its own, which say nothing of the primary's.
            if session.scalar(text("SHOW transaction_read_only")) == "on":
                session.close()
                raise StoreError(READ_ONLY, where=name_of(self._engine.url))
            if not session.scalar(text("SELECT pg_try_advisory_lock(:key)"), {"key": KEY}):
                session.close()
                return False
            self._session, self._session_id = session, session.scalar(text("SELECT pg_backend_pid()"))
        return True

    def _drop_session(self) -> None:
        session, self._session, self._session_id = self._session, None, None
        if session is not None:
            with suppress(SQLAlchemyError):
                session.invalidate()
            with suppress(SQLAlchemyError):
                session.close()


def write_again(engine: Engine) -> None:
    """Write what is known of the leader once more: it changes nothing, and shows whether the database takes anything.

    Raises
    ------
    StoreError : when it does not.
    """
    with writing(engine) as connection:
        connection.execute(update(LeaderRow).values(since=LeaderRow.since))


@contextmanager
def led(engine: Engine, expected: str = "it to be stopped first") -> Iterator[Leadership]:
    """Have the lead of a database while something is done with it that no daemon may see by halves.

    Parameters
    ----------
    engine : of the database.
    expected : what is to be done where a daemon has the lead.

    Raises
    ------
    InputError : when a daemon has it.
    """
    lead = Leadership(engine)
    if not lead.take():
        raise InputError(f"a daemon runs on it, expected {expected}", where=name_of(engine.url))
    try:
        yield lead
    finally:
        lead.release()
