"""What a prediction is asked for, and what it answers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from metasched.records.errors import InputError, check_above_zero, check_count, check_fraction
from metasched.records.settings import DEFAULT_SETTINGS, Settings


@dataclass(frozen=True, slots=True)
class Interval:
    """A prediction interval: the outcome lies in [low, high] with probability ``level``."""

    low: float
    high: float
    level: float

    def holds(self, outcome: float) -> bool:
        """Whether an outcome lies in the interval."""
        return self.low <= outcome <= self.high

    def as_dict(self) -> dict[str, float | None]:
        """The interval as the JSON contract spells it: an end that is infinite, which JSON cannot hold, is null.

        >>> Interval(5.0, math.inf, 0.9).as_dict()
        {'low': 5.0, 'high': None, 'level': 0.9}
        """
        low, high = (end if math.isfinite(end) else None for end in (self.low, self.high))
        return {"low": low, "high": high, "level": self.level}


@dataclass(frozen=True, slots=True)
class Request:
    """What a prediction is asked for: problem size, processors, the two minima to expect, and further settings.

    Parameters
    ----------
    problem_size, processors : N and P.
    available_cpu : least average share of a processor.
    available_bandwidth : least average of a link (Mbit/s).
    settings : layout on nodes, the application's parameters, clock.

    Examples
    --------
    >>> Request(1400, 4, 0.8, 93.5).processors
    4
    """

    problem_size: float
    processors: int
    available_cpu: float
    available_bandwidth: float
    settings: Settings = DEFAULT_SETTINGS

    def __post_init__(self) -> None:
        check_above_zero("problem_size", self.problem_size)
        check_count("processors", self.processors)
        check_fraction("available_cpu", self.available_cpu)
        check_above_zero("available_bandwidth", self.available_bandwidth)
        self.settings.check(self.processors)

    def __str__(self) -> str:
        return (
            f"problem size {self.problem_size:g} on {self.processors} processors with CPU {self.available_cpu:g}"
            f" and {self.available_bandwidth:g} Mbit/s"
        )


@dataclass(frozen=True, slots=True)
class Prediction:
    """A predicted execution time with its interval, and where it came from.

    Parameters
    ----------
    execution_time : seconds.
    interval : prediction interval, seconds.
    model : the formula, or the name of the method, that gave the answer.
    warnings : what the user should know, for example a size far outside what was learned.

    Examples
    --------
    >>> Prediction(12.5, Interval(11.0, 14.0, 0.9), "robust").execution_time
    12.5
    >>> Prediction(math.inf, Interval(0.0, math.inf, 0.9), "robust")
    Traceback (most recent call last):
    metasched.records.errors.InputError: the model predicts inf, expected a number above 0: ...
    """

    execution_time: float
    interval: Interval
    model: str
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not (0.0 < self.execution_time < math.inf and self.interval.low < math.inf):
            said = f"the model predicts {self.execution_time:g}, expected a number above 0"
            raise InputError(f"{said}: it is asked too far from all runs")

    def as_dict(self) -> dict[str, Any]:
        """The prediction as the JSON contract spells it."""
        return {
            "execution_time": self.execution_time,
            "interval": self.interval.as_dict(),
            "model": self.model,
            "warnings": list(self.warnings),
        }
