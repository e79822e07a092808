"""Placements as they were advised, each beside what really happened to its job."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import insert, select, update

from metasched.store.database import Store
from metasched.store.engine import reading, writing
from metasched.store.tables import PlacementRow


@dataclass(frozen=True, slots=True)
class Advice:
    """What was asked and answered, and the outcome once the job has ended; each a JSON document."""

    uid: str
    made_at: float
    application: str
    question: Mapping[str, Any]
    answer: Mapping[str, Any]
    outcome: Mapping[str, Any] | None = None

    def as_dict(self) -> dict[str, Any]:
        """The placement as one JSON document."""
        return {
            "id": self.uid,
            "made_at": self.made_at,
            "application": self.application,
            "question": dict(self.question),
            "answer": dict(self.answer),
            "outcome": None if self.outcome is None else dict(self.outcome),
        }


class Placements:
    """The journal of placements in a database."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def add(self, advised: Iterable[Advice]) -> None:
        """Store placements, all or none."""
        rows = [
            {
                "uid": each.uid,
                "made_at": each.made_at,
                "application": each.application,
                "question": dict(each.question),
                "answer": dict(each.answer),
                "outcome": None if each.outcome is None else dict(each.outcome),
            }
            for each in advised
        ]
        if rows:
            with writing(self._store.engine) as connection:
                connection.execute(insert(PlacementRow), rows)

    def settle(self, uid: str, outcome: Mapping[str, Any]) -> bool:
        """Note what became of a job; tell whether its placement is known and was still open."""
        change = update(PlacementRow).where(PlacementRow.uid == uid, PlacementRow.outcome.is_(None))
        with writing(self._store.engine) as connection:
            return connection.execute(change.values(outcome=dict(outcome))).rowcount > 0

    def find(self, uid: str) -> Advice | None:
        """One placement."""
        found = self._select(select(*_COLUMNS).where(PlacementRow.uid == uid))
        return found[0] if found else None

    def recent(self, limit: int = 100, *, settled: bool | None = None) -> tuple[Advice, ...]:
        """The newest placements, newest first: all, or only those whose job has ended, or has not."""
        query = select(*_COLUMNS).order_by(PlacementRow.made_at.desc()).limit(limit)
        if settled is not None:
            query = query.where(PlacementRow.outcome.is_not(None) if settled else PlacementRow.outcome.is_(None))
        return self._select(query)

    def open_between(self, since: float, until: float) -> tuple[Advice, ...]:
        """Placements made in [since, until) whose job has not ended, oldest first."""
        query = select(*_COLUMNS).where(PlacementRow.made_at >= since, PlacementRow.made_at < until)
        return self._select(query.where(PlacementRow.outcome.is_(None)).order_by(PlacementRow.made_at))

    def _select(self, query: Any) -> tuple[Advice, ...]:
        with reading(self._store.engine) as connection:
            return tuple(Advice(*row) for row in connection.execute(query))


_COLUMNS = (
    PlacementRow.uid,
    PlacementRow.made_at,
    PlacementRow.application,
    PlacementRow.question,
    PlacementRow.answer,
    PlacementRow.outcome,
)
