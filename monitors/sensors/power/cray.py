"""Watts of a Cray node by its pm_counters: joules that the node's controller counts, each with its own time."""

from __future__ import annotations

import re
from pathlib import Path

#: As ``5843192 J 1604937236 us`` stands in a counter's file.
_COUNTED = re.compile(r"\s*(\d+) J (\d+) us\s*")


class PmCounters:
    """Mean power of the node since the last reading.

    Raises
    ------
    OSError : when there are no counters.
    ValueError : when they are not what they should be.
    """

    covers = "node"

    def __init__(self, root: Path = Path("/")) -> None:
        self._file = root / "sys/cray/pm_counters/energy"
        self._joules, self._time = self._read()

    def read(self) -> float:
        """Watts since the last reading, or since this was made; NaN where the counter has not been renewed since.

        Raises
        ------
        ValueError : when it went back: the time until now is lost.
        """
        (before, then), (self._joules, self._time) = (self._joules, self._time), self._read()
        if self._time == then:
            return float("nan")
        if self._joules < before or self._time < then:
            raise ValueError(f"{self._file} went back from {before} J to {self._joules} J")
        return 1e6 * (self._joules - before) / (self._time - then)

    def _read(self) -> tuple[int, int]:
        text = self._file.read_text(encoding="ascii")
        found = _COUNTED.fullmatch(text)
        if found is None:
            raise ValueError(f"{self._file} holds {text[:40]!r}, expected joules and microseconds")
        return int(found[1]), int(found[2])
