"""Process grids, as functions of the number of processes.

A topology says how long the sides are at n processes; the last coordinate runs fastest over the ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import permutations
from math import isqrt, prod

from metasched.arrays import Ints


def _factors(n: int) -> list[int]:
    found, factor = [], 2
    while factor * factor <= n:
        while n % factor == 0:
            found.append(factor)
            n //= factor
        factor += 1
    return found + [n] * (n > 1)


@cache
def balanced(n: int, dimensions: int) -> tuple[int, ...]:
    """Sides as MPI_Dims_create chooses them, longest first: as near to each other as they can be.

    >>> balanced(12, 2), balanced(256, 3), balanced(1024, 3)
    ((4, 3), (8, 8, 4), (16, 8, 8))
    """
    if dimensions == 1:
        return (n,)
    best: tuple[int, ...] = (n,) + (1,) * (dimensions - 1)
    for side in range(1, n + 1):
        if side**dimensions > n:
            break
        if n % side == 0:
            sides = (*balanced(n // side, dimensions - 1), side)
            if max(sides) - min(sides) <= max(best) - min(best):
                best = tuple(sorted(sides, reverse=True))
    return best


def _factors_of_simgrid(n: int) -> list[int]:
    """Those of SimGrid's MPI_Dims_create, which leaves the square of an odd prime whole: 36 is 2 x 2 x 9."""
    found, factor = [], 3
    while n % 2 == 0:
        found.append(2)
        n //= 2
    while factor * factor < n:
        while n % factor == 0:
            found.append(factor)
            n //= factor
        factor += 2
    return sorted(found + [n] * (n > 1))


def greedy(n: int, dimensions: int, factors: Callable[[int], list[int]] = _factors) -> tuple[int, ...]:
    """Sides as older libraries choose them: the largest factor first, each to the side that is shortest.

    >>> greedy(36, 2), greedy(36, 3)
    ((6, 6), (4, 3, 3))
    """
    sides = [1] * dimensions
    for factor in reversed(factors(n)):
        sides[sides.index(min(sides))] *= factor
    return tuple(sorted(sides, reverse=True))


def as_simgrid(n: int, dimensions: int) -> tuple[int, ...]:
    """Sides as SimGrid's MPI_Dims_create chooses them.

    >>> as_simgrid(36, 2), as_simgrid(75, 2), as_simgrid(128, 3)
    ((9, 4), (25, 3), (8, 4, 4))
    """
    return greedy(n, dimensions, _factors_of_simgrid)


def _equal_sides(n: int) -> tuple[int, ...]:
    """Two equal sides, as long as they can be, and what is left."""
    side = max(side for side in range(1, isqrt(n) + 1) if n % (side * side) == 0)
    return side, side, n // (side * side)


def _with(fixed: int, place: int, dimensions: int) -> Callable[[int], tuple[int, ...]]:
    def sides(n: int) -> tuple[int, ...]:
        if n % fixed:
            return ()
        rest = balanced(n // fixed, dimensions - 1)
        return (*rest[:place], fixed, *rest[place:])

    return sides


def _turned(sides: Callable[[int], tuple[int, ...]], order: tuple[int, ...]) -> Callable[[int], tuple[int, ...]]:
    def turned(n: int) -> tuple[int, ...]:
        found = sides(n)
        return tuple(found[each] for each in order) if found else ()

    return turned


def _orders(dimensions: int) -> list[tuple[int, ...]]:
    """Orders of sides, the longest first or last before others: of those that runs do not tell apart, one is taken."""
    down = tuple(range(dimensions))
    up = down[::-1]
    return [down, up, *(each for each in permutations(down) if each not in (down, up) and dimensions < 4)]


def _made() -> dict[str, Callable[[int], tuple[int, ...]]]:
    made: dict[str, Callable[[int], tuple[int, ...]]] = {"line": lambda n: (n,)}
    for dimensions in (2, 3, 4):
        for order in _orders(dimensions):
            places = "".join(map(str, order))
            made[f"grid {places}"] = _turned(lambda n, d=dimensions: balanced(n, d), order)  # type: ignore[misc]
            if dimensions < 4:
                made[f"greedy {places}"] = _turned(lambda n, d=dimensions: greedy(n, d), order)  # type: ignore[misc]
                made[f"simgrid {places}"] = _turned(lambda n, d=dimensions: as_simgrid(n, d), order)  # type: ignore[misc]
    made["equal sides 012"] = _equal_sides
    made["equal sides 201"] = _turned(_equal_sides, (2, 0, 1))
    for fixed in (2, 3, 4, 5, 6, 8, 10, 12, 16):
        made[f"{fixed} rows"] = _with(fixed, 0, 2)
        made[f"{fixed} columns"] = _with(fixed, 1, 2)
    for fixed in (2, 4):
        for place in range(3):
            made[f"{fixed} at {place} of 3"] = _with(fixed, place, 3)
    return made


#: Sides at n processes by the name of the topology, simplest first; no sides where n does not allow it.
TOPOLOGIES: Mapping[str, Callable[[int], tuple[int, ...]]] = _made()


#: A number of processes that every topology allows.
_EVERYWHERE = 240


@cache
def dimensions_of(topology: str) -> int:
    """How many sides a topology has.

    >>> dimensions_of("line"), dimensions_of("3 rows"), dimensions_of("grid 0123")
    (1, 2, 4)
    """
    return len(TOPOLOGIES[topology](_EVERYWHERE))


def coordinates(ranks: Ints, sides: tuple[int, ...]) -> list[Ints]:
    """The coordinates of ranks, one array a dimension.

    >>> import numpy as np
    >>> [each.tolist() for each in coordinates(np.arange(6), (2, 3))]
    [[0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2]]
    """
    found, left = [], ranks
    for side in reversed(sides):
        left, at = divmod(left, side)
        found.append(at)
    return found[::-1]


def different(counts: list[int]) -> list[str]:
    """Topologies that are possible at all counts, without those that are the same as a simpler one at each."""
    seen: set[tuple[tuple[int, ...], ...]] = set()
    names = []
    for name, sides in TOPOLOGIES.items():
        all_sides = tuple(sides(n) for n in counts)
        if all(prod(each) == n and each for each, n in zip(all_sides, counts, strict=True)) and all_sides not in seen:
            seen.add(all_sides)
            names.append(name)
    return names


def asks_for_squares(counts: Sequence[int], grids: Iterable[str] = ()) -> bool:
    """Whether a program was run on squares that are not all powers of two: who does so has one that asks for squares.

    Parameters
    ----------
    counts : of processes, that it was run on.
    grids : topologies that it has; one of two unequal sides at a square shows that it takes any number of processes.

    Examples
    --------
    >>> asks_for_squares([16, 36, 64]), asks_for_squares([4, 16, 64])
    (True, False)
    >>> asks_for_squares([16, 36, 64], ["simgrid 01"])
    False
    """
    if not (all(isqrt(n) ** 2 == n for n in counts) and any(n & (n - 1) for n in counts)):
        return False
    sides = [TOPOLOGIES[name](n) for name in grids for n in counts]
    return all(each[0] == each[1] for each in sides if len(each) == 2)
