"""A recorded trace as a source: :class:`RecordedTrace` says at every moment what had been seen by then."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from monitors.sources.contract import Readings, Sample


class RecordedTrace:
    """Plays samples back.

    Parameters
    ----------
    time : array of shape (t,), seconds, ascending.
    nodes : n names.
    available_cpu, available_bandwidth : arrays of shape (t, n); a missing sample is NaN.
    clock : the present of the trace, seconds.

    Examples
    --------
    >>> trace = RecordedTrace([0.0, 10.0], ["a"], [[0.5], [0.7]], [[90.0], [80.0]], clock=lambda: 9.0)
    >>> trace.read().samples
    (Sample(node='a', time=0.0, available_cpu=0.5, available_bandwidth=90.0),)
    """

    name = "recorded trace"

    def __init__(
        self,
        time: ArrayLike,
        nodes: Sequence[str],
        available_cpu: ArrayLike,
        available_bandwidth: ArrayLike,
        clock: Callable[[], float],
    ) -> None:
        self._time = np.asarray(time, dtype=float)
        self._nodes, self._clock = tuple(nodes), clock
        self._cpu = np.asarray(available_cpu, dtype=float)
        self._bandwidth = np.asarray(available_bandwidth, dtype=float)
        expected = (len(self._time), len(self._nodes))
        if self._cpu.shape != expected or self._bandwidth.shape != expected:
            raise ValueError(
                f"available_cpu has shape {self._cpu.shape}, available_bandwidth {self._bandwidth.shape}, "
                f"expected {expected}: times, nodes"
            )

    def read(self) -> Readings:
        """The latest sample of each node by now."""
        end = int(np.searchsorted(self._time, self._clock(), side="right"))
        there = ~np.isnan(self._cpu[:end])
        samples = []
        for column in np.flatnonzero(there.any(axis=0)):
            row = end - 1 - int(np.argmax(there[::-1, column]))
            values = float(self._cpu[row, column]), float(self._bandwidth[row, column])
            samples.append(Sample(self._nodes[column], float(self._time[row]), *values))
        return Readings(tuple(samples), "" if samples else "nothing recorded by now")
