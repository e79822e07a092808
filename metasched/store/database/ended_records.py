"""Ended jobs in the database: the run and the outcome of its placement, stored together or not at all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Engine

from metasched.advised_placements import Outcome
from metasched.jobs import EndedJob
from metasched.store.database import placement_records, run_records, waiting_jobs
from metasched.store.database.engine import writing
from metasched.store.database.run_records import RecordedRun


@dataclass(frozen=True, slots=True)
class EndedRecord:
    """The stored data of an ended job.

    Parameters
    ----------
    uid : the 32 characters that name its run.
    record : its run; None where it is not known of what application.
    placement, outcome : the uid of its placement and the outcome to note beside it; None where it has none.
    corrects : whether the run is stored already, and this says how it really ended.
    waiting : the job as it was reported, while its scheduler has yet to confirm how it ended; None once it has.
    """

    uid: str
    record: RecordedRun | None = None
    placement: str | None = None
    outcome: Outcome | None = None
    corrects: bool = False
    waiting: EndedJob | None = None


class EndedRecords:
    """Stores ended jobs: each one's run, its placement's outcome, and whether it waits, all or nothing."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def add(self, ended: Iterable[EndedRecord]) -> frozenset[str]:
        """Store some, all or none; return the uids of runs that are new or were corrected.

        A job whose run is there already, and is not to be corrected, changes nothing.
        """
        ended = tuple(ended)
        with writing(self._engine) as connection:
            fresh = [each.record for each in ended if each.record is not None and not each.corrects]
            new = run_records.insert_runs(connection, fresh)
            for each in ended:
                if each.corrects and each.record is not None and run_records.correct_run(connection, each.record):
                    new |= {each.uid}
                if each.uid in new and each.placement is not None and each.outcome is not None:
                    placement_records.settle(connection, each.placement, each.outcome)
            waiting = [each.waiting for each in ended if each.waiting and (each.record is None or each.uid in new)]
            waiting_jobs.insert_jobs(connection, waiting)
            waiting_jobs.delete_jobs(connection, [each.uid for each in ended if each.waiting is None])
        return new
