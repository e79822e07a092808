"""Checks whether a database is damaged.

SQLite notices by itself only what it stumbles over: a page with a few flipped bits is served as it is, and any column
holds any value. Its own check walks the whole file; :func:`check` also looks at the types of all values, and reads
every row as the daemon would.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from sqlalchemy import String, and_, cast, func, or_, select

from metasched.advised_placements import AdvisedPlacement
from metasched.records import InputError
from metasched.store.database import load_blocks, wait_error_records, waiting_jobs
from metasched.store.database.engine import reading
from metasched.store.database.store import Store
from metasched.store.database.tables import LoadBlockRow, PlacementRow, RunRow, kept_tables, table
from metasched.store.errors import StoreError

#: Faults that are reported at most.
MOST = 10
#: How SQLite stores values of each type.
_STORED = {float: "real", int: "integer", bool: "integer", str: "text", bytes: "blob"}


def damage(store: Store) -> str:
    """The first finding of SQLite's own check, empty if there is none; servers check their pages themselves.

    Raises
    ------
    StoreError : when the database cannot be read at all now.
    """
    if store.engine.dialect.name != "sqlite":
        return ""
    try:
        with reading(store.engine, long=True) as connection:
            fault = str(connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar())
    except StoreError as error:
        if "damaged" not in str(error):
            raise
        fault = "it cannot be read to its end"
    return "" if fault == "ok" else " ".join(fault.split())


def _mistyped(store: Store) -> Iterator[str]:
    """Rows of a SQLite database with a value that is not of its column's type; servers have no such rows."""
    if store.engine.dialect.name != "sqlite":
        return
    for each in kept_tables():
        wrong = [
            and_(column.is_not(None), func.typeof(column) != _STORED.get(column.type.python_type, "text"))
            for column in each.columns
        ]
        with reading(store.engine, long=True) as connection:
            query = select(*(cast(key, String) for key in each.primary_key)).where(or_(*wrong)).limit(MOST)
            for key in connection.execute(query):
                row = f"{each.name} {' '.join(map(str, key))}"
                yield f"{store.name}: {row} holds a value of another type than its column"


def check(store: Store) -> tuple[str, ...]:
    """The first few faults of a database, each in one line; reads all of it.

    >>> with Store.open(":memory:") as store:
    ...     check(store)
    ()
    """
    found: list[str] = [fault] if (fault := damage(store)) else []

    def read(what: Callable[[], object]) -> None:
        try:
            what()
        except (InputError, StoreError) as error:
            found.append(str(error))
        except (AttributeError, TypeError, ValueError) as error:  # of a value of another type
            found.append(f"{store.name}: cannot be read as it should be ({error})")

    def each_model() -> None:
        for application, platform, _, _ in store.models.all():
            read(partial(store.models.predictor, application, platform))

    def each_run() -> None:
        with reading(store.engine, long=True) as connection:
            for row in connection.execute(select(*table(RunRow).columns)).mappings():
                read(partial(store.runs.record, row))

    def each_placement() -> None:
        columns = (PlacementRow.uid, PlacementRow.made_at, PlacementRow.question, PlacementRow.answer)
        with reading(store.engine, long=True) as connection:
            for row in connection.execute(select(*columns, PlacementRow.outcome)):
                read(partial(AdvisedPlacement.read, *row))

    def each_waiting_job() -> None:
        with reading(store.engine, long=True) as connection:
            for row in connection.execute(waiting_jobs.QUERY):
                read(partial(waiting_jobs.read, row))

    def each_wait_error() -> None:
        with reading(store.engine) as connection:
            for row in connection.execute(wait_error_records.QUERY):
                read(partial(wait_error_records.read, row))

    def each_block() -> None:
        with reading(store.engine, long=True) as connection:
            for minute in connection.scalars(select(LoadBlockRow.minute)).all():
                load_blocks.read(connection, minute, minute + load_blocks.MINUTE)

    read(lambda: found.extend(_mistyped(store)))
    rows = (each_run, each_model, each_placement, each_waiting_job, each_wait_error, each_block)
    for part in (*rows, store.tokens.all, store.modes.newest):
        read(part)
    return tuple(found[:MOST])
