"""Processes that are folded in pairs, as by MPICH, until a power of two of them is left for an exchange by bits.

After Thakur, Rabenseifner and Gropp, *Optimization of collective communication operations in MPICH*, IJHPCA 19(1),
2005.
"""

from __future__ import annotations

import numpy as np

from metasched.arrays import Ints


def beyond_power(count: int) -> int:
    """How many processes there are more than the largest power of two.

    >>> beyond_power(12), beyond_power(16)
    (4, 0)
    """
    return count - (1 << (count.bit_length() - 1))


def place_in_fold(ranks: Ints, left: Ints) -> Ints:
    """Which of those that go on a process is: of each of the first pairs the second goes on, and all after them.

    Parameters
    ----------
    ranks, left : of the processes, and how many pairs there are; arrays that broadcast to one shape.

    Examples
    --------
    >>> place_in_fold(np.array([1, 3, 4, 5]), np.array([2])).tolist()
    [0, 1, 2, 3]
    """
    return np.where(ranks < 2 * left, ranks // 2, ranks - left)


def rank_in_fold(places: Ints, left: Ints) -> Ints:
    """The rank of those that go on.

    >>> rank_in_fold(np.array([0, 1, 2, 3]), np.array([2])).tolist()
    [1, 3, 4, 5]
    """
    return np.where(places < left, 2 * places + 1, places + left)
