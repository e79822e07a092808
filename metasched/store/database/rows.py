"""Functions to read and write rows, common to several kinds of records."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from sqlalchemy import JSON, Connection, Table, insert, update

from metasched.records import InputError

_log = logging.getLogger(__name__)
_Row = TypeVar("_Row")
_Record = TypeVar("_Record")


def sound(rows: Iterable[_Row], read: Callable[[_Row], _Record]) -> tuple[_Record, ...]:
    """The records of rows; one that cannot be understood, such as one changed by hand, does not hide the others."""
    found = []
    for row in rows:
        try:
            found.append(read(row))
        except InputError as error:
            _log.warning("%s; it is left out", error)
    return tuple(found)


#: What the values of columns are called.
_CALLED: Mapping[type, str] = {str: "text", dict: "a table", bool: "true or false", int: "a whole number"}


def check_types(row: Mapping[Any, Any], of: Table) -> None:
    """Refuse, by InputError, a row with a value that is not of its column's type: SQLite stores any in any column."""
    for column in of.columns:
        value, kind = row[column.name], dict if isinstance(column.type, JSON) else column.type.python_type
        if not isinstance(value, kind) and not (value is None and column.nullable):
            shown = repr(value)[:80]
            raise InputError(f"{column.name} is {shown}, expected {_CALLED.get(kind, 'a number')}")


def insert_new(connection: Connection, into: Table, rows: Sequence[Mapping[str, Any]]) -> int:
    """Insert rows, except those whose key already exists; return how many were new."""
    if not rows:
        return 0
    statement = _insert(connection, into)
    return connection.execute(statement, rows, execution_options={"preserve_rowcount": True}).rowcount


def put(connection: Connection, into: Table, key: str, value: str, row: Mapping[str, Any], **new: float) -> None:
    """Update the row with a key, or insert it with further values."""
    if not connection.execute(update(into).where(into.c[key] == value).values(**row)).rowcount:
        connection.execute(insert(into), {key: value, **row, **new})


def insert_many_new(connection: Connection, into: Table, rows: Sequence[tuple[Any, ...]]) -> int:
    """The same for rows of text and numbers, which hold a value for each column of the table, in its order.

    The driver takes them as they are: to prepare the parameters of each row takes longer than to write it.
    """
    if not rows:
        return 0
    statement = _insert(connection, into).compile(dialect=connection.dialect)
    given = list(rows) if statement.positional else [dict(zip(into.c.keys(), row, strict=True)) for row in rows]
    return connection.exec_driver_sql(str(statement), given, execution_options={"preserve_rowcount": True}).rowcount


def _insert(connection: Connection, into: Table) -> Any:
    return insert_into(connection, into).on_conflict_do_nothing()


def insert_into(connection: Connection, into: Table) -> Any:
    """The insertion of a database's own dialect, which can say what becomes of rows whose key already exists."""
    if connection.dialect.name == "postgresql":
        from sqlalchemy.dialects.postgresql import insert
    else:
        from sqlalchemy.dialects.sqlite import insert  # type: ignore[assignment]
    return insert(into)
