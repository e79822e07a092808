"""Sequences of positive numbers that would overflow: products of generating functions, kept as logarithms.

The normalisation constants of a closed network run over thousands of orders of magnitude, but they are sums of positive
terms only, so nothing is lost as long as they neither overflow nor vanish. Axis order: (network, n), n = 0, 1, ..., N.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Factor = TypeVar("Factor")

#: Half the width, in natural logarithms, in which numbers are multiplied as they are: products stay in double range.
_SAFE = 340.0
#: Rows of the table of logarithms that are summed at a time where the numbers themselves do not fit.
_ROWS = 256


def convolve(log_f: Floats, log_g: Floats) -> Floats:
    """Logarithm of the convolution of two sequences that are given by their logarithms.

    A sequence tilted by ``exp(-t n)`` convolves to the tilted convolution (Lam's dynamic scaling), so each pair is
    tilted until it is as flat as it can be made with one ``t``. Where that fits double range the product is taken as
    it is, elsewhere each sum is taken relative to its largest term.

    Parameters
    ----------
    log_f, log_g : arrays of shape (networks, N + 1); minus infinity stands for 0.

    Returns
    -------
    array of shape (networks, N + 1), log sum_j f(j) g(n - j).

    References
    ----------
    Buzen, Computational algorithms for closed queueing networks with exponential servers, CACM 16(9), 1973;
    Lam, Dynamic scaling and growth behavior of queuing network normalization constants, JACM 29(2), 1982.

    Examples
    --------
    >>> np.exp(convolve(np.log([[1.0, 2.0]]), np.log([[1.0, 3.0]])))
    array([[1., 5.]])
    """
    return np.stack([_convolve(f, g) for f, g in zip(log_f, log_g, strict=True)])


def leave_one_out(base: Floats, factors: Sequence[Factor], times: Callable[[Floats, Factor], Floats]) -> list[Floats]:
    """For each factor, the product of ``base`` with all the others, without ever dividing.

    Each half of the factors takes in the whole other half, and so on downwards: about S log2 S products for S factors.

    Examples
    --------
    >>> leave_one_out(np.ones(1), [2.0, 3.0, 5.0], lambda product, factor: product * factor)
    [array([15.]), array([10.]), array([6.])]
    """
    if len(factors) <= 1:
        return [base] * len(factors)
    half = len(factors) // 2
    left, right = factors[:half], factors[half:]
    return leave_one_out(reduce(times, right, base), left, times) + leave_one_out(
        reduce(times, left, base), right, times
    )


def _convolve(log_f: Floats, log_g: Floats) -> Floats:
    n = np.arange(log_f.size)
    if np.all(np.isneginf(log_f)) or np.all(np.isneginf(log_g)):
        return np.full(n.size, -np.inf)
    tilt = _tilt(log_g)
    f, g = log_f - tilt * n, log_g - tilt * n
    top_f, top_g = f.max(), g.max()
    if _width(f, top_f) + _width(g, top_g) < 2 * _SAFE:
        product = np.convolve(np.exp(f - top_f), np.exp(g - top_g))[: n.size]
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(product) + (top_f + top_g) + tilt * n)
    padded = np.concatenate([np.full(n.size - 1, -np.inf), log_g])
    windows = np.lib.stride_tricks.sliding_window_view(padded, n.size)
    blocks = []
    for start in range(0, n.size, _ROWS):
        # Row n holds log f(j) + log g(n - j), j running backwards.
        terms = windows[start : start + _ROWS] + log_f[::-1]
        top = terms.max(axis=1, keepdims=True)
        top[np.isneginf(top)] = 0.0
        with np.errstate(divide="ignore"):
            blocks.append(np.log(np.exp(terms - top).sum(axis=1)) + top[:, 0])
    return np.concatenate(blocks)


def _tilt(log_g: Floats) -> float:
    """Slope of the line through the first and the last number that are not 0."""
    present = np.flatnonzero(np.isfinite(log_g))
    first, last = present[0], present[-1]
    return float((log_g[last] - log_g[first]) / max(last - first, 1))


def _width(log_f: Floats, top: float) -> float:
    return float(top - log_f[np.isfinite(log_f)].min())
