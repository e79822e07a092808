"""What forecasts of waits have missed in the queue of each scheduler, so that it outlives a restart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Engine, select

from metasched.history.waits import WaitErrors
from metasched.records import InputError
from metasched.store.database.engine import reading, writing
from metasched.store.database.rows import put, sound
from metasched.store.database.tables import WaitErrorsRow, table


class WaitErrorRecords:
    """The errors of waits in a database.

    >>> from metasched.store.database.store import Store
    >>> errors = WaitErrors()
    >>> for _ in range(40):
    ...     errors.learn(errors.expect(600.0), 1260.0)
    >>> with Store.open(":memory:") as store:
    ...     store.wait_errors.save({"slurm": errors})
    ...     round(store.wait_errors.all()["slurm"].expect(600.0).seconds)
    1260
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def all(self) -> dict[str, WaitErrors]:
        """The errors by scheduler; those that cannot be read are left out."""
        with reading(self._engine) as connection:
            return dict(sound(connection.execute(QUERY).all(), read))

    def save(self, errors: Mapping[str, WaitErrors]) -> None:
        """Store the present errors of schedulers, by name, in one transaction."""
        with writing(self._engine) as connection:
            for scheduler, known in errors.items():
                put(connection, table(WaitErrorsRow), "scheduler", scheduler, {"document": known.as_dict()})


#: Selects schedulers with their errors.
QUERY = select(WaitErrorsRow.scheduler, WaitErrorsRow.document)


def read(row: Any) -> tuple[str, WaitErrors]:
    """A row of :data:`QUERY`; InputError where it holds something else."""
    scheduler, document = row
    try:
        return scheduler, WaitErrors.of(document)
    except InputError as error:
        raise InputError(str(error), where=f"queue of {scheduler}") from None
