"""Available bandwidth of an interface between probes: :class:`CorrectedLink`, counters scaled to what probes found."""

from __future__ import annotations

import math
import time
from collections import deque
from pathlib import Path
from threading import Lock
from typing import Any

import psutil

LOOPBACK = "lo"
#: Taken for the speed of an interface that does not tell it (Mbit/s); the loopback interface, which has none, copies
#: memory.
UNKNOWN_SPEED, LOOPBACK_SPEED = 1_000.0, 10_000.0
#: Weight of the newest probe.
_GAIN = 0.5


class CorrectedLink:
    """The unused speed of an interface by its counters, times the share of it that transfers really had.

    Counters know every byte of this node but nothing of the switches behind it, nor of the true speed of a virtual
    interface; probes know both, but seldom. A transfer that is faster than the interface says to be tells its speed;
    one that gets more than is unused takes it from others, and tells nothing. Only psutil is needed, so that an agent
    stays small. It may be read and learn in different threads.

    Parameters
    ----------
    interface : its name; None for that of the default route, which may come or change later, as its speed may.
    speed : Mbit/s, where it is known better than the kernel knows it.

    Raises
    ------
    ValueError : there is no such interface.

    Examples
    --------
    >>> link = CorrectedLink("lo", speed=10_000.0)
    >>> link.learn(5000.0, transferred=2_000_000)
    >>> 0 < link.factor <= 1
    True
    """

    def __init__(self, interface: str | None, speed: float | None = None) -> None:
        self._asked, self._known = interface, speed
        self._lock = Lock()
        self._begin(interface or outward_interface())

    def _begin(self, interface: str) -> None:
        """Measure an interface from now on, of which no probe is known yet."""
        described = _described(interface)
        self._interface, self._stated = interface, described.speed
        unknown = LOOPBACK_SPEED if "loopback" in described.flags else UNKNOWN_SPEED
        self._speed = self._known or float(described.speed or unknown)
        self.factor, self._probed = 1.0, False
        #: Counters at the last two readings.
        self._read = deque([self._counters()] * 2, maxlen=2)

    def read(self) -> float:
        """Mbit/s to spare since the last reading; NaN where it was too soon, or the interface or its speed changed.

        Raises
        ------
        ValueError : the interface is not there any more.
        """
        with self._lock:
            if self._changed():
                return math.nan
            used = self._used(self._read[-1], now := self._counters())
            self._read.append(now)
            return self._unused(used) * self.factor

    def learn(self, bandwidth: float, transferred: int) -> None:
        """Take a probe that has just ended into account, beside the counters since the last reading but one.

        Since that reading at least one interval has passed, in which the probe itself was a small part.

        Parameters
        ----------
        bandwidth : what the probe found (Mbit/s).
        transferred : bytes that it sent, which are no load.
        """
        if not 0 < bandwidth < float("inf"):
            raise ValueError(f"bandwidth is {bandwidth}, expected a finite number of Mbit/s above 0")
        with self._lock:
            self._read.extend([(at, sent + transferred, received) for at, sent, received in self._read])
            used = self._used(self._read[0], self._counters())
            if math.isnan(used):  # no time has passed
                return
            if bandwidth > self._speed:
                self._speed = bandwidth + used
            gain = _GAIN if self._probed else 1.0
            self.factor += gain * (min(bandwidth / self._unused(used), 1.0) - self.factor)
            self._probed = True

    def _changed(self) -> bool:
        """Whether another interface, or another speed of it, is measured from now on."""
        interface = self._asked or outward_interface()
        if interface == LOOPBACK:  # there is no route at the moment
            interface = self._interface
        if interface == self._interface and _described(interface).speed in (0, self._stated):
            return False
        self._begin(interface)
        return True

    def _unused(self, used: float) -> float:
        """The speed less what passed, at least a hundredth of it (Mbit/s); NaN where that is not known."""
        return used if math.isnan(used) else max(self._speed - used, 0.01 * self._speed)

    def _used(self, before: tuple[float, int, int], now: tuple[float, int, int]) -> float:
        """What passed in the busier direction (Mbit/s), at least 0; NaN where no time has."""
        elapsed = now[0] - before[0]
        passed = max(0, *(after - then for after, then in zip(now[1:], before[1:], strict=True)))
        return passed * 8e-6 / elapsed if elapsed > 0 else math.nan

    def _counters(self) -> tuple[float, int, int]:
        """Moment, bytes sent and bytes received."""
        counters = psutil.net_io_counters(pernic=True)[self._interface]
        return time.monotonic(), counters.bytes_sent, counters.bytes_recv


def _described(interface: str) -> Any:
    """What the kernel says of an interface: its speed (Mbit/s), 0 where it is unknown or down, and its flags."""
    known = psutil.net_if_stats()
    if interface not in known:
        raise ValueError(f"there is no network interface {interface}, expected one of {', '.join(sorted(known))}")
    return known[interface]


def outward_interface(routes: Path = Path("/proc/net/route")) -> str:
    """The interface of the default route; the loopback interface where there is none."""
    try:
        rows = [line.split() for line in routes.read_text(encoding="ascii").splitlines()[1:]]
    except OSError:
        return LOOPBACK
    outward = [(int(row[6]), row[0]) for row in rows if len(row) > 7 and row[1] == row[7] == "00000000"]
    return min(outward)[1] if outward else LOOPBACK
