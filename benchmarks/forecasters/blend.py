"""Many forecasters blended into one that errs little more than the best of them in hindsight: :class:`Blend`.

Where history is short, choosing costs more than blending: which of several forecasters is best is partly luck, and that
does not last. A weighted median of forecasts suits absolute errors as a weighted mean suits squared ones; the mean of
what lies around the middle is steadier still.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from benchmarks.forecasters.analogues import Analogues
from benchmarks.forecasters.battery import primaries
from benchmarks.forecasters.contract import Floats, checked
from benchmarks.forecasters.windowed import SlidingMedian

#: Windows of the medians that join the battery's primaries, whose longest fixed one is over 31 values.
WIDTHS = (15, 63, 127)
#: How sharply weights follow past errors.
SHARPNESS = 2.0
#: What an error still counts a value later.
KEPT = 0.99
#: The mean is over so much of the weight on either side of the weighted median: of many forecasters, of three views.
AROUND = 0.1
VIEWS_AROUND = 0.4


class Blend:
    """Three views blended: the battery's primaries weighted, these and analogues weighted, analogues alone.

    With l_k the mean absolute error of forecaster k over c values and m the least, it weighs
    exp(-eta sqrt(c) (l_k - m)/m): the more history, the sharper. Errors and c fade by 1 % a value. The primaries
    (with medians over more lengths) stay near whichever of them leads; analogues (:class:`Analogues`) are better on the
    whole, and err at other times. Between them less is left to chance. The views are weighted by the same rule.

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
        self._analogues = Analogues(series)
        self._pending = self._forecasts()
        self._misses = np.zeros(self._pending.shape)
        self._views = np.full((series, 3), np.nan)
        self._view_misses = np.zeros(self._views.shape)
        self._count = np.zeros(series)

    def update(self, values: ArrayLike) -> None:
        """Score every forecaster on the values, then let all take them in."""
        array = checked(values, len(self._count))
        there = ~np.isnan(self._pending[:, 0]) & ~np.isnan(array)
        for kept, pending in ((self._misses, self._pending), (self._view_misses, self._views)):
            kept[there] = KEPT * kept[there] + np.abs(pending - array[:, None])[there]
        self._count[there] = KEPT * self._count[there] + 1
        for forecaster in (*self._forecasters, self._analogues):
            forecaster.update(array)
        self._pending = self._forecasts()
        weights = self._weights(self._misses)
        battery = slice(len(self._forecasters))
        near = _around_middle(self._pending[:, battery], weights[:, battery], AROUND)
        wide = _around_middle(self._pending, weights, AROUND)
        self._views = np.stack([near, wide, self._analogues.forecast()], axis=1)

    def forecast(self) -> Floats:
        """The value expected next in each series, shape (n,); NaN before its first value."""
        return _around_middle(self._views, self._weights(self._view_misses), VIEWS_AROUND)

    def _forecasts(self) -> Floats:
        alone = np.stack([forecaster.forecast() for forecaster in self._forecasters], axis=1)
        return np.concatenate([alone, self._analogues.forecasts()], axis=1)

    def _weights(self, misses: Floats) -> Floats:
        losses = misses / np.maximum(self._count, 1)[:, None]
        least = losses.min(axis=1, keepdims=True)
        excess = np.minimum((losses - least) / np.maximum(least, 1e-12), 1e3)
        return np.asarray(np.exp(-SHARPNESS * np.sqrt(self._count)[:, None] * excess))


def _around_middle(forecasts: Floats, weights: Floats, around: float) -> Floats:
    """The mean of the forecasts (n, k) around their weighted median, shape (n,)."""
    order = forecasts.argsort(axis=1)
    below = np.take_along_axis(weights, order, axis=1).cumsum(axis=1)
    middle = np.clip(below / below[:, -1:], 0.5 - around, 0.5 + around)
    shares = np.diff(middle, axis=1, prepend=0.5 - around) / (2 * around)
    return np.asarray((shares * np.take_along_axis(forecasts, order, axis=1)).sum(axis=1))
