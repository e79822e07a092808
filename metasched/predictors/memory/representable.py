"""The runs whose numbers can be computed with, whatever somebody stated: all others are not learned."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from metasched.records import PARAMETER, InputError, Run

#: Largest number of decimal digits of a number before or after the point: even the squares of N^4, the largest function
#: of N in Eq. (1), stay within double precision.
LARGEST_DIGITS = 36


def representable(run: Run) -> bool:
    """Whether powers of a run's numbers stay within double precision, as those of every real run do.

    >>> representable(Run("a", "c", 1e300, 1, 1.0, 90.0, 1e-300))
    False
    >>> representable(Run("a", "c", 100, 1, 1.0, 90.0, 7.0, extra={"parameter:tolerance": "5e-324"}))
    False
    """
    return next(_beyond(run), None) is None


def refuse_unrepresentable(runs: Iterable[Run]) -> None:
    """Refuse, by InputError, to fit to runs whose numbers cannot be computed with."""
    for run in runs:
        for name, value in _beyond(run):
            large = abs(value) > 1.0
            end = math.copysign(10.0 ** (LARGEST_DIGITS if large else -LARGEST_DIGITS), value)
            most = "most" if large == (value > 0.0) else "least"
            raise InputError(f"{name} is {value:g}, expected at {most} {end:g}: no model can be fitted to this run")


def _beyond(run: Run) -> Iterator[tuple[str, float]]:
    """The numbers of a run that are too large or too small, by name."""
    for name, value in _numbers(run):
        if value and not math.isnan(value) and abs(math.log10(abs(value))) > LARGEST_DIGITS:
            yield name, value


def _numbers(run: Run) -> Iterator[tuple[str, float]]:
    """What is computed with, by name: NaN where it was not measured."""
    for name in ("problem_size", "processors", "min_avg_avail_cpu", "min_avg_avail_bw", "execution_time"):
        yield name, getattr(run, name)
    settings = run.settings
    yield "threads", settings.threads
    yield from ((PARAMETER + name, value) for name, value in settings.parameters if not isinstance(value, str))
