"""Samples of series that average exactly over any span.

A sample is what was measured over the step that ends with it, as our agents and most utilisation counters do. Averages
over spans need neither a regular sampling nor a grid, so that a forecast over [now, now + T] and the past spans it is
judged on are computed by the same lines. Straight lines between samples would make what changes within a step or two
look steadier than it is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Samples:
    """Sampled series; the first sample holds before its time, the last after it.

    Parameters
    ----------
    time : array of shape (t,), seconds, strictly increasing.
    values : array of shape (t, n), finite: axis 0 is time, axis 1 the series.

    Attributes
    ----------
    step : the usual distance between two samples (median, s); 1 where there is one sample only.

    Examples
    --------
    >>> f = Samples(np.array([0.0, 10.0, 30.0]), np.array([[1.0], [3.0], [2.0]]))
    >>> f.mean(np.array([0.0, 5.0]), np.array([10.0, 30.0])).tolist()
    [[3.0], [2.2]]
    """

    def __init__(self, time: Floats, values: Floats) -> None:
        self.time = time
        self.values = values
        self.step = float(np.median(np.diff(time))) if len(time) > 1 else 1.0
        areas = np.diff(time)[:, None] * values[1:]
        self._area = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(areas, axis=0)])

    def mean(self, start: Floats, end: Floats) -> Floats:
        """Averages over the spans [start, end].

        Parameters
        ----------
        start, end : arrays of the same shape s, seconds, ``start < end``.

        Returns
        -------
        array of shape s + (n,).
        """
        return (self._integral(end) - self._integral(start)) / (end - start)[..., None]

    def _integral(self, moment: Floats) -> Floats:
        right = np.minimum(np.searchsorted(self.time, moment, side="left"), len(self.time) - 1)
        inside: Floats = (moment - self.time[right])[..., None] * self.values[right]
        return self._area[right] + inside


def carried_forward(values: Floats) -> Floats:
    """Fill missing samples with the latest one before them, leading ones with the first that is there.

    Parameters
    ----------
    values : array of shape (t, n); a missing sample is NaN.

    Returns
    -------
    array of shape (t, n); a series without any sample stays NaN.

    Examples
    --------
    >>> carried_forward(np.array([[np.nan], [2.0], [np.nan], [3.0]])).ravel().tolist()
    [2.0, 2.0, 2.0, 3.0]
    """
    there = ~np.isnan(values)
    if there.all():
        return values
    latest = np.maximum.accumulate(np.where(there, np.arange(len(values))[:, None], -1), axis=0)
    first = np.argmax(there, axis=0)
    return np.take_along_axis(values, np.where(latest < 0, first, latest), axis=0)
