"""The 8 functions of the available bandwidth (Mbit/s): Table 2 of Sanjay & Vadhiyar 2008, in its order.

log(bw) is not positive at bw <= 1: there the two functions with a logarithm are not defined, and combinations that use
them are skipped.
"""

from __future__ import annotations

import numpy as np

from candidate_functions.family import CandidateFunction, Family, Floats, guarded_reciprocal


def _power(exponent: float, name: str, formula: str) -> CandidateFunction:
    return CandidateFunction(name, formula, lambda bw: np.power(bw, exponent), lambda bw: np.power(bw, -exponent))


def _log(bw: Floats) -> Floats:
    return np.maximum(np.log(bw), 0.0)


#: The family f_bw is chosen from: 8 functions of the available bandwidth.
BANDWIDTH = Family(
    "bw",
    [
        _power(0.5, "bw^1/2", "sqrt(bw)"),
        _power(1.0, "bw", "bw"),
        _power(1.5, "bw^3/2", "bw^1.5"),
        _power(2.0, "bw^2", "bw^2"),
        _power(2.5, "bw^5/2", "bw^2.5"),
        _power(3.0, "bw^3", "bw^3"),
        CandidateFunction("log", "log(bw)", _log, lambda bw: guarded_reciprocal(_log(bw))),
        CandidateFunction(
            "bw_log", "bw log(bw)", lambda bw: bw * _log(bw), lambda bw: guarded_reciprocal(bw * _log(bw))
        ),
    ],
)
