"""The sorted list: combinations of functions ordered by standard error, fitted again after every run.

Section 3.4 of Sanjay & Vadhiyar 2008. A run is absorbed by all combinations at once, at a cost that depends on the
length of the list alone. A combination that stood in the last tenth of the list after five runs in a row is dropped.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from candidate_functions.least_squares import ascending, standard_error
from candidate_functions.square_root import SquareRootSums
from candidate_functions.terms import Combinations, Observations, TermTable
from metasched.arrays import Flags, Floats

#: Share of the list at its end, and the number of runs in a row after which members there are dropped.
LAST_SHARE = 0.10
PATIENCE = 5


@dataclass(frozen=True)
class SortedList:
    """Candidate models, best first.

    Parameters
    ----------
    combinations : array of shape (k, 5).
    factors : square-root sums of the runs absorbed, shape (6, k); see ``candidate_functions.square_root``.
    coefficients : array of shape (k, 2).
    standard_error : array of shape (k,), ascending.
    in_last : how many runs in a row each combination has stood in the last tenth, shape (k,).
    samples : runs absorbed.
    relative : whether errors are weighed relative to the measured time.
    nonnegative : whether coefficients are kept at 0 or above.

    Examples
    --------
    >>> runs = Observations.of([1, 2, 3, 4], [2, 2, 4, 4], [1, 1, 1, 1], [9, 9, 9, 9], [1, 2, 1.5, 2])
    >>> models = SortedList.of(np.array([[6, 0, 1, 1, 1], [12, 0, 1, 1, 1]], dtype=np.int16), runs)
    >>> len(models), models.samples
    (2, 4)
    """

    combinations: Combinations
    factors: Floats
    coefficients: Floats
    standard_error: Floats
    in_last: NDArray[np.intp]
    samples: int
    relative: bool
    nonnegative: bool

    @classmethod
    def of(
        cls, combinations: Combinations, runs: Observations, *, relative: bool = False, nonnegative: bool = False
    ) -> SortedList:
        """Fit combinations to runs and sort them; combinations not defined on all of the runs are left out."""
        weight = 1.0 / runs.time if relative else np.ones_like(runs.time)
        columns = TermTable.at(runs).columns(combinations) * weight
        defined = np.isfinite(columns).all(axis=(1, 2))
        sums = SquareRootSums.of(columns[defined], runs.time * weight)
        return cls.from_factors(
            combinations[defined], sums.factors, samples=len(runs), relative=relative, nonnegative=nonnegative
        )

    @classmethod
    def from_factors(
        cls,
        combinations: Combinations,
        factors: Floats,
        *,
        samples: int,
        relative: bool,
        nonnegative: bool,
        in_last: NDArray[np.intp] | None = None,
    ) -> SortedList:
        """Solve for the coefficients and sort by standard error; ``in_last`` is 0 for all by default."""
        fit = SquareRootSums(factors).solve(nonnegative=nonnegative)
        error = standard_error(fit.sse, max(samples, 3), 2)
        order = ascending(error)
        waited = np.zeros(len(order), dtype=np.intp) if in_last is None else in_last
        return cls(
            combinations[order],
            factors[:, order],
            fit.coefficients[order],
            error[order],
            waited[order],
            samples,
            relative,
            nonnegative,
        )

    def __len__(self) -> int:
        return len(self.combinations)

    def learned(self, runs: Observations) -> SortedList:
        """The list after absorbing runs one by one: refitted, reordered, thinned out."""
        models = self
        table = TermTable.at(runs)
        for position in range(len(runs)):
            models = models._absorb(table.columns(models.combinations)[:, :, position], float(runs.time[position]))
        return models

    def _absorb(self, row: Floats, time: float) -> SortedList:
        weight = 1.0 / time if self.relative else 1.0
        defined: Flags = np.asarray(np.isfinite(row).all(axis=1))
        if not defined.any():
            return self
        models = self.keep(defined)
        sums = SquareRootSums(models.factors)
        sums.add(row[defined] * weight, time * weight)
        models = SortedList.from_factors(
            models.combinations,
            sums.factors,
            samples=self.samples + 1,
            relative=self.relative,
            nonnegative=self.nonnegative,
            in_last=models.in_last,
        )
        return models._thin_out()

    def _thin_out(self) -> SortedList:
        last = int(LAST_SHARE * len(self))
        in_last = self.in_last.copy()
        in_last[: len(self) - last] = 0
        in_last[len(self) - last :] += 1
        patient: Flags = np.less(in_last, PATIENCE)
        return replace(self, in_last=in_last).keep(patient)

    def keep(self, chosen: Flags | NDArray[np.intp]) -> SortedList:
        """Only the chosen combinations, by a mask (k,) or by positions; their order stays."""
        return replace(
            self,
            combinations=self.combinations[chosen],
            factors=self.factors[:, chosen],
            coefficients=self.coefficients[chosen],
            standard_error=self.standard_error[chosen],
            in_last=self.in_last[chosen],
        )
