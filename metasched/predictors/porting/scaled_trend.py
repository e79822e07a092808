"""Eq. (3): the reference platform's formulas with both terms scaled to the target platform."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from candidate_functions.terms import Combinations, TermTable, formula
from metasched.predictors.contract import Floats
from metasched.predictors.sorted_list import SortedList
from metasched.predictors.trend import Trend


@dataclass(frozen=True)
class ScaledTrend:
    """A weighted geometric mean of models of Eq. (1), their two terms scaled.

    Parameters
    ----------
    combinations : array of shape (m, 5).
    coefficients : array of shape (m, 2), those of the reference platform.
    weights : array of shape (m,), summing to 1.
    computation, communication : factors of the two terms, above 0.

    Examples
    --------
    >>> one = np.array([[6, 6, 1, 1, 1]], dtype=np.int16)  # N / (cpu P) + 2 N / (bw P)
    >>> trend = ScaledTrend(one, np.array([[1.0, 2.0]]), np.ones(1), computation=0.5, communication=3.0)
    >>> time, share = trend.split(*np.array([[100.0], [2.0], [0.5], [50.0]]))
    >>> time, share.round(4)
    (array([56.]), array([0.8929]))
    """

    combinations: Combinations
    coefficients: Floats
    weights: Floats
    computation: float = 1.0
    communication: float = 1.0

    @classmethod
    def best(cls, models: SortedList) -> ScaledTrend:
        """The best model of a sorted list by itself, as the published method predicts."""
        return cls(models.combinations[:1], models.coefficients[:1], np.ones(1))

    @classmethod
    def averaged(cls, trend: Trend) -> ScaledTrend:
        """The averaged models of a robust trend."""
        weights = trend.weights()
        used = np.flatnonzero(weights)
        return cls(trend.models.combinations[used], trend.models.coefficients[used], weights[used])

    @property
    def formula(self) -> str:
        """The model that weighs most, as it is scaled."""
        best = int(np.argmax(self.weights))
        return formula(self.combinations[best], self.coefficients[best] * (self.computation, self.communication))

    @property
    def communicates(self) -> bool:
        """Whether any of the models has a communication term for Rbw to scale."""
        return bool(np.any(self.coefficients[:, 1] != 0.0))

    def scaled(self, computation: float, communication: float) -> ScaledTrend:
        """The same formulas under other factors."""
        return replace(self, computation=computation, communication=communication)

    def split(
        self, problem_size: Floats, processors: Floats, cpu: Floats, bw: Floats, congestion: Floats | float = 1.0
    ) -> tuple[Floats, Floats]:
        """Time (s) and the share of it spent computing, for arrays of one shape (n,).

        The share is also the derivative of log time by the log of the computation's factor, and one less the share that
        by the log of the communication's. Where none of the models is defined the time is infinite and the share 1.

        Parameters
        ----------
        problem_size, processors, cpu, bw : what is asked about.
        congestion : factor of each communication term beside the one for all, of the same shape or one number.
        """
        columns = TermTable(problem_size, processors, cpu, bw).columns(self.combinations)
        # A term with the coefficient 0 takes no part, even where its function is not defined.
        coefficients = (self.coefficients * (self.computation, self.communication))[:, :, None]
        with np.errstate(over="ignore"):
            terms = np.where(coefficients > 0.0, np.where(coefficients > 0.0, columns, 0.0) * coefficients, 0.0)
            terms[:, 1] *= congestion
            times = terms.sum(axis=1)  # Eq. (3), shape (m, n)
        defined = (times > 0.0) & (times < np.inf)
        weights = np.where(defined, self.weights[:, None], 0.0)
        mass = weights.sum(axis=0)
        safe = np.where(defined, times, 1.0)
        somewhere = np.where(mass > 0.0, mass, 1.0)
        time = np.exp((weights * np.log(safe)).sum(axis=0) / somewhere)
        share = (weights * np.where(defined, terms[:, 0], 1.0) / safe).sum(axis=0) / somewhere
        return np.where(mass > 0.0, time, np.inf), np.where(mass > 0.0, share, 1.0)
