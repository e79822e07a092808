"""The Network Weather Service's battery: 18 primary forecasters, and 16 selectors that compete to choose among them.

Every primary is scored on each new value before it absorbs it. A selector chooses, for each series, the primary with
the lowest mean squared or mean absolute error over all history or over its latest values; the answer comes from the
selector whose choices have the lowest cumulative error. Source: R. Wolski, Dynamically forecasting network performance
using the Network Weather Service, Cluster Computing 1 (1998), and its code of about 2000.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from benchmarks.forecasters.adaptive_median import AdaptiveMedian
from benchmarks.forecasters.contract import Floats, Forecaster, Indices, checked
from benchmarks.forecasters.recursive import ExponentialSmoothing, LastValue, RunningMean
from benchmarks.forecasters.scores import Scores
from benchmarks.forecasters.windowed import SlidingMean, SlidingMedian, TrimmedMean

#: Latest values that selectors look back on; besides these, one selector of each kind looks at all history.
SPANS = (1, 5, 10, 20, 30, 50, 100)
#: Series that are worked on together.
_PANEL = 1000


def primaries(series: int) -> dict[str, Forecaster]:
    """The 18 primary forecasters by name, for n series.

    Examples
    --------
    >>> len(primaries(3))
    18
    """
    gains = (0.05, 0.10, 0.15, 0.20, 0.30, 0.40, 0.50, 0.75)
    smoothed = {f"smoothing {gain:.0%}": ExponentialSmoothing(series, gain) for gain in gains}
    return {
        "last value": LastValue(series),
        "running mean": RunningMean(series),
        **smoothed,
        "median 31": SlidingMedian(series, 31),
        "median 5": SlidingMedian(series, 5),
        "mean 31": SlidingMean(series, 31),
        "mean 5": SlidingMean(series, 5),
        "trimmed mean 31": TrimmedMean(series, 31, 0.3),
        "trimmed mean 51": TrimmedMean(series, 51, 0.3),
        "adaptive median 5-21": AdaptiveMedian(series, 5, 21, 10, 1),
        "adaptive median 21-51": AdaptiveMedian(series, 21, 51, 30, 5),
    }


class Battery:
    """All primaries at once, and for each series the one that the best selector chooses.

    Parameters
    ----------
    series : n, how many series.
    make : makes the primaries by name for so many series; the 18 of the Network Weather Service by default.

    Attributes
    ----------
    names : names of the primaries.

    Examples
    --------
    >>> battery = Battery(1)
    >>> for step in range(40):
    ...     battery.update([float(step % 2)])
    >>> battery.forecast().tolist(), battery.error().round(2).tolist()
    ([0.5], [0.54])
    """

    def __init__(self, series: int, make: Callable[[int], Mapping[str, Forecaster]] = primaries) -> None:
        bounds = [*range(0, series, _PANEL), series]
        self._slices = [slice(start, end) for start, end in pairwise(bounds)]
        self._panels = [_Panel(make(part.stop - part.start), part.stop - part.start) for part in self._slices]
        self._series = series
        self.names = tuple(make(1))

    def update(self, values: ArrayLike) -> None:
        """Score every primary and every selector on the values, then let the primaries take them in."""
        array = checked(values, self._series)
        for part, panel in zip(self._slices, self._panels, strict=True):
            panel.update(array[part])

    def forecast(self) -> Floats:
        """The value expected next in each series, shape (n,); NaN before its first value."""
        return np.concatenate([panel.forecast() for panel in self._panels])

    def error(self) -> Floats:
        """Mean absolute error so far of the selector that answers, shape (n,); NaN before two values."""
        return np.concatenate([panel.error() for panel in self._panels])

    def method(self) -> tuple[str, ...]:
        """Name of the primary that answers for each series."""
        return tuple(self.names[index] for panel in self._panels for index in panel.chosen())

    def forecasts(self) -> Floats:
        """What every primary expects, shape (n, number of primaries), in the order of ``names``."""
        return np.concatenate([panel.pending.T for panel in self._panels])


class _Panel:
    """A battery over so few series that its arrays stay in the processor's cache, where it is twice as fast."""

    def __init__(self, forecasters: Mapping[str, Forecaster], series: int) -> None:
        self._primaries = tuple(forecasters.values())
        self._rows = np.arange(series)
        self.pending = np.full((len(self._primaries), series), np.nan)
        self._scores = Scores(series, len(self._primaries), SPANS)
        self._choices = self._scores.best()
        self._cumulative = np.zeros(self._choices.shape)
        self._scored = np.zeros(series)

    def update(self, values: Floats) -> None:
        misses = np.abs(self.pending - values)
        rows = np.flatnonzero(~np.isnan(misses[0]))
        whole = len(rows) == len(values)
        chosen = misses[self._choices, self._rows]
        self._cumulative += chosen if whole else np.where(np.isnan(misses[0]), 0.0, chosen)
        self._scored[rows] += 1
        self._scores.add(rows, misses if whole else misses[:, rows])
        for primary in self._primaries:
            primary.update(values)
        self.pending = np.stack([primary.forecast() for primary in self._primaries])
        self._choices = self._scores.best()

    def forecast(self) -> Floats:
        return self.pending[self.chosen(), self._rows]

    def error(self) -> Floats:
        return np.where(self._scored > 0, self._cumulative.min(axis=0) / np.maximum(self._scored, 1), np.nan)

    def chosen(self) -> Indices:
        chosen: Indices = self._choices[self._cumulative.argmin(axis=0), self._rows]
        return chosen
