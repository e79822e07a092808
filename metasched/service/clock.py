"""The daemon's time: seconds since 1970 that advance with the monotonic clock when the system clock is set."""

from __future__ import annotations

import statistics
import time
from collections import deque
from collections.abc import Callable, Mapping
from threading import Lock

#: Differences up to this are a clock being slewed, and followed at once (s).
SLEWED = 2.0
#: For how long the reported clock of a node counts, and how many nodes are needed to question the daemon's clock.
HEARD, WITNESSES = 300.0, 3
#: Times that the time of day was set that are remembered.
REMEMBERED = 100
#: For how long health reports a time of day that was set (s).
REPORTED = 3600.0


class Clock:
    """The daemon's clock.

    When somebody sets the time of day, be it wrongly or at last rightly, the nodes bear witness: the newest sample of
    each says what its clock shows. The daemon goes by the time that most of them show, its own from before or the new
    one; where no node was heard it takes the new one.

    Parameters
    ----------
    wall, steady : the time of day, and a monotonic clock (s).
    ahead : how far a node's clock may run ahead (s).

    Examples
    --------
    >>> day, passed = [1e9], [0.0]
    >>> clock = Clock(lambda: day[0], lambda: passed[0])
    >>> clock.heard("n1", 1e9)
    >>> passed[0], day[0] = 10.0, 1e9 - 3590.0  # an hour back
    >>> clock.mind()
    >>> clock.now() - 1e9, clock.fault()
    (10.0, 'the clock was set by -3600 s; the daemon keeps its own time, which the nodes confirm')
    """

    def __init__(
        self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic, ahead: float = 60.0
    ) -> None:
        self._wall, self.steady, self._ahead = wall, steady, ahead
        self._offset = wall() - steady()
        self._heard: dict[str, tuple[float, float]] = {}
        self._set: tuple[float, float] | None = None
        #: By how much the time of day was ahead when it was minded last, and when that was by the monotonic clock.
        self._minded = 0.0, steady()
        self._settings: deque[tuple[float, float]] = deque(maxlen=REMEMBERED)
        self._lock = Lock()

    def now(self) -> float:
        """The daemon's time, seconds since 1970: it goes on by the monotonic clock when the time of day is set."""
        return self.steady() + self._offset

    def heard(self, node: str, newest: float) -> None:
        """Record the time of the newest sample (s) that a node has just sent."""
        with self._lock:
            self._heard[node] = self.steady(), newest - self.now()

    def mind(self) -> None:
        """Compare with the time of day; to be done every second or so."""
        with self._lock:
            self._heard = {node: each for node, each in self._heard.items() if self.steady() - each[0] <= HEARD}
            astray, lead = self._astray(), self._lead()
            self._settings.extend(self._unminded(astray))
            self._minded = astray, self.steady()
            if abs(astray) > SLEWED:
                self._set = astray, self.steady()
                if lead is not None and abs(lead) <= abs(lead - astray):
                    return
            self._offset += astray
            self._minded = 0.0, self.steady()
            self._heard = {node: (at, each - astray) for node, (at, each) in self._heard.items()}

    def fault(self) -> str:
        """The fault of the clock in one line; empty if there is none."""
        astray, lead = self._astray(), self._lead()
        if abs(astray) > SLEWED:
            return f"the clock was set by {astray:.0f} s; the daemon keeps its own time, which the nodes confirm"
        if lead is not None and lead > self._ahead and len(self._heard) >= WITNESSES:
            return f"the clocks of most nodes are {lead:.0f} s ahead of this one"
        if self._set is not None and self.steady() - self._set[1] <= REPORTED:
            return f"the clock was set by {self._set[0]:.0f} s, {self.steady() - self._set[1]:.0f} s ago"
        return ""

    def was_set_during(self, start: float, end: float) -> bool:
        """Whether the time of day may have been set between two times that it showed (s): they say not how long it was.

        Where it was set back, the times that it showed twice are in doubt.

        >>> day, passed = [1e9], [0.0]
        >>> clock = Clock(lambda: day[0], lambda: passed[0])
        >>> passed[0], day[0] = 10.0, 1e9 + 3610.0  # an hour ahead
        >>> clock.mind()
        >>> clock.was_set_during(1e9 - 60.0, 1e9 + 3700.0), clock.was_set_during(1e9 + 3620.0, 1e9 + 3700.0)
        (True, False)
        """
        with self._lock:
            settings = [*self._settings, *self._unminded(self._astray())]
        return any(start < before and end > after for before, after in settings)

    def may_be(self, moment: float) -> bool:
        """Whether this time (s) may have been reached, by the daemon's clock or, if uncertain, by the nodes'."""
        lead = self._lead()
        doubted = lead if lead is not None and len(self._heard) >= WITNESSES else 0.0
        return moment <= self.now() + max(self._astray(), doubted, 0.0) + self._ahead

    def _unminded(self, astray: float) -> list[tuple[float, float]]:
        """The setting of the time of day since it was minded last, if any.

        Of a setting are kept the latest that the old time can have shown, and the earliest that the new one can (s).
        """
        before, at = self._minded
        if abs(astray - before) <= SLEWED:
            return []
        wall = self._wall()
        return [(wall - (astray - before), wall - (self.steady() - at))]

    def _astray(self) -> float:
        """By how much the time of day is ahead of ours (s)."""
        return self._wall() - self.now()

    def _lead(self) -> float | None:
        """By how much the nodes' clocks are ahead of ours (s), as most of them show."""
        heard: Mapping[str, tuple[float, float]] = dict(self._heard)
        return statistics.median(lead for _, lead in heard.values()) if heard else None
