"""Bringing a database to the schema of this metasched, by Alembic, when it is opened.

The upgrade runs inside one transaction that holds the write lock and looks again once it has it, so that of several
processes that open a fresh file at once one makes the tables and the others find them made. Nothing is ever downgraded:
a database that a newer metasched has upgraded is refused.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, inspect, text

from metasched.records import InputError
from metasched.store.engine import name_of, reading, writing

#: The table in which Alembic notes the revision. Not its usual name, which another program's database may have too.
VERSION_TABLE = "metasched_schema"
#: Any fixed number; processes that upgrade the same PostgreSQL database queue up behind it.
_UPGRADE_LOCK = 0x6D657461


@cache
def script() -> ScriptDirectory:
    """The revisions that are shipped with the package."""
    return ScriptDirectory(str(Path(__file__).parent / "migrations"))


def revision_of(connection: Connection) -> str | None:
    """The revision that a database is at; None for one that has no tables of ours."""
    context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
    return context.get_current_revision()


def bring_up(engine: Engine, target: str = "head") -> None:
    """Upgrade a database to a revision, by default the newest; do nothing to one that is there already.

    Raises
    ------
    InputError
        When the database is another program's, or of a newer schema, or the upgrade needs to write and may not.
    """
    scripts = script()
    head = scripts.get_current_head()
    with reading(engine) as connection:
        at = revision_of(connection)
    if at is None or (at != head and _known(scripts, at, engine)):
        with writing(engine) as connection:
            if engine.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _UPGRADE_LOCK})
            at = revision_of(connection)
            if at is None:
                _refuse_foreign(connection)
            if at is None or _known(scripts, at, engine):
                _upgrade(scripts, connection, target)
    if engine.dialect.name == "sqlite":
        _log_ahead(engine)


def _known(scripts: ScriptDirectory, at: str, engine: Engine) -> bool:
    known = {revision.revision for revision in scripts.walk_revisions()}
    if at not in known:
        raise InputError(
            f"has schema {at}, newer than schema {max(known)} that this metasched knows; upgrade metasched",
            where=name_of(engine.url),
        )
    return True


def _refuse_foreign(connection: Connection) -> None:
    if tables := sorted(set(inspect(connection).get_table_names()) - {VERSION_TABLE}):
        raise InputError(
            f"is a database of another program (it has a table {tables[0]})", where=name_of(connection.engine.url)
        )


def _upgrade(scripts: ScriptDirectory, connection: Connection, target: str) -> None:
    def revisions(at: Any, _: MigrationContext) -> Any:
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
