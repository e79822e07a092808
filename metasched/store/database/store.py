"""The database of runs, loads, models, placements, tokens and modes, safe with many processes that use it at once.

SQLite by default, one file; any database that SQLAlchemy reaches by URL and that can ``INSERT ... ON CONFLICT``, so
PostgreSQL too. Everything that is stored is checked first by the records, and every method is one transaction: what it
was given is stored whole or not at all.
"""

from __future__ import annotations

import os
from typing import Self

from sqlalchemy import Engine

from metasched.records import InputError
from metasched.store.database.ended_records import EndedRecords
from metasched.store.database.engine import connect, default_location, file_of, make_as_folder_owner, name_of, opening
from metasched.store.database.load_records import LoadRecords
from metasched.store.database.model_records import ModelRecords
from metasched.store.database.modes import Modes
from metasched.store.database.past_jobs import PastJobs
from metasched.store.database.placement_records import PlacementRecords
from metasched.store.database.run_records import RunRecords
from metasched.store.database.schema import bring_up
from metasched.store.database.sent_job_records import SentJobRecords
from metasched.store.database.tokens import Tokens
from metasched.store.database.wait_error_records import WaitErrorRecords
from metasched.store.database.waiting_jobs import WaitingJobs


class Store:
    """One database, and the kinds of records in it.

    Attributes
    ----------
    runs, loads, models, placements, tokens, modes, ended, waiting, past_jobs, sent_jobs, wait_errors : records, each
        with verbs of its own.
    schema_before : the schema that the database had when it was opened; None where it was made.

    Examples
    --------
    >>> from metasched.records import Run
    >>> with Store.open(":memory:") as store:
    ...     store.runs.add(Run("cg", "c8", 1400, 4, 0.8, 93.5, 12.25))
    ...     store.runs.add(Run("cg", "c8", 1400, 4, 0.8, 93.5, 1.5), exit_status=137, learnable=False)
    ...     [run.execution_time for run in store.runs.learnable(application="cg")]
    ...     store.models.save("cg", "c8", {"format": 1})
    ...     store.models.document("cg", "c8")
    [12.25]
    1
    {'format': 1}
    """

    def __init__(self, engine: Engine, schema_before: str | None) -> None:
        #: For operations on the database as a whole: means of loads, retention, backups.
        self.engine, self.schema_before = engine, schema_before
        self.runs, self.loads, self.models = RunRecords(engine), LoadRecords(engine), ModelRecords(engine)
        self.placements, self.tokens, self.modes = PlacementRecords(engine), Tokens(engine), Modes(engine)
        self.ended, self.waiting = EndedRecords(engine), WaitingJobs(engine)
        self.past_jobs, self.sent_jobs = PastJobs(engine), SentJobRecords(engine)
        self.wait_errors = WaitErrorRecords(engine)

    @classmethod
    def open(cls, location: str | os.PathLike[str] | None = None, *, timeout: float = 10.0, new: bool = True) -> Self:
        """Open a database, making it or upgrading its schema where needed.

        Parameters
        ----------
        location : path of a SQLite file or URL; by default ``$METASCHED_DB`` or a file in the user's data folder.
        timeout : how long to wait for other processes that hold the lock, and for the answer of a server (s).
        new : whether a database is made that is missing, or in an empty file; what only reads makes none.

        Raises
        ------
        InputError
            When there is no database and none can be made there, or it is another program's, or of a newer schema.
        StoreError : when it is locked, damaged, or its server does not answer.
        """
        location = default_location() if location is None else os.fspath(location)
        if not new and "://" not in location:
            if not os.path.exists(location):
                raise InputError("no such database; metasched run or serve creates one", where=location)
            if os.path.getsize(location) == 0:  # which SQLite takes for a database that was never written to
                raise InputError("the file is empty, expected a database", where=location)
        engine = connect(location, timeout)
        if path := file_of(engine):
            make_as_folder_owner(path)
        try:
            with opening():
                before = bring_up(engine)
        except BaseException:
            engine.dispose()
            raise
        return cls(engine, before)

    def close(self) -> None:
        """Close all connections to the database."""
        self.engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def name(self) -> str:
        """The path of the file, or the URL without its password."""
        return name_of(self.engine.url)
