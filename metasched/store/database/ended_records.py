"""Ended jobs in the database: the run and the outcome of its placement, stored together or not at all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Engine

from metasched.advised_placements import Outcome
from metasched.store.database import placement_records, run_records
from metasched.store.database.engine import writing
from metasched.store.database.run_records import RecordedRun


@dataclass(frozen=True, slots=True)
class EndedRecord:
    """The stored data of an ended job.

    Parameters
    ----------
    record : its run.
    placement, outcome : the uid of its placement and the outcome to note beside it; None where it has none.
    corrects : whether the run is stored already, and this says how it really ended.
    """

    record: RecordedRun
    placement: str | None = None
    outcome: Outcome | None = None
    corrects: bool = False

    @property
    def uid(self) -> str:
        """The 32 characters that name the stored run."""
        return self.record.uid


class EndedRecords:
    """Stores ended jobs: each one's run and its placement's outcome, both or neither."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def add(self, ended: Iterable[EndedRecord]) -> frozenset[str]:
        """Store some, all or none; return the uids of runs that are new or were corrected.

        A job whose run is there already, and is not to be corrected, changes nothing.
        """
        ended = tuple(ended)
        with writing(self._engine) as connection:
            new = run_records.insert_runs(connection, [each.record for each in ended if not each.corrects])
            for each in ended:
                if each.corrects and run_records.correct_run(connection, each.record):
                    new |= {each.uid}
                if each.uid in new and each.placement is not None and each.outcome is not None:
                    placement_records.settle(connection, each.placement, each.outcome)
        return new
