"""Whether runs had one workload, by the instructions of all their processes together (section 3.3)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np

#: Exponents of n between neighbouring counts: up to which a total stays, and from which difference on it jumps.
FLAT, JUMP = 0.15, 0.5


def one_workload(totals: Mapping[int, float]) -> bool:
    """Whether totals stay as n grows, or drift without a jump or a turn.

    A total that drifts, as in weak scaling or with work done twice, is no sign of another workload; one that stays
    between two counts and jumps to the next, or rises and falls, is.

    Parameters
    ----------
    totals : instructions by the number of processes.

    Examples
    --------
    >>> one_workload({16: 1e9, 32: 1.02e9, 64: 1.03e9}), one_workload({16: 1e9, 32: 1e9, 64: 2e9})
    (True, False)
    """
    counts = sorted(totals)
    amounts = [totals[n] for n in counts]
    if min(amounts) <= 0:
        return max(amounts) <= 0
    slopes = np.diff(np.log(amounts)) / np.diff(np.log(counts))
    return not any(
        abs(after - before) > JUMP and (min(abs(before), abs(after)) < FLAT or bool(np.sign(before) != np.sign(after)))
        for before, after in pairwise(slopes.tolist())
    )
