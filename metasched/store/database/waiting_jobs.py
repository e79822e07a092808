"""Ended jobs as they were reported, until their scheduler has confirmed how they ended."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import Connection, Engine, delete, select

from metasched.jobs import EndedJob, mark_in
from metasched.records import InputError
from metasched.store.database.engine import reading, writing
from metasched.store.database.rows import insert_new, sound
from metasched.store.database.tables import RunRow, WaitingJobRow, table
from metasched.validation import first_error

_JOB = TypeAdapter(EndedJob)


@dataclass(frozen=True, slots=True)
class WaitingJob:
    """An ended job as it was reported, and whether its run is stored: that needs a mark in its comment."""

    job: EndedJob
    stored: bool


def insert_jobs(connection: Connection, jobs: Iterable[EndedJob]) -> None:
    """Store jobs that wait; those that do already stay as they are. Of a comment only its mark is stored."""
    kept = [replace(job, comment=mark_in(job.comment)) for job in jobs]
    rows = [{"uid": job.uid, "ended_at": job.end, "document": _JOB.dump_python(job, mode="json")} for job in kept]
    insert_new(connection, table(WaitingJobRow), rows)


def delete_jobs(connection: Connection, uids: Collection[str]) -> None:
    """Delete the jobs of these runs, which wait no more."""
    if uids:
        connection.execute(delete(WaitingJobRow).where(WaitingJobRow.uid.in_(uids)))


class WaitingJobs:
    """The ended jobs that wait, in a database."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def all(self) -> tuple[WaitingJob, ...]:
        """All that wait, those that ended first before the others."""
        query = QUERY.order_by(WaitingJobRow.ended_at)
        with reading(self._engine) as connection:
            return sound(connection.execute(query).all(), read)

    def forget(self, before: float) -> None:
        """Delete those that ended before a time (s)."""
        with writing(self._engine) as connection:
            connection.execute(delete(WaitingJobRow).where(WaitingJobRow.ended_at < before))


#: Selects the rows of jobs that wait, each with the uid of its run if that is stored.
QUERY = select(WaitingJobRow.uid, WaitingJobRow.document, RunRow.uid).outerjoin(RunRow, RunRow.uid == WaitingJobRow.uid)


def read(row: Any) -> WaitingJob:
    """The job of a row of :data:`QUERY`, of this or another version: fields that are not known here are passed over.

    Raises
    ------
    InputError : when it is none.
    """
    uid, document, stored = row
    try:
        known = {name: value for name, value in document.items() if name in EndedJob.__dataclass_fields__}
        return WaitingJob(_JOB.validate_python(known), stored is not None)
    except (ValidationError, AttributeError) as error:
        why = first_error(error) if isinstance(error, ValidationError) else "is no table"
        raise InputError(why, where=f"waiting job {uid}") from None
