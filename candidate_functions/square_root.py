"""Least squares that learn one run at a time, for many combinations at once, at a cost that never grows.

Instead of the Gram sums of its two columns and the target, each combination keeps their square root: the triangular
factor R of a QR factorisation, updated by two Givens rotations a run (Golub & Van Loan, Matrix Computations, section
on updating a QR factorisation). It holds the same information in six numbers, but an error sum read from it has lost
nothing to cancellation, however many runs it has absorbed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from candidate_functions.family import Floats


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


class SquareRootSums:
    """Triangular factors of the augmented designs [first column, second column, target] of k combinations.

    Parameters
    ----------
    factors : array of shape (6, k): r11, r12, r1y, r22, r2y and the square of ryy, the sum of squared errors.

    Examples
    --------
    >>> sums = SquareRootSums.of(np.array([[[1.0, 1.0], [1.0, 2.0]]]), np.array([2.5, 3.0]))
    >>> sums.add(np.array([[1.0, 3.0]]), 3.5)
    >>> sums.solve().coefficients.round(12)
    array([[2. , 0.5]])
    """

    def __init__(self, factors: Floats) -> None:
        self.factors = factors

    @classmethod
    def of(cls, columns: Floats, target: Floats) -> SquareRootSums:
        """Factors of runs given at once: columns of shape (k, 2, n) and target of shape (n,), by Householder QR.

        Where a column, or the sum of its squares, is not finite, the sum of squared errors is infinite.
        """
        k, _, n = columns.shape
        with np.errstate(over="ignore"):
            usable = np.einsum("kcn,kcn->kc", columns, columns).max(axis=1) < np.inf
        columns = np.where(usable[:, None, None], columns, 0.0)
        design = np.zeros((k, max(n, 3), 3))
        design[:, :n, :2] = np.swapaxes(columns, 1, 2)
        design[:, :n, 2] = target
        r = np.linalg.qr(design, mode="r")
        # The factor is unique up to the signs of its rows; a Givens rotation expects a diagonal that is not negative.
        r = np.where(np.einsum("kii->ki", r) < 0.0, -1.0, 1.0)[:, :, None] * r
        sse = np.where(usable, r[:, 2, 2] ** 2, np.inf)
        return cls(np.stack([r[:, 0, 0], r[:, 0, 1], r[:, 0, 2], r[:, 1, 1], r[:, 1, 2], sse]))

    def add(self, row: Floats, target: float) -> None:
        """Absorb one run: its two columns for each combination, shape (k, 2), and its (weighted) time.

        Parameters
        ----------
        row : array of shape (k, 2), both columns of each combination in this run.
        target : the execution time, or its weighted value (s).
        """
        r11, r12, r1y, r22, r2y, sse = self.factors
        x1, x2 = row[:, 0], row[:, 1]
        cosine, sine, h = _rotation(r11, x1)
        r12_new = cosine * r12 + sine * x2
        r1y_new = cosine * r1y + sine * target
        x2 = cosine * x2 - sine * r12
        y = cosine * target - sine * r1y
        self.factors[0], self.factors[1], self.factors[2] = h, r12_new, r1y_new
        cosine, sine, h = _rotation(r22, x2)
        r2y_new = cosine * r2y + sine * y
        y = cosine * y - sine * r2y
        self.factors[3], self.factors[4] = h, r2y_new
        sse += y * y

    def solve(self, *, nonnegative: bool = False) -> Fit:
        """Coefficients and sums of squared errors of all combinations.

        A second column that the runs do not tell from the first gets the coefficient 0.
        """
        r11, r12, r1y, r22, r2y, sse = self.factors
        norm2 = r12 * r12 + r22 * r22
        separable = r22 * r22 > 1e-24 * norm2
        b = np.where(separable, r2y, 0.0) / np.where(separable, r22, 1.0)
        has_first = r11 > 0.0
        safe_r11 = np.where(has_first, r11, 1.0)
        alone_a = np.where(has_first, r1y, 0.0) / safe_r11
        a = np.where(has_first, alone_a - r12 * b / safe_r11, 0.0)
        error = np.where(separable, sse, sse + r2y * r2y)
        if nonnegative:
            drop_second = b < 0.0
            a = np.where(drop_second, alone_a, a)
            error = np.where(drop_second, sse + r2y * r2y, error)
            b = np.where(drop_second, 0.0, b)
            drop_first = a < 0.0
            along = r12 * r1y + r22 * r2y
            safe_norm2 = np.where(norm2 > 0.0, norm2, 1.0)
            b = np.where(drop_first, along / safe_norm2, b)
            # What is left of (r1y, r2y) across the second column, without subtracting squares.
            across = (r22 * r1y - r12 * r2y) / np.sqrt(safe_norm2)
            error = np.where(drop_first, sse + across * across, error)
            a = np.where(drop_first, 0.0, a)
        return Fit(np.stack([a, b], axis=1), error)


def _rotation(r: Floats, x: Floats) -> tuple[Floats, Floats, Floats]:
    """Cosine, sine and length of the rotation that turns (r, x) onto the first axis; r >= 0."""
    h = np.hypot(r, x)
    safe = np.where(h > 0.0, h, 1.0)
    return np.where(h > 0.0, r / safe, 1.0), x / safe, h
