"""A median whose window grows and shrinks with the series: :class:`AdaptiveMedian`."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from benchmarks.forecasters.contract import Floats, Indices, checked
from benchmarks.forecasters.windowed import Window, medians


class AdaptiveMedian:
    """The next value is the median over a window that follows whichever of three lengths did best on each value.

    Before a value is taken in, the medians over the present length and over one ``step`` less and more are compared
    with it; the length of the nearest becomes the present one, and stays within [least, most]. The Network Weather
    Service meant this; its code compared windows of ``step`` values and let the length run out of its range.

    Parameters
    ----------
    series : n, how many series.
    least, most : range of the window's length.
    start : length before anything is known.
    step : how much longer and shorter the other two are.

    Attributes
    ----------
    length : array of shape (n,), the present lengths.

    Examples
    --------
    >>> forecaster = AdaptiveMedian(1, least=1, most=5, start=3, step=1)
    >>> for value in (1.0, 1.0, 1.0, 7.0, 7.0, 7.0, 7.0):
    ...     forecaster.update([value])
    >>> forecaster.forecast().tolist(), forecaster.length.tolist()
    ([7.0], [2])
    """

    def __init__(self, series: int, least: int, most: int, start: int, step: int) -> None:
        if not 1 <= least <= start <= most or step < 1:
            raise ValueError(
                f"least, start, most, step are {least}, {start}, {most}, {step}; "
                "expected 1 <= least <= start <= most and step >= 1"
            )
        self.least, self.most, self.step = least, most, step
        self.length = np.full(series, start, dtype=np.intp)
        self._window = Window(series, most)
        self._present = np.full(series, np.nan)

    def update(self, values: ArrayLike) -> None:
        """Follow the best of the three lengths, then take the values in."""
        array = checked(values, len(self.length))
        here = self.length
        shorter = np.maximum(here - self.step, self.least)
        longer = np.minimum(here + self.step, self.most)
        candidates = (self._present, self._median(shorter), self._median(longer))
        misses = np.stack([np.abs(array - median) for median in candidates])
        known = ~np.isnan(misses[0])
        best = np.where(known, misses, 0.0).argmin(axis=0)  # the present length comes first: it wins ties
        self.length = np.choose(best, [here, shorter, longer])
        self._window.push(array)
        self._present = self._median(self.length)

    def forecast(self) -> Floats:
        """The medians over the present lengths, shape (n,)."""
        return self._present.copy()

    def _median(self, length: Indices) -> Floats:
        latest = self._window.latest(length)
        latest.sort(axis=1)
        return medians(latest, np.minimum(self._window.filled, length))
