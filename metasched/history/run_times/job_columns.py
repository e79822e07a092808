"""Jobs as columns of numbers, which run times are learned from, and the last of them of a user or a limit."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence

import numpy as np

from metasched.arrays import Floats
from metasched.history.job_log import digest_of
from metasched.history.problem_sizes import stem_of

#: Rows of a job's column: log2 of processors and of the limit, when it ended and was submitted (s), whether it was
#: ended by its limit and within a minute, its run time (s), and codes of its name, of this without digits, of its user
#: and its executable. The first four are compared with those of other jobs.
WIDTH, LIMIT, ENDED, SUBMITTED, CUT, SHORT, RUN, NAME, STEM, USER, EXECUTABLE = range(11)
ROWS = 11


class LastJobs:
    """A ring buffer of the last jobs of a user or a limit, one in each column, newest last.

    >>> last = LastJobs(2)
    >>> for number in range(5):
    ...     last.add([float(number)] * ROWS)
    >>> last.columns[RUN]
    array([3., 4.])
    """

    __slots__ = ("_columns", "_count", "_most")

    def __init__(self, most: int) -> None:
        self._most, self._count = most, 0
        self._columns = np.empty((ROWS, 2))

    def add(self, job: Sequence[float]) -> None:
        """Add the newest job, by the rows of its column; the oldest may be forgotten for it."""
        size = self._columns.shape[1]
        if self._count == size:
            if size < 2 * self._most:
                grown = np.empty((ROWS, min(2 * size, 2 * self._most)))
                grown[:, :size] = self._columns
                self._columns = grown
            else:
                self._columns[:, : self._most] = self._columns[:, size - self._most :]
                self._count = self._most
        self._columns[:, self._count] = job
        self._count += 1

    @property
    def columns(self) -> Floats:
        """The last jobs, a view of shape (rows, jobs)."""
        return self._columns[:, max(0, self._count - self._most) : self._count]


def code_of(name: Hashable) -> float:
    """A number for a user, a name or a stem, which tells nothing of it: a hash, of as many bits as are exact."""
    return float(digest_of(str(name)) >> 11)


#: The code of an empty name.
UNNAMED = code_of("")


def without_numbers(name: str) -> str:
    """A name with ``#`` for each number, except in parts that are numbers only."""
    parts = name.split("/")
    return "/".join(stem_of(part) if re.search(r"[^\W\d]", part) else part for part in parts)
