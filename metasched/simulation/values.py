"""Values of a group of processes: one number for all, a line in the rank, or a number for each.

A line, a + b * rank, costs no more than a number, so that ``rank + 1`` of a hundred thousand processes is one object.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

#: Largest number that an application may count with; whole numbers beyond the second become fractions.
LARGEST, LARGEST_WHOLE = 1e300, 2**62


@dataclass(frozen=True, slots=True)
class Affine:
    """The value a + b * rank."""

    a: float
    b: float


#: A number (or truth), a line, or an array of shape (n,).
Value = Any

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mult": operator.mul,
    "Div": operator.truediv,
    "FloorDiv": operator.floordiv,
    "Mod": operator.mod,
    "Pow": operator.pow,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "min": min,
    "max": max,
}
#: Types of one number, or truth, for all processes.
NUMBERS = frozenset({int, float, bool})
_ON_ARRAYS = {"min": np.minimum, "max": np.maximum}


def each(value: Value, ranks: range) -> Any:
    """A value as an array of shape (n,), or the one number that it is."""
    if isinstance(value, Affine):
        return value.a + value.b * np.arange(ranks.start, ranks.stop, ranks.step)
    return value


def part(value: Value, chosen: slice) -> Value:
    """The value of some of the processes."""
    if not isinstance(value, np.ndarray):
        return value
    found = value[chosen]
    return found.item() if found.size == 1 else found


def settled(value: Value) -> Value:
    """A number where an array holds the same for all.

    Raises
    ------
    ArithmeticError
        When it is not a number, or too large a one.
    """
    kind = type(value)
    if kind is bool or kind is Affine or (kind is float and -LARGEST <= value <= LARGEST):
        return value
    if kind is int and -LARGEST_WHOLE <= value <= LARGEST_WHOLE:
        return value
    if isinstance(value, np.ndarray):
        if value.dtype != np.bool_ and not np.all(np.abs(value) <= LARGEST):
            raise ArithmeticError("a number is too large, or not a number")
        first = value.flat[0]
        return first.item() if np.all(value == first) else value
    if not abs(value) <= LARGEST:
        raise ArithmeticError("a number is too large, or not a number")
    return float(value) if isinstance(value, int) and abs(value) > LARGEST_WHOLE else value


def binary(name: str, one: Value, other: Value, ranks: range) -> Value:
    """Apply an operator.

    Raises
    ------
    ArithmeticError
        Where it is not defined.

    Examples
    --------
    >>> rank = Affine(0, 1)
    >>> binary("Add", rank, 1, range(4)), binary("Mod", rank, 2, range(4)).tolist(), binary("Lt", rank, 9, range(4))
    (Affine(a=1, b=1), [0, 1, 0, 1], True)
    """
    if isinstance(one, Affine) or isinstance(other, Affine):
        if (line := _line(name, one, other)) is not None:
            return line
        if (
            name in ("Lt", "LtE", "Gt", "GtE", "Eq", "NotEq")
            and (truth := _same_for_all(name, one, other, ranks)) is not None
        ):
            return truth
    one, other = each(one, ranks), each(other, ranks)
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        with np.errstate(all="ignore"):
            if name == "Pow":
                one = np.asarray(one, dtype=np.float64)
            return settled(np.asarray(_ON_ARRAYS.get(name, BINARY[name])(one, other)))
    if name == "Pow" and isinstance(one, int) and isinstance(other, int):
        # 9 ** 9 ** 9 has more digits than there is memory.
        one = one if other >= 0 and other * math.log2(abs(one) + 1) < 62 else float(one)
    return settled(BINARY[name](one, other))


def _line(name: str, one: Value, other: Value) -> Value:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return None
    x = one if isinstance(one, Affine) else Affine(one, 0)
    y = other if isinstance(other, Affine) else Affine(other, 0)
    if name in ("Add", "Sub"):
        sign = 1 if name == "Add" else -1
        a, b = x.a + sign * y.a, x.b + sign * y.b
    elif name == "Mult" and not (x.b and y.b):
        a, b = x.a * y.a, x.a * y.b + x.b * y.a
    else:
        return None
    return Affine(a, b) if b else settled(a)


def _same_for_all(name: str, one: Value, other: Value, ranks: range) -> bool | None:
    """Whether a comparison is true of all or of none, by the first and the last; None where it differs."""
    difference = _line("Sub", one, other)
    if not isinstance(difference, Affine):
        return None
    low, high = sorted((difference.a + difference.b * ranks[0], difference.a + difference.b * ranks[-1]))
    if name in ("Eq", "NotEq"):
        return (name == "NotEq") if low > 0 or high < 0 else None
    truth = {BINARY[name](end, 0) for end in (low, high)}
    return truth.pop() if len(truth) == 1 else None
