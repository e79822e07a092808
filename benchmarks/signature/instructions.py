"""The instruction prediction table of the paper: a phase's instructions, shared out anew (Eqs. 2 to 4, Table 5).

The product has rules for the amount of each computation instead, of which Eq. 4 with a weight that follows n is one.
"""

from __future__ import annotations


def total_instructions(per_process: float, weight: float, processes: int) -> float:
    """All instructions of a phase: those of one process at one time, times weight and processes (Eqs. 2 and 3).

    Examples
    --------
    >>> total_instructions(2990984267, 999, 256)
    764926280379648
    """
    return per_process * weight * processes


def instructions_per_process(total: float, weight: float, processes: int) -> float:
    """What each process has of a phase's instructions at each of its times (Eq. 4).

    Examples
    --------
    >>> round(instructions_per_process(1991661726270220, 31031, 1024))
    62678681
    """
    return total / processes / weight


def difference(predicted: float, measured: float) -> float:
    """How far a measurable point is from what was predicted (DIF of Table 5), in percent of the prediction.

    Examples
    --------
    >>> round(difference(370123842, 343571970), 2)
    7.17
    """
    return 100.0 * abs(predicted - measured) / predicted
