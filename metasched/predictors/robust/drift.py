"""Drift: from some run on, everybody's runs take longer, or less long, than they did.

A new compiler, another file system or a firmware change every run by about the same factor. The predictions made
before runs were learned tell: their errors, in spreads, add up in one direction faster than chance lets them (Page's
cumulative sum, Biometrika 41, 1954, clipped so that no single run is enough). One user alone is no witness where others
are known: he may have changed what he runs, or may not tell the truth. Most of those heard again must say the same.

What was learned before is not forgotten: how time grows with N and falls with P mostly stays. The older runs are taken
to last longer by the factor found, which is found anew from every one of the next runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

#: Errors remembered, and how many spreads one counts at most.
REMEMBERED, CLIPPED = 40, 3.0
#: Spreads that an error is allowed, and the sum of what is beyond that tells of a drift.
ALLOWED, ALARM = 1.0, 5.0
#: Runs that must tell, and the least factor of a drift, as a logarithm.
FEWEST, LEAST = 3, 0.15
#: A user is known whose median error before was at most this many spreads.
KNOWN = 2.0
#: Runs from which the factor is found.
SETTLED = 20


@dataclass(frozen=True, slots=True)
class Surprise:
    """A run's error when it was predicted before it was learned.

    Parameters
    ----------
    number : of the run, counted from 0.
    user : whose run it was.
    error : log(measured / predicted).
    spread : that was expected of it.
    """

    number: int
    user: str
    error: float
    spread: float

    @property
    def spreads(self) -> float:
        """The error in units of the spread that was expected, clipped on both sides."""
        return min(max(self.error / self.spread, -CLIPPED), CLIPPED)


@dataclass(frozen=True, slots=True)
class Drift:
    """What has changed.

    Parameters
    ----------
    since : number of the first run that tells of it, counted from 0.
    factor : how many times as long as before runs take.
    runs : how many runs the factor was found from.

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
        """The drift that errors, oldest first, tell of; None where they tell of none."""
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
        """The drift with one more run, and the factor by which its own has changed; as it is once it is settled."""
        if self.runs >= SETTLED:
            return self, 1.0
        more = math.exp(min(max(surprise.error, -0.3), 0.3) / (self.runs + 1))
        return replace(self, factor=self.factor * more, runs=self.runs + 1), more

    @property
    def text(self) -> str:
        """What is to be said of it."""
        since = f"since run {self.since + 1} runs take {self.factor:.2f} times as long as before"
        return f"{since}: older runs are scaled accordingly"


def _sharpest(kept: list[Surprise], begin: int) -> int:
    """From where on the errors are most of one size: the change itself, not what chance put before it."""
    after = np.array([one.spreads for one in kept[begin:]])
    if len(after) <= FEWEST:
        return begin
    sums, counts = np.cumsum(after[::-1])[::-1], np.arange(len(after), 0, -1)
    return begin + int(np.argmax((sums**2 / counts)[: len(after) - FEWEST + 1]))


def _witnesses(before: list[Surprise], after: list[Surprise], sign: float) -> list[Surprise]:
    """The errors of known users since a change, where most of these users tell of it."""
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
