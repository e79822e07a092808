"""Roles of processes: border and inner ones, the first and the last, odd and even.

A role is a cell of features of the rank. The features are chosen so that at every count all processes of a cell make
the same calls in the same order; a larger run then has the same cells, with more processes in the inner ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial

import numpy as np

from metasched.arrays import Ints
from metasched.records import InputError
from metasched.signature.equations.expressions import IN_TREES
from metasched.signature.equations.folds import beyond_power
from metasched.signature.equations.topologies import TOPOLOGIES, coordinates, dimensions_of

#: The features of a rank: whole numbers that are the same in one cell.
Cell = tuple[int, ...]


def _borders(ranks: Ints, sides: tuple[int, ...]) -> list[Ints]:
    """Of each dimension 0 at its begin, 2 at its end, 1 between, 3 where it is one wide."""
    found = []
    for at, side in zip(coordinates(ranks, sides), sides, strict=True):
        found.append(np.where(at == 0, 0, 1) + np.where(at == side - 1, np.where(at == 0, 3, 1), 0))
    return found


def _begins(ranks: Ints, sides: tuple[int, ...]) -> list[Ints]:
    return [(at == 0).astype(np.int64) for at in coordinates(ranks, sides)]


def _ends(ranks: Ints, sides: tuple[int, ...]) -> list[Ints]:
    return [(at == side - 1).astype(np.int64) for at, side in zip(coordinates(ranks, sides), sides, strict=True)]


def _parity(ranks: Ints, sides: tuple[int, ...]) -> list[Ints]:
    return [at % 2 for at in coordinates(ranks, sides)]


def _colours(ranks: Ints, sides: tuple[int, ...]) -> list[Ints]:
    return [sum(coordinates(ranks, sides), np.zeros_like(ranks)) % 2]


def _diagonal(ranks: Ints, sides: tuple[int, ...]) -> list[Ints]:
    at = coordinates(ranks, sides)
    return [np.sign(at[0] - at[1])] if len(at) > 1 else [np.zeros_like(ranks)]


def _power(ranks: Ints, sides: tuple[int, ...]) -> list[Ints]:
    return [(ranks < 1 << (int(np.prod(sides)).bit_length() - 1)).astype(np.int64)]


def _folded(ranks: Ints, sides: tuple[int, ...]) -> list[Ints]:
    """Of processes beyond the largest power of two, 0; of as many first ones, 2; of those between 1."""
    count = int(np.prod(sides))
    left = beyond_power(count)
    return [np.where(ranks >= count - left, 0, np.where(ranks < left, 2, 1)).astype(np.int64)]


def _paired(ranks: Ints, sides: tuple[int, ...]) -> list[Ints]:
    """Of pairs that leave a power of two of processes, 0 for the first and 1 for the other; 2 for all after them."""
    left = beyond_power(int(np.prod(sides)))
    return [np.where(ranks < 2 * left, ranks % 2, 2).astype(np.int64)]


def _in_tree(name: str, ranks: Ints, sides: tuple[int, ...]) -> list[Ints]:
    return [IN_TREES[name](ranks.astype(np.float64), np.full(1, float(np.prod(sides)))).astype(np.int64)]


#: Features that number the children of processes in binomial trees: larger runs have more cells.
TREES = ("under", "over")
FEATURES: dict[str, Callable[[Ints, tuple[int, ...]], list[Ints]]] = {
    "begins": _begins,
    "ends": _ends,
    "borders": _borders,
    "parity": _parity,
    "colours": _colours,
    "diagonal": _diagonal,
    "power": _power,
    "folded": _folded,
    "paired": _paired,
    **{name: partial(_in_tree, name) for name in TREES},
}


def cells(features: str, topology: str, count: int) -> list[Cell]:
    """The cell of each rank.

    Parameters
    ----------
    features : names of :data:`FEATURES` joined by ``+``; empty where all processes have one role.
    topology : the grid that they speak of.
    count : number of processes.

    Raises
    ------
    InputError
        When the grid is none at this count.

    Examples
    --------
    >>> cells("borders", "line", 4)
    [(0,), (1,), (1,), (2,)]
    """
    sides = TOPOLOGIES[topology](count)
    if not sides:
        raise InputError(f"{topology} is no grid of {count} processes")
    ranks = np.arange(count)
    columns = [each for name in features.split("+") if name for each in FEATURES[name](ranks, sides)]
    # A side of one process is at its begin and at its end.
    return [*zip(*(each.tolist() for each in columns), strict=True)] if columns else [()] * count


@lru_cache(maxsize=4_096)
def different_cells(features: str, topology: str, count: int) -> frozenset[Cell]:
    """The cells that :func:`cells` gives, each once."""
    return frozenset(cells(features, topology, count))


#: Features that are tried, simplest first; on a line, then on each grid.
TRIED = ("", "begins", "ends", "borders", "parity", "colours", "diagonal", "borders+parity", "borders+colours")
TRIED_LAST = ("power", "borders+diagonal", "parity+diagonal")
#: Those that only a grid has, and those of all processes, whatever the grid.
OF_GRIDS, OF_LINES = ("colours", "borders+colours", "diagonal"), ("folded", "paired")


def candidates(topologies: Sequence[str]) -> list[tuple[str, str]]:
    """Features and topology, in the order in which they are tried."""
    found = [("", "line")]
    for tried in (TRIED[1:], TRIED_LAST):
        # Sides of the same length in all runs are no sides of three that happen to be as long.
        for topology in sorted(topologies, key=dimensions_of):
            line = topology == "line"
            found += [(features, topology) for features in tried if not (line and features in OF_GRIDS)]
            # Roles that few programs have by chance, before those of grids.
            found += [(features, topology) for features in OF_LINES if line and tried is not TRIED_LAST]
    return found
