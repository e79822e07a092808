"""Many forecasters blended into one that errs little more than the best of them in hindsight: :class:`Blend`.

Where history is short, choosing costs more than blending: which of several forecasters is best is partly luck, and that
does not last. A weighted median of forecasts suits absolute errors as a weighted mean suits squared ones.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from monitors.forecasters.battery import primaries
from monitors.forecasters.contract import Floats, checked
from monitors.forecasters.windowed import SlidingMedian

#: Windows of the medians that join the battery's primaries, whose longest fixed one is over 31 values.
WIDTHS = (15, 63, 127)
#: How sharply weights follow past errors.
SHARPNESS = 2.0


class Blend:
    """The weighted median of the battery's primaries and of medians over more lengths.

    With l_k the mean absolute error of forecaster k over c values and m the least, it weighs
    exp(-eta sqrt(c) (l_k - m)/m): the more history, the sharper.

    Parameters
    ----------
    series : n, how many series.

    Examples
    --------
    >>> blend = Blend(1)
    >>> for step in range(40):
    ...     blend.update([float(step % 10 == 0)])
    >>> blend.forecast().tolist()
    [0.0]
    """

    def __init__(self, series: int) -> None:
        self._forecasters = (*primaries(series).values(), *(SlidingMedian(series, width) for width in WIDTHS))
        self._pending = np.full((series, len(self._forecasters)), np.nan)
        self._misses = np.zeros(self._pending.shape)
        self._scored = np.zeros(series)

    def update(self, values: ArrayLike) -> None:
        """Score every forecaster on the values, then let all take them in."""
        array = checked(values, len(self._scored))
        misses = np.abs(self._pending - array[:, None])
        there = ~np.isnan(misses[:, 0])
        self._misses[there] += misses[there]
        self._scored += there
        for forecaster in self._forecasters:
            forecaster.update(array)
        self._pending = np.stack([forecaster.forecast() for forecaster in self._forecasters], axis=1)

    def forecast(self) -> Floats:
        """The value expected next in each series, shape (n,); NaN before its first value."""
        losses = self._misses / np.maximum(self._scored, 1)[:, None]
        least = losses.min(axis=1, keepdims=True)
        excess = np.minimum((losses - least) / np.maximum(least, 1e-12), 1e3)
        weights = np.exp(-SHARPNESS * np.sqrt(self._scored)[:, None] * excess)
        order = self._pending.argsort(axis=1)
        below = np.take_along_axis(weights, order, axis=1).cumsum(axis=1)
        middle = (below >= below[:, -1:] / 2).argmax(axis=1)
        rows = np.arange(len(middle))
        blended: Floats = self._pending[rows, order[rows, middle]]
        return blended
