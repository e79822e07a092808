"""Primary forecasters over the latest values: :class:`SlidingMean`, :class:`SlidingMedian`, :class:`TrimmedMean`.

They share :class:`Window`, a ring of the latest values of every series. Empty slots hold NaN, which sorts last, so that
a window that is not full yet needs no case of its own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from benchmarks.forecasters.contract import Floats, Indices, checked


class Window:
    """The latest ``width`` values of each series, in no particular order.

    Parameters
    ----------
    series : n, how many series.
    width : how many values are kept, at least 1.

    Attributes
    ----------
    values : array of shape (n, width); NaN where no value has come yet.
    seen : array of shape (n,), how many values each series has had.
    """

    def __init__(self, series: int, width: int) -> None:
        if width < 1:
            raise ValueError(f"width is {width}, expected at least 1")
        self.values = np.full((series, width), np.nan)
        self.seen = np.zeros(series, dtype=np.intp)
        self._together: int | None = 0  # how many values each series has had, as long as that is the same of all
        slots = np.arange(width)
        self._ages = ((slots[:, None] - slots) % width).astype(np.int16)  # [slot of the newest value, slot]

    @property
    def filled(self) -> Indices:
        """How many values each window holds, shape (n,)."""
        return np.minimum(self.seen, self.values.shape[1])

    @property
    def full(self) -> bool:
        """Whether every window is known to be full."""
        return self._together is not None and self._together >= self.values.shape[1]

    def push(self, values: ArrayLike) -> None:
        """Put each value that is there in the place of the oldest one of its series."""
        array = checked(values, len(self.seen))
        there = ~np.isnan(array)
        if self._together is not None and there.all():
            self.values[:, self._together % self.values.shape[1]] = array
            self._together += 1
            self.seen += 1
            return
        rows = np.flatnonzero(there)
        self.values[rows, self.seen[rows] % self.values.shape[1]] = array[rows]
        self.seen[rows] += 1
        self._together = None

    def latest(self, lengths: Indices) -> Floats:
        """The window cut to the latest ``lengths`` (n,) values of each series: shape (n, width), NaN elsewhere."""
        newest = self.seen - 1 if self._together is None else self._together - 1
        age = self._ages[newest % self.values.shape[1]]
        return np.where(age < lengths[:, None].astype(np.int16), self.values, np.nan)


def medians(values: Floats, filled: Indices) -> Floats:
    """Medians along axis 1 of the first ``filled`` (n,) values, NaN where there is none.

    Parameters
    ----------
    values : array of shape (n, width), every row sorted, NaN where empty.
    filled : array of shape (n,), how many values of each row are not NaN.
    """
    rows = np.arange(len(values))
    low = np.minimum(np.maximum(filled - 1, 0) // 2, values.shape[1] - 1)
    high = np.minimum(filled // 2, values.shape[1] - 1)
    median: Floats = (values[rows, low] + values[rows, high]) / 2
    return median


class SlidingMean:
    """The next value is the mean of the latest ones.

    Parameters
    ----------
    series : n, how many series.
    width : how many values the mean is over.

    Examples
    --------
    >>> forecaster = SlidingMean(1, width=2)
    >>> for value in (9.0, 1.0, 2.0):
    ...     forecaster.update([value])
    >>> forecaster.forecast().tolist()
    [1.5]
    """

    def __init__(self, series: int, width: int) -> None:
        self._window = Window(series, width)

    def update(self, values: ArrayLike) -> None:
        """Let each value push out the oldest of its window."""
        self._window.push(values)

    def forecast(self) -> Floats:
        """The means, shape (n,)."""
        if self._window.full:
            return np.asarray(self._window.values.mean(axis=1))
        filled = self._window.filled
        total = np.where(np.isnan(self._window.values), 0.0, self._window.values).sum(axis=1)
        return np.where(filled > 0, total / np.maximum(filled, 1), np.nan)


class SlidingMedian:
    """The next value is the median of the latest ones.

    Parameters
    ----------
    series : n, how many series.
    width : how many values the median is over.

    Examples
    --------
    >>> forecaster = SlidingMedian(1, width=3)
    >>> for value in (9.0, 1.0, 2.0, 8.0):
    ...     forecaster.update([value])
    >>> forecaster.forecast().tolist()
    [2.0]
    """

    def __init__(self, series: int, width: int) -> None:
        self._window = Window(series, width)

    def update(self, values: ArrayLike) -> None:
        """Let each value push out the oldest of its window."""
        self._window.push(values)

    def forecast(self) -> Floats:
        """The medians, shape (n,)."""
        return medians(np.sort(self._window.values, axis=1), self._window.filled)


class TrimmedMean:
    """The next value is the mean of the latest ones without the smallest and the largest.

    Parameters
    ----------
    series : n, how many series.
    width : how many values count.
    trim : share left out at either end, in [0, 0.5).

    Examples
    --------
    >>> forecaster = TrimmedMean(1, width=5, trim=0.3)
    >>> for value in (100.0, 1.0, 2.0, 3.0, -100.0):
    ...     forecaster.update([value])
    >>> forecaster.forecast().tolist()
    [2.0]
    """

    def __init__(self, series: int, width: int, trim: float) -> None:
        if not 0.0 <= trim < 0.5:
            raise ValueError(f"trim is {trim}, expected a share in [0, 0.5)")
        self.trim = trim
        self._window = Window(series, width)

    def update(self, values: ArrayLike) -> None:
        """Let each value push out the oldest of its window."""
        self._window.push(values)

    def forecast(self) -> Floats:
        """The trimmed means, shape (n,)."""
        ordered = np.sort(self._window.values, axis=1)
        if self._window.full:
            width = ordered.shape[1]
            most = int(self.trim * width)
            return np.asarray(ordered[:, most : width - most].mean(axis=1))
        filled = self._window.filled
        left_out = (self.trim * filled).astype(np.intp)
        rank = np.arange(ordered.shape[1])
        kept = (rank >= left_out[:, None]) & (rank < (filled - left_out)[:, None])
        total = np.where(kept, ordered, 0.0).sum(axis=1)
        return np.where(filled > 0, total / np.maximum(filled - 2 * left_out, 1), np.nan)
