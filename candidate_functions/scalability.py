"""The 16 functions of the number of processors: Table 1 of Sanjay & Vadhiyar 2008, in its order.

The terms of Eq. (1) divide by them, so the first eight speak of work that is shared out and the last eight of cost that
grows with P. log(P) is 0 at P = 1: dividing by it is not defined there, while dividing by 1/log(P) gives 0.
"""

from __future__ import annotations

import numpy as np

from candidate_functions.family import CandidateFunction, Family, Floats, guarded_reciprocal


def _shares(exponent: float, name: str, formula: str) -> CandidateFunction:
    return CandidateFunction(name, formula, lambda p: np.power(p, exponent), lambda p: np.power(p, -exponent))


def _grows(exponent: float, name: str, formula: str) -> CandidateFunction:
    return CandidateFunction(name, formula, lambda p: np.power(p, -exponent), lambda p: np.power(p, exponent))


def _plog(p: Floats) -> Floats:
    return p * np.log(p)


_POWERS = ((0.5, "1/2"), (1.0, "1"), (1.5, "3/2"), (2.0, "2"), (2.5, "5/2"), (3.0, "3"))
_FORMULAS = ("sqrt(P)", "P", "P^1.5", "P^2", "P^2.5", "P^3")
_NAMES = tuple("p" if name == "1" else f"p^{name}" for _, name in _POWERS)

#: The family f_Pcomp and f_Pcomm are chosen from: 16 functions of the number of processors.
SCALABILITY = Family(
    "P",
    [
        *(_shares(power, name, formula) for (power, _), name, formula in zip(_POWERS, _NAMES, _FORMULAS, strict=True)),
        CandidateFunction("log", "log(P)", np.log, lambda p: guarded_reciprocal(np.log(p))),
        CandidateFunction("p_log", "P log(P)", _plog, lambda p: guarded_reciprocal(_plog(p))),
        *(
            _grows(power, f"1/{name}", f"1/{formula}")
            for (power, _), name, formula in zip(_POWERS, _NAMES, _FORMULAS, strict=True)
        ),
        CandidateFunction("1/log", "1/log(P)", lambda p: guarded_reciprocal(np.log(p)), np.log),
        CandidateFunction("1/p_log", "1/(P log(P))", lambda p: guarded_reciprocal(_plog(p)), _plog),
    ],
)
