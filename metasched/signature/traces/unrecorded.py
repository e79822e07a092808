"""Calls that programs made and no action of their traces tells, in words."""

from __future__ import annotations

from collections.abc import Mapping

#: Most of them that are named.
NAMED = 8


def lacking(unrecorded: Mapping[str, int], whose: str = "the trace") -> list[str]:
    """What traces lack, as one clause; none if they lack nothing.

    Parameters
    ----------
    unrecorded : how often each was called, by its name.
    whose : the subject of the clause.

    Examples
    --------
    >>> lacking({"MPI_Win_fence": 4, "MPI_Put": 12, "MPI_Send by other threads": 1})
    ['the trace lacks calls: 12 of MPI_Put, 4 of MPI_Win_fence, 1 of MPI_Send by other threads']
    >>> lacking({})
    []
    """
    if not unrecorded:
        return []
    ordered = sorted(unrecorded.items(), key=lambda each: (-each[1], each[0]))
    named = [f"{times} of {name}" for name, times in ordered[:NAMED]]
    if rest := ordered[NAMED:]:
        named.append(f"{sum(times for _, times in rest)} of {len(rest)} others")
    return [f"{whose} lacks calls: {', '.join(named)}"]
