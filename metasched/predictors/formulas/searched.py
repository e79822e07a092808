"""The combinations of Eq. (1) that describe some runs best: by the exhaustive search where they support it."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from candidate_functions.exhaustive import exhaustive_search
from candidate_functions.terms import Observations
from metasched.predictors.formulas.few_runs import simplest_model, supports_search
from metasched.predictors.formulas.sorted_list import SortedList

#: Combinations in the list, and lists that are kept.
LISTED, KEPT = 200, 100


def searched_list(runs: Observations) -> SortedList:
    """The best combinations by relative error, coefficients of at least 0; with few runs the simplest one alone.

    What was found for the last sets of runs is kept: a search takes as long as many predictions, and pages repeat it.

    >>> import numpy as np
    >>> n, p = np.tile(np.linspace(100, 900, 9), 3), np.repeat([1, 2, 4], 9)
    >>> found = searched_list(Observations.of(n, p, np.ones(27), np.full(27, 90.0), 1e-3 * n**2 / p))
    >>> bool(found.standard_error[0] < 1e-6)
    True
    """
    columns = runs.problem_size, runs.processors, runs.cpu, runs.bw, runs.time
    return _searched(*(column.astype(np.float64).tobytes() for column in columns))


@lru_cache(maxsize=KEPT)
def _searched(*columns: bytes) -> SortedList:
    runs = Observations.of(*(np.frombuffer(column) for column in columns))
    if supports_search(runs):
        combinations = exhaustive_search(runs, best=LISTED, relative=True, nonnegative=True).combinations
    else:
        combinations = simplest_model(runs).combination
    return SortedList.of(combinations, runs, relative=True, nonnegative=True)
