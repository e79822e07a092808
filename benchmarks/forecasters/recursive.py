"""Primary forecasters that need no window: :class:`LastValue`, :class:`RunningMean`, :class:`ExponentialSmoothing`."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from benchmarks.forecasters.contract import Floats, checked


class LastValue:
    """The next value is the last one.

    Parameters
    ----------
    series : n, how many series.

    Examples
    --------
    >>> forecaster = LastValue(2)
    >>> forecaster.update([1.0, 5.0])
    >>> forecaster.update([2.0, np.nan])
    >>> forecaster.forecast().tolist()
    [2.0, 5.0]
    """

    def __init__(self, series: int) -> None:
        self._last = np.full(series, np.nan)

    def update(self, values: ArrayLike) -> None:
        """Keep the values that are there."""
        array = checked(values, len(self._last))
        self._last = np.where(np.isnan(array), self._last, array)

    def forecast(self) -> Floats:
        """The last values, shape (n,)."""
        return self._last.copy()


class RunningMean:
    """The next value is the mean of all so far.

    Parameters
    ----------
    series : n, how many series.

    Examples
    --------
    >>> forecaster = RunningMean(1)
    >>> for value in (1.0, 2.0, 6.0):
    ...     forecaster.update([value])
    >>> forecaster.forecast().tolist()
    [3.0]
    """

    def __init__(self, series: int) -> None:
        self._count = np.zeros(series)
        self._mean = np.zeros(series)

    def update(self, values: ArrayLike) -> None:
        """Move each mean towards its value by one part in the number of values: m += (v - m)/c."""
        array = checked(values, len(self._mean))
        there = ~np.isnan(array)
        self._count += there
        self._mean += np.where(there, array - self._mean, 0.0) / np.maximum(self._count, 1.0)

    def forecast(self) -> Floats:
        """The means, shape (n,)."""
        return np.where(self._count > 0, self._mean, np.nan)


class ExponentialSmoothing:
    """The next value is a mean in which a value weighs less by (1 - gain) with each that follows it.

    Parameters
    ----------
    series : n, how many series.
    gain : share of the newest value, in (0, 1]; the first value seeds the mean.

    Examples
    --------
    >>> forecaster = ExponentialSmoothing(1, gain=0.5)
    >>> for value in (4.0, 2.0, 6.0):
    ...     forecaster.update([value])
    >>> forecaster.forecast().tolist()
    [4.5]
    """

    def __init__(self, series: int, gain: float) -> None:
        if not 0.0 < gain <= 1.0:
            raise ValueError(f"gain is {gain}, expected a share in (0, 1]")
        self.gain = gain
        self._level = np.full(series, np.nan)

    def update(self, values: ArrayLike) -> None:
        """Move each level towards its value: l += gain (v - l)."""
        array = checked(values, len(self._level))
        moved = self._level + self.gain * (array - self._level)
        seeded = np.where(np.isnan(self._level), array, moved)
        self._level = np.where(np.isnan(array), self._level, seeded)

    def forecast(self) -> Floats:
        """The levels, shape (n,)."""
        return self._level.copy()
