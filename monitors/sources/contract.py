"""The contract of every source: :class:`Source` answers with :class:`Readings` and never raises.

A source that cannot be reached answers with no samples and one line that says why; whoever asked goes on with what it
had, which grows older.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Sample:
    """The load of one node at one time.

    Parameters
    ----------
    node : name.
    time : seconds since 1970.
    available_cpu : share of one processor that a new process would get, in [0, 1].
    available_bandwidth : Mbit/s; NaN where the source does not know.

    Raises
    ------
    ValueError : a value cannot be.
    """

    node: str
    time: float
    available_cpu: float
    available_bandwidth: float = math.nan

    def __post_init__(self) -> None:
        if not self.node:
            raise ValueError("node is empty, expected a name")
        if not math.isfinite(self.time):
            raise ValueError(f"time of node {self.node} is {self.time}, expected a finite number of seconds")
        if not 0.0 <= self.available_cpu <= 1.0:
            raise ValueError(f"available_cpu of node {self.node} is {self.available_cpu}, expected a share in [0, 1]")
        if self.available_bandwidth < 0 or math.isinf(self.available_bandwidth):
            raise ValueError(
                f"available_bandwidth of node {self.node} is {self.available_bandwidth}, expected Mbit/s of at least 0"
            )


@dataclass(frozen=True, slots=True)
class Readings:
    """The answer of a source.

    Parameters
    ----------
    samples : the latest of each node it knows.
    fault : one line on what went wrong; empty when nothing did.
    """

    samples: tuple[Sample, ...] = field(default=())
    fault: str = ""


class Source(Protocol):
    """Anything that knows the loads of some nodes."""

    @property
    def name(self) -> str:
        """Its name for users, with its address if it has one."""

    def read(self) -> Readings:
        """The latest samples; takes a few seconds at most and does not raise."""
