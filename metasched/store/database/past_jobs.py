"""Past jobs from accounting in the database, from which run times and waits are learned."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Collection, Iterable
from functools import cache

import numpy as np
from sqlalchemy import Engine, bindparam, delete, func, or_, select, update

from metasched.history.job_log import COMPLETED, FAILED, LABELS, JobLog, digest_of
from metasched.records import InputError
from metasched.store.database.engine import reading, writing
from metasched.store.database.rows import insert_new
from metasched.store.database.tables import PastJobRow, table

#: Rows that are handed to the database at once.
BATCH = 20_000
#: Rows that a query names at most.
NAMED = 1000
#: The state of a job of which nothing is left but that it was there.
FORGOTTEN = "FORGOTTEN"

_LABELS = [getattr(PastJobRow, label) for label in LABELS]


_CORRECTION = (
    update(table(PastJobRow))
    .where(
        table(PastJobRow).c.uid == bindparam("which"),
        or_(table(PastJobRow).c.state.is_(None), table(PastJobRow).c.state == FAILED),
    )
    .values(state=bindparam("how"))
)
_ADDITION = (
    update(table(PastJobRow))
    .where(
        table(PastJobRow).c.uid == bindparam("which"),
        table(PastJobRow).c.numbers.is_(None),
        table(PastJobRow).c.state.is_distinct_from(FORGOTTEN),
    )
    .values(numbers=bindparam("stated"))
)


class PastJobs:
    """The past jobs that accounting reports.

    >>> from metasched.history.log_formats import read_log
    >>> from metasched.store.database.store import Store
    >>> log = read_log(["submit_time,run_time,processors,user", "0,60,4,ada", "9,20,1,bob"])
    >>> with Store.open(":memory:") as store:
    ...     store.past_jobs.add(log, "c8"), store.past_jobs.add(log, "c8")
    ...     store.past_jobs.log(["c8"]).named("user")
    ...     store.past_jobs.forget(["ada"]), store.past_jobs.add(log, "c8"), store.past_jobs.count(["c8"])
    (2, 0)
    ['ada', 'bob']
    (1, 0, 1)
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def add(
        self, log: JobLog, cluster: str, called: Callable[[str], str] = str,
        progress: Callable[[Iterable[int], int], Iterable[int]] = lambda steps, total: steps,
    ) -> int:  # fmt: skip
        """Store the jobs of a log, all or none; return how many were new.

        Of a job that is known already, its state is corrected where an epilog could not tell how it ended, or only that
        it failed, and the numbers in its arguments are added where they were not known.

        Parameters
        ----------
        log : as it was read, so that its jobs have keys.
        cluster : where they ran.
        called : what a user is called in the database.
        progress : goes through the batches.

        Raises
        ------
        InputError : when the log was made up, so that its jobs cannot be known again.
        """
        if len(log.keys) != len(log):
            raise InputError("the jobs of the log have no keys, expected a log that was read")
        apart = digest_of(cluster)
        users = {name: called(name) for name in set(log.names.get("user", ()))}
        new, batches = 0, math.ceil(len(log) / BATCH)
        with writing(self._engine, long=True) as connection:
            for batch in progress(range(batches), batches):
                part = log.picked(np.arange(batch * BATCH, min((batch + 1) * BATCH, len(log))))
                labels = {label: [name or None for name in part.named(label)] for label in LABELS}
                labels["user"] = [name and users.get(name, name) for name in labels["user"]]
                labels = {label: [name and _storable(name) for name in names] for label, names in labels.items()}
                columns = (
                    (part.keys ^ apart).tolist(), part.submit_time.tolist(), part.run_time.tolist(),
                    part.processors.tolist(), _known(part.requested_time), _known(part.wait), *labels.values(),
                )  # fmt: skip
                names = ("uid", "submit_time", "run_time", "processors", "requested_time", "wait", *labels)
                rows = [dict(zip(names, cells, strict=True), cluster=cluster) for cells in zip(*columns, strict=True)]
                fresh = insert_new(connection, table(PastJobRow), rows)
                new += fresh
                stating = [{"which": row["uid"], "stated": row["numbers"]} for row in rows if row["numbers"]]
                if stating and fresh < len(rows):
                    connection.execute(_ADDITION, stating)
                surer = [
                    {"which": row["uid"], "how": row["state"]} for row in rows
                    if row["state"] not in (None, COMPLETED)
                ]  # fmt: skip
                if surer:
                    connection.execute(_CORRECTION, surer)
        return new

    def log(self, clusters: Collection[str] | None = None, *, ended_since: float = -math.inf) -> JobLog:
        """The jobs of some clusters, of all where None, that ended since a time (s).

        In the order in which they were submitted; jobs whose waits are not known count as if they had not waited.

        Raises
        ------
        InputError : when there are none.
        """
        columns = (
            PastJobRow.uid, PastJobRow.cluster, PastJobRow.submit_time, PastJobRow.run_time, PastJobRow.processors,
            PastJobRow.requested_time, PastJobRow.wait, *_LABELS,
        )  # fmt: skip
        query = select(*columns).where(_kept)
        if ended_since > -math.inf:
            query = query.where(_end >= ended_since)
        if clusters is not None:
            query = query.where(PastJobRow.cluster.in_(clusters))
        keys, numbers, codes = array("q"), array("d"), array("q")
        names: list[dict[str, int]] = [{} for _ in LABELS]
        apart = cache(digest_of)
        with reading(self._engine, long=True) as connection:
            for row in connection.execute(
                query.order_by(PastJobRow.submit_time), execution_options={"yield_per": BATCH}
            ):
                keys.append(row[0] ^ apart(row[1]))
                numbers.extend(math.nan if cell is None else cell for cell in row[2:7])
                codes.extend(
                    -1 if cell is None else known.setdefault(cell, len(known))
                    for cell, known in zip(row[7:], names, strict=True)
                )
        if not keys:
            raise InputError("holds no past jobs, expected metasched history import first")
        values = np.frombuffer(numbers).reshape(-1, 5)
        by_label = np.frombuffer(codes, dtype=np.int64).reshape(-1, len(LABELS))
        return JobLog(
            values[:, 0].copy(), values[:, 1].copy(), values[:, 2].astype(np.int64), values[:, 3].copy(),
            values[:, 4].copy(),
            {label: by_label[:, place].copy() for place, label in enumerate(LABELS) if names[place]},
            names={label: tuple(names[place]) for place, label in enumerate(LABELS) if names[place]},
            keys=np.frombuffer(keys, dtype=np.int64),
        )  # fmt: skip

    def count(self, clusters: Collection[str] | None = None) -> int:
        """The number of past jobs, on some clusters or on all."""
        query = select(func.count()).select_from(PastJobRow).where(_kept)
        if clusters is not None:
            query = query.where(PastJobRow.cluster.in_(clusters))
        with reading(self._engine) as connection:
            return connection.scalar(query) or 0

    def counts(self, *, forgotten: bool = False) -> dict[str, int]:
        """How many past jobs are stored of each cluster, by its name in the order of names; also of those forgotten."""
        query = select(PastJobRow.cluster, func.count()).group_by(PastJobRow.cluster)
        if not forgotten:
            query = query.where(_kept)
        with reading(self._engine, long=True) as connection:
            return dict(sorted((cluster, count) for cluster, count in connection.execute(query)))

    def ends(self, cluster: str) -> tuple[float, float] | None:
        """When the first and the last of a cluster's jobs ended (s), None where there is none."""
        query = select(func.min(_end), func.max(_end)).where(PastJobRow.cluster == cluster, _kept)
        with reading(self._engine) as connection:
            first, last = connection.execute(query).one()
        return None if first is None else (first, last)

    def any_user(self) -> str | None:
        """The stored name of one of the users; None if no job has a user."""
        with reading(self._engine) as connection:
            return connection.scalar(select(PastJobRow.user).where(PastJobRow.user.is_not(None)).limit(1))

    def forgotten(self, keys: Collection[int], cluster: str) -> frozenset[int]:
        """Those of some jobs of a cluster, by their keys, that were forgotten."""
        apart, named = digest_of(cluster), list(keys)
        batches = (named[start : start + NAMED] for start in range(0, len(named), NAMED))
        with reading(self._engine, long=True) as connection:
            return frozenset(
                uid ^ apart
                for batch in batches
                for uid in connection.scalars(
                    select(PastJobRow.uid).where(~_kept, PastJobRow.uid.in_([key ^ apart for key in batch]))
                )
            )

    def forget(self, users: Collection[str]) -> int:
        """Delete the data of all jobs of some users; return the number of jobs.

        That they were there stays, so that they are not stored again when they are reported again.
        """
        with writing(self._engine, long=True) as connection:
            change = update(PastJobRow).where(PastJobRow.user.in_(users))
            nothing = {"submit_time": 0.0, "run_time": 0.0, "processors": 1, "requested_time": None, "wait": None}
            return connection.execute(
                change.values(**nothing, **dict.fromkeys(LABELS)).values(state=FORGOTTEN)
            ).rowcount

    def prune(self, before: float) -> int:
        """Remove jobs that were submitted before a time (s); return how many."""
        if before == -math.inf:
            return 0
        with writing(self._engine, long=True) as connection:
            old = delete(PastJobRow).where(PastJobRow.submit_time < before, _kept)
            return connection.execute(old).rowcount


#: Of rows of which anything is left.
_kept = PastJobRow.state.is_distinct_from(FORGOTTEN)
#: When a job ended (s), or at the earliest where its wait is not known.
_end = PastJobRow.submit_time + func.coalesce(PastJobRow.wait, 0.0) + PastJobRow.run_time


def _storable(name: str) -> str:
    """A name in characters that every database can hold, whatever bytes its user chose."""
    return name.encode("utf-8", "replace").replace(b"\0", b"?").decode()


def _known(column: np.ndarray) -> list[float | None]:
    """A column with None where nothing is known."""
    return [None if math.isnan(value) else value for value in column.tolist()]
