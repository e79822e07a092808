"""What a node has to spare."""

from __future__ import annotations

import math
from dataclasses import dataclass

from metasched.records.errors import InputError


@dataclass(frozen=True, slots=True)
class Load:
    """What one node had to spare at one moment.

    Parameters
    ----------
    time : the moment (s since 1970, or since the campaign began).
    node : its name.
    available_cpu : share of one processor.
    available_bandwidth : of its link (Mbit/s).

    Examples
    --------
    >>> Load(0.0, "n0", 0.75, 88.0).available_cpu
    0.75
    """

    time: float
    node: str
    available_cpu: float
    available_bandwidth: float

    def __post_init__(self) -> None:
        if not math.isfinite(self.time):
            raise InputError(f"time is {self.time}, expected a finite number of seconds")
        if not self.node:
            raise InputError("node is empty, expected a name")
        if not 0.0 <= self.available_cpu <= 1.0:
            raise InputError(f"available_cpu is {self.available_cpu}, expected a fraction in [0, 1]")
        if not 0.0 <= self.available_bandwidth < math.inf:
            raise InputError(
                f"available_bandwidth is {self.available_bandwidth}, expected a number of Mbit/s of at least 0"
            )
