"""Which mode an administrator has set on the running daemon, and when: the last word outlives a restart."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Engine, func, insert, select

from metasched.store.database.engine import reading, writing
from metasched.store.database.tables import ModeRow


@dataclass(frozen=True, slots=True)
class ModeSet:
    """A mode that was set.

    Parameters
    ----------
    set_at : when (s since 1970).
    mode : shadow, advise or act.
    configured : what the configuration said then.
    by : the client that set it.
    """

    set_at: float
    mode: str
    configured: str
    by: str


class Modes:
    """The journal of modes in a database.

    >>> from metasched.store.database.store import Store
    >>> with Store.open(":memory:") as store:
    ...     store.modes.add(ModeSet(1.5e9, "advise", "shadow", "root"))
    ...     store.modes.add(ModeSet(1.4e9, "act", "shadow", "root"))  # the clock was put back meanwhile
    ...     store.modes.newest().mode
    'act'
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def add(self, change: ModeSet) -> None:
        """Note that a mode was set."""
        with writing(self._engine) as connection:
            last = connection.scalar(select(func.max(ModeRow.number))) or 0
            row = {"number": last + 1, "set_at": change.set_at, "mode": change.mode}
            connection.execute(insert(ModeRow), row | {"configured": change.configured, "set_by": change.by})

    def newest(self) -> ModeSet | None:
        """The mode that was set last; None where none ever was."""
        columns = (ModeRow.set_at, ModeRow.mode, ModeRow.configured, ModeRow.set_by)
        with reading(self._engine) as connection:
            found = connection.execute(select(*columns).order_by(ModeRow.number.desc()).limit(1)).first()
        return None if found is None else ModeSet(*found)
