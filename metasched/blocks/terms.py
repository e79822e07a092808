"""Fitted blocks: sums of non-decreasing terms, piecewise linear in the data size where protocols switch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from metasched.arrays import Floats
from metasched.records import InputError

#: How a term grows with the number of nodes P. None falls from P = 2 on.
GROWTHS: dict[str, Callable[[Floats], Floats]] = {
    "1": lambda nodes: np.ones_like(nodes),
    "log2(P)": np.log2,
    "ceil(log2(P))": lambda nodes: np.ceil(np.log2(nodes) - 1e-9),
    "(P-1)/P": lambda nodes: (nodes - 1) / nodes,
    "P-1": lambda nodes: nodes - 1,
    "P log2(P)": lambda nodes: nodes * np.log2(nodes),
    "(P-1)^2": lambda nodes: (nodes - 1) ** 2,
}


@dataclass(frozen=True, slots=True)
class Term:
    """``coefficient * min(max(x - above, 0), below - above) * growth(P)``, where x is the data size or the threads.

    Without ``above`` and ``below`` the first factor is 1.

    Parameters
    ----------
    coefficient : at least 0, in the unit of the block, over that of x where the term has ends.
    uncertainty : of the coefficient, one standard deviation.
    growth : a key of :data:`GROWTHS`.
    above, below : ends of the stretch of x over which the term grows; below may be infinity.
    """

    coefficient: float
    uncertainty: float = 0.0
    growth: str = "1"
    above: float | None = None
    below: float = math.inf

    def __post_init__(self) -> None:
        if not 0 <= self.coefficient < math.inf:
            raise InputError(f"coefficient is {self.coefficient}, expected a finite number of at least 0")
        if self.growth not in GROWTHS:
            raise InputError(f"growth is {self.growth!r}, expected one of {', '.join(GROWTHS)}")
        if self.above is not None and not (0 <= self.above < self.below):
            raise InputError(f"above is {self.above} and below {self.below}, expected 0 <= above < below")


def stretch(x: Floats, above: float | None, below: float = math.inf) -> Floats:
    """The part of x between two ends, shape (n,); ones if there are no ends.

    Parameters
    ----------
    x : array of shape (n,), data sizes (bytes) or threads.
    above, below : the ends, in the unit of x; no ends where ``above`` is None.

    Examples
    --------
    >>> stretch(np.array([10.0, 3000.0, 9000.0]), 1024.0, 8192.0).tolist()
    [0.0, 1976.0, 7168.0]
    """
    if above is None:
        return np.ones_like(x)
    return np.minimum(np.maximum(x - above, 0.0), below - above)


def evaluate(terms: Sequence[Term], x: Floats, nodes: Floats) -> Floats:
    """The sum of terms.

    Parameters
    ----------
    terms : any number.
    x : array of shape (n,), data sizes (bytes) or threads.
    nodes : array of shape (n,), at least 1.

    Examples
    --------
    >>> evaluate([Term(2.0), Term(0.5, growth="log2(P)", above=0.0)], np.array([10.0]), np.array([4.0])).tolist()
    [12.0]
    """
    total = np.zeros(np.broadcast(x, nodes).shape)
    for term in terms:
        total = total + term.coefficient * stretch(x, term.above, term.below) * GROWTHS[term.growth](nodes)
    return total
