"""How the pages say times, ages and shares."""

from __future__ import annotations

from datetime import UTC, datetime


def seconds(value: float | None) -> str:
    """A span of time.

    Examples
    --------
    >>> [seconds(value) for value in (0.0312, 12.34, 754.0, 12_000.0, None)]
    ['0.031 s', '12.3 s', '12.6 min', '3.3 h', '–']
    """
    if value is None:
        return "–"
    if value < 0.1:
        return f"{value:.2g} s"
    if value < 100:
        return f"{value:.1f} s"
    if value < 600:
        return f"{value:.0f} s"
    return f"{value / 60:.1f} min" if value < 6000 else f"{value / 3600:.1f} h"


def ago(age: float) -> str:
    """How long ago something was.

    Examples
    --------
    >>> [ago(age) for age in (-1.0, 42.0, 300.0, 9000.0, 200_000.0)]
    ['now', '42 s ago', '5 min ago', '2 h ago', '2 days ago']
    """
    if age < 1:
        return "now"
    for unit, length in (("days", 86_400.0), ("h", 3600.0), ("min", 60.0)):
        if age >= 2 * length or (unit == "min" and age >= 120):
            return f"{age / length:.0f} {unit} ago"
    return f"{age:.0f} s ago"


def moment(at: float | None) -> str:
    """A moment in UTC, as HTML's ``datetime`` spells it; empty where it is not known or no calendar has it."""
    try:
        return "" if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return ""


def figure(value: float) -> float:
    """A number with as many digits as a picture can show.

    Examples
    --------
    >>> figure(0.123456), figure(93.4567)
    (0.1235, 93.46)
    """
    return float(f"{value:.4g}")


def count(number: int, one: str, many: str = "") -> str:
    """A number with its noun.

    Examples
    --------
    >>> count(1, "node"), count(2, "node"), count(0, "search", "searches")
    ('1 node', '2 nodes', '0 searches')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}".replace(",", "\u202f")
