"""Problem sizes found as numbers in the names, arguments and scripts of jobs without an annotation.

Names are alike where only their numbers differ. Of the numbers that jobs with alike names state one is taken for the
problem size if it explains run times of jobs that it was not fitted to: ``log t = a + b log N + c log P`` is compared
with the same without N, each fitted to every other job and judged on those between.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from metasched.arrays import Floats
from metasched.history.argument_numbers import MOST_DIGITS, numbers_of
from metasched.jobs import plain

_NUMBER = re.compile(r"[0-9]+")
#: Values that a problem size has at least.
FEWEST_VALUES = 4
#: Jobs that show it at least, and of jobs with alike names, and the share of the variance of log run times that it must
#: explain.
FEWEST_JOBS, FEWEST_OF_ALL, CONVINCING = 20, 0.25, 0.5


def stem_of(name: str) -> str:
    """The stem of a name: ``#`` for each number.

    >>> stem_of("solve_1400_p4")
    'solve_#_p#'
    """
    return _NUMBER.sub("#", name)


def told_stem(name: str) -> str:
    """The stem of a name as hooks tell names, who know its bytes and not its letters.

    >>> told_stem("l\u00f6se_1400"), told_stem("l??se_1400")
    ('l??se_#', 'l??se_#')
    """
    return stem_of(plain(name.encode("utf-8", "replace")))


def stated_numbers(name: str, numbers: str) -> dict[str, str]:
    """The numbers that a job states, by their places: those of its name are counted from 1.

    Parameters
    ----------
    name : of the job.
    numbers : in its arguments and script, a text of :mod:`metasched.history.argument_numbers`.

    Examples
    --------
    >>> stated_numbers("solve_1400_p4", "-n=7")
    {'1': '1400', '2': '4', '-n': '7'}
    """
    return {str(place): number for place, number in enumerate(_NUMBER.findall(name), 1)} | numbers_of(numbers)


@dataclass(frozen=True, slots=True)
class SizeRule:
    """Which of the numbers that a job states is its problem size.

    Parameters
    ----------
    name : of such jobs, with ``#`` for each number.
    place : of the number, as in :func:`stated_numbers`.
    application : that such jobs are runs of.

    Examples
    --------
    >>> rule = SizeRule("solve_#_p#", "1", "solve")
    >>> rule.of("solve_1400_p4"), rule.of("solve_p4"), rule.of("solve_0_p4")
    (1400.0, None, None)
    >>> SizeRule("solve.sh", "-n", "solve").of("solve.sh", "-n=400 $1=7")
    400.0
    """

    name: str
    place: str
    application: str

    def concerns(self, name: str) -> bool:
        """Whether it is about jobs of this name, whatever they state."""
        return told_stem(name) == told_stem(self.name)

    def of(self, name: str, numbers: str = "") -> float | None:
        """The problem size of a job; None if its name has another stem, or it states no such number, or 0."""
        stated = stated_numbers(name, numbers).get(self.place, "") if self.concerns(name) else ""
        return float(stated) or None if 0 < len(stated) <= MOST_DIGITS else None


def explaining_places(
    stated: Sequence[Mapping[str, str]], run_time: Floats, processors: Floats
) -> list[tuple[str, float]]:
    """The places of numbers that explain run times, and the share explained; none if none does.

    Jobs without a number in the first place are examined again by themselves, since people change their scripts.

    Parameters
    ----------
    stated : the numbers of each job by their places.
    run_time, processors : of the jobs (s), shape (jobs,), above 0.

    Examples
    --------
    >>> sizes = np.arange(100, 1100, 25)
    >>> stated = [{"1": "2", "2": f"{size}", "-x": f"{size % 7 + 1}"} for size in sizes]
    >>> explaining_places(stated, 0.5 * sizes, np.ones(40))
    [('2', 1.0)]
    """
    found: list[tuple[str, float]] = []
    rows = [*range(len(stated))]
    while (best := _best_place([stated[row] for row in rows], run_time[rows], processors[rows])) is not None:
        found.append(best)
        rows = [row for row in rows if best[0] not in stated[row]]
    return found


def _best_place(stated: Sequence[Mapping[str, str]], run_time: Floats, processors: Floats) -> tuple[str, float] | None:
    """The place that explains most of the run times of all jobs, of those that many of them have."""
    best, most = None, 0.0
    often = Counter(place for numbers in stated for place in numbers)
    for place, count in often.items():
        if count < max(FEWEST_JOBS, FEWEST_OF_ALL * len(stated)):
            continue
        rows = [row for row, numbers in enumerate(stated) if place in numbers]
        given = [stated[row][place] for row in rows]
        if max(map(len, given)) > MOST_DIGITS or len(set(given)) < FEWEST_VALUES or not all(map(float, given)):
            continue
        share = _explained(np.log(np.array(given, dtype=np.float64)), np.log(run_time[rows]), np.log(processors[rows]))
        if share >= CONVINCING and share * count > most:
            best, most = (place, round(share, 6)), share * count
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
