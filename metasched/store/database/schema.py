"""Bringing a database to the schema of this metasched, by Alembic, when it is opened.

The upgrade runs inside one transaction that holds the write lock and looks again once it has it, so that of several
processes that open a fresh file at once one makes the tables and the others find them made. Nothing is ever downgraded:
a database that a newer metasched has upgraded is refused.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Engine, String, column, inspect, select, table, text

from metasched.records import InputError
from metasched.store.database.engine import name_of, reading, writing

if TYPE_CHECKING:
    from alembic.script import ScriptDirectory

#: The newest revision. It stands here so that a database that is up to date, which is nearly every one that is opened,
#: is recognised without loading Alembic.
HEAD = "0013"
#: The table in which Alembic notes the revision. Not its usual name, which another program's database may have too.
VERSION_TABLE = "metasched_schema"
#: Any fixed number but the leader's; processes that upgrade the same PostgreSQL database queue up behind it.
_UPGRADE_LOCK = 0x6D657462


def script() -> ScriptDirectory:
    """The revisions that are shipped with the package."""
    from alembic.script import ScriptDirectory

    return ScriptDirectory(str(Path(__file__).parent / "migrations"))


def revision_of(connection: Connection) -> str | None:
    """The revision that a database is at; None for one that has no tables of ours."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    return connection.scalar(select(column("version_num", String)).select_from(table(VERSION_TABLE)))


def bring_up(engine: Engine) -> str | None:
    """Upgrade a database to the newest revision; do nothing to one that is there already.

    Returns
    -------
    str or None
        The revision that it was at before; None where it had no tables of ours.

    Raises
    ------
    InputError
        When the database is another program's, or of a newer schema, or the upgrade needs to write and may not.
    """
    with reading(engine) as connection:
        at = before = revision_of(connection)
    if at != HEAD:
        _refuse_newer(at, engine)
        with writing(engine, long=True) as connection:
            if engine.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _UPGRADE_LOCK})
            at = revision_of(connection)
            if at is None:
                _refuse_foreign(connection)
            _refuse_newer(at, engine)
            upgrade(connection, HEAD)
    if engine.dialect.name == "sqlite":
        _log_ahead(engine)
    return before


def _refuse_newer(at: str | None, engine: Engine) -> None:
    if at is not None and at > HEAD:
        raise InputError(
            f"has schema {at}, newer than schema {HEAD} that this metasched knows, expected the newer metasched, "
            "a copy that it writes for this one (metasched db downgrade), or a new database",
            where=name_of(engine.url),
        )


def _refuse_foreign(connection: Connection) -> None:
    if tables := sorted(set(inspect(connection).get_table_names()) - {VERSION_TABLE}):
        raise InputError(
            f"is a database of another program (it has a table {tables[0]})", where=name_of(connection.engine.url)
        )


def upgrade(connection: Connection, target: str) -> None:
    """Run the migrations that lead to a revision."""
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext

    scripts = script()

    def revisions(at: Any, _: Any) -> Any:
        return scripts._upgrade_revs(target, at)

    with EnvironmentContext(Config(), scripts, fn=revisions, destination_rev=target) as environment:
        environment.configure(connection=connection, version_table=VERSION_TABLE)
        environment.run_migrations()


def _log_ahead(engine: Engine) -> None:
    """Switch the file to write-ahead logging, once; it stays so.

    The switch needs the file to itself and does not wait for it. Where that fails the file works as before, only
    slower, and the next process to open it tries again.
    """
    with reading(engine) as connection:
        if connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal":
            return
    raw = engine.raw_connection()
    with suppress(Exception):
        raw.cursor().execute("PRAGMA journal_mode = WAL")
    raw.close()
