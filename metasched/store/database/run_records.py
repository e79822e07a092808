"""Finished runs in the database, with how each ended and whether a model has learned it."""

from __future__ import annotations

import math
import secrets
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any

from sqlalchemy import ColumnElement, Connection, Engine, RowMapping, bindparam, case, delete, func, select, update

from metasched.records import InputError, Run, Settings
from metasched.store.database.engine import name_of, reading, writing
from metasched.store.database.rows import check_types, insert_into, sound
from metasched.store.database.tables import ModelRow, RunRow, table

#: Key among a run's further columns where it was forgotten.
FORGOTTEN = "forgotten"


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
    uid: str = field(default_factory=lambda: secrets.token_hex(16))

    def as_dict(self) -> dict[str, Any]:
        """The record as JSON shows it; a minimum that was not measured is null."""
        run = self.run
        return {
            "id": self.uid,
            "user": run.user,
            "application": run.application,
            "cluster": run.cluster,
            "problem_size": run.problem_size,
            "processors": run.processors,
            **{name: None if math.isnan(value := getattr(run, name)) else value for name in _MINIMA},
            "execution_time": run.execution_time,
            "start_time": run.start_time,
            "nodes": list(run.nodes),
            "phase": run.phase,
            **run.settings.as_dict(),
            "energy": run.energy,
            "energy_covers": run.energy_covers,
            "exit_status": self.exit_status,
            "learnable": self.learnable,
        }

    @classmethod
    def of_dict(cls, document: Mapping[str, Any]) -> RecordedRun:
        """The record that :meth:`as_dict` shows.

        Raises
        ------
        InputError : when it cannot be one.
        """
        try:
            fields = {name: document[name] for name in _RUN_FIELDS}
            fields |= {name: math.nan for name in _MINIMA if fields[name] is None}
            parameters = tuple(sorted(document["parameters"].items()))
            layout = document["processes_per_node"], document["threads"], parameters, document.get("frequency")
            extra = Settings(*layout).cells | further_cells(document)
            run = Run(**fields, nodes=tuple(document["nodes"]), extra=MappingProxyType(extra))
            return cls(run, int(document["exit_status"]), bool(document["learnable"]), document["id"])
        except (AttributeError, KeyError, TypeError) as error:
            raise InputError(f"is not a stored run: {error}") from None


def insert_runs(connection: Connection, records: Iterable[RecordedRun]) -> frozenset[str]:
    """Store runs; return the uids that are new: runs that are there already stay as they are."""
    rows = {record.uid: _row(record) for record in records}
    if not rows:
        return frozenset()
    runs = table(RunRow)
    statement = insert_into(connection, runs).on_conflict_do_nothing().returning(runs.c.uid)
    return frozenset(connection.scalars(statement, [*rows.values()]))


def correct_run(connection: Connection, record: RecordedRun) -> bool:
    """Correct exit status and application of a stored run by a record of the same uid, unless it is forgotten."""
    extra = connection.scalar(select(RunRow.extra).where(RunRow.uid == record.uid))
    if extra is None or FORGOTTEN in extra:
        return False
    connection.execute(update(RunRow).where(RunRow.uid == record.uid).values(**_row(record)))
    return True


@dataclass(frozen=True, slots=True)
class Selection:
    """A selection of stored runs, which match all given criteria; None means no criterion.

    Parameters
    ----------
    uids : names of runs.
    user : whose runs.
    since, until : bounds of the start (s), the second excluded.
    application, platform : of which runs.
    """

    uids: tuple[str, ...] | None = None
    user: str | None = None
    since: float | None = None
    until: float | None = None
    application: str | None = None
    platform: str | None = None

    def __post_init__(self) -> None:
        if self.uids is None and self.user is None and self.since is None and self.until is None:
            raise InputError("no runs are named, expected ids, a user, or a time")
        for name, time in (("since", self.since), ("until", self.until)):
            if time is not None and math.isnan(time):
                raise InputError(f"{name} is nan, expected a time (s)")
        if self.since is not None and self.until is not None and self.since >= self.until:
            raise InputError(f"since is {self.since:g}, expected a time before until, {self.until:g}")

    def conditions(self) -> list[ColumnElement[bool]]:
        """SQL conditions that select the runs that are meant."""
        users = None if self.user is None else (self.user,)
        found = _conditions(self.application, self.platform, users, self.since, self.until)
        return found if self.uids is None else [*found, RunRow.uid.in_(self.uids)]


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The number of forgotten runs, and the models, by application and platform, that must be learned again."""

    runs: int
    models: tuple[tuple[str, str], ...]


def forgotten_document(found: Forgotten) -> dict[str, Any]:
    """The number of forgotten runs, and the models that had learned them, as JSON."""
    return {
        "forgotten": found.runs,
        "models": [{"application": application, "platform": platform} for application, platform in found.models],
    }


class RunRecords:
    """The runs of all applications on all platforms."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def add(self, run: Run, *, exit_status: int = 0, learnable: bool = True) -> None:
        """Store one finished run; one that is stored already stays as it is.

        Parameters
        ----------
        run : finished, with its loads where they were measured.
        exit_status : of its command; 0 for success.
        learnable : whether models may learn from it.
        """
        self.add_all([RecordedRun(run, exit_status, learnable)])

    def add_all(self, records: Iterable[RecordedRun]) -> frozenset[str]:
        """Store runs, all or none; return the uids that are new: runs that are there already stay as they are."""
        with writing(self._engine) as connection:
            return insert_runs(connection, records)

    def learnable(
        self, *, application: str | None = None, platform: str | None = None, last: int | None = None
    ) -> tuple[Run, ...]:
        """The runs that models may learn from, in the order in which they were stored: all, or the ``last`` ones."""
        found = self.all(application=application, platform=platform, learnable=True, last=last)
        return tuple(record.run for record in found)

    def all(
        self,
        *,
        application: str | None = None,
        platform: str | None = None,
        learnable: bool | None = None,
        since: float | None = None,
        until: float | None = None,
        last: int | None = None,
        users: Collection[str] | None = None,
        job: str | None = None,
    ) -> tuple[RecordedRun, ...]:
        """All runs with how they ended, in the order in which they were stored; a filter that is None lets all by.

        ``since`` and ``until`` bound the start (s), ``last`` the number: the newest stay. ``users`` whose they are,
        ``job`` the number that a scheduler gave them.
        """
        query = select(*table(RunRow).columns).where(*_conditions(application, platform, users, since, until))
        if job is not None:
            query = query.where(RunRow.extra["job"].as_string() == job)
        query = query.order_by(RunRow.id) if last is None else query.order_by(RunRow.id.desc()).limit(last)
        if learnable is not None:
            query = query.where(RunRow.learnable == learnable)
        found = self._select(query)
        return found if last is None else found[::-1]

    def count(self, *, application: str | None, platform: str | None, users: Collection[str] | None) -> int:
        """The number of runs; a filter that is None admits all."""
        with reading(self._engine) as connection:
            query = select(func.count()).select_from(RunRow).where(*_conditions(application, platform, users))
            return int(connection.scalar(query) or 0)

    def forget(self, which: Selection) -> Forgotten:
        """Exclude runs from learning; they stay, marked as forgotten, so that reports of them are ignored.

        The saved models that had learned of them, or might have, are deleted: all other runs of theirs are to be
        learned again.
        """
        query = select(RunRow.id, RunRow.application, RunRow.cluster, RunRow.extra).where(*which.conditions())
        with writing(self._engine) as connection:
            rows = [row for row in connection.execute(query) if FORGOTTEN not in row.extra]
            models = sorted({(row.application, row.cluster) for row in rows})
            if rows:
                # Many at once: others may not write meanwhile.
                runs, saved = table(RunRow), table(ModelRow)
                changed = update(runs).where(runs.c.id == bindparam("which")).values(learnable=False, learned=False)
                marked = [{"which": row.id, "extra": {**row.extra, FORGOTTEN: "yes"}} for row in rows]
                connection.execute(changed.values(extra=bindparam("extra")), marked)
                named = [{"of": application, "on": platform} for application, platform in models]
                for change in (update(runs).values(learned=False), delete(saved)):
                    whose = change.table.c
                    where = whose.application == bindparam("of"), whose.cluster == bindparam("on")
                    connection.execute(change.where(*where), named)
        return Forgotten(len(rows), tuple(models))

    def to_learn(self) -> tuple[RecordedRun, ...]:
        """The runs that models may learn from and that no saved model has learned, in the order they were stored."""
        query = select(*table(RunRow).columns).where(RunRow.learnable, RunRow.learned.is_(False)).order_by(RunRow.id)
        return self._select(query)

    def learned(self) -> dict[tuple[str, str], tuple[int, int]]:
        """The numbers of runs that each saved model learned, in all and without loads, by application and platform."""
        unmeasured = RunRow.min_avg_avail_cpu.is_(None) | RunRow.min_avg_avail_bw.is_(None)
        query = (
            select(RunRow.application, RunRow.cluster, func.count(), func.sum(case((unmeasured, 1), else_=0)))
            .where(RunRow.learned)
            .group_by(RunRow.application, RunRow.cluster)
        )
        with reading(self._engine) as connection:
            return {(row[0], row[1]): (int(row[2]), int(row[3])) for row in connection.execute(query)}

    def _select(self, query: Any) -> tuple[RecordedRun, ...]:
        with reading(self._engine) as connection:
            return sound(connection.execute(query).mappings(), self.record)

    def record(self, row: RowMapping) -> RecordedRun:
        """The record of a row.

        Raises
        ------
        InputError : when somebody has changed it to what no run can be.
        """
        values = {name: row[name] for name in _RUN_FIELDS}
        values |= {name: math.nan for name in _MINIMA if values[name] is None}
        try:
            check_types(row, table(RunRow))
            extra = MappingProxyType({name: str(cell) for name, cell in row["extra"].items()})
            run = Run(**values, nodes=tuple(row["nodes"].split()), extra=extra)
        except InputError as error:
            raise InputError(str(error), where=f"{name_of(self._engine.url)}, run {row['id']}") from None
        return RecordedRun(run, row["exit_status"], row["learnable"], row["uid"])


def _conditions(
    application: str | None,
    platform: str | None,
    users: Collection[str] | None,
    since: float | None = None,
    until: float | None = None,
) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if application is not None:
        found.append(RunRow.application == application)
    if platform is not None:
        found.append(RunRow.cluster == platform)
    if users is not None:
        found.append(RunRow.extra["user"].as_string().in_(users))
    if since is not None:
        found.append(RunRow.start_time >= since)
    if until is not None:
        found.append(RunRow.start_time < until)
    return found


#: Stored values of a run besides its fields and its settings.
FURTHER = ("user", "energy", "energy_covers")


def further_cells(document: Mapping[str, Any]) -> dict[str, str]:
    """The cells of :data:`FURTHER`; none for what is not stated.

    >>> further_cells({"user": "ann", "energy": 12.5, "energy_covers": ""})
    {'user': 'ann', 'energy': '12.5'}
    """
    return {name: str(document[name]) for name in FURTHER if document.get(name) not in (None, "")}


#: Fields of a run that a row holds under the same name and in the same form.
_RUN_FIELDS = tuple(f.name for f in fields(Run) if f.name not in ("nodes", "extra", "marks"))
#: Those that may not have been measured.
_MINIMA = ("min_avg_avail_cpu", "min_avg_avail_bw")


def _row(record: RecordedRun) -> dict[str, Any]:
    values = {name: getattr(record.run, name) for name in _RUN_FIELDS}
    values |= {name: None for name in _MINIMA if math.isnan(values[name])}
    return values | {
        "nodes": " ".join(record.run.nodes),
        "extra": dict(record.run.extra),
        "exit_status": record.exit_status,
        "learnable": record.learnable,
        "uid": record.uid,
    }
