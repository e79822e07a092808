"""Whole numbers as expressions in the number of processes, coordinates in a grid, and the steps of loops.

An expression is ``constant + sum of coefficient * atom``, perhaps modulo a side; an atom is a product of factors.
Expressions are found by trying atoms, simplest first, and hold exactly at every row that they were found on.

Names: ``n`` processes, ``r`` the rank, ``P0``, ``P1``, ... sides of the grid, ``x0``, ``x1``, ... coordinates in it,
``i0``, ``i1``, ... steps of the loops around an action from the outermost, ``c0``, ... how many those are, ``j`` a
place in a list and ``m`` how long it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import combinations, combinations_with_replacement, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metasched.records import InputError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
#: Arrays by name, all of one shape, or of shapes that broadcast.
Env = Mapping[str, Floats]

_VARIABLE = r"(?:n|r|m|j|P\d|x\d|i\d{1,2}|c\d{1,2})"
_FACTOR = re.compile(
    rf"(?:1/)?(?:{_VARIABLE}|2\^{_VARIABLE}|(?:sqrt|cbrt|log2|tz|two|wide|many)\({_VARIABLE}\)|(?:floor|block|spread|ceil|most)\d:\d{{1,15}})"
)
#: Most terms of an expression, and most factors of an atom.
MOST_TERMS, MOST_FACTORS = 4, 4
#: The dimension that a list lies along.
LISTED = 9
#: Ways to share out, the most usual first: the first ones get one more; by rounded ends; all but the last as many; room
#: for as many as any has; what is left over dropped.
SHARES = ("block", "spread", "ceil", "most", "floor")
#: What sides of a grid may be asked: whether they are two processes long, longer, or longer than one.
GUARDS: Mapping[str, Callable[[Floats], NDArray[np.bool_]]] = {
    "two": lambda side: side == 2,
    "wide": lambda side: side > 2,
    "many": lambda side: side > 1,
}
#: Longest side of something that is dealt out along two or three dimensions.
MOST_SHARED = 2_049
#: How many of the simplest atoms are tried in pairs.
MOST_PAIRED = 26
#: How many of them are tried in sums modulo a side, and on how many rows before on all.
MOST_SUMMED, TRIED_FIRST = 12, 16
#: How far from a whole number a value may be, relative to its size.
ROUNDING = 1e-9
#: What arithmetic in floating point may lose of a whole number, and of each of its size.
CARRIED, CARRIED_OF = 1e-6, 1e-11
#: Largest multiple of a product of shares, as of the numbers in each cell of a grid.
MOST_IN_CELL = 16


def _block(kind: str, size: Floats | float, side: Floats, at: Floats) -> Floats:
    """How much of ``size`` the process at a coordinate has, by the ways in which programs share out."""
    whole = np.floor(size / side)
    if kind == "floor":
        return whole
    if kind == "block":
        return whole + (at < size - whole * side)
    if kind == "spread":
        return np.floor((at + 1) * size / side) - np.floor(at * size / side)
    most = np.ceil(size / side)
    if kind == "most":
        return most + 0 * at
    return np.clip(size - at * most, 0, most)


def _trailing_zeros(ranks: Floats) -> Floats:
    whole = np.asarray(ranks, dtype=np.int64)
    return np.where(whole > 0, np.log2(np.maximum(whole & -whole, 1)), 0.0)


def _factor(name: str, env: Env) -> Floats:
    if name.startswith("1/"):
        below = _factor(name[2:], env)
        return np.divide(1.0, below, out=np.zeros_like(below, dtype=np.float64), where=below != 0)
    if name in env:
        return env[name]
    if name.startswith("2^"):
        return np.asarray(2.0 ** np.minimum(env[name[2:]], 60.0))
    if ":" in name:
        kind, size = name.split(":")
        return _block(kind[:-1], float(size), env[f"P{kind[-1]}"], env[f"x{kind[-1]}"])
    function, _, inner = name.rstrip(")").partition("(")
    value = env[inner]
    if function in GUARDS:
        return GUARDS[function](value).astype(np.float64)
    if function == "sqrt":
        return np.sqrt(value)
    if function == "cbrt":
        return np.cbrt(value)
    if function == "log2":
        return np.log2(np.maximum(value, 1.0))
    return _trailing_zeros(value)


def atom_value(atom: str, env: Env) -> Floats:
    """An atom's value, of the shape that its factors broadcast to; KeyError where a name is not there.

    Examples
    --------
    >>> atom_value("P0*1/2^i0", {"P0": np.array([8.0]), "i0": np.array([1.0])}).tolist()
    [4.0]
    """
    value = np.ones(1)
    for name in atom.split("*"):
        value = value * _factor(name, env)
    return value


@dataclass(frozen=True, slots=True)
class Expression:
    """``constant + sum of coefficient * atom``, modulo ``modulus`` where there is one.

    Examples
    --------
    >>> str(Expression(1.0, ((2.0, "P0"),))), Expression(1.0, ((2.0, "P0"),))({"P0": np.array([4.0])}).tolist()
    ('2 P0 + 1', [9.0])
    """

    constant: float = 0.0
    terms: tuple[tuple[float, str], ...] = ()
    modulus: str = ""

    def raw(self, env: Env) -> Floats:
        """The value before it is rounded."""
        value = np.full(1, self.constant)
        for coefficient, atom in self.terms:
            value = value + coefficient * atom_value(atom, env)
        return value

    def __call__(self, env: Env) -> Floats:
        """The value rounded down to an integer, as programs drop the remainder of a division."""
        raw = self.raw(env)
        value = np.trunc(raw + np.copysign(CARRIED + CARRIED_OF * np.abs(raw), raw))
        return np.mod(value, env[self.modulus]) if self.modulus else value

    def __str__(self) -> str:
        parts = [f"{coefficient:g} {atom}" if coefficient != 1 else atom for coefficient, atom in self.terms]
        if self.constant or not parts:
            parts.append(f"{self.constant:g}")
        text = " + ".join(parts).replace("+ -", "- ")
        return f"({text}) mod {self.modulus}" if self.modulus else text

    def of_shares(self, env: Env, squares: bool) -> Expression:
        """The same where all divisions come out even, as a product of a length's shares along several sides.

        What is divided by sides is a face or a block whose lengths are divided each by itself: where it does not come
        out even, the product of whole shares is less than the share of the product.

        Parameters
        ----------
        env : the names at the rows where the expression holds.
        squares : whether ``n`` is known to be the product of two equal sides, not only a number of processes.

        Returns
        -------
        The product, or the expression itself where it is none.

        Examples
        --------
        >>> sides = {"P0": np.array([4.0, 6.0]), "P1": np.array([4.0, 6.0])}
        >>> str(Expression(0.0, ((518400.0, "1/n"),)).of_shares(sides, squares=True))
        'floor0:720*floor1:720'
        """
        if self.constant or self.modulus or len(self.terms) != 1:
            return self
        coefficient, atom = self.terms[0]
        sides = ["P0", "P1"] if squares and atom == "1/n" and "P1" in env else [
            each.removeprefix("1/") for each in atom.split("*") if re.fullmatch(r"1/P\d", each)
        ]  # fmt: skip
        if len(set(sides)) < 2 or (atom != "1/n" and len(sides) < len(atom.split("*"))):
            return self
        for multiple in range(1, MOST_IN_CELL + 1):
            length = round((coefficient / multiple) ** (1.0 / len(sides))) if coefficient > 0 else 0
            if length and length ** len(sides) * multiple == coefficient:
                if any(np.any(np.mod(length, env[side])) for side in sides):
                    continue
                return Expression(0.0, ((float(multiple), "*".join(f"floor{side[1]}:{length}" for side in sides)),))
        return self

    def as_dict(self) -> dict[str, Any]:
        """The expression as a JSON document: its terms, constant and modulus."""
        return {"constant": self.constant, "terms": [list(term) for term in self.terms], "modulus": self.modulus}

    @classmethod
    def of(cls, document: Any) -> Expression:
        """The expression of a document; InputError for what is none."""
        try:
            terms = tuple((float(coefficient), str(atom)) for coefficient, atom in document["terms"])
            constant, modulus = float(document["constant"]), str(document["modulus"])
        except (KeyError, TypeError, ValueError):
            raise InputError(f"expression {str(document)[:60]!r} is not valid") from None
        sound = (
            all(abs(each) < 1e18 for each in (constant, *(c for c, _ in terms)))
            and len(terms) <= MOST_TERMS
            and all(
                len(atom) < 200
                and len(atom.split("*")) <= MOST_FACTORS
                and all(_FACTOR.fullmatch(factor) for factor in atom.split("*"))
                for _, atom in terms
            )
            and (not modulus or re.fullmatch(_VARIABLE, modulus))
        )
        if not sound:
            raise InputError(f"expression {str(document)[:60]!r} is not valid")
        return cls(constant, terms, modulus)


@cache
def atoms(dimensions: int, loops: int, lists: bool, ranks: bool) -> tuple[str, ...]:
    """What may stand in an expression, simplest first.

    Parameters
    ----------
    dimensions : of the grid.
    loops : around the action.
    lists : whether the value stands in a list.
    ranks : whether it may depend on the rank.
    """
    sides = [f"P{each}" for each in range(dimensions)] if dimensions > 1 else []
    places = [f"x{each}" for each in range(dimensions)] if dimensions > 1 and ranks else []
    steps = [f"i{each}" for each in reversed(range(loops))]
    # In three dimensions a face is what messages hold; with one side the same in all runs it looks like a share of all.
    faces = [f"1/{one}*1/{other}" for one, other in combinations(sides, 2)] if dimensions > 2 else []
    found = [*steps, *(["j"] if lists else []), "n", *faces, "1/n", *sides, *(f"1/{each}" for each in sides), "sqrt(n)"]
    found += ["1/sqrt(n)", "log2(n)", *(f"log2({each})" for each in sides)]
    found += [f"1/{one}*1/{other}" for one, other in combinations(sides, 2)]
    found += [f"{one}*{other}" for one, other in combinations(sides, 2)]
    # What a process exchanges with all others of its row or column is its own part, cut once more.
    found += [f"1/n*1/{each}" for each in sides]
    found += ["1/n*1/n", "cbrt(n)", "1/cbrt(n)*1/cbrt(n)", "n*n", "n*log2(n)", "1/n*1/sqrt(n)", "m", "1/m"]
    if ranks:
        found += ["r", *places, "tz(r)"]
    sizes = ["n", *sides]
    for step in [*steps, *(["j"] if lists else [])]:
        found += [f"2^{step}", f"1/2^{step}", *(f"{size}*1/2^{step}" for size in sizes)]
        found += [f"{size}*{step}" for size in sizes] + [f"{step}*1/{size}" for size in sizes]
        found += [f"1/n*2^{step}", f"1/n*1/2^{step}"]
    found += [f"c{each}" for each in range(loops)]
    found += [f"i{each}*1/c{each}*{size}" for each in range(loops) for size in sizes]
    found += [f"{one}*{other}" for one, other in combinations(steps, 2)]
    if ranks:
        found += [f"{place}*{size}" for place in ["r", *places] for size in sizes]
        found += [f"{place}*{step}" for place in ["r", *places] for step in steps]
    return tuple(found)


def _exact(made: Floats, values: Floats, tolerance: float) -> bool:
    """Whether all values are reproduced: integers exactly, others up to a relative tolerance."""
    if tolerance:
        return bool(np.all(np.abs(made - values) <= tolerance * np.abs(values) + 1e-12))
    return bool(np.all(np.abs(made - values) <= ROUNDING * np.maximum(np.abs(values), 1.0) + 1e-7))


def _level(values: Floats, tolerance: float) -> bool:
    """Whether all values are the middle one."""
    low, high = float(values.min()), float(values.max())
    # A middle that is near to both is no farther from one than half their distance.
    near = tolerance or ROUNDING
    if high - low > 2.0 * (near * max(abs(low), abs(high), 1.0) + 1e-7):
        return False
    return low == high or _exact(np.full(1, float(np.median(values))), values, tolerance)


def _congruent(
    matrix: Floats, lines: Sequence[tuple[float, float]], values: Floats, side: Floats
) -> tuple[int, float, float] | None:
    """The first row of a matrix that equals the values modulo a side on the first line on which any does.

    Parameters
    ----------
    lines : constants and slopes, in the order in which they are believed.

    Returns
    -------
    The row, the constant and the slope; None where no row does.
    """
    constants, slopes = np.array(lines).reshape(-1, 2).T
    line, row = (each.ravel() for each in np.indices((len(lines), len(matrix))))
    # Most rows fail on a few columns already.
    for some in (slice(None, None, max(values.size // TRIED_FIRST, 1)), slice(None)):
        made = np.round(constants[line, None] + slopes[line, None] * matrix[:, some][row])
        left = np.all(np.mod(made - values[some], side[some]) == 0, axis=1)
        line, row = line[left], row[left]
        if not row.size:
            return None
    return int(row[0]), float(constants[line[0]]), float(slopes[line[0]])


class Rows:
    """Rows that an expression must hold on: values of names, and which atoms may be tried.

    Parameters
    ----------
    env : arrays of shape (rows,).
    names : atoms, simplest first; those whose names are not in ``env`` are left out.
    """

    def __init__(self, env: Env, names: Iterable[str]) -> None:
        self.env = env
        self.size = next(iter(env.values())).size
        kept: list[str] = []
        columns: list[Floats] = []
        factors = dict(env)
        for name in names:
            try:
                column = np.ones(self.size)
                for factor in name.split("*"):
                    if factor not in factors:
                        factors[factor] = _factor(factor, env)
                    column *= factors[factor]
            except KeyError:
                continue
            if column.size and column.min() < column.max():
                kept.append(name)
                columns.append(column)
        #: Shares that were looked for, by their values.
        self.known: dict[tuple[object, ...], Expression | None] = {}
        self.names = kept
        self.matrix = np.stack(columns) if columns else np.zeros((0, self.size))

    @cached_property
    def _places(self) -> tuple[Rows, Ints, Ints]:
        """One row for each place in the grids, the first row that is there, and the place of each row."""
        env = {name: each for name, each in self.env.items() if name[0] in "nPx"}
        places, first, which = np.unique(np.stack([*env.values()]), axis=1, return_index=True, return_inverse=True)
        return _without_atoms((*env,), places.tobytes()), first, which.reshape(-1)

    def by_place(self, values: Floats, tolerance: float = 0.0) -> tuple[Rows, Floats] | None:
        """One row for each place in the grids, and its value; None where a place has several values."""
        rows, first, which = self._places
        return (rows, values[first]) if _exact(values[first][which], values, tolerance) else None

    def dealt_out(self, values: Floats, dimensions: int, tolerance: float) -> Expression | None:
        """A share of something dealt out along sides, the same at every step of loops; None where it is none."""
        if (placed := self.by_place(values, tolerance)) is None:
            return None
        places, shares = placed
        # Other numbers are not worth the search among thousands of lengths, and no number is worth it twice.
        key = shares.tobytes(), dimensions, tolerance
        if key not in places.known:
            found = places.blocks(shares, dimensions)
            if found is None and dimensions > 1:
                found = places.products(shares, dimensions, tolerance)
            places.known[key] = found
        return places.known[key]

    def fitted(self, values: Floats, tolerance: float = 0.0) -> Expression | None:
        """The simplest expression that holds at all rows; None where none does.

        Parameters
        ----------
        values : array of shape (rows,).
        tolerance : relative, for values that are no whole numbers.
        """
        first = float(values[0])
        if _level(values, tolerance):
            return Expression(float(np.median(values)) if tolerance else first)
        found = self._multiple(values, tolerance)
        if found is None:
            found = self._line(values, tolerance)
        return found

    def _first(self, slopes: Floats, constants: Floats, values: Floats, tolerance: float) -> Expression | None:
        allowed = tolerance * np.abs(values) + 1e-12 if tolerance else ROUNDING * np.maximum(np.abs(values), 1.0) + 1e-7
        good = np.flatnonzero((slopes != 0) & np.isfinite(slopes))
        # Most atoms fail on a few rows already.
        for some in (slice(None, None, max(values.size // TRIED_FIRST, 1)), slice(None)):
            made = slopes[good, None] * self.matrix[good, some] + constants[good, None]
            good = good[np.all(np.abs(made - values[some]) <= allowed[some], axis=1)]
            if not good.size:
                return None
        chosen = good.tolist()
        if tolerance:
            # Work is shared among all processes before it is anything else.
            chosen.sort(key=lambda at: self.names[at] != "1/n")
        for at in chosen:
            slope, constant = _tidy(float(slopes[at])), _tidy(float(constants[at]))
            if tolerance or (_plain(slope) and _plain(constant)):
                return Expression(constant, ((slope, self.names[at]),))
        return None

    def _multiple(self, values: Floats, tolerance: float) -> Expression | None:
        at = int(np.argmax(np.abs(values)))
        column = self.matrix[:, at]
        slopes = np.divide(values[at], column, out=np.zeros_like(column), where=np.abs(column) > 1e-300)
        return self._first(slopes, np.zeros_like(slopes), values, tolerance)

    @cached_property
    def _ends(self) -> tuple[Ints, Ints, Floats, Floats, NDArray[np.bool_]]:
        """Of each atom the rows of its least and largest value, the least, their distance, and if any lie between."""
        low, high = np.argmin(self.matrix, axis=1), np.argmax(self.matrix, axis=1)
        rows = np.arange(len(self.names))
        least, most = self.matrix[rows, low], self.matrix[rows, high]
        near = 1e-9 * (most - least)[:, None]
        between = (np.abs(self.matrix - least[:, None]) > near) & (np.abs(self.matrix - most[:, None]) > near)
        return low, high, least, most - least, np.any(between, axis=1)

    def _line(self, values: Floats, tolerance: float) -> Expression | None:
        low, high, least, spread, middle = self._ends
        slopes = (values[high] - values[low]) / np.where(spread > 0, spread, np.inf)
        constants = values[low] - slopes * least
        # Two different values of an atom lie on a line whatever they are: only a step more or less is believed.
        stepped = (np.abs(np.abs(slopes) - 1.0) < 1e-9) & (np.abs(constants) < 2.5)
        return self._first(np.where(middle | stepped, slopes, 0.0), constants, values, tolerance)

    @cached_property
    def _pairs(self) -> tuple[Ints, Floats, list[tuple[int, Ints, Floats, Floats]]]:
        """Some rows, the scale of each atom, and for two coefficients and three: pairs, their values, their solvers.

        A pair is tried with as many coefficients as its values differ in more rows than.
        """
        pairs = np.array([*combinations(range(min(len(self.names), MOST_PAIRED)), 2)], dtype=np.int64).reshape(-1, 2)
        picked = np.unique(np.linspace(0, self.size - 1, min(self.size, 40)).astype(int))
        if not pairs.size or picked.size < 3:
            return picked, np.zeros(0), []
        scale = np.maximum(np.abs(self.matrix).max(axis=1), 1e-300)
        few = (self.matrix / scale[:, None])[:, picked]
        # Rows that differ in both atoms are distinguished by one number.
        mixed = np.sort(np.round(few[pairs[:, 0]] + np.pi * few[pairs[:, 1]], 10), axis=1)
        different = 1 + np.count_nonzero(np.diff(mixed, axis=1) > 0, axis=1)
        found = []
        for width in (2, 3):
            kept = pairs[different > width]
            if kept.size:
                columns = np.ones((len(kept), picked.size, width))
                columns[:, :, 0], columns[:, :, 1] = few[kept[:, 0]], few[kept[:, 1]]
                found.append((width, kept, columns, np.asarray(np.linalg.pinv(columns, rcond=1e-9), dtype=np.float64)))
        return picked, scale, found

    def paired(
        self, values: Floats, tolerance: float = 0.0, believed: Callable[[Expression], bool] = lambda found: True
    ) -> Expression | None:
        """The first believed expression in two atoms, with a constant or without; None where none holds."""
        picked, scale, solvers = self._pairs
        some = values[picked]
        allowed = tolerance * np.abs(some) + 1e-6 * max(1.0, float(np.abs(some).max(initial=0.0)) * 1e-3)
        for width, kept, columns, solver in solvers:
            solved = solver @ some
            made = np.einsum("prw,pw->pr", columns, solved)
            for place in np.flatnonzero(np.all(np.abs(made - some) <= allowed, axis=1)).tolist():
                one, other = kept[place].tolist()
                slopes = [_tidy(float(solved[place, at] / scale[atom])) for at, atom in enumerate((one, other))]
                constant = _tidy(float(solved[place, 2])) if width > 2 else 0.0
                if not tolerance and not all(map(_plain, (*slopes, constant))):
                    continue
                least = ROUNDING * max(float(np.abs(values).max()), 1.0)
                part = [
                    abs(slope) * float(np.ptp(self.matrix[at])) for slope, at in zip(slopes, (one, other), strict=True)
                ]
                if min(part) > least and _exact(
                    constant + slopes[0] * self.matrix[one] + slopes[1] * self.matrix[other], values, tolerance
                ):
                    found = Expression(constant, ((slopes[0], self.names[one]), (slopes[1], self.names[other])))
                    if believed(found):
                        return found
        return None

    def modular(self, values: Floats, moduli: Sequence[str]) -> Expression | None:
        """An expression modulo a side: roots that rotate, partners that go round."""
        for modulus in moduli:
            if modulus not in self.env:
                continue
            side = self.env[modulus]
            if np.any(values >= side) or np.any(values < 0):
                continue
            lines = [*product((0.0, 1.0, -1.0, 2.0, -2.0), (1.0, -1.0, 2.0))]
            if (good := _congruent(self.matrix, lines, values, side)) is not None:
                at, constant, slope = good
                return self.from_above(Expression(constant, ((slope, self.names[at]),), modulus), values, side)
            pairs, sums = self._sums
            if (good := _congruent(sums, [(0.0, 1.0)], values, side)) is not None:
                one, other, sign = pairs[good[0]]
                return Expression(0.0, ((1.0, self.names[one]), (sign, self.names[other])), modulus)
        return None

    @cached_property
    def _sums(self) -> tuple[list[tuple[int, int, float]], Floats]:
        """Pairs of atoms with the sign of the second, and their sums, an array of shape (pairs, rows)."""
        first = combinations(range(min(len(self.names), MOST_SUMMED)), 2)
        pairs = [(one, other, sign) for one, other in first for sign in (1.0, -1.0)]
        sums = [self.matrix[one] + sign * self.matrix[other] for one, other, sign in pairs]
        return pairs, np.stack(sums) if sums else np.zeros((0, self.size))

    def stepped(self, values: Floats, side: Floats) -> Expression | None:
        """A distance round a side as a whole atom, one more or one less."""
        whole = np.flatnonzero(self._whole)
        good = _congruent(self.matrix[whole], [*product((0.0, 1.0, -1.0), (1.0, -1.0))], values, side)
        if good is None:
            return None
        at, constant, slope = good
        return self.from_above(Expression(constant, ((slope, self.names[int(whole[at])]),)), values, side)

    @cached_property
    def _whole(self) -> NDArray[np.bool_]:
        """Which atoms are whole at all rows."""
        return np.asarray(np.all(np.abs(self.matrix - np.round(self.matrix)) < 1e-9, axis=1))

    def from_above(self, found: Expression, values: Floats, side: Floats) -> Expression:
        """An expression that counts down modulo a side, without negative intermediate values.

        In C and Fortran what is left over from a number below 0 is below 0 itself: programs count down from above.

        Parameters
        ----------
        found : that holds modulo the side.
        values : array of shape (rows,), from 0 to below the side.
        side : array of shape (rows,).
        """
        ((_, atom),) = found.terms
        if not re.fullmatch(r"i\d+", atom) or np.all(found.constant + found.terms[0][0] * self.env[atom] >= -side):
            return found
        above = Expression(-1.0, ((1.0, f"c{atom[1:]}"), (-1.0, atom)), found.modulus)
        return above if np.all(np.mod(above.raw(self.env) - values, side) == 0) else found

    def blocks(self, values: Floats, dimensions: int) -> Expression | None:
        """A share of something that is dealt out along one dimension, whose size is not a multiple of the side."""
        whole = np.round(values)
        if not np.all(whole == values) or values.max() > 1e15:
            return None
        steps = np.unique(whole.astype(np.int64))
        unit = int(np.gcd.reduce(np.diff(steps))) if steps.size > 1 else 0
        if not unit or steps.size > 4 * np.unique(self.env["n"]).size:
            return None
        units = sorted({unit, *(unit // part for part in range(2, 17) if unit % part == 0)})[::-1]
        picked = np.unique(np.linspace(0, self.size - 1, min(self.size, 60)).astype(int))
        for dimension in (*range(dimensions), *([LISTED] if f"P{LISTED}" in self.env else [])):
            side, at = self.env[f"P{dimension}"], self.env[f"x{dimension}"]
            widest = int(np.argmin(side))
            for size in units:
                for extra in (0, 1, 2, -1, -2):
                    share = (values[widest] - extra * size) / size
                    if share < 0:
                        continue
                    low, high = int(max((share - 1) * side[widest], 0)), int((share + 1) * side[widest]) + 1
                    totals = np.array(sorted(range(low, min(high, low + 4096)), key=_roundness), dtype=np.float64)
                    for kind in SHARES:
                        made = size * (_block(kind, totals[:, None], side[picked], at[picked]) + extra)
                        for place in np.flatnonzero(np.all(made == values[picked], axis=1)).tolist():
                            total = float(totals[place])
                            if np.all(size * (_block(kind, total, side, at) + extra) == values):
                                term = (float(size), f"{kind}{dimension}:{int(total)}")
                                return Expression(float(extra * size), (term,))
        return None

    def products(self, values: Floats, dimensions: int, tolerance: float) -> Expression | None:
        """A multiple of the product of shares of one length along dimensions: faces and volumes of blocks."""
        if np.any(values <= 0):
            return None
        picked = np.unique(np.linspace(0, self.size - 1, min(self.size, 60)).astype(int))
        least = max(float(self.env[f"P{each}"].max()) for each in range(dimensions))
        totals = np.array(sorted(range(int(least), MOST_SHARED), key=_roundness), dtype=np.float64)
        for kind in SHARES:
            shares = [
                _block(kind, totals[:, None], self.env[f"P{each}"][picked], self.env[f"x{each}"][picked])
                for each in range(dimensions)
            ]
            for chosen in (*combinations_with_replacement(range(dimensions), 2), *combinations(range(dimensions), 3)):
                together = np.prod([shares[each] for each in chosen], axis=0)
                ratio = values[picked] / np.maximum(together, 1e-9)
                even = ratio.max(axis=1) - ratio.min(axis=1) <= max(tolerance, 1e-12) * np.abs(ratio[:, 0])
                for place in np.flatnonzero(even & (together.min(axis=1) > 0)).tolist():
                    slope = _tidy(float(ratio[place, 0]))
                    if not tolerance and slope != round(slope):
                        continue
                    atom = "*".join(f"{kind}{each}:{int(totals[place])}" for each in chosen)
                    made = slope * atom_value(atom, self.env)
                    if _exact(made, values, tolerance):
                        return Expression(0.0, ((slope, atom),))
        return None


@lru_cache(maxsize=64)
def _without_atoms(names: tuple[str, ...], columns: bytes) -> Rows:
    """Rows by the values of names, for shares only; those of one program are the same again and again."""
    return Rows(dict(zip(names, np.frombuffer(columns).reshape(len(names), -1), strict=True)), ())


@lru_cache(maxsize=65_536)
def _roundness(number: int) -> int:
    """A rank that is lower for rounder numbers: chosen sizes are often multiples of powers of ten or two."""
    if not number:
        return 0
    tens = len(str(number)) - len(str(number).rstrip("0"))
    twos = (number & -number).bit_length() - 1
    return -max(10 * tens, 3 * twos)


def _plain(number: float) -> bool:
    """Whether a coefficient is plausible in a program: an integer or a simple fraction."""
    return abs(number * 24 - round(number * 24)) <= 1e-9 * max(abs(number), 1.0)


def _tidy(number: float) -> float:
    """The number, replaced by a simple one that it equals up to rounding."""
    for scale in (1, 2, 3, 4, 6, 8):
        near = round(number * scale) / scale
        if abs(number - near) <= 1e-9 * max(abs(number), 1e-3):
            return near
    return number
