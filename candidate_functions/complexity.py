"""The 77 complexity functions of the problem size N, for computation and for communication alike.

The paper (Sanjay & Vadhiyar 2008, section 3.1) says of what kind they are, "polynomial, logarithmic and mixtures", and
lists none. This choice spans from slower than log N to N^4 and is densest where real kernels live. Each is N^a times a
power of L = log2(1 + N), or of log2(1 + L); with 1 + N in the logarithm every function is strictly positive and
non-decreasing for every N > 0, so none needs a special case.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from candidate_functions.family import CandidateFunction, Family, Floats

#: Exponents of N for each power of L = log2(1 + N) that multiplies them.
_POWERS_OF_LOG: dict[str, str] = {
    "0": "0 1/4 1/3 1/2 2/3 3/4 1 5/4 4/3 3/2 5/3 7/4 2 9/4 7/3 5/2 8/3 11/4 3 13/4 7/2 15/4 4",
    "1/2": "0 1/2 1 3/2 2 5/2 3 4",
    "1": "0 1/4 1/2 3/4 1 5/4 4/3 3/2 5/3 7/4 2 9/4 5/2 11/4 3 13/4 7/2 4",
    "2": "0 1/2 1 5/4 3/2 7/4 2 9/4 5/2 3 7/2 4",
    "3": "0 1/2 1 3/2 2 5/2 3",
    "-1": "1 3/2 2 3",
}
#: Exponents of N where log2(1 + L) multiplies them.
_ITERATED_LOG = "0 1 3/2 2 3"


def _plain(exponent: Fraction) -> str:
    return f"{float(exponent):.4g}" if exponent.denominator in (1, 2, 4) else f"({exponent})"


def _power_formula(exponent: Fraction) -> str:
    if exponent == 0:
        return ""
    return "N" if exponent == 1 else f"N^{_plain(exponent)}"


def _log_formula(exponent: Fraction) -> str:
    if exponent == 0:
        return ""
    if exponent == Fraction(1, 2):
        return "sqrt(log N)"
    return "log N" if exponent == 1 else f"log^{exponent} N"


def _name(power: Fraction, suffix: str) -> str:
    return "_".join(filter(None, (f"n^{power}" if power else "", suffix))) or "1"


def _log2_1p(x: Floats) -> Floats:
    """log2(1 + x), above 0 however small x is."""
    return np.log1p(x) / math.log(2.0)


def _function(name: str, formula: str, power: float, log_power: float, iterated: bool) -> CandidateFunction:
    def value(n: Floats) -> Floats:
        result = np.power(n, power) if power else np.ones_like(n)
        if iterated:
            result = result * _log2_1p(_log2_1p(n))
        elif log_power:
            result = result * _log2_1p(n) ** log_power
        return result

    def reciprocal(n: Floats) -> Floats:
        return 1.0 / value(n)

    return CandidateFunction(name, formula, value, reciprocal)


def _power_times_log(power: Fraction, log_power: Fraction) -> CandidateFunction:
    if log_power < 0:
        formula = f"{_power_formula(power)} / {_log_formula(-log_power)}"
    else:
        formula = " ".join(filter(None, (_power_formula(power), _log_formula(log_power)))) or "1"
    suffix = f"log^{log_power}" if log_power else ""
    return _function(_name(power, suffix), formula, float(power), float(log_power), iterated=False)


def _power_times_iterated_log(power: Fraction) -> CandidateFunction:
    formula = " ".join(filter(None, (_power_formula(power), "log log N")))
    return _function(_name(power, "loglog"), formula, float(power), 0.0, iterated=True)


#: The family f_comp and f_comm are chosen from: 77 functions of the problem size.
COMPLEXITY = Family(
    "N",
    [
        *(
            _power_times_log(Fraction(power), Fraction(log_power))
            for log_power, powers in _POWERS_OF_LOG.items()
            for power in powers.split()
        ),
        *(_power_times_iterated_log(Fraction(power)) for power in _ITERATED_LOG.split()),
    ],
)
