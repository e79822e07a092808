"""The database of runs, loads and models, safe with many processes that read and write it at once.

SQLite by default, one file; any database that SQLAlchemy reaches by URL and that can ``INSERT ... ON CONFLICT``, so
PostgreSQL too. Everything that is stored is checked first by the records, and every method is one transaction: what it
was given is stored whole or not at all.
"""

from __future__ import annotations

import json
import math
import os
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, Self

from sqlalchemy import Connection, Engine, RowMapping, Table, bindparam, delete, func, insert, select, text, update

from metasched.records import InputError, Load, Run
from metasched.store import packed
from metasched.store.campaigns import Loads
from metasched.store.engine import connect, default_location, make_as_folder_owner, name_of, reading, writing
from metasched.store.schema import bring_up
from metasched.store.tables import FIVE_MINUTES, LateSlotRow, LoadRow, ModelRow, RunRow, table

#: How many versions of a model are kept.
HISTORY = 20


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A run with how it ended.

    Parameters
    ----------
    run : what was measured.
    exit_status : status of the command, 128 plus the signal's number where it was killed.
    learnable : whether models may learn from it; False where it failed or could not be measured.
    uid : 32 characters that name it, so that storing it again does nothing.
    """

    run: Run
    exit_status: int = 0
    learnable: bool = True
    uid: str = field(default_factory=lambda: uuid.uuid4().hex)


class Store:
    """Runs, loads and models in one database.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Store.open(pathlib.Path(folder.name, "metasched.db")) as store:
    ...     store.add_run(Run("cg", "c8", 1400, 4, 0.8, 93.5, 12.25))
    ...     store.add_run(Run("cg", "c8", 1400, 4, 0.8, 93.5, 1.5), exit_status=137, learnable=False)
    ...     [run.execution_time for run in store.runs(application="cg")]
    ...     store.save_model("cg", "c8", {"format": 1})
    ...     store.load_model("cg", "c8")
    [12.25]
    1
    {'format': 1}
    >>> folder.cleanup()
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @classmethod
    def open(cls, location: str | os.PathLike[str] | None = None, *, patience: float = 10.0) -> Self:
        """Open a database, making it or upgrading its schema where needed.

        Parameters
        ----------
        location : path of a SQLite file or URL; by default ``$METASCHED_DB`` or a file in the user's data folder.
        patience : how long to wait for other processes that hold the lock (s).

        Raises
        ------
        InputError
            When it cannot be opened, is locked, damaged, another program's, or of a newer schema.
        """
        engine = connect(default_location() if location is None else location, patience)
        make_as_folder_owner(engine)
        try:
            bring_up(engine)
        except BaseException:
            engine.dispose()
            raise
        return cls(engine)

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def name(self) -> str:
        """The path of the file, or the URL without its password."""
        return name_of(self._engine.url)

    @property
    def engine(self) -> Engine:
        """The engine, for the other parts of the store."""
        return self._engine

    def add_run(self, run: Run, *, exit_status: int = 0, learnable: bool = True) -> None:
        """Store one run."""
        self.add_runs([RecordedRun(run, exit_status, learnable)])

    def add_runs(self, records: Iterable[RecordedRun]) -> int:
        """Store runs, all or none; those whose ``uid`` is there already stay as they are. Return how many were new."""
        rows = [_row(record) for record in records]
        with writing(self._engine) as connection:
            return self._insert_new(connection, table(RunRow), rows)

    def runs(
        self, *, application: str | None = None, cluster: str | None = None, last: int | None = None
    ) -> tuple[Run, ...]:
        """The runs that models may learn from, in the order in which they were stored: all, or the last so many."""
        found = self.recorded_runs(application=application, cluster=cluster, learnable=True, last=last)
        return tuple(record.run for record in found)

    def recorded_runs(
        self,
        *,
        application: str | None = None,
        cluster: str | None = None,
        learnable: bool | None = None,
        since: float | None = None,
        until: float | None = None,
        last: int | None = None,
    ) -> tuple[RecordedRun, ...]:
        """All runs with how they ended, in the order in which they were stored; a filter that is None lets all by.

        ``since`` and ``until`` bound the start (s), ``last`` the number: the newest stay.
        """
        query = select(*table(RunRow).columns)
        query = query.order_by(RunRow.id) if last is None else query.order_by(RunRow.id.desc()).limit(last)
        for column, wanted in (
            (RunRow.application, application),
            (RunRow.cluster, cluster),
            (RunRow.learnable, learnable),
        ):
            if wanted is not None:
                query = query.where(column == wanted)
        if since is not None:
            query = query.where(RunRow.start_time >= since)
        if until is not None:
            query = query.where(RunRow.start_time < until)
        with reading(self._engine) as connection:
            found = tuple(self._record(row) for row in connection.execute(query).mappings())
        return found if last is None else found[::-1]

    def settle_run(self, record: RecordedRun) -> None:
        """Correct how a stored run ended, and what it was a run of, by a record of the same uid."""
        with writing(self._engine) as connection:
            connection.execute(update(RunRow).where(RunRow.uid == record.uid).values(**_row(record)))

    def add_loads(self, loads: Iterable[Load]) -> int:
        """Store loads, all or none; a node has one load a moment, the first stored. Return how many were new."""
        rows: list[dict[str, Any]] = [
            {
                "node": load.node,
                "time": load.time,
                "available_cpu": load.available_cpu,
                "available_bandwidth": load.available_bandwidth,
            }
            for load in loads
        ]
        with writing(self._engine) as connection:
            late = packed.drop(connection, {load["time"] for load in rows}, time.time())
            slots = [{"slot": slot} for slot in {minute // FIVE_MINUTES * FIVE_MINUTES for minute in late}]
            self._insert_new(connection, table(LateSlotRow), slots)
            return self._insert_new(connection, table(LoadRow), rows)

    def loads(self, *, node: str | None = None, since: float | None = None, until: float | None = None) -> Loads:
        """The loads of one node or of all, from ``since`` up to and without ``until`` (s)."""
        if node is not None:
            return self.first_loads(node, None, since=since, until=until)
        with reading(self._engine) as connection:
            return packed.read(connection, *_span(since, until))

    def first_loads(
        self, node: str, most: int | None, *, since: float | None = None, until: float | None = None
    ) -> Loads:
        """The oldest loads of one node from ``since`` up to and without ``until`` (s), at most so many."""
        with reading(self._engine) as connection:
            return packed.read_node(connection, node, *_span(since, until), most)

    def recent_loads(self, *, since: float) -> tuple[Load, ...]:
        """The newest load of each node that has one from ``since`` on (s)."""
        newest = select(LoadRow.node, func.max(LoadRow.time).label("time")).where(LoadRow.time >= since)
        of = newest.group_by(LoadRow.node).subquery()
        query = select(LoadRow.time, LoadRow.node, LoadRow.available_cpu, LoadRow.available_bandwidth).join(
            of, (LoadRow.node == of.c.node) & (LoadRow.time == of.c.time)
        )
        with reading(self._engine) as connection:
            return tuple(Load(*row) for row in connection.execute(query))

    def save_model(
        self, application: str, cluster: str, document: Mapping[str, Any], *, learned: Iterable[str] = ()
    ) -> int:
        """Store a model as the next version of its application on its cluster; return the version, counted from 1.

        The newest ``HISTORY`` versions are kept. ``learned`` names stored runs, by their uid, that the model has
        learned and the version before had not.

        Raises
        ------
        InputError
            When the document is not JSON (a number that is not finite is not), or the database refuses it.
        """
        try:
            plain = json.loads(json.dumps(dict(document), allow_nan=False))
        except (TypeError, ValueError) as error:
            raise InputError(f"the model of {application} on {cluster} is not JSON: {error}") from None
        of_this = (ModelRow.application == application, ModelRow.cluster == cluster)
        with writing(self._engine) as connection:
            if self._engine.dialect.name == "postgresql":
                # Two writers must not find the same last version; SQLite has locked them out already.
                connection.execute(text("LOCK TABLE models IN SHARE ROW EXCLUSIVE MODE"))
            last = connection.scalar(select(func.max(ModelRow.version)).where(*of_this))
            version = (last or 0) + 1
            row = {
                "application": application,
                "cluster": cluster,
                "version": version,
                "saved_at": time.time(),
                "document": plain,
            }
            connection.execute(insert(ModelRow), row)
            connection.execute(delete(ModelRow).where(*of_this, ModelRow.version <= version - HISTORY))
            if uids := [{"which": uid} for uid in learned]:
                marked = update(table(RunRow)).where(table(RunRow).c.uid == bindparam("which")).values(learned=True)
                connection.execute(marked, uids)
        return version

    def runs_to_learn(self) -> tuple[RecordedRun, ...]:
        """The runs that models may learn from and that no saved model has learned, in the order they were stored."""
        query = select(*table(RunRow).columns).where(RunRow.learnable, RunRow.learned.is_(False)).order_by(RunRow.id)
        with reading(self._engine) as connection:
            return tuple(self._record(row) for row in connection.execute(query).mappings())

    def load_model(self, application: str, cluster: str, version: int | None = None) -> dict[str, Any]:
        """The model of an application on a cluster: the newest, or the version asked for.

        Raises
        ------
        InputError
            When there is none.
        """
        query = select(ModelRow.document).where(ModelRow.application == application, ModelRow.cluster == cluster)
        if version is not None:
            query = query.where(ModelRow.version == version)
        with reading(self._engine) as connection:
            document: dict[str, Any] | None = connection.scalar(query.order_by(ModelRow.version.desc()).limit(1))
        if document is None:
            which = "" if version is None else f" version {version}"
            raise InputError(f"holds no model{which} of {application} on {cluster}", where=self.name)
        return document

    def models_about(self, application: str, cluster: str, time: float) -> tuple[dict[str, Any], ...]:
        """The versions of a model saved last until a time (s) and first after it, as far as both are kept."""
        of_this = select(ModelRow.document).where(ModelRow.application == application, ModelRow.cluster == cluster)
        before = of_this.where(ModelRow.saved_at <= time).order_by(ModelRow.version.desc()).limit(1)
        after = of_this.where(ModelRow.saved_at > time).order_by(ModelRow.version).limit(1)
        with reading(self._engine) as connection:
            return tuple(found for query in (before, after) if (found := connection.scalar(query)) is not None)

    def models(self) -> tuple[tuple[str, str, int, float], ...]:
        """What models there are: application, cluster, newest version, and when it was saved."""
        newest = func.max(ModelRow.version)
        query = (
            select(ModelRow.application, ModelRow.cluster, newest, func.max(ModelRow.saved_at))
            .group_by(ModelRow.application, ModelRow.cluster)
            .order_by(ModelRow.application, ModelRow.cluster)
        )
        with reading(self._engine) as connection:
            return tuple((row[0], row[1], row[2], row[3]) for row in connection.execute(query))

    def _insert_new(self, connection: Connection, into: Table, rows: Sequence[Mapping[str, Any]]) -> int:
        if not rows:
            return 0
        if self._engine.dialect.name == "postgresql":
            from sqlalchemy.dialects.postgresql import insert as insert_new
        else:
            from sqlalchemy.dialects.sqlite import insert as insert_new  # type: ignore[assignment]
        statement = insert_new(into).on_conflict_do_nothing()
        return connection.execute(statement, rows, execution_options={"preserve_rowcount": True}).rowcount

    def _record(self, row: RowMapping) -> RecordedRun:
        """Make the record of a row; a row that somebody changed by hand is checked like any other input."""
        values = {name: row[name] for name in _RUN_FIELDS}
        nodes, extra = tuple(row["nodes"].split()), MappingProxyType(dict(row["extra"]))
        try:
            run = Run(**values, nodes=nodes, extra=extra)
        except InputError as error:
            raise InputError(str(error), where=f"{self.name}, run {row['id']}") from None
        return RecordedRun(run, row["exit_status"], row["learnable"], row["uid"])


#: Fields of a run that a row holds under the same name and in the same form.
_RUN_FIELDS = tuple(f.name for f in fields(Run) if f.name not in ("nodes", "extra", "marks"))


def _row(record: RecordedRun) -> dict[str, Any]:
    values = {name: getattr(record.run, name) for name in _RUN_FIELDS}
    return values | {
        "nodes": " ".join(record.run.nodes),
        "extra": dict(record.run.extra),
        "exit_status": record.exit_status,
        "learnable": record.learnable,
        "uid": record.uid,
    }


def _span(since: float | None, until: float | None) -> tuple[float, float]:
    return -math.inf if since is None else since, math.inf if until is None else until
