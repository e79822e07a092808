"""The correction of a site's predictions, by the actual times of its jobs.

The logarithm of the ratio of the time taken to the time predicted is averaged, with weights that halve every
``HALF_LIFE`` outcomes, and shrunk towards no error by ``PRIOR`` outcomes that agree. The mean of a lognormal ratio is
exp(m + s^2 / 2), where of s^2 what exceeds the usual spread counts: who misses at random is believed less, too, not
only who misses one way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

#: Outcomes after which one counts half, outcomes that agree which every site begins with, and their spread (log).
HALF_LIFE, PRIOR, SPREAD = 20.0, 4.0, 0.2
#: Outcomes that are remembered of a site, and the largest miss of one that counts (a factor).
REMEMBERED, LARGEST = 100, 1e6
#: Standard normal quantile of the two-sided 90 % interval.
_Z90 = 1.645


@dataclass(frozen=True, slots=True)
class Trust:
    """The factor on a site's predictions, and the ends of the interval of its outcomes (factors).

    ``outcomes`` tells how many there are.
    """

    multiplier: float = 1.0
    low: float = 1.0
    high: float = 1.0
    outcomes: int = 0

    def words(self) -> str:
        """The correction in words; empty if nothing is known about the site."""
        if not self.outcomes:
            return ""
        jobs = "job" if self.outcomes == 1 else "jobs"
        return f"by its last {self.outcomes} {jobs}, it takes {self.multiplier:.2g} times as long as it says"


def trust(ratios: Sequence[float]) -> Trust:
    """The trust that outcomes justify.

    Parameters
    ----------
    ratios : of the time taken to the time predicted, the oldest first.

    Examples
    --------
    >>> trust([]).multiplier
    1.0
    >>> [round(trust(count * [2.0]).multiplier, 2) for count in (1, 4, 16)]
    [1.15, 1.4, 1.69]
    >>> round(trust(50 * [1000.0]).multiplier)
    375
    """
    if not ratios:
        return Trust()
    kept = ratios[-REMEMBERED:]
    errors = [math.log(min(max(ratio, 1.0 / LARGEST), LARGEST)) for ratio in kept]
    weights = [0.5 ** ((len(errors) - 1 - place) / HALF_LIFE) for place in range(len(errors))]
    total = PRIOR + sum(weights)
    mean = sum(weight * error for weight, error in zip(weights, errors, strict=True)) / total
    # Around the weighted mean of the outcomes themselves: a site that is off by the same factor each time is known.
    middle = mean * total / sum(weights)
    squares = sum(weight * (error - middle) ** 2 for weight, error in zip(weights, errors, strict=True))
    variance = (PRIOR * SPREAD**2 + squares) / total
    beyond = max(variance - SPREAD**2, 0.0)
    half = _Z90 * math.sqrt(variance)
    return Trust(
        math.exp(min(mean + beyond / 2.0, math.log(LARGEST))), math.exp(mean - half), math.exp(mean + half), len(kept)
    )
