"""The tables of the database: runs, loads, models, placements, tokens, modes, sent and waiting jobs.

This is the schema as the code uses it today; how a database gets there from an older one is in ``migrations``. A test
holds the two together.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import JSON, BigInteger, Double, Index, String, Table, Text, false
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

#: Seconds of a slot whose mean is kept.
FIVE_MINUTES = 300


class Base(DeclarativeBase):
    """Common base, which carries the metadata."""

    type_annotation_map = {float: Double, dict[str, str]: JSON, dict[str, Any]: JSON}  # noqa: RUF012


def kept_tables() -> list[Table]:
    """The tables of a backup, in the order of their references: all but that of the leader."""
    return [each for each in Base.metadata.sorted_tables if each.name != LeaderRow.__tablename__]


def table(row: type[Base]) -> Table:
    """The table behind a class of rows."""
    return Base.metadata.tables[row.__tablename__]


class RunRow(Base):
    """One finished run. ``uid`` makes storing it twice the same as storing it once.

    ``learned`` says that the saved model of its application has learned it. A minimum that was not measured is NULL.
    """

    __tablename__ = "runs"
    __table_args__ = (
        Index("runs_of_application", "application", "cluster", "id"),
        Index("runs_by_start", "start_time"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    uid: Mapped[str] = mapped_column(String(32), unique=True)
    application: Mapped[str]
    cluster: Mapped[str]
    problem_size: Mapped[float]
    processors: Mapped[int]
    min_avg_avail_cpu: Mapped[float | None]
    min_avg_avail_bw: Mapped[float | None]
    execution_time: Mapped[float]
    start_time: Mapped[float | None]
    nodes: Mapped[str]
    phase: Mapped[str | None]
    extra: Mapped[dict[str, str]]
    exit_status: Mapped[int]
    learnable: Mapped[bool]
    learned: Mapped[bool] = mapped_column(default=False, server_default=false())


class LoadRow(Base):
    """The load of one node at one time; a table ordered by its key, so that an hour of a node is contiguous."""

    __tablename__ = "loads"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012

    node: Mapped[str] = mapped_column(primary_key=True)
    time: Mapped[float] = mapped_column(primary_key=True)
    available_cpu: Mapped[float]
    available_bandwidth: Mapped[float]


class LoadMeanRow(Base):
    """The mean of one node's loads over ``step`` seconds from ``time`` on; a span of time lies together."""

    __tablename__ = "load_means"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012

    step: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    time: Mapped[float] = mapped_column(primary_key=True)
    node: Mapped[str] = mapped_column(primary_key=True)
    available_cpu: Mapped[float]
    available_bandwidth: Mapped[float]
    samples: Mapped[int]


class LoadBlockRow(Base):
    """One minute of all nodes' loads, packed; see :mod:`metasched.store.database.load_blocks`."""

    __tablename__ = "load_blocks"

    minute: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    nodes: Mapped[str] = mapped_column(Text)
    samples: Mapped[bytes]


class LateSlotRow(Base):
    """Five minutes that got a sample when their blocks were gone: their means are to be made again."""

    __tablename__ = "late_slots"

    slot: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)


class PastJobRow(Base):
    """A past job from accounting; its ``uid`` makes storing it twice the same as storing it once.

    Of a job that was forgotten only ``uid`` and ``cluster`` are left, so that it is not imported again.
    """

    __tablename__ = "past_jobs"

    uid: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    cluster: Mapped[str]
    submit_time: Mapped[float]
    run_time: Mapped[float]
    processors: Mapped[int]
    requested_time: Mapped[float | None]
    wait: Mapped[float | None]
    user: Mapped[str | None]
    account: Mapped[str | None]
    name: Mapped[str | None]
    partition: Mapped[str | None]
    qos: Mapped[str | None]
    executable: Mapped[str | None]
    state: Mapped[str | None]
    numbers: Mapped[str | None]


class ModelRow(Base):
    """One version of the model of one application on one cluster, as a JSON document."""

    __tablename__ = "models"

    application: Mapped[str] = mapped_column(primary_key=True)
    cluster: Mapped[str] = mapped_column(primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True)
    saved_at: Mapped[float]
    document: Mapped[dict[str, Any]]


class PlacementRow(Base):
    """One advised placement, and the outcome of its job, which is None until the job has ended."""

    __tablename__ = "placements"
    __table_args__ = (Index("placements_by_time", "made_at"),)

    uid: Mapped[str] = mapped_column(String(32), primary_key=True)
    made_at: Mapped[float]
    application: Mapped[str]
    question: Mapped[dict[str, Any]]
    answer: Mapped[dict[str, Any]]
    outcome: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))


class WaitingJobRow(Base):
    """An ended job as it was reported, and when it ended (s), until its scheduler has confirmed how.

    ``uid`` is that of its run, which is stored already if its comment has a mark.
    """

    __tablename__ = "waiting_jobs"

    uid: Mapped[str] = mapped_column(String(32), primary_key=True)
    ended_at: Mapped[float]
    document: Mapped[dict[str, Any]]


class SentJobRow(Base):
    """One job that a grid's daemon has sent to a site, when (s since 1970), and all that is known of it."""

    __tablename__ = "sent_jobs"

    uid: Mapped[str] = mapped_column(String(32), primary_key=True)
    chosen_at: Mapped[float]
    document: Mapped[dict[str, Any]]


class KnownSiteRow(Base):
    """The state of one site of a grid, learned from sent jobs."""

    __tablename__ = "known_sites"

    site: Mapped[str] = mapped_column(String(64), primary_key=True)
    document: Mapped[dict[str, Any]]


class WaitErrorsRow(Base):
    """What forecasts of waits have missed in the queue of one scheduler."""

    __tablename__ = "wait_errors"

    scheduler: Mapped[str] = mapped_column(primary_key=True)
    document: Mapped[dict[str, Any]]


class TokenRow(Base):
    """A token of a client of the daemon, with its role. Only a digest of the secret is stored."""

    __tablename__ = "tokens"

    name: Mapped[str] = mapped_column(primary_key=True)
    digest: Mapped[str] = mapped_column(String(64), unique=True)
    role: Mapped[str]
    node: Mapped[str | None]
    user: Mapped[str | None]
    made_at: Mapped[float]


class LeaderRow(Base):
    """The leading daemon, and since when (s): the row with the highest number; others are deleted."""

    __tablename__ = "leaders"

    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    name: Mapped[str]
    since: Mapped[float]


class ModeRow(Base):
    """A mode that an administrator has set on the running daemon; the one with the highest number counts."""

    __tablename__ = "modes"

    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    set_at: Mapped[float]
    mode: Mapped[str]
    configured: Mapped[str]
    set_by: Mapped[str]
