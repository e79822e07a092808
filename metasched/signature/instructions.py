"""The instruction prediction table: a phase's instructions are shared out anew among more processes (section 3.3)."""

from __future__ import annotations

from collections.abc import Sequence

#: Processes whose instructions differ by less than this share of the larger belong to one group (95 % alike).
ALIKE = 0.05


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


def instruction_groups(per_process: Sequence[float]) -> list[list[int]]:
    """Processes by groups with alike instructions; each group in the order of ranks, groups by their first rank.

    Examples
    --------
    >>> instruction_groups([100.0, 103.0, 50.0, 51.0])
    [[0, 1], [2, 3]]
    """
    groups: list[tuple[float, list[int]]] = []
    for rank, count in sorted(enumerate(per_process), key=lambda pair: -pair[1]):
        if groups and groups[-1][0] - count <= ALIKE * groups[-1][0]:
            groups[-1][1].append(rank)
        else:
            groups.append((count, [rank]))
    return sorted(sorted(members) for _, members in groups)


def difference(predicted: float, measured: float) -> float:
    """How far a measurable point is from what was predicted (DIF of Table 5), in percent of the prediction.

    Examples
    --------
    >>> round(difference(370123842, 343571970), 2)
    7.17
    """
    return 100.0 * abs(predicted - measured) / predicted
