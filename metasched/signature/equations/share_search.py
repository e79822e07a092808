"""The search for shares: of something that is dealt out along a line, or of a length along each side of a grid."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from itertools import combinations, combinations_with_replacement, product

import numpy as np

from metasched.arrays import Floats, Ints
from metasched.signature.equations.expressions import CARRIED, Env, Expression, atom_value, part_of, place_on
from metasched.signature.equations.nearness import exact, tidy

#: Ways to share out, the most usual first: the first ones get one more; by rounded ends; all but the last as many; and,
#: the same at every place: room for as many as any has; what is left over dropped.
UNEQUAL_SHARES, LEVEL_SHARES = ("block", "spread", "ceil"), ("most", "floor")
SHARES = (*UNEQUAL_SHARES, *LEVEL_SHARES)
#: Longest side of something that is dealt out along two or three dimensions.
MOST_SHARED = 2_049
#: How many sizes of something that is dealt out along one are tried.
MOST_TOTALS = 4_096
#: Fewest lengths of a side on which a share and something more is believed where all places along it have the same.
SEVERAL_LENGTHS = 3
#: On how many rows candidates are tried before on more, and lengths on how many before on all.
FEW, PICKED = 3, 60


def blocks(env: Env, values: Floats, lines: Iterable[str]) -> Expression | None:
    """A share of something that is dealt out along one of some lines, whose size is not a multiple of its length.

    Parameters
    ----------
    values : array of shape (rows,).
    lines : sides of the grid, loops, or others (:func:`place_on`); those that are not there are left out.
    """
    whole = np.round(values)
    if not np.all(whole == values) or values.max() > 1e15:
        return None
    steps = np.unique(whole.astype(np.int64))
    unit = int(np.gcd.reduce(np.diff(steps))) if steps.size > 1 else 0
    if not unit or steps.size > 4 * np.unique(env["n"]).size:
        return None
    unit = int(np.gcd(unit, steps[0]))
    tried = [*product((unit // part for part in range(1, 17) if unit % part == 0), (0, 1, 2, -1, -2))]
    sizes, extras = np.array(tried, dtype=np.float64).reshape(-1, 2).T
    shares = values / sizes[:, None] - extras[:, None]
    picked = _picked(values.size)
    for line in lines:
        try:
            side, at = place_on(line, env)
        except KeyError:
            continue
        # The process that deals out has no place on the line.
        unequal = UNEQUAL_SHARES if at.min() >= 0 else ()
        # Where no two places of a line of one length differ, its first or last one may be all that is there.
        level = np.unique(np.stack([side, values]), axis=1).shape[1] == np.unique(side).size
        ways = ((*unequal, *LEVEL_SHARES),) if level else (*((kind,) for kind in unequal), LEVEL_SHARES)
        least, most, most_by_ends = _totals(shares, np.maximum(side, 1), at)
        possible = (shares.min(axis=1) >= 0) & (least <= np.maximum(most, most_by_ends))
        if level and np.unique(side).size < SEVERAL_LENGTHS:
            # Some share and some more come to any values at two lengths.
            possible &= extras == 0
        for place in np.flatnonzero(possible).tolist():
            for kinds in ways:
                found: list[tuple[int, str, int]] = []
                for kind in kinds:
                    last = (most_by_ends if kind == "ceil" else most)[place]
                    totals = np.arange(least[place], last + 1)
                    # Most sizes fail on a few rows already.
                    for rows in (picked, slice(None)):
                        made = part_of(kind, totals[:, None], side[rows], at[rows])
                        totals = totals[np.all(made == shares[place, rows], axis=1)]
                    found += [(roundness(total), kind, int(total)) for total in totals.tolist()]
                if found:
                    # The rounder size tells how it is dealt out.
                    _, kind, size = min(found)
                    of_each, extra = float(sizes[place]), float(extras[place])
                    return Expression(extra * of_each, ((of_each, f"{kind}{line}:{size}"),))
    return None


def products(env: Env, values: Floats, dimensions: int, tolerance: float) -> Expression | None:
    """A multiple of the product of shares of one length along dimensions: faces and volumes of blocks."""
    if np.any(values <= 0):
        return None
    picked = _picked(values.size)
    least = max(float(env[f"P{each}"].max()) for each in range(dimensions))
    known = _rounder_first()
    totals = known[known >= least]

    def parts(kind: str, wholes: Floats, rows: Ints) -> list[Floats]:
        sides = [(env[f"P{each}"][rows], env[f"x{each}"][rows]) for each in range(dimensions)]
        return [part_of(kind, wholes[:, None], *each) for each in sides]

    for kind in SHARES:
        few = picked[:: max(picked.size // FEW, 1)]
        of_few = parts(kind, totals, few)
        for chosen in (*combinations_with_replacement(range(dimensions), 2), *combinations(range(dimensions), 3)):
            # Most lengths fail on a few rows already.
            left = totals[_in_proportion(of_few, chosen, values[few], tolerance)[0]]
            if not left.size:
                continue
            good, ratios = _in_proportion(parts(kind, left, picked), chosen, values[picked], tolerance)
            for whole, ratio in zip(left[good].tolist(), ratios.tolist(), strict=True):
                slope = tidy(ratio)
                if not tolerance and slope != round(slope):
                    continue
                atom = "*".join(f"{kind}{each}:{int(whole)}" for each in chosen)
                if exact(slope * atom_value(atom, env), values, tolerance):
                    return Expression(0.0, ((slope, atom),))
    return None


def _picked(size: int) -> Ints:
    """Evenly spread rows, the first and the last among them, on which most sizes fail already."""
    return np.unique(np.linspace(0, size - 1, min(size, PICKED)).astype(int))


def _totals(shares: Floats, side: Floats, at: Floats) -> tuple[Floats, Floats, Floats]:
    """Of what rows of shares may be parts: the least and the largest size, and the largest where only ends are rounded.

    No process has less than a share rounded down, or more than one rounded up; with rounded ends, those before a
    process that has one have all of theirs.
    """
    widest = int(np.argmin(side))
    low = np.maximum((shares[:, widest] - 1) * side[widest], 0)
    high = np.minimum((shares[:, widest] + 1) * side[widest], low + MOST_TOTALS - 1)
    by_ends = np.maximum(shares * side, (shares + at) * side / np.maximum(side - at, 1))
    return (
        np.maximum(low, np.max((shares - 1) * side + 1, axis=1)),
        np.minimum(high, np.min((shares + 1) * side - 1, axis=1)),
        np.minimum(high, np.floor(np.min(by_ends, axis=1) + CARRIED)),
    )


def _in_proportion(
    shares: Sequence[Floats], chosen: Sequence[int], values: Floats, tolerance: float
) -> tuple[Ints, Floats]:
    """The rows of products of some shares that all values are one multiple of, and the multiples."""
    together = np.prod([shares[each] for each in chosen], axis=0)
    ratio = values / np.maximum(together, 1e-9)
    even = ratio.max(axis=1) - ratio.min(axis=1) <= max(tolerance, 1e-12) * np.abs(ratio[:, 0])
    good = np.flatnonzero(even & (together.min(axis=1) > 0))
    return good, ratio[good, 0]


@cache
def _rounder_first() -> Floats:
    """The lengths that are tried, the rounder the earlier."""
    return np.array(sorted(range(MOST_SHARED), key=roundness), dtype=np.float64)


@lru_cache(maxsize=65_536)
def roundness(number: float) -> int:
    """A rank that is lower for rounder numbers: chosen sizes are often multiples of powers of ten or two."""
    if not number:
        return 0
    whole = int(number)
    tens = len(str(whole)) - len(str(whole).rstrip("0"))
    twos = (whole & -whole).bit_length() - 1
    return -max(10 * tens, 3 * twos)
