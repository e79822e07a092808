"""Problem sizes found as numbers in job names, for jobs without an annotation.

Names are alike where only their numbers differ. Of the numbers in alike names one is taken for the problem size if it
explains run times of jobs that it was not fitted to: ``log t = a + b log N + c log P`` is compared with the same
without N, each fitted to every other job and judged on those between.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from metasched.history.job_log import Floats

_NUMBER = re.compile(r"\d+")
#: Digits of a number at most: more are a date or an identifier, and as many values it must have at least.
MOST_DIGITS, FEWEST_VALUES = 12, 4
#: Jobs that show it at least, and the share of the variance of log run times that it must explain.
FEWEST_JOBS, CONVINCING = 20, 0.5


def stem_of(name: str) -> str:
    """The stem of a name: ``#`` for each number.

    Examples
    --------
    >>> stem_of("solve_1400_p4")
    'solve_#_p#'
    """
    return _NUMBER.sub("#", name)


@dataclass(frozen=True, slots=True)
class SizeInName:
    """Which number in a job's name is its problem size.

    Parameters
    ----------
    name : the name, with ``#`` for each number.
    number : which of them it is, from 1.
    application : that such jobs are runs of.

    Examples
    --------
    >>> rule = SizeInName("solve_#_p#", 1, "solve")
    >>> rule.of("solve_1400_p4"), rule.of("solve_p4"), rule.of("solve_0_p4")
    (1400.0, None, None)
    """

    name: str
    number: int
    application: str

    def of(self, name: str) -> float | None:
        """The problem size of a job of this name; None if the name has another stem, or the number is 0."""
        if stem_of(name) != self.name:
            return None
        found = _NUMBER.findall(name)
        if not 1 <= self.number <= len(found) or len(found[self.number - 1]) > MOST_DIGITS:
            return None
        return float(found[self.number - 1]) or None


def size_in_names(names: Sequence[str], run_time: Floats, processors: Floats) -> tuple[int, float] | None:
    """The number (from 1) in similar names that explains run times, and the share explained; None if none does.

    Parameters
    ----------
    names : with one number for each sign of their stem.
    run_time, processors : of the jobs (s), shape (jobs,), above 0.

    Examples
    --------
    >>> sizes = np.arange(100, 1100, 25)
    >>> size_in_names([f"v2-{size}-x{size % 7}" for size in sizes], 0.5 * sizes, np.ones(40))
    (2, 1.0)
    """
    if len(names) < FEWEST_JOBS:
        return None
    numbers = [_NUMBER.findall(name) for name in names]
    best: tuple[int, float] | None = None
    for place in range(min(map(len, numbers), default=0)):
        given = [row[place] for row in numbers]
        if max(map(len, given)) > MOST_DIGITS or len(set(given)) < FEWEST_VALUES or not all(map(int, given)):
            continue
        share = _explained(np.log(np.array(given, dtype=np.float64)), np.log(run_time), np.log(processors))
        if share >= CONVINCING and (best is None or share > best[1]):
            best = place + 1, round(share, 6)
    return best


def _explained(size: Floats, time: Floats, processors: Floats) -> float:
    """The reduction of the squared errors by the size, relative to those without it."""
    without = np.stack([np.ones_like(time), processors], axis=1)
    base, fitted = (_errors(design, time) for design in (without, np.column_stack([without, size])))
    return 1.0 - fitted / base if base > 0 and math.isfinite(fitted) else 0.0


def _errors(design: Floats, time: Floats) -> float:
    """Squared errors of each half of the jobs by what was fitted to the other, every other job being in one half."""
    total, half = 0.0, np.arange(len(time)) % 2 == 0
    for judged in (half, ~half):
        solution = np.linalg.lstsq(design[~judged], time[~judged], rcond=None)[0]
        total += float(np.sum((time[judged] - design[judged] @ solution) ** 2))
    return total
