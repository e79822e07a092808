"""Instruction groups: the processes of a role with similar instruction counts, and their ranks at any process count.

Processes whose instructions are alike to 95 % form an instruction group (section 3.3). A group keeps its place as n
grows: a part of the ranks (as in Fig. 10), a part of the rows or columns of a grid, or every k-th of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from metasched.arrays import Floats, Ints
from metasched.records import InputError
from metasched.signature.equations.expressions import Env, Expression
from metasched.signature.equations.topologies import TOPOLOGIES, coordinates, dimensions_of

#: How much alike the instructions of a group are, and how steady its total has to be.
ALIKE = 0.95
#: Most groups of a role; longest cycle of ranks; largest divisor of a part of the ranks.
MOST_GROUPS, LONGEST_CYCLE, MOST_PARTS = 8, 32, 16
#: How many levels stand for instructions that follow no group, and where the next process is among them.
LEVELS, GOLDEN = 16, 0.6180339887498949


def grouped(amounts: Floats, alike: float = ALIKE) -> Ints:
    """The group of each process by its instructions, numbered from the one that has least.

    Parameters
    ----------
    amounts : array of shape (processes,), at least 0.
    alike : the least of a group, relative to its most.

    Examples
    --------
    >>> grouped(np.array([100.0, 52.0, 101.0, 50.0])).tolist()
    [1, 0, 1, 0]
    """
    order = np.argsort(amounts, kind="stable")
    groups = np.zeros(amounts.size, dtype=np.int64)
    number, least = 0, float(amounts[order[0]]) if amounts.size else 0.0
    for place in order.tolist():
        if least < alike * float(amounts[place]):
            number, least = number + 1, float(amounts[place])
        groups[place] = number
    return groups


@dataclass(frozen=True)
class Placement:
    """The instruction group of each process, at any number of processes.

    Parameters
    ----------
    kind : ``parts`` of the ranks or of a side, each with a group; ``cycle``, a group for each place modulo the number
        of them; ``spread``, if it is unknown which process has which level.
    topology, dimension : whose coordinate counts; that of ``line`` is the rank.
    groups : of each part, or of each place in the cycle.
    ends : of each part but the last, the first coordinate behind it, an expression in n and sides.
    """

    kind: str
    topology: str = "line"
    dimension: int = 0
    groups: tuple[int, ...] = (0,)
    ends: tuple[Expression, ...] = ()

    def __call__(self, env: Env, count: int) -> Ints:
        """The group of each of the ranks ``r``, an array of their shape."""
        ranks = env["r"].astype(np.int64)
        if self.kind == "spread":
            return np.asarray(np.mod((ranks + 1) * GOLDEN, 1.0) * len(self.groups), dtype=np.int64)
        sides = TOPOLOGIES[self.topology](count)
        at = coordinates(ranks, sides)[self.dimension]
        if self.kind == "cycle":
            return np.asarray(np.array(self.groups)[at % len(self.groups)])
        part = np.searchsorted(_begins(self.ends, sides[self.dimension]), at, side="right")
        return np.asarray(np.array(self.groups)[part])

    def __str__(self) -> str:
        whose = "rank" if self.topology == "line" else f"coordinate {self.dimension} of {self.topology}"
        if self.kind == "cycle":
            return f"by {whose} mod {len(self.groups)}"
        if self.kind == "parts":
            side = "n" if self.topology == "line" else "its side"
            return f"by {whose}, from " + ", ".join(str(end).replace("n", side) for end in self.ends)
        return "by no rule"

    def as_dict(self) -> dict[str, Any]:
        """The placement as a JSON document, which :meth:`of` reads."""
        return {
            "kind": self.kind,
            "topology": self.topology,
            "dimension": self.dimension,
            "groups": list(self.groups),
            "ends": [each.as_dict() for each in self.ends],
        }

    @classmethod
    def of(cls, document: Any, groups: int) -> Placement:
        """The placement of a document among some groups; InputError for what is none."""
        try:
            numbers = tuple(int(each) for each in document["groups"])
            ends = tuple(Expression.of(each) for each in document["ends"])
            found = cls(str(document["kind"]), str(document["topology"]), int(document["dimension"]), numbers, ends)
            known = found.kind in ("parts", "cycle", "spread") and found.topology in TOPOLOGIES
            wide = dimensions_of(found.topology) if known else 0
            sound = known and 0 <= found.dimension < wide and 0 < len(numbers) <= 64
            sound = sound and all(0 <= each < groups for each in numbers)
            sound = sound and len(ends) == (len(numbers) - 1 if found.kind == "parts" else 0)
            sound = sound and not any(end.modulus or {name for _, name in end.terms} - {"n"} for end in ends)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, InputError):
                raise
            sound = False
        if not sound:
            raise InputError(f"placement {str(document)[:60]!r} is not valid")
        return found


@lru_cache(maxsize=4_096)
def _begins(ends: tuple[Expression, ...], extent: int) -> Floats:
    """The first coordinate of each part but the first, ascending."""
    named = {"n": np.full(1, float(extent))}
    return np.sort(np.array([end(named)[0] for end in ends]))


def placed(groups: Mapping[int, Ints], ranks: Mapping[int, Ints], topologies: Sequence[str]) -> Placement | None:
    """The placement of a role's groups for any number of processes; None if none fits.

    Parameters
    ----------
    groups, ranks : at each number of processes, the group of each process of the role, and its rank.
    topologies : grids whose coordinates may tell.

    Examples
    --------
    >>> half = {n: np.arange(n) // (n // 2) for n in (4, 8, 16)}
    >>> print(placed(half, {n: np.arange(n) for n in half}, ["line"]))
    by rank, from 0.5 n
    """
    for topology in topologies:
        sides = {n: TOPOLOGIES[topology](n) for n in groups}
        for dimension in range(len(next(iter(sides.values())))):
            at = {n: coordinates(ranks[n], sides[n])[dimension] for n in groups}
            one = {n: _by_place(at[n], groups[n]) for n in groups}
            known = {n: each for n, each in one.items() if each is not None}
            if len(known) < len(groups):
                continue
            extent = {n: sides[n][dimension] for n in groups}
            for search in (_parts, _cycle):
                if (found := search(known, extent)) is not None:
                    numbers, ends = found
                    return Placement("parts" if ends else "cycle", topology, dimension, numbers, ends)
    return None


#: Coordinates, ascending, and the group that each has.
Places = tuple[Ints, Ints]
Found = tuple[tuple[int, ...], tuple[Expression, ...]]


def _by_place(at: Ints, groups: Ints) -> Places | None:
    """The group of each coordinate; None where processes of one coordinate have several."""
    places, first, which = np.unique(at, return_index=True, return_inverse=True)
    return (places, groups[first]) if np.array_equal(groups[first][which.reshape(-1)], groups) else None


def _parts(known: Mapping[int, Places], extent: Mapping[int, int]) -> Found | None:
    parts = {}
    for n, (places, groups) in known.items():
        begins = np.flatnonzero(np.diff(groups)) + 1
        if begins.size >= 2 * MOST_GROUPS:
            return None
        # Of each part its group, and between which coordinates it ends.
        parts[n] = (
            tuple(groups[[0, *begins.tolist()]].tolist()),
            [(int(places[each - 1]) + 1, int(places[each])) for each in begins.tolist()],
        )
    numbers = {of for of, _ in parts.values()}
    if len(numbers) != 1:
        return None
    ends = []
    for place in range(len(next(iter(numbers))) - 1):
        end = _end({extent[n]: bounds[place] for n, (_, bounds) in parts.items()})
        if end is None:
            return None
        ends.append(end)
    return (next(iter(numbers)), tuple(ends)) if ends else None


#: Ends that divide an extent.
SHARES = [
    Expression(constant, ((float(share), "n"),))
    for share in dict.fromkeys(Fraction(p, q) for q in range(2, MOST_PARTS + 1) for p in range(1, q))
    for constant in (0.0, 0.5, 1.0 - 1.0 / share.denominator)
]


def _end(bounds: Mapping[int, tuple[int, int]]) -> Expression | None:
    """A place that stays, from either end, or divides the extent; between the bounds at every extent."""

    def holds(end: Expression) -> bool:
        return all(
            low <= float(end({"n": np.full(1, float(extent))})[0]) <= high for extent, (low, high) in bounds.items()
        )

    first, (low, high) = next(iter(bounds.items()))
    near = range(low, min(high, low + MOST_PARTS) + 1)
    candidates = [Expression(float(each)) for each in near]
    candidates += SHARES
    candidates += [
        Expression(float(each - first), ((1.0, "n"),)) for each in range(low, min(high, low + MOST_PARTS) + 1)
    ]
    return next(filter(holds, candidates), None)


def _cycle(known: Mapping[int, Places], extent: Mapping[int, int]) -> Found | None:
    """A group for each coordinate modulo a length that every run goes round at least twice."""
    for length in range(2, min(LONGEST_CYCLE, min(extent.values()) // 2) + 1):
        pattern = np.full(length, -1)
        for places, groups in known.values():
            pattern[places % length] = groups
        if np.all(pattern >= 0) and all(np.array_equal(pattern[p % length], g) for p, g in known.values()):
            return tuple(pattern.tolist()), ()
    return None


def profiled(
    amounts: Mapping[int, Floats], ranks: Mapping[int, Ints], topologies: Sequence[str], alike: float
) -> tuple[Placement, Floats] | None:
    """Amounts that grow or fall along the ranks or a side, by ``LEVELS`` parts of it; None where they do not.

    Parameters
    ----------
    amounts, ranks : at each number of processes, of each process of the role.
    topologies : grids whose coordinates may tell.
    alike : how much each process is alike to its part.

    Returns
    -------
    The parts, and the amount of each relative to the mean, an array of shape (``LEVELS``,).
    """
    relative = np.concatenate([each / max(float(each.mean()), 1e-300) for each in amounts.values()])
    named = tuple((n, ranks[n].astype(np.int64).tobytes()) for n in amounts)
    where, parts = _leveled(tuple(topologies), named)
    if not where:
        return None
    # Of all grids at once: most fail, and each action of a program asks for all of them.
    numbered = (parts + LEVELS * np.arange(len(where))[:, None]).ravel()
    weights = np.broadcast_to(relative, parts.shape).ravel()
    factors = (np.bincount(numbered, weights) / np.bincount(numbered)).reshape(len(where), LEVELS)
    own = np.take_along_axis(factors, parts, axis=1)
    good = np.flatnonzero(np.all(np.minimum(relative, own) >= alike * np.maximum(relative, own), axis=1))
    return (where[good[0]], factors[good[0]]) if good.size else None


@lru_cache(maxsize=64)
def _leveled(topologies: tuple[str, ...], ranks: tuple[tuple[int, bytes], ...]) -> tuple[list[Placement], Ints]:
    """Sides in as many parts as there are levels, and the part of each rank, one row a side; where all have ranks.

    The roles of one program are asked for the same ranks again and again.
    """
    ends = tuple(Expression(0.0, ((each / LEVELS, "n"),)) for each in range(1, LEVELS))
    found: list[tuple[Placement, Ints]] = []
    for topology in topologies:
        for dimension in range(len(TOPOLOGIES[topology](ranks[0][0]))):
            where = Placement("parts", topology, dimension, (*range(LEVELS),), ends)
            parts = np.concatenate([where({"r": np.frombuffer(each, dtype=np.int64)}, n) for n, each in ranks])
            if np.bincount(parts, minlength=LEVELS).all():
                found.append((where, parts))
    return [where for where, _ in found], np.array([parts for _, parts in found], dtype=np.int64)


def levels(amounts: Sequence[Floats]) -> Floats:
    """Amounts of processes that follow no group, relative to their mean: their quantiles, an array of ``LEVELS``."""
    relative = np.concatenate([each / max(float(each.mean()), 1e-300) for each in amounts])
    found = np.quantile(relative, (np.arange(LEVELS) + 0.5) / LEVELS)
    return np.asarray(found / max(float(found.mean()), 1e-300))
