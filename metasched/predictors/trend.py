"""The trend of the robust method: the best models of the exhaustive search, averaged by how well they hold.

One winner among twelve million is chosen partly by luck; models that fit almost as well may extrapolate elsewhere. The
trend is the geometric mean of the best of them, weighted as the Bayesian information criterion has it: likelihood
SSE^(-n/2) under relative errors of equal spread, times n^(-1/2) for each coefficient used (Bayesian model averaging;
Hoeting et al. 1999; Schwarz 1978).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from candidate_functions.exhaustive import exhaustive_search
from candidate_functions.terms import Observations, formula
from candidate_functions.together import Together
from metasched.predictors.contract import Floats
from metasched.predictors.simple import simplest_model, supports_two_growths, two_growths
from metasched.predictors.sorted_list import SortedList
from metasched.records import InputError

#: Models in the sorted list of the trend, and how many of them at most are averaged.
LISTED, AVERAGED = 200, 10
#: A model whose weight is below this share of the best one's is not averaged in.
NEGLIGIBLE = 0.02


@dataclass(frozen=True)
class Trend:
    """A weighted geometric mean of models of Eq. (1).

    Parameters
    ----------
    models : sorted list by relative error with coefficients of at least 0.

    Raises
    ------
    InputError
        When there are none.

    Examples
    --------
    >>> n, p = np.tile(np.linspace(100, 900, 9), 3), np.repeat([1, 2, 4], 9)
    >>> trend = Trend.search(Observations.of(n, p, np.ones(27), np.full(27, 90.0), 1e-3 * n**2 / p))
    >>> trend(*np.array([[2000.0], [8.0], [1.0], [90.0]])).round(3)
    array([500.])
    """

    models: SortedList

    def __post_init__(self) -> None:
        if not len(self.models):
            raise InputError("no model can be fitted to these runs: their numbers are too large or too small")

    @classmethod
    def search(cls, runs: Observations) -> Trend:
        """Find the best models of all."""
        found = exhaustive_search(runs, best=LISTED, relative=True, nonnegative=True)
        return cls(SortedList.of(found.combinations, runs, relative=True, nonnegative=True))

    @classmethod
    def simplest(cls, runs: Observations) -> tuple[Trend, tuple[str, ...]]:
        """The trend that few runs support, and what had to be assumed for it."""
        if supports_two_growths(runs):
            combinations, assumptions = two_growths()
            models = SortedList.of(combinations, runs, relative=True, nonnegative=True)
            return cls(models.keep(np.arange(min(LISTED, len(models))))), assumptions
        model = simplest_model(runs)
        return cls(SortedList.of(model.combination, runs, relative=True, nonnegative=True)), model.assumptions

    def learned(self, runs: Observations) -> Trend:
        """The trend after absorbing more runs."""
        return Trend(self.models.learned(runs))

    def weights(self) -> Floats:
        """Weights of the first models in the list, shape (m,), summing to 1."""
        return self._weights

    @cached_property
    def _weights(self) -> Floats:
        n = self.models.samples
        # Errors that a clock cannot tell from none must not decide between models.
        error = np.maximum(self.models.standard_error[:AVERAGED], 1e-9)
        coefficients = np.count_nonzero(self.models.coefficients[:AVERAGED], axis=1)
        weight: Floats = (error.min() / error) ** n * float(n) ** (-0.5 * coefficients)
        weight[weight < NEGLIGIBLE * weight.max()] = 0.0
        return np.asarray(weight / weight.sum())

    @cached_property
    def _averaged(self) -> tuple[Together, Floats]:
        """The models that are averaged, and their weights, shape (m, 1)."""
        weights = self._weights
        chosen = np.flatnonzero(weights)
        return Together.of(self.models.combinations[chosen], self.models.coefficients[chosen]), weights[chosen, None]

    def log_time(self, problem_size: Floats, processors: Floats, cpu: Floats, bw: Floats) -> Floats:
        """Predict the logarithm of time for arrays of one shape (n,); infinite where no averaged model is defined."""
        models, weights = self._averaged
        time = models(problem_size, processors, cpu, bw)
        defined = (time > 0.0) & (time < np.inf)
        if defined.all():
            return np.asarray((weights * np.log(time)).sum(axis=0))
        mass = np.where(defined, weights, 0.0)
        total, known = (mass * np.log(np.where(defined, time, 1.0))).sum(axis=0), mass.sum(axis=0)
        return np.where(known > 0.0, total / np.where(known > 0.0, known, 1.0), np.inf)

    def __call__(self, problem_size: Floats, processors: Floats, cpu: Floats, bw: Floats) -> Floats:
        """Predict for arrays of one shape (n,); infinite where none of the averaged models is defined."""
        with np.errstate(over="ignore"):
            return np.exp(self.log_time(problem_size, processors, cpu, bw))

    def formula(self) -> str:
        """The best model, and how many stand beside it."""
        weights = self.weights()
        best = int(np.argmax(weights))
        others = np.count_nonzero(weights) - 1
        text = formula(self.models.combinations[best], self.models.coefficients[best])
        return text if not others else f"{text} (weighted with {others} near-equal)"
