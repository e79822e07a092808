"""Watts of the node by its management controller (IPMI DCMI), asked by ipmitool: slow, and so asked seldom."""

from __future__ import annotations

import math
import re
import shutil
import subprocess
import time
from collections.abc import Callable

#: Seconds that an answer holds, and that it may take.
SELDOM, TIMEOUT = 10.0, 5.0
#: Above what any node draws, with its accelerators (W): controllers without a reading tell 65,535.
MOST_WATTS = 20_000.0
_READING = re.compile(r"Instantaneous power reading:\s+(\d+) Watts")


class Ipmi:
    """What the node draws now.

    Parameters
    ----------
    command : that prints the reading.
    clock : tells seconds, ascending.

    Raises
    ------
    OSError : when there is no ipmitool, or it tells no power: it needs root and a controller.
    """

    covers = "node"

    def __init__(self, command: str = "ipmitool", clock: Callable[[], float] = time.monotonic) -> None:
        found = shutil.which(command)
        if found is None:
            raise FileNotFoundError(f"{command} is not installed")
        self._command, self._clock = [found, "dcmi", "power", "reading"], clock
        self._watts, self._asked = self._ask(), clock()

    def read(self) -> float:
        """Watts, as they were asked for no longer than :data:`SELDOM` ago; NaN where no answer came then.

        Raises
        ------
        OSError : when no answer comes now. It is not asked again sooner: that takes longest.
        """
        if self._clock() - self._asked >= SELDOM:
            self._watts, self._asked = math.nan, self._clock()
            self._watts = self._ask()
        return self._watts

    def _ask(self) -> float:
        try:
            done = subprocess.run(  # noqa: S603
                self._command, capture_output=True, text=True, errors="replace", check=False, timeout=TIMEOUT
            )
        except subprocess.TimeoutExpired:
            raise OSError(f"ipmitool did not answer in {TIMEOUT:g} s") from None
        reading = _READING.search(done.stdout)
        if reading is None or not 0.0 < float(reading[1]) <= MOST_WATTS:
            raise OSError(f"ipmitool reports no power ({' '.join(done.stderr.split())[:200] or 'no reading'})")
        return float(reading[1])
