"""A predictor with a known Eq. (1): T = a N^x / (P cpu) + b N^y log2(2P) / bw, and an interval of a fixed width."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from metasched.predictors.abilities import PowerTerm
from metasched.predictors.columns import ByColumns
from metasched.predictors.contract import Predictions
from metasched.records import Run


@dataclass(frozen=True)
class Known(ByColumns):
    """Times that can be computed by hand: ``work / (P cpu) + traffic * log2(2 P) / bw``, per unit of N."""

    work: float = 100.0
    traffic: float = 1000.0
    spread: float = 0.1
    name: str = "known"
    tells_powers: bool = True

    def _predicted(self, columns, level):
        n, p, cpu, bw = columns
        time = n * (self.work / (p * cpu) + self.traffic * np.log2(2.0 * p) / bw)
        return Predictions(time, time * (1 - self.spread), time * (1 + self.spread), level)

    def power_terms(self, problem_size, processors):
        p = np.asarray(processors, dtype=np.float64)
        if not self.tells_powers:
            return None
        sent = problem_size * self.traffic * np.log2(2.0 * p)
        return PowerTerm(problem_size * self.work / p, -1.0, 0.0), PowerTerm(sent, 0.0, -1.0)

    def fit(self, runs: Iterable[Run]) -> Known:
        raise NotImplementedError

    def learn(self, run: Run) -> None:
        raise NotImplementedError
