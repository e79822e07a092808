"""Least squares for very many two-column models at once.

Two ways, used together. :class:`UnitColumns` and :func:`pair_reductions` give, in closed form from inner products of
columns scaled to unit length, how much of the sum of squares every pair of columns explains; that is fast enough for
millions of pairs but loses digits to cancellation. :func:`orthogonal_fit` solves the few survivors by QR
(Gram-Schmidt, orthogonalised twice), which does not. All columns are non-negative, as those of Eq. (1) are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from candidate_functions.family import Floats

#: Two unit columns whose squared sine is smaller than this count as one: the closed form has no digits left there.
COLLINEAR = 1e-9


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

    Examples
    --------
    >>> guarded_inverse(np.array([2.0, 0.0]))
    array([0.5, 0. ])
    """
    nonzero = values != 0.0
    return np.where(nonzero, 1.0 / np.where(nonzero, values, 1.0), 0.0)


def pair_reductions(first: UnitColumns, second: UnitColumns, *, nonnegative: bool = False) -> Floats:
    """How much of the target's sum of squares each pair of columns explains, in closed form.

    With unit columns u, v, cosine c = u.v and projections p = u.y, q = v.y, least squares explains
    p^2 + (q - c p)^2 / (1 - c^2). Of two nearly collinear columns only the better is used.

    Parameters
    ----------
    first, second : columns of shape (..., m1, n) and (..., m2, n).
    nonnegative : keep both coefficients at 0 or above. As columns are non-negative, c >= 0, and a coefficient that
        comes out negative is best put to 0, which leaves the other column alone.

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
    if nonnegative:
        alone_first = np.broadcast_to(p * p, reduction.shape)
        alone_second = np.broadcast_to(q * q, reduction.shape)
        np.copyto(reduction, alone_first, where=rest < 0.0)
        np.copyto(reduction, alone_second, where=p - cosine * q < 0.0)
    if any_collinear:
        reduction[collinear] = np.maximum(p * p, q * q)[collinear]
    if not (first.usable.all() and second.usable.all()):
        reduction[~(first.usable[..., :, None] & second.usable[..., None, :])] = -np.inf
    return reduction


@dataclass(frozen=True)
class Fit:
    """Fitted two-column models.

    Parameters
    ----------
    coefficients : array of shape (k, 2).
    sse : sums of squared errors, shape (k,); infinite where a column is not finite.
    """

    coefficients: Floats
    sse: Floats


def orthogonal_fit(columns: Floats, target: Floats, *, nonnegative: bool = False) -> Fit:
    """Fit every two-column model by QR: u from the first column, w from the second orthogonalised against it twice.

    Parameters
    ----------
    columns : array of shape (k, 2, n), non-negative.
    target : array of shape (n,).
    nonnegative : keep both coefficients at 0 or above.

    Examples
    --------
    >>> x = np.array([1.0, 2.0, 3.0])
    >>> fit = orthogonal_fit(np.stack([np.ones(3), x])[None], 2.0 + 0.5 * x)
    >>> fit.coefficients.round(12), bool(fit.sse[0] < 1e-25)
    (array([[2. , 0.5]]), True)
    """
    with np.errstate(over="ignore"):
        norm2 = np.einsum("kcn,kcn->kc", columns, columns)
    usable = norm2.max(axis=1) < np.inf
    if not usable.all():
        columns = np.where(usable[:, None, None], columns, 0.0)
    inverse_norm = guarded_inverse(np.sqrt(np.where(usable[:, None], norm2, 0.0)))
    u, v = columns[:, 0] * inverse_norm[:, :1], columns[:, 1] * inverse_norm[:, 1:]
    cosine = np.einsum("kn,kn->k", u, v)
    w = v - cosine[:, None] * u
    again = np.einsum("kn,kn->k", u, w)
    w -= again[:, None] * u
    cosine += again
    sine2 = np.einsum("kn,kn->k", w, w)
    separable = sine2 > 1e-24

    p = u @ target
    rest = target - p[:, None] * u
    b = np.where(separable, np.einsum("kn,kn->k", w, rest) / np.where(separable, sine2, 1.0), 0.0)
    a = p - cosine * b
    if nonnegative:
        drop_second = b < 0.0
        b = np.where(drop_second, 0.0, b)
        a = np.where(drop_second, p, a)
        drop_first = a < 0.0
        b = np.where(drop_first, v @ target, b)
        a = np.where(drop_first, 0.0, a)
        residual = target - a[:, None] * u - b[:, None] * v
    else:
        residual = rest - b[:, None] * w
    sse = np.where(usable, np.einsum("kn,kn->k", residual, residual), np.inf)
    return Fit(np.stack([a, b], axis=1) * inverse_norm, sse)


def standard_error(sse: Floats, samples: int, terms: int) -> Floats:
    """Standard error sqrt(SSE / (n - p)), section 3 of the paper; infinite where samples do not outnumber terms.

    Examples
    --------
    >>> standard_error(np.array([8.0]), samples=4, terms=2)
    array([2.])
    """
    if samples <= terms:
        return np.full_like(sse, np.inf)
    return np.sqrt(np.maximum(sse, 0.0) / (samples - terms))
