"""The two terms of Eq. (1), as columns of a design matrix, and the combinations of functions that make them.

A combination is five positions in the family tables, in the order of :data:`FIELDS`. Arrays of combinations have shape
(k, 5); columns have their runs along the last axis. A single processor sends no messages: at P = 1 the communication
term is zero. A column that is not defined somewhere holds infinity there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from candidate_functions.bandwidth import BANDWIDTH
from candidate_functions.complexity import COMPLEXITY
from candidate_functions.family import Family, Floats
from candidate_functions.scalability import SCALABILITY

Combinations = NDArray[np.int16]

#: What the five positions of a combination choose.
FIELDS = ("comp", "comm", "bw", "pcomp", "pcomm")
#: The families they choose from, in the same order.
FAMILIES: tuple[Family, ...] = (COMPLEXITY, COMPLEXITY, BANDWIDTH, SCALABILITY, SCALABILITY)


@dataclass(frozen=True)
class Observations:
    """Measured runs as columns.

    Parameters
    ----------
    problem_size, processors, cpu, bw, time : arrays of shape (n,); N, P, the smallest average available CPU (fraction)
        and bandwidth (Mbit/s), and the execution time (s).

    Examples
    --------
    >>> runs = Observations.of([100, 200], [1, 2], [1.0, 0.5], [90.0, 80.0], [3.0, 7.0])
    >>> runs.where(runs.processors == 2).time
    array([7.])
    """

    problem_size: Floats
    processors: Floats
    cpu: Floats
    bw: Floats
    time: Floats

    @classmethod
    def of(
        cls, problem_size: ArrayLike, processors: ArrayLike, cpu: ArrayLike, bw: ArrayLike, time: ArrayLike
    ) -> Observations:
        """Make observations from anything array-like, all of shape (n,)."""
        columns = [np.asarray(column, dtype=np.float64) for column in (problem_size, processors, cpu, bw, time)]
        if len({column.shape for column in columns}) != 1 or columns[0].ndim != 1:
            raise ValueError(f"observations have shapes {[c.shape for c in columns]}, expected one and the same (n,)")
        return cls(*columns)

    def __len__(self) -> int:
        return len(self.time)

    def where(self, chosen: NDArray[np.bool_]) -> Observations:
        """Keep the runs that a mask of shape (n,) chooses."""
        return self.at(np.flatnonzero(chosen))

    def at(self, chosen: NDArray[np.intp]) -> Observations:
        """Keep the runs at these positions, shape (k,), in this order."""
        return Observations(
            self.problem_size[chosen], self.processors[chosen], self.cpu[chosen], self.bw[chosen], self.time[chosen]
        )


class TermTable:
    """Every family evaluated once at the given conditions, from which any term of Eq. (1) is a few products.

    Parameters
    ----------
    problem_size, processors, cpu, bw : arrays of shape (n,).

    Examples
    --------
    >>> table = TermTable(np.array([100.0]), np.array([2.0]), np.array([0.5]), np.array([50.0]))
    >>> first = np.array([[COMPLEXITY.index("n^1"), COMPLEXITY.index("n^1"), 1, 1, 1]], dtype=np.int16)
    >>> table.columns(first)[0]  # N / (cpu P) and N / (bw P)
    array([[100.],
           [  1.]])
    """

    def __init__(self, problem_size: Floats, processors: Floats, cpu: Floats, bw: Floats) -> None:
        self.complexity = COMPLEXITY.values(problem_size)
        self.inverse_scalability = SCALABILITY.reciprocals(processors)
        self.inverse_bandwidth = BANDWIDTH.reciprocals(bw)
        self.inverse_cpu = 1.0 / cpu
        self._sends = processors > 1.0

    @classmethod
    def at(cls, runs: Observations) -> TermTable:
        """Evaluate the families at the conditions of measured runs."""
        return cls(runs.problem_size, runs.processors, runs.cpu, runs.bw)

    def where(self, chosen: NDArray[np.bool_]) -> TermTable:
        """The same table for the runs that a mask of shape (n,) chooses."""
        part = object.__new__(TermTable)
        part.complexity = self.complexity[:, chosen]
        part.inverse_scalability = self.inverse_scalability[:, chosen]
        part.inverse_bandwidth = self.inverse_bandwidth[:, chosen]
        part.inverse_cpu = self.inverse_cpu[chosen]
        part._sends = self._sends[chosen]
        return part

    def computation(self, comp: NDArray[np.integer], pcomp: NDArray[np.integer]) -> Floats:
        """Columns f_comp(N) / (cpu f_Pcomp(P)): index arrays of one shape (...) to (..., n).

        Parameters
        ----------
        comp, pcomp : positions in COMPLEXITY and in SCALABILITY, arrays of one shape (...).
        """
        with np.errstate(over="ignore"):
            column: Floats = self.complexity[comp] * self.inverse_cpu * self.inverse_scalability[pcomp]
        return column

    def communication(self, comm: NDArray[np.integer], bw: NDArray[np.integer], pcomm: NDArray[np.integer]) -> Floats:
        """Columns f_comm(N) / (f_bw(bw) f_Pcomm(P)), 0 where P = 1: indices (...) to (..., n).

        Parameters
        ----------
        comm, bw, pcomm : positions in COMPLEXITY, BANDWIDTH and SCALABILITY, arrays of one shape (...).
        """
        # Where nothing is sent no factor may matter, not even an infinite one (infinity times 0 is not a number).
        with np.errstate(over="ignore", invalid="ignore"):
            column = self.complexity[comm] * self.inverse_bandwidth[bw] * self.inverse_scalability[pcomm]
        return np.where(self._sends, column, 0.0)

    def columns(self, combinations: Combinations) -> Floats:
        """Both columns of each combination: shape (k, 5) to shape (k, 2, n)."""
        comp, comm, bw, pcomp, pcomm = combinations.T
        return np.stack([self.computation(comp, pcomp), self.communication(comm, bw, pcomm)], axis=1)


def formula(combination: ArrayLike, coefficients: ArrayLike | None = None) -> str:
    """Write a combination the way Eq. (1) is written.

    Parameters
    ----------
    combination : the five positions, shape (5,).
    coefficients : a and b, shape (2,), or None to write the letters; a term whose coefficient is 0 is left out.

    Examples
    --------
    >>> formula([6, 11, 1, 1, 15], [0.5, 2.0])
    '0.5 (N)/(cpu · P) + 2 (N^1.75)/(bw · 1/(P log(P)))'
    """
    f = [family[int(position)].formula for family, position in zip(FAMILIES, np.asarray(combination), strict=True)]
    first, second = f"({f[0]})/(cpu · {f[3]})", f"({f[1]})/({f[2]} · {f[4]})"
    if coefficients is None:
        return f"a {first} + b {second}"
    terms = zip((float(c) for c in np.asarray(coefficients)), (first, second), strict=True)
    return " + ".join(f"{coefficient:.4g} {term}" for coefficient, term in terms if coefficient) or "0"


def names(combination: ArrayLike) -> tuple[str, ...]:
    """Names of the five functions, as a saved model refers to them.

    >>> names([6, 11, 1, 1, 15])
    ('n^1', 'n^7/4', 'bw', 'p', '1/p_log')
    """
    return tuple(family[int(position)].name for family, position in zip(FAMILIES, np.asarray(combination), strict=True))


def positions(function_names: tuple[str, ...] | list[str]) -> Combinations:
    """Positions of five named functions, shape (5,); the inverse of :func:`names`.

    Raises
    ------
    ValueError : a name is not in its family, or there are not five.

    Examples
    --------
    >>> positions(["n^1", "n^7/4", "bw", "p", "1/p_log"])
    array([ 6, 11,  1,  1, 15], dtype=int16)
    """
    if len(function_names) != len(FIELDS):
        raise ValueError(f"a combination has {len(function_names)} functions, expected {len(FIELDS)}")
    return np.array([family.index(name) for family, name in zip(FAMILIES, function_names, strict=True)], dtype=np.int16)


def evaluate(
    combination: ArrayLike, coefficients: ArrayLike, problem_size: Floats, processors: Floats, cpu: Floats, bw: Floats
) -> Floats:
    """Evaluate one model of Eq. (1) at many conditions.

    Parameters
    ----------
    combination, coefficients : the five positions and the two coefficients; a term whose coefficient is 0 is skipped.
    problem_size, processors, cpu, bw : arrays of one shape, or scalars.

    Returns
    -------
    array of that shape, seconds; infinite where the model is not defined.

    Examples
    --------
    >>> evaluate([6, 6, 1, 1, 1], [1.0, 2.0], *np.array([[100.0], [2.0], [0.5], [50.0]]))
    array([102.])
    """
    comp, comm, bandwidth, pcomp, pcomm = (int(position) for position in np.asarray(combination))
    a, b = (float(value) for value in np.asarray(coefficients))
    shape = np.broadcast(problem_size, processors, cpu, bw).shape
    problem_size = _once(problem_size)
    with np.errstate(over="ignore", invalid="ignore"):
        time: Floats = np.zeros(shape)
        if a:
            time = COMPLEXITY[comp].value(problem_size) / cpu
            time *= a
            time = time * SCALABILITY[pcomp].reciprocal(processors)
        if b:
            sent = COMPLEXITY[comm].value(problem_size) * BANDWIDTH[bandwidth].reciprocal(bw)
            sent *= b
            sent = sent * SCALABILITY[pcomm].reciprocal(processors)
            time = time + np.where(processors > 1.0, sent, 0.0)
    return time if time.shape == shape else np.broadcast_to(time, shape).copy()


def _once(values: ArrayLike) -> Floats:
    """One value in place of an array that repeats it in memory, as broadcasting makes them."""
    array = np.asarray(values, dtype=np.float64)
    repeats = array.size > 1 and not any(array.strides)
    return array[(slice(0, 1),) * array.ndim] if repeats else array
