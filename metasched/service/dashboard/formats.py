"""Formats of ages, times and counts on the pages."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from metasched.plain_numbers import number_of


def ago(age: float) -> str:
    """How long ago something was, from its age (s), NaN where it never was.

    >>> [ago(age) for age in (math.nan, -1.0, 42.0, 300.0, 9000.0, 200_000.0)]
    ['never', 'now', '42 s ago', '5 min ago', '2 h ago', '2 days ago']
    """
    if math.isnan(age):
        return "never"
    if age < 1:
        return "now"
    for unit, length in (("days", 86_400.0), ("h", 3600.0), ("min", 60.0)):
        if age >= 2 * length:
            return f"{age / length:.0f} {unit} ago"
    return f"{age:.0f} s ago"


def moment(at: float | None) -> str:
    """A time in UTC in the format of HTML's ``datetime``; empty if it is unknown or out of range."""
    try:
        return "" if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return ""


def figure(value: float) -> float:
    """A number with as many digits as a picture can show.

    >>> figure(0.123456), figure(93.4567)
    (0.1235, 93.46)
    """
    return float(f"{value:.4g}")


def count(number: int, noun: str, nouns: str = "") -> str:
    """A number with its noun, with thin spaces between thousands; see :func:`~metasched.plain_numbers.number_of`."""
    return number_of(number, noun, nouns, "\u202f")
