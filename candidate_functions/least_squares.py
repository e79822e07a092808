"""How much of the sum of squares very many pairs of columns explain, in closed form.

:class:`UnitColumns` and :func:`pair_reductions` use inner products of columns scaled to unit length: fast enough for
millions of pairs, but digits are lost to cancellation. The few survivors are solved again by QR, which loses none, in
:mod:`candidate_functions.square_root`. All columns are non-negative, as those of Eq. (1) are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from candidate_functions.family import Floats

#: Two unit columns whose squared sine is smaller than this count as one: the closed form has no digits left there.
COLLINEAR = 1e-9
#: Errors up to this (s, or relative) are none, and those that agree to so many digits are the same.
ZERO, ROUNDED = 1e-12, 7


@dataclass(frozen=True)
class UnitColumns:
    """Columns scaled to unit length, with what a closed form needs of them.

    Parameters
    ----------
    unit : array of shape (..., m, n); a column that is not usable is zero here.
    projection : inner product of each unit column with the target, shape (..., m).
    usable : False where a column, or its square, is not finite, shape (..., m). A column of zeros is usable and
        explains nothing.
    """

    unit: Floats
    projection: Floats
    usable: NDArray[np.bool_]

    @classmethod
    def of(cls, columns: Floats, target: Floats) -> UnitColumns:
        """Scale columns of shape (..., m, n) for a target of shape (n,)."""
        with np.errstate(over="ignore"):
            norm2 = np.einsum("...j,...j->...", columns, columns)
        usable = norm2 < np.inf
        with np.errstate(invalid="ignore"):
            unit = columns * guarded_inverse(np.sqrt(norm2))[..., None]
        if not usable.all():
            unit[~usable] = 0.0
        return cls(unit, unit @ target, usable)


def guarded_inverse(values: Floats) -> Floats:
    """One over values, 0 where the value is 0.

    >>> guarded_inverse(np.array([2.0, 0.0]))
    array([0.5, 0. ])
    """
    nonzero = values != 0.0
    return np.where(nonzero, 1.0 / np.where(nonzero, values, 1.0), 0.0)


def pair_reductions(first: UnitColumns, second: UnitColumns) -> Floats:
    """How much of the target's sum of squares each pair of columns explains, in closed form.

    With unit columns u, v, cosine c = u.v and projections p = u.y, q = v.y, least squares explains
    p^2 + (q - c p)^2 / (1 - c^2). Of two nearly collinear columns only the better is used.

    Parameters
    ----------
    first, second : columns of shape (..., m1, n) and (..., m2, n).

    Returns
    -------
    array of shape (..., m1, m2); -inf where a column is not usable.

    Examples
    --------
    >>> y = np.array([3.0, 5.0])
    >>> u, v = UnitColumns.of(np.array([[1.0, 0.0]]), y), UnitColumns.of(np.array([[1.0, 1.0]]), y)
    >>> bool(np.isclose(pair_reductions(u, v)[0, 0], y @ y))
    True
    """
    p, q = first.projection[..., :, None], second.projection[..., None, :]
    cosine = first.unit @ np.swapaxes(second.unit, -1, -2)
    sine2 = np.subtract(1.0, cosine * cosine)
    rest = q - cosine * p
    collinear = sine2 < COLLINEAR
    any_collinear = bool(collinear.any())
    if any_collinear:
        sine2[collinear] = 1.0
    reduction = rest * rest
    reduction /= sine2
    reduction += p * p
    if any_collinear:
        reduction[collinear] = np.maximum(p * p, q * q)[collinear]
    if not (first.usable.all() and second.usable.all()):
        reduction[~(first.usable[..., :, None] & second.usable[..., None, :])] = -np.inf
    return reduction


def standard_error(sse: Floats, samples: int, terms: int) -> Floats:
    """Standard error sqrt(SSE / (n - p)), section 3 of the paper; infinite where samples do not outnumber terms.

    Parameters
    ----------
    sse : sums of squared errors.
    samples : runs n.
    terms : coefficients p.

    Examples
    --------
    >>> standard_error(np.array([8.0]), samples=4, terms=2)
    array([2.])
    """
    if samples <= terms:
        return np.full_like(sse, np.inf)
    return np.sqrt(np.maximum(sse, 0.0) / (samples - terms))


def ascending(error: Floats) -> NDArray[np.intp]:
    """Positions in ascending order of the error, where those that differ by rounding alone stay in the order given.

    Where the available bandwidth never varied, all eight of its functions explain the runs equally well: which of them
    comes first must not depend on how a processor rounds.

    Parameters
    ----------
    error : standard errors, of either kind; infinite ones come last.

    Examples
    --------
    >>> ascending(np.array([2.0, 1.0 + 1e-15, 1.0, np.inf, 0.0]))
    array([4, 1, 2, 0, 3])
    """
    with np.errstate(over="ignore"):
        return np.argsort(np.round(np.log(np.maximum(error, ZERO)), ROUNDED), kind="stable")
