"""Available bandwidth of an interface between probes: :class:`CorrectedLink`, counters scaled to what probes found."""

from __future__ import annotations

import math
import time
from pathlib import Path

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
    interface; probes know both, but seldom. Only psutil is needed, so that an agent stays small.

    Parameters
    ----------
    interface : its name.
    speed : Mbit/s, where it is known better than the kernel knows it.

    Raises
    ------
    ValueError : there is no such interface.

    Examples
    --------
    >>> link = CorrectedLink("lo", speed=10_000.0)
    >>> link.learn(5000.0)
    >>> 0 < link.factor <= 1
    True
    """

    def __init__(self, interface: str, speed: float | None = None) -> None:
        known = psutil.net_if_stats()
        if interface not in known:
            raise ValueError(f"there is no network interface {interface}, expected one of {', '.join(sorted(known))}")
        self._interface = interface
        unknown = LOOPBACK_SPEED if "loopback" in known[interface].flags else UNKNOWN_SPEED
        self._speed = speed or float(known[interface].speed or unknown)
        self.factor = 1.0
        self._probed = False
        self._before = self._counters()

    def read(self) -> float:
        """Mbit/s to spare since the last reading; NaN where it was too soon."""
        return self._passive() * self.factor

    def learn(self, bandwidth: float) -> None:
        """Take a probe's bandwidth (Mbit/s) into account, beside the counters since the last reading."""
        if not 0 < bandwidth < float("inf"):
            raise ValueError(f"bandwidth is {bandwidth}, expected a finite number of Mbit/s above 0")
        passive = self._passive()
        if passive > 0:  # not so where no time has passed
            gain = _GAIN if self._probed else 1.0
            self.factor += gain * (bandwidth / passive - self.factor)
            self._probed = True

    def _passive(self) -> float:
        """The speed less what passed in the busier direction, at least a hundredth of it."""
        before, self._before = self._before, self._counters()
        elapsed = self._before[0] - before[0]
        if elapsed <= 0:
            return math.nan
        used = max(now - then for now, then in zip(self._before[1:], before[1:], strict=True)) * 8e-6 / elapsed
        return min(max(self._speed - used, 0.01 * self._speed), self._speed)

    def _counters(self) -> tuple[float, int, int]:
        """Moment, bytes sent and bytes received."""
        counters = psutil.net_io_counters(pernic=True)[self._interface]
        return time.monotonic(), counters.bytes_sent, counters.bytes_recv


def outward_interface(routes: Path = Path("/proc/net/route")) -> str:
    """The interface of the default route; the loopback interface where there is none."""
    try:
        rows = [line.split() for line in routes.read_text(encoding="ascii").splitlines()[1:]]
    except OSError:
        return LOOPBACK
    outward = [(int(row[6]), row[0]) for row in rows if len(row) > 7 and row[1] == row[7] == "00000000"]
    return min(outward)[1] if outward else LOOPBACK
