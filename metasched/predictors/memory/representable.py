"""The runs whose numbers can be computed with, whatever somebody stated: all others are not learned."""

from __future__ import annotations

import math
from collections.abc import Iterable

from metasched.records import InputError, Run

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


def refuse_unrepresentable(runs: Iterable[Run]) -> None:
    """Refuse, by InputError, to fit to runs whose numbers cannot be computed with."""
    if not all(map(representable, runs)):
        raise InputError("no model can be fitted to these runs: their numbers are too large or too small")
