"""The mode that the daemon is in: as configured, or as an administrator has set it since, which a restart keeps."""

from __future__ import annotations

import logging
import time
from typing import cast

from metasched.records import InputError
from metasched.service.configuration import Mode
from metasched.store.modes import Modes, ModeSet

_log = logging.getLogger(__name__)


class Switch:
    """What decides the mode: the last word, be it the configuration's or an administrator's.

    A mode that was set on the running daemon holds until another is set, or until the configuration says another mode
    than it did then: whoever changes the file and restarts the daemon has spoken last.

    Parameters
    ----------
    configured : the configuration's mode.
    journal : where modes that are set are noted.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from metasched.store.database import Store
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Store.open(pathlib.Path(folder.name, "metasched.db")) as store:
    ...     Switch("shadow", Modes(store)).set("act", "root")
    ...     [Switch(configured, Modes(store)).mode for configured in ("shadow", "advise")]
    ['act', 'advise']
    >>> folder.cleanup()
    """

    def __init__(self, configured: Mode, journal: Modes) -> None:
        self.configured = configured
        self._journal = journal
        newest = journal.newest()
        self.last = newest if newest is not None and newest.configured == configured else None
        if self.last is not None and self.mode != configured:
            _log.warning('mode %s, as %s set it; the configuration says "%s"', self.mode, self.last.by, configured)

    @property
    def mode(self) -> Mode:
        """The mode now."""
        return self.configured if self.last is None else cast(Mode, self.last.mode)

    def set(self, mode: Mode, by: str) -> None:
        """Set another mode; when this returns it is noted, so that a restart keeps it.

        Raises
        ------
        RuntimeError
            When it could not be noted: then it does not hold either.
        """
        change = ModeSet(time.time(), mode, self.configured, by)
        try:
            self._journal.add(change)
        except InputError as error:
            raise RuntimeError(str(error)) from None
        before, self.last = self.mode, change
        _log.warning("mode %s, set by %s; it was %s", mode, by, before)
