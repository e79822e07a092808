"""What a candidate function is, and what a family of them is.

A family is an ordered table: its order is part of the contract, because combinations of functions are kept as positions
in the tables. Terms of Eq. (1) divide by bandwidth and scalability functions, so a family also evaluates reciprocals,
and there the value infinity means: not defined for this input. What overflows is infinite too. Nothing returns NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class CandidateFunction:
    """One function of one variable.

    Parameters
    ----------
    name : short name, unique in its family; what a saved model refers to.
    formula : the function as a person would write it.
    value : the function, array of shape (n,) to array of shape (n,).
    reciprocal : one over the function, written so that a removable singularity is removed (the reciprocal of 1/log P
        at P = 1 is 0) and a real one is infinite (the reciprocal of log P at P = 1).

    Examples
    --------
    >>> from candidate_functions import COMPLEXITY
    >>> COMPLEXITY["n^2"].formula
    'N^2'
    >>> COMPLEXITY["n^2"].value(np.array([3.0]))
    array([9.])
    """

    name: str
    formula: str
    value: Callable[[Floats], Floats]
    reciprocal: Callable[[Floats], Floats]


class Family:
    """An ordered table of candidate functions of the same variable.

    Parameters
    ----------
    variable : the sign that the formulas use for the variable.
    functions : the functions; names must differ.

    Examples
    --------
    >>> from candidate_functions import SCALABILITY
    >>> len(SCALABILITY), SCALABILITY[1].formula
    (16, 'P')
    >>> SCALABILITY.index("p")
    1
    """

    def __init__(self, variable: str, functions: Sequence[CandidateFunction]) -> None:
        self.variable = variable
        self.functions = tuple(functions)
        self._index = {function.name: position for position, function in enumerate(self.functions)}
        if len(self._index) != len(self.functions):
            raise ValueError(f"the functions of {variable} do not all have names of their own")

    def __len__(self) -> int:
        return len(self.functions)

    def __iter__(self) -> Iterator[CandidateFunction]:
        return iter(self.functions)

    def __getitem__(self, key: int | str) -> CandidateFunction:
        return self.functions[key if isinstance(key, int) else self.index(key)]

    def index(self, name: str) -> int:
        """Position of the function with this name; ValueError where there is none."""
        if name not in self._index:
            raise ValueError(f"no candidate function of {self.variable} is named {name!r}")
        return self._index[name]

    def values(self, x: ArrayLike) -> Floats:
        """Evaluate every function: x of shape (n,) to shape (len(self), n)."""
        points = np.asarray(x, dtype=np.float64)
        with np.errstate(over="ignore"):
            return np.stack([function.value(points) for function in self.functions])

    def reciprocals(self, x: ArrayLike) -> Floats:
        """Evaluate one over every function: x of shape (n,) to shape (len(self), n); infinite where not defined."""
        points = np.asarray(x, dtype=np.float64)
        with np.errstate(over="ignore"):
            return np.stack([function.reciprocal(points) for function in self.functions])


def guarded_reciprocal(values: Floats) -> Floats:
    """One over values where they are positive, infinity elsewhere; shape is kept.

    >>> guarded_reciprocal(np.array([4.0, 0.0, -1.0]))
    array([0.25,  inf,  inf])
    """
    positive = values > 0.0
    return np.where(positive, 1.0 / np.where(positive, values, 1.0), np.inf)
