"""The Pareto front of placements in all terms."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from metasched.arrays import Ints


def front(costs: ArrayLike) -> Ints:
    """The rows on the Pareto front: no other row is at most as large everywhere and smaller somewhere.

    Parameters
    ----------
    costs : array of shape (n, terms).

    Returns
    -------
    Numbers of the rows, in the order of the first term; of equal rows the first.

    Examples
    --------
    >>> front([[3.0, 1.0], [1.0, 3.0], [2.0, 2.0], [3.0, 3.0]]).tolist()
    [1, 2, 0]
    """
    costs = np.asarray(costs, dtype=np.float64)
    order = np.lexsort(costs.T[::-1])
    kept: list[int] = []
    left = order
    # Sorted by the first term, the first remaining row cannot be dominated by another one.
    while left.size:
        head = int(left[0])
        kept.append(head)
        left = left[1:][np.any(costs[left[1:]] < costs[head], axis=1)]
    return np.array(kept, dtype=np.int64)
