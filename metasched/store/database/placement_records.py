"""Placements in the database as they were advised, each beside the outcome of its job."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Any

from sqlalchemy import Connection, Engine, or_, select, update

from metasched.advised_placements import AdvisedPlacement, Outcome
from metasched.store.database.engine import reading, writing
from metasched.store.database.rows import insert_many_new, sound
from metasched.store.database.tables import PlacementRow, table


def settle(connection: Connection, uid: str, outcome: Outcome) -> bool:
    """Store the outcome of a job; return whether its placement is known and had none yet."""
    change = update(PlacementRow).where(PlacementRow.uid == uid, PlacementRow.outcome.is_(None))
    return connection.execute(change.values(outcome=outcome.as_dict())).rowcount > 0


class PlacementRecords:
    """The placements of the daemon with the outcomes of their jobs, in a database."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def add(self, advised: Iterable[AdvisedPlacement]) -> None:
        """Store placements in one transaction, all of them or none; those that are stored already stay as they are."""
        rows = []
        for each in advised:
            question, answer = each.question.model_dump_json(), each.answer.model_dump_json(exclude={"id"})
            outcome = None if each.outcome is None else json.dumps(each.outcome.as_dict())
            rows.append((each.uid, each.made_at, each.application, question, answer, outcome))
        with writing(self._engine) as connection:
            insert_many_new(connection, table(PlacementRow), rows)

    def settle(self, uid: str, outcome: Outcome) -> bool:
        """Store the outcome of a job; return whether its placement is known and had none yet."""
        with writing(self._engine) as connection:
            return settle(connection, uid, outcome)

    def find(self, uid: str) -> AdvisedPlacement | None:
        """The placement with an id; None where there is none."""
        found = self._select(select(*_COLUMNS).where(PlacementRow.uid == uid))
        return found[0] if found else None

    def recent(
        self,
        limit: int = 100,
        *,
        settled: bool | None = None,
        users: Collection[str] | None = None,
        job: str | None = None,
    ) -> tuple[AdvisedPlacement, ...]:
        """The newest placements, newest first.

        Parameters
        ----------
        limit : how many at most.
        settled : only those whose job has ended, or has not.
        users : only those of some users.
        job : only those of jobs of this number that have ended, or whose scheduler gave it before it asked.
        """
        query = select(*_COLUMNS).order_by(PlacementRow.made_at.desc()).limit(limit)
        if settled is not None:
            query = query.where(PlacementRow.outcome.is_not(None) if settled else PlacementRow.outcome.is_(None))
        if users is not None:
            query = query.where(PlacementRow.question["user"].as_string().in_(users))
        if job is not None:
            named = (document["job"].as_string() == job for document in (PlacementRow.outcome, PlacementRow.question))
            query = query.where(or_(*named))
        return self._select(query)

    def made_between(self, since: float, until: float) -> tuple[AdvisedPlacement, ...]:
        """Placements made in [since, until) (s), oldest first."""
        query = select(*_COLUMNS).where(PlacementRow.made_at >= since, PlacementRow.made_at < until)
        return self._select(query.order_by(PlacementRow.made_at))

    def _select(self, query: Any) -> tuple[AdvisedPlacement, ...]:
        with reading(self._engine) as connection:
            rows = connection.execute(query).all()
        return sound(rows, lambda row: AdvisedPlacement.read(*row))


_COLUMNS = (
    PlacementRow.uid, PlacementRow.made_at, PlacementRow.question, PlacementRow.answer, PlacementRow.outcome,
)  # fmt: skip
