"""Joules that processors count themselves (RAPL), by the kernel's powercap: packages, and memory where counted.

Counters wrap around at ``max_energy_range_uj``. A zone called psys counts the whole platform, packages included, so it
is never added to them; ``core`` and ``uncore`` are parts of their package.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from monitors.sensors.kernel_files import text_of

#: Power above that of any zone (W): a counter with more has jumped.
MOST_WATTS = 5000.0
#: Seconds after which a counter that has not moved is broken: processors renew theirs every millisecond, emulated ones
#: every second.
STILL = 2.0


class Powercap:
    """Mean power of the packages since the last reading.

    Parameters
    ----------
    root : where ``sys`` is.
    clock : tells seconds, ascending.

    Raises
    ------
    OSError : when there is no counter, or none that may be read: most systems let root alone.

    Examples
    --------
    >>> try:
    ...     watts = Powercap().read()
    ... except OSError:
    ...     watts = 0.0
    >>> watts >= 0.0
    True
    """

    def __init__(self, root: Path = Path("/"), clock: Callable[[], float] = time.monotonic) -> None:
        zones = sorted((root / "sys/class/powercap").glob("*-rapl:*"))
        named = {zone: text_of(zone / "name") for zone in zones}
        packages = [zone for zone, name in named.items() if name.startswith("package")]
        # Memory counts only where every package tells its own: else some of it would be missing. One that reads 0 is
        # not counted.
        memory = [zone for zone, name in named.items() if name == "dram" and _Counter.of(zone).now()]
        whole = bool(packages) and len(memory) == len(packages)
        self._counters = [_Counter.of(zone) for zone in (*packages, *(memory if whole else ()))]
        if not self._counters:
            raise FileNotFoundError("powercap reports no package's energy")
        self.covers = "package+memory" if whole else "package"
        self._values = [counter.now() for counter in self._counters]
        self._clock, self._last = clock, clock()

    def read(self) -> float:
        """Watts since the last reading, or since this was made; NaN where that is no time, or a counter stood still.

        Raises
        ------
        OSError, ValueError : when a counter cannot be read: the next reading is of the time until now, too. ValueError
            also when one has jumped, or has not moved for more than :data:`STILL`: that time is lost.
        """
        # All are read before one is found wrong, so that the next watts are of the time since now; where one cannot be
        # read, they are of the time since they were read last.
        now, values = self._clock(), [counter.now() for counter in self._counters]
        elapsed, before = now - self._last, self._values
        still = [
            counter.path for counter, value, then in zip(self._counters, values, before, strict=True) if value == then
        ]
        if elapsed <= 0.0 or (still and elapsed <= STILL):
            return float("nan")
        self._last, self._values = now, values
        if still:
            raise ValueError(f"{still[0]} has counted nothing for {elapsed:.3g} s")
        joules = [
            counter.joules(value - then) for counter, value, then in zip(self._counters, values, before, strict=True)
        ]
        for counter, each in zip(self._counters, joules, strict=True):
            if each > MOST_WATTS * elapsed:
                raise ValueError(f"{counter.path} grew by {each:.6g} J in {elapsed:.3g} s")
        return sum(joules) / elapsed


@dataclass(frozen=True)
class _Counter:
    path: Path
    most: int

    @classmethod
    def of(cls, zone: Path) -> _Counter:
        return cls(zone / "energy_uj", int(text_of(zone / "max_energy_range_uj") or 0))

    def now(self) -> int:
        """What the counter shows at this moment (uJ)."""
        return int(self.path.read_text(encoding="ascii"))

    def joules(self, moved: int) -> float:
        """The energy of a change (uJ); where it went back it has wrapped around."""
        if moved < 0:
            if not self.most:
                raise ValueError(f"{self.path} went back, and where it wraps around is unknown")
            moved += self.most
        return moved / 1e6
