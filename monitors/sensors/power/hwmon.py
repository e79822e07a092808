"""Watts of the node by the kernel's hwmon: the ACPI power meter of its power supply."""

from __future__ import annotations

from pathlib import Path

from monitors.sensors.kernel_files import text_of

#: Chips whose power is the node's.
NODE = ("power_meter",)


class Hwmon:
    """What the node draws now.

    Raises
    ------
    OSError : when there is no meter of the node.
    """

    covers = "node"

    def __init__(self, root: Path = Path("/")) -> None:
        for chip in sorted((root / "sys/class/hwmon").glob("hwmon*")):
            if text_of(chip / "name") in NODE:
                for file in ("power1_average", "power1_input"):
                    if (chip / file).exists():
                        self._file = chip / file
                        self.read()
                        return
        raise FileNotFoundError("hwmon reports no power of the node")

    def read(self) -> float:
        """Watts.

        Raises
        ------
        ValueError : when it tells none.
        """
        watts = int(self._file.read_text(encoding="ascii")) / 1e6
        if watts <= 0.0:
            raise ValueError(f"{self._file} tells {watts:g} W")
        return watts
