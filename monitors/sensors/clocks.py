"""Clocks that the processors of this host can be held at, by the kernel's cpufreq, as Slurm sets them.

Slurm takes the clocks that the kernel lists; where it lists none, as under intel_pstate, 64 in equal steps between the
limits of the moment. It rounds a clock that is asked for up to the next of these, and beyond the ends to the nearest
(``src/common/cpu_frequency.c``). Lower and upper limit are then both set to it, which holds under any governor. No
clock above the base one holds: those depend on how warm the processor is and on how many cores work.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from pathlib import Path

from monitors.sensors.kernel_files import text_of

#: Clocks that Slurm makes where the kernel lists none.
STEPS = 64
#: The kernel's acpi-cpufreq lists so much more than the base clock (kHz) where it means all clocks above that.
_TURBO = 1000


@dataclass(frozen=True)
class Clocks:
    """The clocks that cpufreq reports.

    Parameters
    ----------
    driver : as the kernel calls it.
    governors : that may be chosen.
    settable : clocks that Slurm may set (MHz), ascending.
    base : the highest of them that can be held (MHz); None if unknown.

    Examples
    --------
    >>> clocks = Clocks("acpi-cpufreq", ("ondemand",), (1200.0, 1800.0, 2400.0, 2401.0), 2400.0)
    >>> [clocks.held(each) for each in (1000.0, 1700.0, 2400.0, 2500.0)]
    [1200.0, 1800.0, 2400.0, None]
    """

    driver: str
    governors: tuple[str, ...]
    settable: tuple[float, ...]
    base: float | None

    @property
    def holding(self) -> tuple[float, ...]:
        """The clocks that hold once they are set (MHz), ascending."""
        return tuple(each for each in self.settable if self.base is None or each <= self.base)

    def held(self, asked: float) -> float | None:
        """The clock (MHz) at which processors are held that are asked to have another; None where none holds."""
        if not self.settable:
            return None
        found = self.settable[min(bisect.bisect_left(self.settable, asked), len(self.settable) - 1)]
        return found if found in self.holding else None


def read_clocks(root: Path = Path("/")) -> Clocks | None:
    """The clocks of the first processor, which the others share; None where the kernel sets none."""
    folder = root / "sys/devices/system/cpu/cpu0/cpufreq"
    low, high = (_kilohertz(folder / f"scaling_{end}_freq") for end in ("min", "max"))
    if not 0 < low <= high:
        return None
    listed = sorted({int(each) for each in _words(folder / "scaling_available_frequencies") if each.isdecimal()})
    base = _kilohertz(folder / "base_frequency")
    if listed:
        settable = listed
        if not base and len(listed) > 1 and listed[-1] - listed[-2] == _TURBO:
            base = listed[-2]
    else:
        step = (high - low) // (STEPS - 1)
        settable = sorted({*(low + step * place for place in range(STEPS - 1)), high})
    return Clocks(
        " ".join(_words(folder / "scaling_driver")),
        _words(folder / "scaling_available_governors"),
        tuple(each / 1000.0 for each in settable),
        base / 1000.0 if base else None,
    )


def _words(path: Path) -> tuple[str, ...]:
    return tuple(text_of(path)[:4096].split())


def _kilohertz(path: Path) -> int:
    text = text_of(path)
    return int(text) if text.isdecimal() and len(text) < 16 else 0
