"""The meter of this host that sees most: the node's, else that of its packages; and the clock, where it is fixed."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from monitors.sensors.power.cray import PmCounters
from monitors.sensors.power.hwmon import Hwmon
from monitors.sensors.power.ipmi import Ipmi
from monitors.sensors.power.powercap import Powercap


class Meter(Protocol):
    """A sensor of power with a statement of what it covers."""

    @property
    def covers(self) -> str:
        """The parts of a node that the meter covers: ``package``, ``package+memory`` or ``node``."""

    def read(self) -> float:
        """The mean power since the last reading, or the power now (W)."""


def find_meter(root: Path = Path("/")) -> Meter | None:
    """The meter of a host; None where there is none, or none that may be read."""
    for kind in (PmCounters, Hwmon, Powercap):
        try:
            return kind(root)
        except (OSError, ValueError):
            continue
    try:
        return Ipmi()
    except OSError:
        return None


def fixed_clock(root: Path = Path("/")) -> float | None:
    """The fixed clock (MHz) of all processors; None if it may vary or is unknown."""
    bounds = set()
    for each in (root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq"):
        try:
            bounds |= {int((each / f"scaling_{end}_freq").read_text(encoding="ascii")) for end in ("min", "max")}
        except (OSError, ValueError):
            return None
    return bounds.pop() / 1000.0 if len(bounds) == 1 else None
