"""The objective of a ranking: completion time alone, or a weighted sum with core-hours, energy, risk and harm."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from metasched.arrays import Floats
from metasched.records import InputError

#: Weights other than 0 lie between these: beyond, scores can no longer be distinguished as numbers.
LEAST_WEIGHT, MOST_WEIGHT = 1e-30, 1e30


@dataclass(frozen=True, slots=True)
class Terms:
    """The costs of placements by term; each an array of shape (n,).

    Parameters
    ----------
    time : expected completion, queue wait plus execution time (s).
    core_hours : processors times execution time (h).
    energy : of the run (J).
    risk : upper end of the completion's interval (s).
    harm : time that jobs already there lose (s).
    """

    time: Floats
    core_hours: Floats
    energy: Floats
    risk: Floats
    harm: Floats

    @classmethod
    def of(
        cls,
        execution_time: ArrayLike,
        high: ArrayLike,
        *,
        processors: ArrayLike,
        queue_wait: ArrayLike = 0.0,
        energy: ArrayLike = 0.0,
        harm: ArrayLike = 0.0,
    ) -> Terms:
        """The terms of placements with these execution times (s), upper ends (s) and energies (J).

        Parameters
        ----------
        execution_time : expected, shape (n,) (s).
        high : upper ends of the intervals of the times, shape (n,) (s).
        processors : that each takes.
        queue_wait : until each starts (s).
        energy : of each (J).
        harm : time that jobs already there lose (s).
        """
        seconds, upper, count, wait, joules, lost = np.broadcast_arrays(
            *(
                np.asarray(each, dtype=np.float64)
                for each in (execution_time, high, processors, queue_wait, energy, harm)
            )
        )
        return cls(wait + seconds, count * seconds / 3600.0, joules, wait + upper, lost)


@dataclass(frozen=True, slots=True)
class Objective:
    """The score that the ranking minimises: a weighted sum of the terms, times ``P**penalty``.

    A weight is a price in seconds: ``core_hours=60`` says that a core-hour saved is worth 60 s of waiting. Every term
    grows with the execution time, so the optimum stays where the exact search looks for it; learned energy does as far
    as what a node draws idle weighs more than what a faster run draws besides.

    Parameters
    ----------
    time, core_hours, energy, risk, harm : weights, 0 or from 1e-30 to 1e30, not all 0.
    saving : least part of the cost that taking twice the processors must save, in [0, 1).
        Two numbers of processors P < Q are then compared by cost times P**a with a = -log2(1 - saving): Q wins only if
        its cost is below (1 - saving)**log2(Q/P) of P's. That is an order, so it does not matter which is asked first.

    Examples
    --------
    100 s on 8 processors or 97 s on 16: the fastest wins, unless doubling has to save a twentieth.

    >>> terms = Terms.of([100.0, 97.0], [110.0, 107.0], processors=[8, 16])
    >>> int(Objective().score(terms, [8, 16]).argmin()), int(Objective(saving=0.05).score(terms, [8, 16]).argmin())
    (1, 0)
    """

    time: float = 1.0
    core_hours: float = 0.0
    energy: float = 0.0
    risk: float = 0.0
    harm: float = 0.0
    saving: float = 0.0

    def __post_init__(self) -> None:
        weights = {name: getattr(self, name) for name in TERMS}
        for name, weight in weights.items():
            if not 0 <= weight < math.inf:
                raise InputError(f"weight of {name} is {weight}, expected a finite number of at least 0")
            if weight and not LEAST_WEIGHT <= weight <= MOST_WEIGHT:
                expected = f"expected 0 or a number from {LEAST_WEIGHT:g} to {MOST_WEIGHT:g}"
                raise InputError(f"weight of {name} is {weight}, {expected}")
        if not any(weights.values()):
            raise InputError("all weights of the objective are 0, expected one above 0")
        if not 0 <= self.saving < 1:
            raise InputError(f"saving is {self.saving}, expected a number in [0, 1)")

    @property
    def time_alone(self) -> bool:
        """Whether the time is the only weighted term."""
        return not any(getattr(self, name) for name in TERMS if name != "time")

    @property
    def energy_alone(self) -> bool:
        """Whether the energy is the only weighted term."""
        return not any(getattr(self, name) for name in TERMS if name != "energy")

    def score_time(self, time: Floats, processors: ArrayLike) -> Floats:
        """The :meth:`score` of terms with these times if :attr:`time_alone`, shape (n,).

        Parameters
        ----------
        time : wait and execution time of n placements together (s).
        processors : of each, on which the saving depends.
        """
        return self._with_saving(self.time * time, processors)

    def score(self, terms: Terms, processors: ArrayLike) -> Floats:
        """The weighted sum of the terms with the saving that doubling must bring, shape (n,)."""
        total = np.zeros(np.shape(terms.time))
        for name in TERMS:
            weight = getattr(self, name)
            if weight:
                total = total + weight * getattr(terms, name)
        return self._with_saving(total, processors)

    def _with_saving(self, total: Floats, processors: ArrayLike) -> Floats:
        if self.saving:
            total = total * np.asarray(processors, dtype=np.float64) ** -math.log2(1.0 - self.saving)
        return total


#: The terms of an objective, in the order of their columns.
TERMS = ("time", "core_hours", "energy", "risk", "harm")
#: The earliest completion, which most rankings are for.
EARLIEST = Objective()
