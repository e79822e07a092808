"""The running account of who erred how much: :class:`Scores`, sums of errors over all history and the latest values."""

from __future__ import annotations

import numpy as np

from benchmarks.forecasters.contract import Floats, Indices


class Scores:
    """Absolute and squared errors of m forecasters on n series, summed over spans of the latest values.

    Sums are kept up by adding the newest error and taking away the one that leaves the span: a value costs the same
    however long the span. What rounding leaves behind is swept away by summing a few series afresh on every call, each
    of them once in as many calls as the longest span has values. The series come last in every array, so that numpy
    works along them.

    Parameters
    ----------
    series, forecasters : n and m.
    spans : lengths of the spans, ascending; besides these all history is always summed.
    """

    def __init__(self, series: int, forecasters: int, spans: tuple[int, ...]) -> None:
        self._spans = np.array(spans)
        self._depth = int(self._spans[-1])
        # Single precision: the ring is most of the memory, and errors need no more digits to be ranked.
        self._ring = np.zeros((self._depth, forecasters, series), dtype=np.float32)
        self._seen = np.zeros(series, dtype=np.intp)
        self._sums = np.zeros((2, len(spans) + 1, forecasters, series))  # absolute, squared x all, spans
        self._calls = 0

    def add(self, rows: Indices, misses: Floats) -> None:
        """Add absolute errors of shape (m, r), of the series ``rows`` (r,), ascending."""
        if len(rows):
            seen = self._seen[rows]
            if len(rows) == len(self._seen) and seen.min() == seen.max():
                self._add_all(int(seen[0]), misses)
            else:
                self._add(rows, seen, misses)
            self._seen[rows] += 1
        self._refresh()

    def best(self) -> Indices:
        """The forecaster with the least sum, shape (2 (len(spans) + 1), n): absolute then squared, all before spans."""
        sums = self._sums.reshape(-1, *self._sums.shape[2:])
        best = np.zeros((len(sums), sums.shape[2]), dtype=np.int16)
        least = sums[:, 0].copy()
        for index in range(1, sums.shape[1]):  # numpy's own argmin takes twice as long on an axis that short
            less = sums[:, index] < least
            np.maximum(best, less * np.int16(index), out=best)  # indices grow: the latest improvement is the largest
            np.minimum(least, sums[:, index], out=least)
        return best.astype(np.intp)

    def _add_all(self, seen: int, misses: Floats) -> None:
        """The same for all series while they are in step: slices of the ring instead of copies."""
        entering = misses.astype(np.float32).astype(np.float64)
        squares = entering * entering
        absolute, squared = self._sums
        absolute[0] += entering
        squared[0] += squares
        for index, span in enumerate(self._spans, start=1):
            leaving = self._ring[(seen - span) % self._depth].astype(np.float64)
            absolute[index] += entering - leaving
            leaving *= leaving
            squared[index] += squares - leaving
        self._ring[seen % self._depth] = misses

    def _add(self, rows: Indices, seen: Indices, misses: Floats) -> None:
        entering = misses.astype(np.float32).astype(np.float64)
        squares = entering * entering
        which = np.arange(len(misses))[:, None]
        absolute, squared = self._sums
        absolute[0][:, rows] += entering
        squared[0][:, rows] += squares
        for index, span in enumerate(self._spans, start=1):
            leaving = self._ring[(seen - span) % self._depth, which, rows].astype(np.float64)
            absolute[index][:, rows] += entering - leaving
            squared[index][:, rows] += squares - leaving * leaving
        self._ring[seen % self._depth, which, rows] = misses

    def _refresh(self) -> None:
        few = -(-len(self._seen) // self._depth)
        start = self._calls % self._depth * few
        rows = np.arange(start, min(start + few, len(self._seen)))
        self._calls += 1
        if not len(rows):
            return
        latest_first = (self._seen[rows] - 1 - np.arange(self._depth)[:, None]) % self._depth
        errors = self._ring[latest_first, :, rows].astype(np.float64).transpose(0, 2, 1)
        absolute, squared = self._sums
        absolute[1:, :, rows] = errors.cumsum(axis=0)[self._spans - 1]
        squared[1:, :, rows] = (errors**2).cumsum(axis=0)[self._spans - 1]
