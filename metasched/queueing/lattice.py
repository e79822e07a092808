"""All populations from none to the whole, for several classes, in the order in which they can be computed.

Points are sorted by their total number of jobs, so that one level (all points with the same total) is one slice, and
all that a level needs lies before it. Recursions loop over the levels, which are few, and take a level at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from metasched.arrays import Ints


@dataclass(frozen=True, slots=True)
class Lattice:
    """The points 0 <= n <= N of the populations of several classes.

    Parameters
    ----------
    jobs : array of shape (classes, points), the population at each point, points sorted by total.
    before : array of shape (classes, points); the point with one job less of a class. Where the class has no job there
        it is ``points``, one past the last, so that arrays need one more row, which holds nothing.
    starts : array of shape (levels + 1,); level l, the points with l jobs in total, is ``starts[l]:starts[l + 1]``.

    Examples
    --------
    >>> lattice = Lattice.below(np.array([1, 2]))
    >>> lattice.jobs.T.tolist()
    [[0, 0], [0, 1], [1, 0], [0, 2], [1, 1], [1, 2]]
    >>> lattice.before[0].tolist()
    [6, 6, 0, 6, 1, 3]
    """

    jobs: Ints
    before: Ints
    starts: Ints

    @classmethod
    def below(cls, population: Ints) -> Lattice:
        """Make the lattice of all points up to ``population``."""
        shape = tuple(int(jobs) + 1 for jobs in population)
        jobs = np.indices(shape).reshape(len(shape), -1)
        total = jobs.sum(axis=0)
        order = np.argsort(total, kind="stable")
        rank = np.empty(order.size, dtype=np.int64)
        rank[order] = np.arange(order.size)
        jobs = jobs[:, order]
        strides = np.array([int(np.prod(shape[axis + 1 :], dtype=np.int64)) for axis in range(len(shape))])
        before = np.where(jobs > 0, rank[np.maximum(order - strides[:, None], 0)], order.size)
        starts = np.searchsorted(total[order], np.arange(sum(shape) - len(shape) + 2))
        return cls(jobs, before, starts)

    @property
    def points(self) -> int:
        """How many populations the lattice holds, the full one and none included."""
        return int(self.jobs.shape[1])

    @property
    def levels(self) -> int:
        """Largest total, the number of the last level."""
        return self.starts.size - 2

    def level_slices(self) -> Iterator[slice]:
        """Slices of the levels 1, 2, ..., in order."""
        for start, stop in zip(self.starts[1:-1], self.starts[2:], strict=True):
            yield slice(int(start), int(stop))

    def first_class(self) -> Ints:
        """At each point the first class that has a job there (the first class where none has)."""
        return np.asarray(np.argmax(self.jobs > 0, axis=0))
