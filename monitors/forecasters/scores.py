"""The running account of who erred how much: :class:`Scores`, sums of errors over all history and the latest values."""

from __future__ import annotations

import numpy as np

from monitors.forecasters.contract import Floats, Indices

#: Series that are worked on together: few enough that what is computed for them stays in the processor's cache.
_BLOCK = 128


class Scores:
    """Absolute and squared errors of m forecasters on n series, summed over spans of the latest values.

    Sums are kept up by adding the newest error and taking away the one that leaves the span: a value costs the same
    however long the span. What rounding leaves behind is swept away by summing a few series afresh on every call, each
    of them once in as many calls as the longest span has values.

    Parameters
    ----------
    series, forecasters : n and m.
    spans : lengths of the spans, ascending; besides these all history is always summed.
    """

    def __init__(self, series: int, forecasters: int, spans: tuple[int, ...]) -> None:
        self._spans = np.array(spans)
        self._depth = int(self._spans[-1])
        # Slot first: series in step read and write next to each other. Single precision: the ring is most of the
        # memory, and errors need no more digits to be ranked.
        self._ring = np.zeros((self._depth, series, forecasters), dtype=np.float32)
        self._seen = np.zeros(series, dtype=np.intp)
        self._sums = np.zeros((2, len(spans) + 1, series, forecasters))  # absolute, squared x all, spans
        self._calls = 0

    def add(self, rows: Indices, misses: Floats) -> None:
        """Add absolute errors of shape (r, m), of the series ``rows`` (r,), ascending."""
        for start in range(0, len(rows), _BLOCK):
            block = slice(start, start + _BLOCK)
            self._add(rows[block], misses[block])
        self._refresh()

    def best(self) -> Indices:
        """The forecaster with the least sum, shape (2 (len(spans) + 1), n): absolute then squared, all before spans."""
        least: Indices = self._sums.argmin(axis=-1).reshape(2 * (len(self._spans) + 1), len(self._seen))
        return least

    def _add(self, rows: Indices, misses: Floats) -> None:
        slot = self._seen[rows]
        leaving = self._ring[(slot - self._spans[:, None]) % self._depth, rows].astype(np.float64)
        entering = misses.astype(np.float32).astype(np.float64)
        # A run of neighbours is a slice: no copy is made of it.
        here = slice(rows[0], rows[-1] + 1) if rows[-1] - rows[0] + 1 == len(rows) else rows
        absolute, squared = self._sums
        absolute[0, here] += entering
        absolute[1:, here] += entering - leaving
        np.square(entering, out=entering)
        np.square(leaving, out=leaving)
        squared[0, here] += entering
        squared[1:, here] += entering - leaving
        self._ring[slot % self._depth, rows] = misses
        self._seen[rows] += 1

    def _refresh(self) -> None:
        rows = np.arange(self._calls % self._depth, len(self._seen), self._depth)
        self._calls += 1
        latest_first = (self._seen[rows] - 1 - np.arange(self._depth)[:, None]) % self._depth
        errors = self._ring[latest_first, rows].astype(np.float64)
        absolute, squared = self._sums
        absolute[1:, rows] = errors.cumsum(axis=0)[self._spans - 1]
        squared[1:, rows] = (errors**2).cumsum(axis=0)[self._spans - 1]
