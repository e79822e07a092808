"""The mode that the daemon is in: as configured, or as an administrator has set it since, which a restart keeps."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Lock
from typing import Any, cast

from metasched.modes import Mode
from metasched.store.database.modes import Modes, ModeSet

_log = logging.getLogger(__name__)


class ModeSwitch:
    """What decides the mode: the last word, be it the configuration's or an administrator's.

    A mode that was set on the running daemon holds until another is set, or until the configuration says another mode
    than it did then: whoever changes the file and restarts the daemon has spoken last.

    Parameters
    ----------
    configured : the configuration's mode.
    journal : where modes that are set are noted.
    now : the time (s since 1970).

    Examples
    --------
    >>> import time
    >>> from metasched.store.database.store import Store
    >>> with Store.open(":memory:") as store:
    ...     ModeSwitch("shadow", store.modes, time.time).set("act", "root")
    ...     [ModeSwitch(configured, store.modes, time.time).mode for configured in ("shadow", "advise")]
    ['act', 'advise']
    """

    def __init__(self, configured: Mode, journal: Modes, now: Callable[[], float]) -> None:
        self.configured = configured
        self._journal, self._now = journal, now
        self._setting = Lock()
        #: Called with each mode that is set.
        self.on_change: Callable[[Mode], None] = lambda mode: None
        newest = journal.newest()
        self.last = self._counting(newest)
        if self.last is not None and self.mode != configured:
            _log.warning('mode %s, as %s set it; the configuration says "%s"', self.mode, self.last.by, configured)

    def read(self) -> None:
        """Take up what was set on another daemon of the same database."""
        with self._setting:
            before, self.last = self.mode, self._counting(self._journal.newest())
            if self.mode != before:
                self.on_change(self.mode)

    def _counting(self, newest: ModeSet | None) -> ModeSet | None:
        return newest if newest is not None and newest.configured == self.configured else None

    def as_dict(self) -> dict[str, Any]:
        """The mode, what the configuration says, and who set another when (s); None where nobody did."""
        set_by, set_at = (None, None) if self.last is None else (self.last.by, self.last.set_at)
        return {"mode": self.mode, "configured": self.configured, "set_by": set_by, "set_at": set_at}

    @property
    def mode(self) -> Mode:
        """The mode now: shadow, advise or act."""
        return self.configured if self.last is None else cast(Mode, self.last.mode)

    def set(self, mode: Mode, by: str) -> None:
        """Set another mode; when this returns it is noted, so that a restart keeps it.

        Raises
        ------
        StoreError : when it could not be noted: then it does not hold either.
        """
        change = ModeSet(self._now(), mode, self.configured, by)
        with self._setting:
            self._journal.add(change)
            before, self.last = self.mode, change
            self.on_change(mode)
        _log.warning("mode %s, set by %s; it was %s", mode, by, before)
