"""A copy of a database for an older metasched, which refuses a newer schema, with what that version can read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import MetaData, Select, Table, func, select

from metasched.records import InputError
from metasched.store.database.backup import copied, new_file
from metasched.store.database.engine import connect, reading, writing
from metasched.store.database.schema import upgrade
from metasched.store.database.store import Store
from metasched.store.database.tables import ModelRow, PlacementRow, RunRow, TokenRow, kept_tables, table

#: The schemas of released versions.
SCHEMAS: Mapping[str, str] = {"0.1.0": "0006"}
#: What an older version may not understand, and makes again: models from the runs; placements of jobs yet to end.
LEFT_OUT = (ModelRow, PlacementRow)


@dataclass(frozen=True, slots=True)
class Downgraded:
    """The numbers of rows of each table that were copied and left out."""

    copied: Mapping[str, int]
    left_out: Mapping[str, int]


def downgrade(store: Store, to: str | os.PathLike[str], version: str) -> Downgraded:
    """Write what an older version can read into a new SQLite file; the database stays as it is.

    Parameters
    ----------
    store : that is copied.
    to : path of the new file.
    version : the release that shall read it, one of :data:`SCHEMAS`.

    Raises
    ------
    InputError
        When there is no such release, there is such a file already, or it cannot be written; nothing is left behind.
    """
    if version not in SCHEMAS:
        raise InputError(f"is no release whose schema is known, expected {' or '.join(SCHEMAS)}", where=version)
    with new_file(to) as fresh:
        return _copied(store, fresh, SCHEMAS[version])


def _copied(store: Store, fresh: Path, schema: str) -> Downgraded:
    engine = connect(str(fresh), 10.0)
    try:
        with writing(engine) as target:
            upgrade(target, schema)
        older = MetaData()
        older.reflect(engine)
        kept, left_out = {}, {}
        with reading(store.engine, long=True) as source, writing(engine) as target:
            for each in kept_tables():
                held = source.scalar(select(func.count()).select_from(each)) or 0
                there = older.tables.get(each.name)
                count = 0
                if there is not None and each not in [table(row) for row in LEFT_OUT]:
                    count = kept[each.name] = copied(source, _readable(each, there), target, each)
                if held > count:
                    left_out[each.name] = held - count
    finally:
        engine.dispose()
    return Downgraded(kept, left_out)


def _readable(own: Table, there: Table) -> Select[Any]:
    """The rows of a table that the older one can hold, with the columns that it has."""
    # The models are left out, so that the older version learns all runs again.
    columns = [each for each in own.columns if each.name in there.columns and each is not table(RunRow).c.learned]
    query = select(*columns)
    for each in columns:
        if each.nullable and not there.columns[each.name].nullable:
            query = query.where(each.is_not(None))
    if own is table(TokenRow) and "user" not in there.columns:
        # An older version would show their holders everybody's jobs.
        query = query.where(own.c.user.is_(None))
    return query
