"""Numbers that are the same, whole or simple up to rounding."""

from __future__ import annotations

import numpy as np

from metasched.arrays import Floats

#: How far from a whole number a value may be, relative to its size.
ROUNDING = 1e-9


def exact(made: Floats, values: Floats, tolerance: float) -> bool:
    """Whether all values are reproduced: integers exactly, others up to a relative tolerance.

    >>> made = np.array([8.0, 4.1])
    >>> [exact(made, np.array([8.0, 4.0]), tolerance) for tolerance in (0.0, 0.02, 0.03)]
    [False, False, True]
    """
    if tolerance:
        return bool(np.all(np.abs(made - values) <= tolerance * np.abs(values) + 1e-12))
    return bool(np.all(np.abs(made - values) <= ROUNDING * np.maximum(np.abs(values), 1.0) + 1e-7))


def level(values: Floats, tolerance: float) -> bool:
    """Whether all values are the middle one.

    >>> [level(np.array([7.0, 8.0, other]), 0.2) for other in (9.0, 10.2)]
    [True, False]
    """
    low, high = float(values.min()), float(values.max())
    # A middle that is near to both is no farther from one than half their distance.
    near = tolerance or ROUNDING
    if high - low > 2.0 * (near * max(abs(low), abs(high), 1.0) + 1e-7):
        return False
    return low == high or exact(np.full(1, float(np.median(values))), values, tolerance)


def plain(number: float) -> bool:
    """Whether a coefficient is plausible in a program: an integer or a simple fraction.

    >>> [plain(number) for number in (-3.0, 0.375, 1 / 3, 0.1, 2.001)]
    [True, True, True, False, False]
    """
    return abs(number * 24 - round(number * 24)) <= 1e-9 * max(abs(number), 1.0)


def tidy(number: float) -> float:
    """The number, replaced by a simple one that it equals up to rounding.

    >>> [tidy(number) for number in (2.9999999999, -0.6666666666, 0.1, 2.001)]
    [3.0, -0.6666666666666666, 0.1, 2.001]
    """
    for scale in (1, 2, 3, 4, 6, 8):
        near = round(number * scale) / scale
        if abs(number - near) <= 1e-9 * max(abs(number), 1e-3):
            return near
    return number
