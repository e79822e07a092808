"""Sequences of positive numbers that would overflow: products of generating functions, kept as logarithms.

The normalisation constants of a closed network run over thousands of orders of magnitude, but they are sums of positive
terms only, so nothing is lost as long as they neither overflow nor vanish. Axis order: (network, n), n = 0, 1, ..., N.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import TypeVar

import numpy as np

from metasched.arrays import Floats

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
    n = np.arange(log_f.shape[1])
    tilt = _tilt(log_g)[:, None] * n
    f, top_f, width_f = _flatten(log_f - tilt)
    g, top_g, width_g = _flatten(log_g - tilt)
    with np.errstate(divide="ignore"):
        result = np.log(_multiply(f, g)) + (top_f + top_g) + tilt
    for row in np.flatnonzero(width_f + width_g > 2 * _SAFE):
        result[row] = _convolve_logarithms(log_f[row], log_g[row])
    return np.asarray(result)


def leave_one_out(base: Floats, factors: Sequence[Factor], times: Callable[[Floats, Factor], Floats]) -> list[Floats]:
    """For each factor, the product of ``base`` with all the others, without ever dividing.

    Each half of the factors takes in the whole other half, and so on downwards: about S log2 S products for S factors.

    Parameters
    ----------
    base : the product of what is in all of them.
    factors : S of them.
    times : multiplies a product with a factor.

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


def _tilt(logs: Floats) -> Floats:
    """Slope of the line through the first and the last number of each row that are not 0, shape (networks,)."""
    present = np.isfinite(logs)
    first = np.argmax(present, axis=1)
    last = logs.shape[1] - 1 - np.argmax(present[:, ::-1], axis=1)
    rows = np.arange(len(logs))
    ends = np.where(present.any(axis=1), (logs[rows, first], logs[rows, last]), 0.0)
    return np.asarray((ends[1] - ends[0]) / np.maximum(last - first, 1))


def _flatten(logs: Floats) -> tuple[Floats, Floats, Floats]:
    """Numbers relative to the largest of each row, its logarithm, and the width of each row's logarithms."""
    present = np.isfinite(logs)
    top = np.max(logs, axis=1, where=present, initial=-np.inf)
    top[np.isneginf(top)] = 0.0
    bottom = np.minimum(np.min(logs, axis=1, where=present, initial=np.inf), top)
    return np.exp(logs - top[:, None]), top[:, None], top - bottom


def _multiply(f: Floats, g: Floats) -> Floats:
    """First N + 1 numbers of the convolution of each row of ``f`` with that of ``g``."""
    networks, length = f.shape
    if networks < length:
        return np.stack([np.convolve(one, other)[:length] for one, other in zip(f, g, strict=True)])
    product = np.zeros_like(f)
    for shift in range(length):
        product[:, shift:] += f[:, shift : shift + 1] * g[:, : length - shift]
    return product


def _convolve_logarithms(log_f: Floats, log_g: Floats) -> Floats:
    """The same for one pair whose numbers do not fit double range: each sum relative to its largest term."""
    length = log_f.size
    padded = np.concatenate([np.full(length - 1, -np.inf), log_g])
    windows = np.lib.stride_tricks.sliding_window_view(padded, length)
    blocks = []
    for start in range(0, length, _ROWS):
        # Row n holds log f(j) + log g(n - j), j running backwards.
        terms = windows[start : start + _ROWS] + log_f[::-1]
        top = terms.max(axis=1, keepdims=True)
        top[np.isneginf(top)] = 0.0
        with np.errstate(divide="ignore"):
            blocks.append(np.log(np.exp(terms - top).sum(axis=1)) + top[:, 0])
    return np.concatenate(blocks)
