"""Faults that come again and again, of which the log has one line a minute."""

from __future__ import annotations

import math
import time

#: The same fault is logged once in so many seconds.
LOGGED_EVERY = 60.0


class RecurringFaults:
    """Counts faults, and says when to log one: at once if it differs from the last, else once a minute.

    >>> faults = RecurringFaults()
    >>> [faults.to_log(fault) for fault in ("full", "full", "full", "locked")]
    [1, 0, 0, 3]
    """

    def __init__(self) -> None:
        self._fault, self._logged, self._since = "", -math.inf, 0

    def to_log(self, fault: str = "") -> int:
        """The number of faults since one was logged, with this one; 0 if this one need not be logged."""
        self._since += 1
        now = time.monotonic()
        if fault == self._fault and now < self._logged + LOGGED_EVERY:
            return 0
        count, self._since = self._since, 0
        self._fault, self._logged = fault, now
        return count
