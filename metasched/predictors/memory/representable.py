"""The runs whose numbers can be computed with, whatever somebody stated: all others are not learned."""

from __future__ import annotations

import math

from metasched.records import Run

#: Largest number of decimal digits of a size or a time before or after the point: even the squares of N^4, the largest
#: function of N in Eq. (1), stay within double precision.
LARGEST_DIGITS = 36


def representable(run: Run) -> bool:
    """Whether powers of a run's size and time stay within double precision, as those of every real run do.

    Examples
    --------
    >>> representable(Run("a", "c", 1e300, 1, 1.0, 90.0, 1e-300))
    False
    """
    return max(abs(math.log10(run.problem_size)), abs(math.log10(run.execution_time))) < LARGEST_DIGITS
