"""Series and Timeline: what every processor and every link has to spare, as piecewise constant functions of time.

A Series is one such function with its exact integral; a Timeline holds one for each processor (fraction) and for each
node's link (Mbit/s). Everything that follows, simulation, monitoring and planning, reads loads from here only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Series:
    """A right-continuous step function.

    Parameters
    ----------
    times : array of shape (n,), increasing, the first one 0 (s).
    values : array of shape (n,); ``values[i]`` holds from ``times[i]`` on, the last one forever.

    Examples
    --------
    >>> load = Series(np.array([0.0, 10.0]), np.array([1.0, 0.5]))
    >>> float(load.mean(5.0, 15.0))
    0.75
    """

    times: Floats
    values: Floats

    def integral(self, time: ArrayLike) -> Floats:
        """Integral from 0 to each time; array of the shape of ``time``."""
        moment = np.asarray(time, dtype=np.float64)
        place = np.searchsorted(self.times, moment, side="right") - 1
        return np.asarray(self._area[place] + (moment - self.times[place]) * self.values[place])

    @cached_property
    def _area(self) -> Floats:
        """The integral until each of the times."""
        return np.concatenate(([0.0], np.cumsum(np.diff(self.times) * self.values[:-1])))

    def mean(self, start: ArrayLike, end: ArrayLike) -> Floats:
        """Average over each interval [start, end], start < end."""
        first, last = np.asarray(start, dtype=np.float64), np.asarray(end, dtype=np.float64)
        return np.asarray((self.integral(last) - self.integral(first)) / (last - first))

    def between(self, start: float, end: float) -> Series:
        """The same function from a start on; its last value before the end holds from then on.

        Examples
        --------
        >>> load = Series(np.array([0.0, 10.0, 20.0]), np.array([1.0, 0.5, 0.2]))
        >>> load.between(12.0, 20.0)
        Series(times=array([0.]), values=array([0.5]))
        """
        first = int(np.searchsorted(self.times, start, side="right")) - 1
        last = max(int(np.searchsorted(self.times, end, side="left")), first + 1)
        return Series(np.append(0.0, self.times[first + 1 : last]), self.values[first:last])

    def at(self, time: ArrayLike) -> Floats:
        """Value at each time."""
        return np.asarray(self.values[np.searchsorted(self.times, np.asarray(time), side="right") - 1])


def lowest(series: Sequence[Series]) -> Series:
    """The pointwise minimum of several series.

    Examples
    --------
    >>> one = Series(np.array([0.0, 10.0]), np.array([1.0, 0.5]))
    >>> two = Series(np.array([0.0, 5.0]), np.array([0.4, 0.8]))
    >>> lowest([one, two]).values.tolist()
    [0.4, 0.8, 0.5]
    """
    times = np.unique(np.concatenate([one.times for one in series]))
    return Series(times, np.min([one.at(times) for one in series], axis=0))


@dataclass(frozen=True)
class Timeline:
    """The loads of a cluster.

    Parameters
    ----------
    cpu : for each processor, the available CPU (fraction of that processor).
    bandwidth : for each node, the available bandwidth of its link (Mbit/s).
    horizon : seconds up to which the loads were drawn.
    """

    cpu: Mapping[str, Series]
    bandwidth: Mapping[str, Series]
    horizon: float
