"""Detects steps of the system clock: :class:`StepWatch` compares the time of day with a monotonic clock."""

from __future__ import annotations

import time
from collections.abc import Callable

#: Jumps up to this are a clock being slewed (s).
TOLERANCE = 1.0


class StepWatch:
    """The step of the system clock since the last call.

    Parameters
    ----------
    wall, steady : the time of day and a monotonic clock, seconds.

    Examples
    --------
    >>> wall, steady = iter([100.0, 110.0, 3720.0]), iter([0.0, 10.0, 20.0])
    >>> watch = StepWatch(wall.__next__, steady.__next__)
    >>> watch.step(), watch.step()
    (0.0, 3600.0)
    """

    def __init__(self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic) -> None:
        self._wall, self._steady = wall, steady
        self._offset = wall() - steady()

    def step(self) -> float:
        """Seconds the time of day was set forward, negative for back; 0 where it was not."""
        offset = self._wall() - self._steady()
        jump = offset - self._offset
        self._offset = offset
        return jump if abs(jump) > TOLERANCE else 0.0
