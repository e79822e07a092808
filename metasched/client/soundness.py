"""Checks of single values in an answer of a daemon; each raises ValueError where a value is not what it should be."""

from __future__ import annotations

import math
import re
from typing import Any

#: Names of sites, partitions and nodes: what could be anything else in a command line is not believed.
NAME = re.compile(r"[A-Za-z0-9_][\w.+-]{0,254}", re.ASCII)


def matching(value: Any, pattern: re.Pattern[str], *, empty: bool = False) -> str:
    """A text that a pattern describes in full, or an empty one where that may be.

    Raises
    ------
    ValueError : where it is none.
    """
    if not isinstance(value, str) or not (pattern.fullmatch(value) or (empty and not value)):
        raise ValueError("a name is invalid")
    return value


def count(value: Any) -> int:
    """How many nodes or processors.

    Raises
    ------
    ValueError : where it is none.
    """
    if type(value) is not int or not 1 <= value <= 10_000_000:
        raise ValueError("a count is invalid")
    return value


def number(value: Any) -> float:
    """A positive number of whatever unit.

    Raises
    ------
    ValueError : where it is none.
    """
    if type(value) not in (int, float) or not 0 < value < math.inf:
        raise ValueError("a number is invalid")
    return float(value)
