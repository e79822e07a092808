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

#: Largest number that an application may count with; whole numbers beyond the second become fractions, since those of
#: a group are counted with as such, and are exact up to there.
LARGEST, LARGEST_WHOLE = 1e300, 2**53


@dataclass(frozen=True, slots=True)
class Affine:
    """The value a + b * rank, of whole numbers a and b: with fractions the order of operations decides their digits."""

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
        return value.a + value.b * np.arange(ranks.start, ranks.stop, ranks.step, dtype=np.float64)
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
    ArithmeticError : when it is not a number, or too large a one.
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
    if isinstance(value, complex) or not abs(value) <= LARGEST:
        raise ArithmeticError("a number is too large, or not a number")
    return float(value) if isinstance(value, int) and abs(value) > LARGEST_WHOLE else value


def why(error: ArithmeticError) -> str:
    """Why there is no value, in words: what Python itself says of large numbers and zeros is no answer.

    >>> why(ZeroDivisionError("integer modulo by zero")), why(ArithmeticError("n has no value"))
    ('division by zero', 'n has no value')
    """
    known = {OverflowError: "a number is too large", ZeroDivisionError: "division by zero"}
    return known.get(type(error), str(error))


def binary(name: str, one: Value, other: Value, ranks: range) -> Value:
    """Apply an operator.

    Raises
    ------
    ArithmeticError : where it is not defined.

    Examples
    --------
    >>> rank = Affine(0, 1)
    >>> binary("Add", rank, 1, range(4)), binary("Mod", rank, 2, range(4)).tolist(), binary("Lt", rank, 9, range(4))
    (Affine(a=1, b=1), [0.0, 1.0, 0.0, 1.0], True)
    """
    if isinstance(one, Affine) or isinstance(other, Affine):
        if (line := _line(name, one, other, ranks)) is not None:
            return line
        if (
            name in ("Lt", "LtE", "Gt", "GtE", "Eq", "NotEq")
            and (truth := _same_for_all(name, one, other, ranks)) is not None
        ):
            return truth
    one, other = each(one, ranks), each(other, ranks)
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        # Whole numbers and truths of numpy's own would wrap around, and add up to truths.
        one, other = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
        if name in ("Div", "FloorDiv", "Mod") and not np.all(other):
            raise ZeroDivisionError
        with np.errstate(all="ignore"):
            return settled(np.asarray(_ON_ARRAYS.get(name, BINARY[name])(one, other)))
    if name == "Pow" and isinstance(one, int) and isinstance(other, int):
        # 9 ** 9 ** 9 has more digits than there is memory.
        one = one if other >= 0 and other * math.log2(abs(one) + 1) < 53 else float(one)
    return settled(BINARY[name](one, other))


def _line(name: str, one: Value, other: Value, ranks: range) -> Value:
    """The result as a line in the rank, or one number; None where it is neither, or would not be exact."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return None
    if not all(isinstance(each_, Affine) or each_ == each_ // 1 for each_ in (one, other)):
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
    if not b:
        return settled(a)
    return Affine(a, b) if abs(a) + abs(b) * max(ranks[0], ranks[-1]) <= LARGEST_WHOLE else None


def _same_for_all(name: str, one: Value, other: Value, ranks: range) -> bool | None:
    """Whether a comparison is true of all or of none, by the first and the last; None where it differs."""
    difference = _line("Sub", one, other, ranks)
    if not isinstance(difference, Affine):
        return None
    low, high = sorted((difference.a + difference.b * ranks[0], difference.a + difference.b * ranks[-1]))
    if name in ("Eq", "NotEq"):
        return (name == "NotEq") if low > 0 or high < 0 else None
    truth = {BINARY[name](end, 0) for end in (low, high)}
    return truth.pop() if len(truth) == 1 else None
