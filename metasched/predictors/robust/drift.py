"""Drift: from some run on, the runs of all users take longer, or shorter, than before.

A new compiler, another file system or new firmware changes the time of every run by about the same factor. Drift is
detected by the errors of predictions made before runs were learned: in units of their standard deviation, they add up
in one direction faster than by chance (Page's cumulative sum, Biometrika 41, 1954, clipped so that no single run is
enough). If several users are known, one user alone is not enough, who may have changed his program or given wrong
sizes: most of the users who have run since must show it.

Older runs are not forgotten, since the dependence on N and P mostly stays the same. Their times are multiplied by the
estimated factor, which is estimated again with each of the next runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

#: Number of stored errors, and the largest size of one in standard deviations.
REMEMBERED, CLIPPED = 40, 3.0
#: Standard deviations by which an error may be off without counting, and the sum of the excess that shows a drift.
ALLOWED, ALARM = 1.0, 5.0
#: Fewest runs that show a drift, and its smallest factor, as a logarithm.
FEWEST, LEAST = 3, 0.15
#: A user counts as known if the median error of earlier runs was at most this many standard deviations.
KNOWN = 2.0
#: Number of runs from which the factor is estimated.
SETTLED = 20


@dataclass(frozen=True, slots=True)
class Surprise:
    """The error of a run's prediction that was made before the run was learned.

    Parameters
    ----------
    number : of the run, counted from 0.
    user : the run's user.
    error : log(measured / predicted).
    spread : its expected standard deviation.
    """

    number: int
    user: str
    error: float
    spread: float

    @property
    def spreads(self) -> float:
        """The error in units of its expected standard deviation, clipped on both sides."""
        return min(max(self.error / self.spread, -CLIPPED), CLIPPED)


@dataclass(frozen=True, slots=True)
class Drift:
    """A common change of run times.

    Parameters
    ----------
    since : number of the first run that shows it, counted from 0.
    factor : time of runs relative to before.
    runs : number of runs from which the factor was estimated.

    Examples
    --------
    >>> quiet = [Surprise(k, "ada", 0.05 * (-1) ** k, 0.1) for k in range(20)]
    >>> found = Drift.in_errors([*quiet, *(Surprise(20 + k, "ada", 0.4, 0.1) for k in range(3))])
    >>> found.since, round(found.factor, 2)
    (20, 1.49)
    >>> Drift.in_errors(quiet) is None
    True
    """

    since: int
    factor: float
    runs: int

    @classmethod
    def in_errors(cls, surprises: Iterable[Surprise]) -> Drift | None:
        """The drift that errors, oldest first, show; None if they show none."""
        kept = list(surprises)[-REMEMBERED:]
        for sign in (1.0, -1.0):
            total, begin = 0.0, 0
            for place, one in enumerate(kept):
                total += sign * one.spreads - ALLOWED
                if total <= 0.0:
                    total, begin = 0.0, place + 1
            begin = _sharpest(kept, begin)
            telling = _witnesses(kept[:begin], kept[begin:], sign)
            if len(telling) < FEWEST or sum(sign * one.spreads - ALLOWED for one in telling) < ALARM:
                continue
            shift = float(np.median([one.error for one in telling]))
            if abs(shift) >= LEAST:
                return cls(kept[begin].number, math.exp(shift), len(telling))
        return None

    def with_run(self, surprise: Surprise) -> tuple[Drift, float]:
        """The drift after one more run, and the change of its factor; after enough runs the drift stays as it is."""
        if self.runs >= SETTLED:
            return self, 1.0
        more = math.exp(min(max(surprise.error, -0.3), 0.3) / (self.runs + 1))
        return replace(self, factor=self.factor * more, runs=self.runs + 1), more

    @property
    def text(self) -> str:
        """The drift in words, for users."""
        since = f"since run {self.since + 1} runs take {self.factor:.2f} times as long as before"
        return f"{since}: older runs are scaled accordingly"


def _sharpest(kept: list[Surprise], begin: int) -> int:
    """The position from which on the errors are most alike: the change itself, without chance errors before it."""
    after = np.array([one.spreads for one in kept[begin:]])
    if len(after) <= FEWEST:
        return begin
    sums, counts = np.cumsum(after[::-1])[::-1], np.arange(len(after), 0, -1)
    return begin + int(np.argmax((sums**2 / counts)[: len(after) - FEWEST + 1]))


def _witnesses(before: list[Surprise], after: list[Surprise], sign: float) -> list[Surprise]:
    """The errors of known users since a change, if most of these users show it."""
    known = {
        user
        for user in {one.user for one in before}
        if np.median([abs(one.spreads) for one in before if one.user == user]) <= KNOWN
    }
    heard = {one.user for one in after} & known
    telling = {user for user in heard if np.mean([sign * one.spreads for one in after if one.user == user]) > ALLOWED}
    if 2 * len(telling) <= len(heard) or len(telling) < min(2, len(known)):
        return []
    return [one for one in after if one.user in telling]
