"""The contract of every one-step forecaster: many series side by side, two verbs.

Axis 0 is always the series. A missing value (NaN) leaves its series exactly as it was, so series may be sampled at
different paces inside one forecaster.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


class Forecaster(Protocol):
    """Forecasts the next value of each of n series."""

    def update(self, values: ArrayLike) -> None:
        """Take in the next value of each series, shape (n,); NaN where there is none."""
        ...

    def forecast(self) -> Floats:
        """The value expected next in each series, shape (n,); NaN before its first value."""
        ...


def checked(values: ArrayLike, series: int) -> Floats:
    """The values as an array of shape (series,), or a ValueError that says what was expected."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (series,):
        raise ValueError(f"values have shape {array.shape}, expected ({series},), one value a series")
    if np.isinf(array).any():
        raise ValueError(f"value of series {int(np.isinf(array).argmax())} is infinite, expected a finite one or NaN")
    return array
