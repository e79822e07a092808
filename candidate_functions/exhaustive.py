"""The exhaustive search: all 77 x 77 x 8 x 16 x 16 = 12,142,592 combinations of Eq. (1), the best K of them.

One inner product of unit columns a combination is all that depends on both terms, so the whole search is a matrix
product of 77 x 16 computation columns with 77 x 8 x 16 communication columns, done in blocks that fit the cache. A
block is first asked only how many of its combinations could reach the best K found so far; those few are then solved
in closed form, and the best of all are solved again by QR.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from candidate_functions.bandwidth import BANDWIDTH
from candidate_functions.complexity import COMPLEXITY
from candidate_functions.family import Floats
from candidate_functions.least_squares import COLLINEAR, UnitColumns, ascending, standard_error
from candidate_functions.scalability import SCALABILITY
from candidate_functions.square_root import SquareRootSums
from candidate_functions.terms import Combinations, Observations, TermTable

#: How many combinations there are.
ALL = len(COMPLEXITY) ** 2 * len(BANDWIDTH) * len(SCALABILITY) ** 2

#: Communication columns a block; with all 1,232 computation columns a block of products takes 0.6 MB.
_BLOCK = 64


@dataclass(frozen=True)
class ExhaustiveResult:
    """What the exhaustive search found.

    Parameters
    ----------
    combinations : array of shape (k, 5), best first.
    coefficients : array of shape (k, 2).
    standard_error : array of shape (k,), seconds (or relative, with relative weights), ascending.
    tried : how many combinations were evaluated.
    """

    combinations: Combinations
    coefficients: Floats
    standard_error: Floats
    tried: int


def exhaustive_search(
    runs: Observations, best: int = 100, *, relative: bool = True, nonnegative: bool = True
) -> ExhaustiveResult:
    """Find the best combinations of all.

    Parameters
    ----------
    runs : the training runs, n >= 3.
    best : how many combinations to return; fewer come back where fewer are defined on all runs.
    relative : weigh errors relative to the measured time instead of in seconds.
    nonnegative : keep both coefficients at 0 or above. A model that would need a negative coefficient is then a
        one-term model, and equals others of its kind; of such equals only the first is returned.

    Raises
    ------
    ValueError : fewer than three runs, which two coefficients would fit exactly.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> n, p = rng.uniform(100, 1000, 40), rng.choice([1, 2, 4, 8], 40)
    >>> cpu, bw = rng.uniform(0.5, 1, 40), rng.uniform(50, 100, 40)
    >>> time = 1e-3 * n**2 / (cpu * p) + np.where(p > 1, 0.1 * n / bw * p, 0)
    >>> found = exhaustive_search(Observations.of(n, p, cpu, bw, time), best=1)
    >>> found.tried
    12142592
    >>> from candidate_functions.terms import formula
    >>> formula(found.combinations[0], found.coefficients[0])
    '0.001 (N^2)/(cpu · P) + 0.1 (N)/(bw · 1/P)'
    """
    if len(runs) < 3:
        raise ValueError(f"{len(runs)} runs, expected at least 3 to choose among models of two coefficients")
    weight = 1.0 / runs.time if relative else np.ones_like(runs.time)
    target = runs.time * weight
    table = TermTable.at(runs)
    comp, pcomp = np.divmod(np.arange(len(COMPLEXITY) * len(SCALABILITY)), len(SCALABILITY))
    comm, rest = np.divmod(np.arange(len(COMPLEXITY) * len(BANDWIDTH) * len(SCALABILITY)), 8 * len(SCALABILITY))
    bw, pcomm = np.divmod(rest, len(SCALABILITY))
    first = UnitColumns.of(table.computation(comp, pcomp) * weight, target)
    second = UnitColumns.of(table.communication(comm, bw, pcomm) * weight, target)

    # Twice as many as asked for survive the closed form, so that its rounding cannot cost a place; the QR decides.
    rows, columns = _search_blocks(first, second, 2 * best, nonnegative=nonnegative)
    combinations = np.stack([comp[rows], comm[columns], bw[columns], pcomp[rows], pcomm[columns]], axis=1).astype(
        np.int16
    )
    fit = SquareRootSums.of(table.columns(combinations) * weight, target).solve(nonnegative=nonnegative)
    listed = np.lexsort((columns, rows))
    error = standard_error(fit.sse, len(runs), 2)
    order = listed[ascending(error[listed])]
    if nonnegative:
        order = order[_first_of_equals(combinations[order], fit.coefficients[order])]
    order = order[np.isfinite(error[order])][:best]
    return ExhaustiveResult(combinations[order], fit.coefficients[order], error[order], ALL)


def _search_blocks(
    first: UnitColumns, second: UnitColumns, keep: int, *, nonnegative: bool
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Positions (rows of first, columns of second) of about the ``keep`` pairs that explain most."""
    usable = np.flatnonzero(first.usable)
    unit, p = first.unit[usable], first.projection[usable]
    p2 = p * p
    pool_value = np.empty(0)
    pool_row = pool_column = np.empty(0, dtype=np.intp)
    threshold = -np.inf

    candidates = np.flatnonzero(second.usable)
    # The most promising blocks first: a high threshold early spares work later.
    candidates = candidates[np.argsort(-second.projection[candidates], kind="stable")]
    cosine = np.empty((len(usable), _BLOCK))
    test = np.empty_like(cosine)
    for start in range(0, len(candidates), _BLOCK):
        chosen = candidates[start : start + _BLOCK]
        q = second.projection[chosen]
        c, t = cosine[:, : len(chosen)], test[:, : len(chosen)]
        np.matmul(unit, second.unit[chosen].T, out=c)
        # p^2 + (q - c p)^2 / (1 - c^2) > threshold, without the division: with m = threshold - p^2,
        # (q - c p)^2 + m c^2 > m.  A pair that is collinear is decided below, so rounding there does no harm.
        margin = (threshold - p2)[:, None] if np.isfinite(threshold) else np.full((len(usable), 1), -1.0)
        np.multiply(c, p[:, None], out=t)
        np.subtract(q, t, out=t)
        np.multiply(t, t, out=t)
        np.multiply(c, c, out=c)
        np.multiply(c, margin, out=c)
        np.add(t, c, out=t)
        hit_row, hit_column = np.divmod(np.flatnonzero(t > margin), len(chosen))
        if not len(hit_row):
            continue
        value = _explained(
            np.einsum("ij,ij->i", unit[hit_row], second.unit[chosen[hit_column]]),
            p[hit_row],
            q[hit_column],
            nonnegative=nonnegative,
        )
        good = value > threshold
        pool_value = np.concatenate([pool_value, value[good]])
        pool_row = np.concatenate([pool_row, usable[hit_row[good]]])
        pool_column = np.concatenate([pool_column, chosen[hit_column[good]]])
        if len(pool_value) > keep:
            best = np.argpartition(-pool_value, keep - 1)[:keep]
            pool_value, pool_row, pool_column = pool_value[best], pool_row[best], pool_column[best]
            threshold = pool_value.min()
    return pool_row, pool_column


def _explained(cosine: Floats, p: Floats, q: Floats, *, nonnegative: bool) -> Floats:
    """Explained sum of squares of pairs given one by one, all of shape (k,); see ``pair_reductions``."""
    sine2 = 1.0 - cosine * cosine
    collinear = sine2 < COLLINEAR
    rest = q - cosine * p
    value = p * p + rest * rest / np.where(collinear, 1.0, sine2)
    if nonnegative:
        value = np.where(rest < 0.0, p * p, value)
        value = np.where(p - cosine * q < 0.0, q * q, value)
    return np.where(collinear, np.maximum(p * p, q * q), value)


def _first_of_equals(combinations: Combinations, coefficients: Floats) -> NDArray[np.intp]:
    """Positions of the combinations that differ in a function whose coefficient is not zero; the first of each."""
    keys = combinations.astype(np.int64)
    keys[coefficients[:, 0] == 0.0] *= np.array([0, 1, 1, 0, 1])
    keys[coefficients[:, 1] == 0.0] *= np.array([1, 0, 0, 1, 0])
    alone = np.stack([coefficients[:, 0] == 0.0, coefficients[:, 1] == 0.0], axis=1)
    _, positions = np.unique(np.concatenate([keys, alone], axis=1), axis=0, return_index=True)
    return np.sort(positions)
