"""The search for an expression: atoms are tried, simplest first, and it holds exactly at every row it was found on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache, cached_property, lru_cache
from itertools import chain, combinations, product

import numpy as np

from metasched.arrays import Flags, Floats, Ints
from metasched.signature.equations.expressions import (
    BY_POWERS,
    IN_ROUNDS,
    LISTED,
    MANY_WORKERS,
    WORKERS,
    Env,
    Expression,
    factor_value,
)
from metasched.signature.equations.nearness import ROUNDING, exact, level, plain, tidy
from metasched.signature.equations.share_search import FEW, blocks, products

#: How many of the simplest atoms are tried in pairs.
MOST_PAIRED = 26
#: How many of them are tried in sums modulo a side, and on how many rows before on all.
MOST_SUMMED, TRIED_FIRST = 12, 16
#: How many different quotients that are rounded down are believed, and from which least one on.
SEVERAL_QUOTIENTS, LEAST_QUOTIENT = 3, 16


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
    # What a master deals out to all others.
    found += [f"1/{MANY_WORKERS}"]
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
    # Where these are the logarithm itself, that is tried before: the program may ask for powers of two.
    found += [f"{function}(n)" for function in BY_POWERS]
    # Partners are as far away as blocks are many, but for the last round: these are no distances.
    if ranks:
        found += [f"{kind}({step}){share}" for step in steps for kind in IN_ROUNDS for share in ("", "*1/n")]
        found += [f"{kind}{side}({step})" for step in steps for kind in IN_ROUNDS for side in range(len(sides))]
    return tuple(found)


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
    for many in (FEW, TRIED_FIRST, values.size):
        some = slice(None, None, max(values.size // many, 1))
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
        self._placed: dict[str, tuple[Rows, Ints, Ints]] = {}
        #: Shares that were looked for, by their values.
        self.known: dict[tuple[object, ...], Expression | None] = {}
        self.names: list[str] = []
        self.matrix = np.zeros((0, self.size))
        every = tuple(names)
        if not every or not self.size:
            return
        factors, of = _factored(every)
        values = np.full((len(factors) + 1, self.size), 1.0)
        for place, factor in enumerate(factors):
            try:
                values[place] = factor_value(factor, env)
            except KeyError:
                values[place] = np.nan
        whole = values[of[0]]
        for another in of[1:]:
            more = np.flatnonzero(another < len(factors))
            whole[more] *= values[another[more]]
        # What is no number is not there.
        kept = np.flatnonzero(whole.min(axis=1) < whole.max(axis=1))
        self.names, self.matrix = [every[each] for each in kept.tolist()], whole[kept]

    def _places(self, loop: str) -> tuple[Rows, Ints, Ints]:
        """One row for each place in the grids, the first row that is there, and the place of each row."""
        if loop not in self._placed:
            kept = ("n", loop, f"c{loop[1:]}") if loop else [name for name in self.env if name[0] in "nrPx"]
            env = {name: self.env[name] for name in kept}
            places, first, which = np.unique(np.stack([*env.values()]), axis=1, return_index=True, return_inverse=True)
            self._placed[loop] = _without_atoms((*env,), places.tobytes()), first, which.reshape(-1)
        return self._placed[loop]

    def by_place(self, values: Floats, tolerance: float = 0.0, loop: str = "") -> tuple[Rows, Floats] | None:
        """One row for each place in the grids, or for each step of a loop, and its value; None where it has several."""
        rows, first, which = self._places(loop)
        return (rows, values[first]) if exact(values[first][which], values, tolerance) else None

    def dealt_out(self, values: Floats, dimensions: int, tolerance: float) -> Expression | None:
        """A share of something dealt out along sides, or along the steps of a loop; None where it is none."""
        if (placed := self.by_place(values, tolerance)) is None:
            return self._dealt_out_in_turn(values, tolerance)
        places, shares = placed
        # Other numbers are not worth the search among thousands of lengths, and no number is worth it twice.
        key = shares.tobytes(), dimensions, tolerance
        if key not in places.known:
            found = blocks(places.env, shares, [*map(str, range(dimensions)), str(LISTED), WORKERS])
            if found is None and dimensions > 1:
                found = products(places.env, shares, dimensions, tolerance)
            places.known[key] = found
        return places.known[key]

    def _dealt_out_in_turn(self, values: Floats, tolerance: float) -> Expression | None:
        """A share of what one process deals out to others, step by step of the innermost loop around the action."""
        loop = max((name for name in self.env if name[0] == "i"), default="")
        # Where all runs have as many steps, any numbers would be such shares.
        if (
            not loop
            or np.ptp(self.env[f"c{loop[1:]}"]) == 0
            or (placed := self.by_place(values, tolerance, loop)) is None
        ):
            return None
        return blocks(placed[0].env, placed[1], [loop])

    def fitted(self, values: Floats, tolerance: float = 0.0) -> Expression | None:
        """The simplest expression that holds at all rows; None where none does.

        Parameters
        ----------
        values : array of shape (rows,).
        tolerance : relative, for values that are no whole numbers.
        """
        first = float(values[0])
        if level(values, tolerance):
            return Expression(float(np.median(values)) if tolerance else first)
        found = self.multiple(values, tolerance)
        if found is None:
            found = self.line(values, tolerance)
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
            slope, constant = tidy(float(slopes[at])), tidy(float(constants[at]))
            if tolerance or (plain(slope) and plain(constant)):
                return Expression(constant, ((slope, self.names[at]),))
        return None

    def multiple(self, values: Floats, tolerance: float = 0.0) -> Expression | None:
        """The first atom of which all values are the same multiple; None where there is none."""
        at = int(np.argmax(np.abs(values)))
        column = self.matrix[:, at]
        slopes = np.divide(values[at], column, out=np.zeros_like(column), where=np.abs(column) > 1e-300)
        return self._first(slopes, np.zeros_like(slopes), values, tolerance)

    @cached_property
    def _ends(self) -> tuple[Ints, Ints, Floats, Floats, Flags]:
        """Of each atom the rows of its least and largest value, the least, their distance, and if any lie between."""
        low, high = np.argmin(self.matrix, axis=1), np.argmax(self.matrix, axis=1)
        rows = np.arange(len(self.names))
        least, most = self.matrix[rows, low], self.matrix[rows, high]
        near = 1e-9 * (most - least)[:, None]
        between = (np.abs(self.matrix - least[:, None]) > near) & (np.abs(self.matrix - most[:, None]) > near)
        return low, high, least, most - least, np.any(between, axis=1)

    def line(self, values: Floats, tolerance: float = 0.0) -> Expression | None:
        """The first atom of which all values are a multiple and a constant; None where there is none."""
        low, high, least, spread, middle = self._ends
        slopes = (values[high] - values[low]) / np.where(spread > 0, spread, np.inf)
        constants = values[low] - slopes * least
        # Two different values of an atom lie on a line whatever they are: only a step more or less is believed.
        stepped = (np.abs(np.abs(slopes) - 1.0) < 1e-9) & (np.abs(constants) < 2.5)
        return self._first(np.where(middle | stepped, slopes, 0.0), constants, values, tolerance)

    def rounded_down(self, values: Floats) -> Expression | None:
        """The first quotient of a whole number by processes and sides that is rounded down; None where there is none.

        The number is believed where two runs divide it evenly, since many others have the same quotients. Small values,
        and those of fewer than three sizes, are quotients of some number by chance; those with a common divisor may
        have been rounded before they were multiplied by it.
        """
        known = np.unique(values)
        if known.size < SEVERAL_QUOTIENTS or known[0] < LEAST_QUOTIENT or np.any(known % 1):
            return None
        if np.gcd.reduce(known.astype(np.int64)) > 1:
            return None
        for name, divided in zip(self.names, self.matrix, strict=True):
            if all(factor.startswith("1/") and factor[2] in "nP" for factor in name.split("*")):
                whole = float(np.round(np.max(values / divided)))
                even = np.abs(whole * divided - values) < ROUNDING * values
                if np.unique(self.env["n"][even]).size > 1 and np.array_equal(
                    np.floor(whole * divided * (1.0 + ROUNDING)), values
                ):
                    return Expression(0.0, ((whole, name),))
        return None

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
                slopes = [tidy(float(solved[place, at] / scale[atom])) for at, atom in enumerate((one, other))]
                constant = tidy(float(solved[place, 2])) if width > 2 else 0.0
                if not tolerance and not all(map(plain, (*slopes, constant))):
                    continue
                least = ROUNDING * max(float(np.abs(values).max()), 1.0)
                part = [
                    abs(slope) * float(np.ptp(self.matrix[at])) for slope, at in zip(slopes, (one, other), strict=True)
                ]
                if min(part) > least and exact(
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
        if not pairs:
            return pairs, np.zeros((0, self.size))
        ones, others, signs = (np.array(each) for each in zip(*pairs, strict=True))
        return pairs, self.matrix[ones] + signs[:, None] * self.matrix[others]

    def stepped(self, values: Floats, side: Floats) -> Expression | None:
        """A distance round a side as a whole atom, one more or one less."""
        whole = np.flatnonzero(self._whole)
        good = _congruent(self.matrix[whole], [*product((0.0, 1.0, -1.0), (1.0, -1.0))], values, side)
        if good is None:
            return None
        at, constant, slope = good
        return self.from_above(Expression(constant, ((slope, self.names[int(whole[at])]),)), values, side)

    @cached_property
    def _whole(self) -> Flags:
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


@lru_cache(maxsize=256)
def _factored(names: tuple[str, ...]) -> tuple[tuple[str, ...], Ints]:
    """The factors of atoms, and those of each by number, an array (most factors, atoms) filled by one more."""
    split = [name.split("*") for name in names]
    numbered = {factor: place for place, factor in enumerate(dict.fromkeys(chain.from_iterable(split)))}
    of = np.full((max(map(len, split)), len(names)), len(numbered))
    for atom, each in enumerate(split):
        of[: len(each), atom] = [numbered[factor] for factor in each]
    return (*numbered,), of


@lru_cache(maxsize=64)
def _without_atoms(names: tuple[str, ...], columns: bytes) -> Rows:
    """Rows by the values of names, for shares only; those of one program are the same again and again."""
    return Rows(dict(zip(names, np.frombuffer(columns).reshape(len(names), -1), strict=True)), ())
