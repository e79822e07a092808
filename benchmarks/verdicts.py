"""Targets with what was measured, and whether that reaches them: the last table of every generated page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """One line of the table.

    Parameters
    ----------
    what : what is judged.
    asked, measured : what it must reach, and what it does.
    reached : whether it does.
    """

    what: str
    asked: str
    measured: str
    reached: bool


def table(targets: Iterable[Target]) -> str:
    """The targets as a Markdown table.

    Examples
    --------
    >>> print(table([Target("mean PPE", "<= 6 %", "6.5 %", False)]))
    | quantity | target | measured | verdict |
    |---|---|---|---|
    | mean PPE | <= 6 % | 6.5 % | **missed** |
    """
    lines = ["| quantity | target | measured | verdict |", "|---|---|---|---|"]
    lines += [
        f"| {one.what} | {one.asked} | {one.measured} | {'reached' if one.reached else '**missed**'} |"
        for one in targets
    ]
    return "\n".join(lines)
