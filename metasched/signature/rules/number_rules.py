"""The rules of numbers that are no ranks: expressions, amounts that are shared out, or power laws."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from metasched.arrays import Floats
from metasched.signature.equations.expressions import (
    BY_POWERS,
    MANY_WORKERS,
    MOST_FACTORS,
    WORKERS,
    Expression,
    atom_value,
)
from metasched.signature.equations.share_search import SHARES
from metasched.signature.equations.topologies import TOPOLOGIES, asks_for_squares, dimensions_of
from metasched.signature.equations.transforms import PowerLaw, r_squared
from metasched.signature.rules.attributes import Attribute, with_grid
from metasched.signature.rules.samples import Samples

#: How many times larger than those learned from the runs are in which sums of two terms may not fall below 0.
LARGER = (2, 4, 16)
#: How many different values a logarithm of a side must have to be believed, and lengths a side for each step's place.
SEVERAL = 3
#: How far off, beside a power law, amounts may be that are shared out in part only.
CLEARER = 0.5


def number(
    samples: Samples, values: Floats, topologies: Sequence[str] = (), tolerance: float = 0.0
) -> Attribute | None:
    """The rule of a number that is no rank, in the sides of the roles' grid or of others; None where there is none."""
    # Grids that the partners of messages stand in come before the line of ranks.
    tried = list(dict.fromkeys([*topologies, samples.topology]))
    for topology in tried:
        found = samples.rows(topology, True).fitted(values, tolerance)
        # What falls to nothing in larger runs is no rule.
        falls = found is not None and found.constant and found.terms and np.all(values >= 0)
        if found is not None and not (falls and not _stays_above(samples, topology)(found)):
            if not tolerance:
                found = found.of_shares(samples.grid(topology), asks_for_squares(samples.distinct, [topology]))
            return Attribute("" if topology == samples.topology else topology, expression=found)
    # Two atoms fit few values too easily: shares along any grid come first.
    for search in (_in_rounds, _harder, _rounded_down, _paired):
        for topology in tried:
            found = search(samples, values, topology, tolerance)
            if found is not None:
                return Attribute("" if topology == samples.topology else topology, expression=found)
    return None


def _in_rounds(samples: Samples, values: Floats, topology: str, tolerance: float) -> Expression | None:
    """Rounds along a side of a grid, in each of which twice as many have what is sent."""
    env = samples.grid(topology)
    # Sides are short: two different values of such a logarithm fit nearly anything.
    if np.unique(values).size < SEVERAL:
        return None
    for name in (f"{function}(P{side})" for side in range(dimensions_of(topology)) for function in BY_POWERS):
        if np.array_equal(atom_value(name, env), values):
            return Expression(0.0, ((1.0, name),))
    return None


def _harder(samples: Samples, values: Floats, topology: str, tolerance: float) -> Expression | None:
    """Rules with remainders, and shares that do not divide evenly."""
    rows = samples.rows(topology, True)
    dimensions = len(TOPOLOGIES[topology](samples.distinct[0]))
    found = None
    if np.all(values == np.round(values)):
        sides = [f"P{each}" for each in range(dimensions) if dimensions > 1]
        # What goes round a side that is as long in all runs goes round a number of steps, each with its own rule.
        alone = len(samples.distinct) == 1
        found = rows.modular(values, ["n", *(each for each in sides if alone or np.ptp(rows.env[each]))])
    found = rows.dealt_out(values, dimensions, tolerance) if found is None else found
    if found is not None and topology != samples.topology and _among_workers(found):
        # What is dealt out among all is not dealt out among all but the first.
        own = _harder(samples, values, samples.topology, tolerance)
        return found if own is None or _among_workers(own) else None
    return found


def _among_workers(found: Expression) -> bool:
    """Whether something is dealt out among all processes but the first."""
    return any(f"{kind}{WORKERS}:" in atom for kind in SHARES for _, atom in found.terms)


def _rounded_down(samples: Samples, values: Floats, topology: str, tolerance: float) -> Expression | None:
    """Quotients by several sides that are rounded down, which no shares along sides explain."""
    return None if tolerance else samples.rows(topology, True).rounded_down(values)


def _paired(samples: Samples, values: Floats, topology: str, tolerance: float) -> Expression | None:
    believed = _stays_above(samples, topology) if np.all(values >= 0) else lambda found: True
    return samples.rows(topology, True).paired(values, tolerance, believed)


def _stays_above(samples: Samples, topology: str) -> Callable[[Expression], bool]:
    """Whether an expression in the number of processes and their places is never below 0 in larger runs."""
    larger = [n * samples.distinct[-1] for n in LARGER if TOPOLOGIES[topology](n * samples.distinct[-1])]
    grids = [
        with_grid({"r": np.arange(n, dtype=np.float64), "n": np.full(1, float(n))}, TOPOLOGIES[topology](n))
        for n in larger
    ]

    def believed(found: Expression) -> bool:
        try:
            return all(float(found.raw(grid).min()) > -1.0 for grid in grids)
        except KeyError:  # it depends on steps of loops, too
            return True

    return believed


def shared_out(samples: Samples, values: Floats, steady: float, workers: bool = False) -> Attribute:
    """Instructions that are shared out among more processes and steps (Eq. 4), all or in part, or a power law.

    Parameters
    ----------
    samples, values : the rows.
    steady : how far totals may be from their mean, relative to it; those that drift more are outside the method.
    workers : whether all processes but one share.

    Examples
    --------
    >>> rows = Samples(np.array([4, 8, 16]), {"r": np.zeros(3)}, 0, "line")
    >>> print(shared_out(rows, np.array([25.1, 12.5, 6.2]), 0.05))
    99.8667 1/n
    >>> print(shared_out(rows, np.array([25.0, 20.0, 16.0]), 0.05))
    39.0625 n^-0.3219, R^2 1.0000
    >>> print(shared_out(rows, np.array([35.0, 22.5, 16.25]), 0.05))
    100 1/n + 10
    """

    def totals(atom: str) -> Floats:
        """What is shared out, at each count."""
        whole = values / atom_value(atom, samples.env) if atom else values
        return np.array([float(whole[samples.counts == n].mean()) for n in samples.distinct])

    def drift(atom: str) -> float:
        means = totals(atom)
        return float(np.abs(means / means.mean() - 1.0).max()) if means.mean() > 0 else np.inf

    share = min(["1/n", *([f"1/{MANY_WORKERS}"] if workers else [])], key=drift)
    around = [f"1/c{loop}" for loop in range(min(samples.loops, MOST_FACTORS - 1))]
    for atom in [share, "", *(["*".join([share, *around])] if around else [])]:
        if drift(atom) <= steady:
            whole = float(f"{totals(atom).mean():.12g}")
            return Attribute(expression=Expression(0.0, ((whole, atom),)) if atom else Expression(whole))
    return _partly_shared(samples, values, share) or regression(samples, values)


def _partly_shared(samples: Samples, values: Floats, share: str) -> Attribute | None:
    """What each process does and a share of the rest, from three counts on, where a power law fits clearly worse."""
    counts = np.array(samples.distinct, dtype=np.float64)
    means = np.array([float(values[samples.counts == n].mean()) for n in samples.distinct])
    if counts.size < 3 or means.min() <= 0:
        return None
    columns = np.stack([np.ones(counts.size), atom_value(share, {"n": counts})], axis=1)
    each, shared = np.linalg.lstsq(columns / means[:, None], np.ones(counts.size), rcond=None)[0].tolist()
    missed = np.abs((columns @ (each, shared)) / means - 1.0)
    law = PowerLaw.fitted(samples.distinct, means.tolist())
    others = np.abs(np.array([law(n) for n in counts]) / means - 1.0)
    if min(each, shared) <= 0 or missed.max() >= CLEARER * others.max():
        return None
    return Attribute(expression=Expression(float(f"{each:.12g}"), ((float(f"{shared:.12g}"), share),)))


def regression(samples: Samples, values: Floats) -> Attribute:
    """The fallback if no rule holds: a power law through the means at each count, or their mean."""
    means = [float(values[samples.counts == n].mean()) for n in samples.distinct]
    if len(means) > 1 and min(means) > 0:
        law = PowerLaw.fitted(samples.distinct, means)
        fitted = np.array([law(int(n)) for n in samples.counts])
        return Attribute(law=PowerLaw(law.factor, law.exponent, r_squared(values, fitted)))
    return Attribute(law=PowerLaw(float(np.mean(means)), 0.0, 0.0))
