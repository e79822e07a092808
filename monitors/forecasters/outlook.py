"""The answer of a forecast: :class:`Outlook`, an expected value with the interval that should hold the outcome."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a load is expected to be, and between which ends it should come out with probability ``level``.

    Examples
    --------
    >>> Outlook(0.8, 0.6, 1.3, 0.9).clamped(0.01, 1.0)
    Outlook(expected=0.8, low=0.6, high=1.0, level=0.9)
    """

    expected: float
    low: float
    high: float
    level: float

    def __post_init__(self) -> None:
        if not self.low <= self.expected <= self.high:
            raise ValueError(f"outlook is {self.low}, {self.expected}, {self.high}, expected low <= expected <= high")

    def clamped(self, lower: float, upper: float) -> Outlook:
        """The same outlook inside [lower, upper], where the quantity cannot lie outside it."""
        expected, low, high = (min(max(value, lower), upper) for value in (self.expected, self.low, self.high))
        return Outlook(expected, low, high, self.level)
