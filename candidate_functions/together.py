"""Many models of Eq. (1) evaluated together, in the logarithms of what their functions are made of.

Every candidate function is a product of powers of a few factors: of N, log2(1 + N) and log2(1 + log2(1 + N)), of bw and
log bw, of P and log P. So the logarithms of all terms of many models are one product of a matrix of exponents and the
logarithms of these factors. For a handful of conditions this takes a tenth of the time of function after function.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from candidate_functions.family import Family, Floats
from candidate_functions.terms import FAMILIES, Combinations

#: Stands for the logarithm of 0: its powers are 0 or infinite as they should be, and 0 times it is still 0.
LOG_OF_ZERO = -1e6
#: Conditions that are evaluated in one piece: their terms stay in the processor's cache.
PIECE = 4096

_COMPLEXITY, _, _BANDWIDTH, _SCALABILITY, _ = FAMILIES


@dataclass(frozen=True)
class Together:
    """Some models of Eq. (1), evaluated together.

    Parameters
    ----------
    exponents : array of shape (2m, 8), of the factors that :func:`log_factors` tells, computation terms first.
    log_coefficients : array of shape (2m, 1).

    Examples
    --------
    >>> models = Together.of(np.array([[6, 6, 1, 1, 1], [12, 6, 1, 1, 1]]), np.array([[1.0, 2.0], [0.5, 0.0]]))
    >>> models(*np.array([[100.0], [2.0], [0.5], [50.0]])).round(9)
    array([[ 102.],
           [5000.]])
    """

    exponents: Floats
    log_coefficients: Floats

    @classmethod
    def of(cls, combinations: Combinations, coefficients: Floats) -> Together:
        """Make it of combinations of shape (m, 5) and coefficients of shape (m, 2), none of them negative."""
        comp, comm, bw, pcomp, pcomm = combinations.T
        complexity, bandwidth, scalability = (_exponents(each) for each in (_COMPLEXITY, _BANDWIDTH, _SCALABILITY))
        models = len(combinations)
        one, none = np.ones((models, 1)), np.zeros((models, 2))
        exponents = np.concatenate(
            [
                np.hstack([complexity[comp], none, -scalability[pcomp], -one]),
                np.hstack([complexity[comm], -bandwidth[bw], -scalability[pcomm], 0.0 * one]),
            ]
        )
        flat = coefficients.T.ravel()
        # A term whose coefficient is 0 is left out, wherever it may not be defined.
        exponents[flat == 0.0] = 0.0
        return cls(exponents, _log(flat)[:, None])

    def __call__(self, problem_size: Floats, processors: Floats, cpu: Floats, bw: Floats) -> Floats:
        """Times (s) by every model at arrays of one shape (n,): shape (m, n); infinite where one is not defined."""
        time = np.empty((len(self.exponents) // 2, processors.size))
        for start in range(0, processors.size, PIECE):
            piece = slice(start, start + PIECE)
            time[:, piece] = self._piece(problem_size[piece], processors[piece], cpu[piece], bw[piece])
        return time

    def _piece(self, problem_size: Floats, processors: Floats, cpu: Floats, bw: Floats) -> Floats:
        with np.errstate(over="ignore"):
            terms = np.exp(self.exponents @ log_factors(problem_size, processors, cpu, bw) + self.log_coefficients)
        models = len(terms) // 2
        return np.asarray(terms[:models] + np.where(processors > 1.0, terms[models:], 0.0))


def log_factors(problem_size: Floats, processors: Floats, cpu: Floats, bw: Floats) -> Floats:
    """Logarithms of the factors, shape (8, n): three of N, two of bw, two of P, and the available CPU."""
    with np.errstate(divide="ignore"):
        log_n, log_bw, log_p = np.log(problem_size), np.log(bw), np.log(processors)
        log_of = np.log2(1.0 + problem_size)
        return np.stack(
            [
                log_n,
                np.log(log_of),
                np.log(np.log2(1.0 + log_of)),
                log_bw,
                _log(np.maximum(log_bw, 0.0)),
                log_p,
                _log(log_p),
                np.log(cpu),
            ]
        )


def _log(values: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(values), LOG_OF_ZERO)


def _exponents(family: Family) -> Floats:
    return np.array([function.exponents for function in family])
