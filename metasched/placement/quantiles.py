"""The q-th best value among any stretch of an array, for very many stretches at once.

A wavelet matrix (Claude, Navarro, Ordonez: The wavelet matrix, Information Systems 47, 2015) keeps, bit by bit of the
values' ranks, how many of the first i entries go left. A question follows the bits from the highest down, two steps
of counting to a bit, so a million questions are answered by a few dozen vectorised gathers. Here each entry has a
weight as well, the processors of a node, so that the q-th processor is asked for and not the q-th node.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Counts = NDArray[np.int32]


class StretchQuantiles:
    """Answers "which is the q-th largest value in [start, stop)", counting each entry as often as it weighs.

    Parameters
    ----------
    values : array of shape (m,).
    weights : array of shape (m,), whole numbers of at least 1.

    Examples
    --------
    >>> best = StretchQuantiles([0.5, 0.9, 0.7, 0.9], [1, 2, 1, 1])
    >>> best.largest([0, 0, 0], [4, 3, 1], [3, 3, 1]).tolist()
    [0.9, 0.7, 0.5]
    """

    def __init__(self, values: ArrayLike, weights: ArrayLike) -> None:
        falling, rank = np.unique(-np.asarray(values, dtype=np.float64), return_inverse=True)
        self._values: Floats = -falling
        weight = np.asarray(weights, dtype=np.int32)
        alike = bool(np.all(weight == 1))
        #: for each bit, from the highest: entries and weight that go left among the first i, and how many go left
        self._levels: list[tuple[int, Counts, Counts, int]] = []
        for bit in reversed(range(max(1, int(falling.size - 1).bit_length()))):
            left = (rank >> bit) & 1 == 0
            entries = _running(left.astype(np.int32))
            heavy = entries if alike else _running(np.where(left, weight, 0).astype(np.int32))
            self._levels.append((bit, entries, heavy, int(entries[-1])))
            order = np.concatenate([np.flatnonzero(left), np.flatnonzero(~left)])
            rank, weight = rank[order], weight[order]

    def largest(self, start: ArrayLike, stop: ArrayLike, q: ArrayLike) -> Floats:
        """The q-th largest value of each stretch; q counts from 1 and is at most the stretch's weight.

        Parameters
        ----------
        start, stop, q : arrays of shape (k,).
        """
        start, stop, q = (np.array(each, dtype=np.int32) for each in (start, stop, q))
        rank = np.zeros(start.shape, dtype=np.int64)
        for bit, entries, heavy, left_size in self._levels:
            left_start, left_stop = entries[start], entries[stop]
            weight = left_stop - left_start if heavy is entries else heavy[stop] - heavy[start]
            right = q > weight
            rank |= right.astype(np.int64) << bit
            q -= np.where(right, weight, 0).astype(np.int32)
            start = np.where(right, start - left_start + left_size, left_start).astype(np.int32)
            stop = np.where(right, stop - left_stop + left_size, left_stop).astype(np.int32)
        return self._values[rank]


def _running(counts: Counts) -> Counts:
    return np.concatenate([np.zeros(1, np.int32), np.cumsum(counts, dtype=np.int32)])
