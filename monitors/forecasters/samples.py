"""Samples as functions of time that average exactly over any span: :class:`Moments` and :class:`Averages`.

A sample may be what was seen at its moment, as a load average read by a command, or what was measured over the step
that ends with it, as our agents and most utilisation counters do. Averages over spans need neither a regular sampling
nor a grid, so that a forecast over [now, now + T] and the past spans it is judged on are computed by the same lines.
"""

from __future__ import annotations

from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Kind = Literal["moments", "averages"]


class Samples(Protocol):
    """Sampled series that can be averaged over spans of time.

    Attributes
    ----------
    time : array of shape (t,), seconds, strictly increasing.
    values : array of shape (t, n), finite: axis 0 is time, axis 1 the series.
    step : the usual distance between two samples (median, s); 1 where there is one sample only.
    """

    time: Floats
    values: Floats
    step: float

    def mean(self, start: Floats, end: Floats) -> Floats:
        """Averages over the spans [start, end].

        Parameters
        ----------
        start, end : arrays of the same shape s, seconds, ``start < end``; the first sample holds before its time, the
            last after it.

        Returns
        -------
        array of shape s + (n,).
        """


class _Sampled:
    """The common part of both kinds: the running integral at the samples, and averages as its differences."""

    def __init__(self, time: Floats, values: Floats, areas: Floats) -> None:
        self.time = time
        self.values = values
        self.step = float(np.median(np.diff(time))) if len(time) > 1 else 1.0
        self._area = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(areas, axis=0)])

    def mean(self, start: Floats, end: Floats) -> Floats:
        return (self._integral(end) - self._integral(start)) / (end - start)[..., None]

    def _integral(self, moment: Floats) -> Floats:
        raise NotImplementedError


class Moments(_Sampled):
    """Samples seen at their moments; the series goes straight from one to the next.

    Examples
    --------
    >>> f = Moments(np.array([0.0, 10.0, 30.0]), np.array([[1.0], [3.0], [2.0]]))
    >>> f.mean(np.array([0.0, 5.0]), np.array([10.0, 30.0])).tolist()
    [[2.0], [2.5]]
    """

    def __init__(self, time: Floats, values: Floats) -> None:
        widths = np.diff(time)[:, None]
        super().__init__(time, values, widths * (values[:-1] + values[1:]) / 2)
        self._half_slope = np.zeros_like(values)  # the last sample holds
        self._half_slope[:-1] = np.diff(values, axis=0) / (2 * widths)

    def _integral(self, moment: Floats) -> Floats:
        left = np.maximum(np.searchsorted(self.time, moment, side="right") - 1, 0)
        elapsed = (moment - self.time[left])[..., None]
        after_first = np.maximum(elapsed, 0.0)  # before its time the first sample holds
        inside: Floats = elapsed * self.values[left] + after_first**2 * self._half_slope[left]
        return self._area[left] + inside


class Averages(_Sampled):
    """Samples measured over the step that ends with them.

    Examples
    --------
    >>> f = Averages(np.array([0.0, 10.0, 30.0]), np.array([[1.0], [3.0], [2.0]]))
    >>> f.mean(np.array([0.0, 5.0]), np.array([10.0, 30.0])).tolist()
    [[3.0], [2.2]]
    """

    def __init__(self, time: Floats, values: Floats) -> None:
        super().__init__(time, values, np.diff(time)[:, None] * values[1:])

    def _integral(self, moment: Floats) -> Floats:
        right = np.minimum(np.searchsorted(self.time, moment, side="left"), len(self.time) - 1)
        inside: Floats = (moment - self.time[right])[..., None] * self.values[right]
        return self._area[right] + inside


def sampled(time: Floats, values: Floats, kind: Kind) -> Samples:
    """The samples as the kind they are.

    Parameters
    ----------
    time : of each sample, shape (t,), seconds, ascending.
    values : shape (t, n), one column for each series.
    kind : whether a value was measured at a moment, or is the mean since the sample before.
    """
    if kind not in ("moments", "averages"):
        raise ValueError(f"samples are {kind!r}, expected moments or averages")
    return Moments(time, values) if kind == "moments" else Averages(time, values)


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
