"""The simplest model that few runs support, for before there are enough for a search.

Computation has as many free choices as the runs can decide: the growth with N only where there are three or more
problem sizes, the speed-up with P only where there are three or more processor counts. Communication has none: it is
taken not to grow with N. What the runs cannot tell is assumed and said.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from candidate_functions import BANDWIDTH, COMPLEXITY, SCALABILITY
from candidate_functions.least_squares import UnitColumns
from candidate_functions.terms import Combinations, Observations, TermTable
from metasched.arrays import Floats

#: Fewest runs, problem sizes and processor counts that the full search is let loose on.
FEWEST_RUNS, FEWEST_SIZES, FEWEST_COUNTS = 10, 4, 2


@dataclass(frozen=True)
class SimpleModel:
    """One combination whose computation was chosen for some runs; its communication does not depend on N.

    Parameters
    ----------
    combination : array of shape (1, 5).
    assumptions : what had to be assumed, each a clause for the user.
    """

    combination: Combinations
    assumptions: tuple[str, ...]


def supports_search(runs: Observations) -> bool:
    """Whether the runs are enough for the full search over both terms.

    >>> supports_search(Observations.of([100.0], [1], [1.0], [100.0], [2.0]))
    False
    """
    return (
        len(runs) >= FEWEST_RUNS
        and len(np.unique(runs.problem_size)) >= FEWEST_SIZES
        and len(np.unique(runs.processors)) >= FEWEST_COUNTS
    )


def simplest_model(runs: Observations) -> SimpleModel:
    """Choose the simplest model by relative least squares.

    >>> model = simplest_model(Observations.of([100.0], [1], [1.0], [100.0], [2.0]))
    >>> model.assumptions[0]
    'only 1 problem size was run: time is assumed to grow in proportion to N'
    """
    sizes, counts = len(np.unique(runs.problem_size)), len(np.unique(runs.processors))
    assumptions = []
    comp = np.arange(len(COMPLEXITY))
    pcomp = np.arange(len(SCALABILITY))
    if sizes < 3:
        comp = np.array([COMPLEXITY.index("n^1")])
        assumptions.append(f"only {_count(sizes, 'problem size')} run: time is assumed to grow in proportion to N")
    if counts < 3:
        pcomp = np.array([SCALABILITY.index("p")])
        assumptions.append(f"only {_count(counts, 'processor count')} run: time is assumed to fall in proportion to P")
    assumptions.append(
        f"{_count(len(runs), 'run')} too few to choose how communication grows: it is assumed not to, with N"
    )
    first, second = (grid.ravel() for grid in np.meshgrid(comp, pcomp, indexing="ij"))
    columns: Floats = TermTable.at(runs).computation(first, second) / runs.time
    explained = UnitColumns.of(columns, np.ones(len(runs)))
    best = int(np.argmax(np.where(explained.usable, explained.projection, -np.inf)))
    of_n, bandwidth = COMPLEXITY.index("1"), BANDWIDTH.index("bw")
    of_p = SCALABILITY.index("p^1/2")
    combination = np.array([[first[best], of_n, bandwidth, second[best], of_p]], dtype=np.int16)
    return SimpleModel(combination, tuple(assumptions))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun} was" if number == 1 else f"{number} {noun}s were"
