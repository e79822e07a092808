"""The published search for the functions of Eq. (1): three stages, each keeping the best of what the last one kept.

Sanjay & Vadhiyar 2008, sections 3.1 to 3.3. Computation is modelled on one processor, communication on two (Eq. 2),
scalability on two and more. Each stage keeps functions whose standard error is at most 20 % above the stage's least,
and not more than a limit. An application that needs a minimum number of processors takes the second route: its
computation and communication are modelled together on the fewest processors it was run on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from candidate_functions.bandwidth import BANDWIDTH
from candidate_functions.complexity import COMPLEXITY
from candidate_functions.family import Floats
from candidate_functions.least_squares import UnitColumns, ascending, pair_reductions, standard_error
from candidate_functions.scalability import SCALABILITY
from candidate_functions.square_root import SquareRootSums
from candidate_functions.terms import Combinations, Observations, TermTable

#: Positions of f_P = P in the scalability family, which Eq. (2) takes for both terms.
_P = SCALABILITY.index("p")


@dataclass(frozen=True, slots=True)
class Limits:
    """How much each stage keeps; the defaults are the paper's."""

    tolerance: float = 0.20
    computation: int = 20
    communication_each: int = 10
    communication: int = 20
    scalability_each: int = 50
    #: Second route: a function is dropped when more than this share of its combinations exceeds the tolerance.
    strikes: float = 0.95


@dataclass(frozen=True)
class StagedResult:
    """What the staged search found.

    Parameters
    ----------
    combinations : array of shape (k, 5), best first.
    coefficients : array of shape (k, 2), of the fit to the runs of the last stage.
    standard_error : array of shape (k,), seconds, ascending.
    computation : positions of the computation functions kept by the first stage, best first; empty on the second route.
    tried : combinations evaluated in each stage.
    route : "one processor first" or "minimum processors".
    """

    combinations: Combinations
    coefficients: Floats
    standard_error: Floats
    computation: NDArray[np.intp]
    tried: tuple[int, ...]
    route: str


class _Stage(NamedTuple):
    """Runs of one stage: their terms, and their times (s)."""

    table: TermTable
    target: Floats

    def where(self, chosen: NDArray[np.bool_]) -> _Stage:
        return _Stage(self.table.where(chosen), self.target[chosen])


def staged_search(runs: Observations, *, limits: Limits | None = None) -> StagedResult:
    """Search the published way.

    Raises
    ------
    ValueError : all runs are on one processor: there is nothing to model communication and scalability with.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> n, p = rng.uniform(100, 1000, 60), np.repeat([1, 2, 4, 8], 15)
    >>> cpu, bw = rng.uniform(0.5, 1, 60), rng.uniform(50, 100, 60)
    >>> time = 1e-3 * n**2 / (cpu * p) + np.where(p > 1, 0.1 * n / bw * np.log(p), 0)
    >>> found = staged_search(Observations.of(n, p, cpu, bw, time))
    >>> found.tried[0], found.route
    (77, 'one processor first')
    """
    limits = limits or Limits()
    alone = runs.processors == 1.0
    if alone.all():
        raise ValueError(
            "all runs are on one processor, expected runs on two or more for communication and scalability"
        )
    stage = _Stage(TermTable.at(runs), runs.time)
    if alone.sum() >= 2:
        computation = _computation_stage(stage.where(alone), limits)
        computation_tried: tuple[int, ...] = (len(COMPLEXITY),)
        route = "one processor first"
        candidates = computation
    else:
        computation = np.empty(0, dtype=np.intp)
        computation_tried = ()
        route = "minimum processors"
        candidates = np.arange(len(COMPLEXITY))
    fewest = runs.processors == runs.processors[~alone].min()
    pairs, communication_tried = _communication_stage(
        stage.where(fewest), candidates, limits, eliminate=not len(computation)
    )
    combinations, coefficients, error, scalability_tried = _scalability_stage(stage.where(~alone), pairs, limits)
    return StagedResult(
        combinations,
        coefficients,
        error,
        computation,
        (*computation_tried, communication_tried, scalability_tried),
        route,
    )


def _computation_stage(stage: _Stage, limits: Limits) -> NDArray[np.intp]:
    """Section 3.1: fit each complexity function over the available CPU; keep the best."""
    columns = UnitColumns.of(stage.table.complexity * stage.table.inverse_cpu, stage.target)
    residual = stage.target - columns.projection[:, None] * columns.unit
    sse = np.where(columns.usable, np.einsum("ij,ij->i", residual, residual), np.inf)
    return _best(standard_error(sse, len(stage.target), 1), limits.tolerance, limits.computation)


def _communication_stage(
    stage: _Stage, comp: NDArray[np.intp], limits: Limits, *, eliminate: bool
) -> tuple[Combinations, int]:
    """Section 3.2, Eq. (2): every kept computation function with every communication and bandwidth function."""
    communications, bandwidths = len(COMPLEXITY), len(BANDWIDTH)
    first = UnitColumns.of(stage.table.computation(comp, np.full(len(comp), _P)), stage.target)
    comm, bw = np.divmod(np.arange(communications * bandwidths), bandwidths)
    second = UnitColumns.of(stage.table.communication(comm, bw, np.full(len(comm), _P)), stage.target)
    samples = len(stage.target)
    explained = pair_reductions(first, second)
    error = standard_error(stage.target @ stage.target - explained, max(samples, 3), 2)
    if eliminate:
        error = _eliminate(error, communications, limits)
    # The filtered list: of each computation function the best few, then the best of all of them.
    rows, columns = _best_each(error, limits.communication_each)
    chosen = _best(error[rows, columns], limits.tolerance, limits.communication)
    rows, columns = rows[chosen], columns[chosen]
    pairs = np.full((len(chosen), 5), _P, dtype=np.int16)
    pairs[:, 0], pairs[:, 1], pairs[:, 2] = comp[rows], comm[columns], bw[columns]
    return pairs, error.size


def _eliminate(error: Floats, communications: int, limits: Limits) -> Floats:
    """Second route: drop computation and communication functions whose combinations are mostly poor.

    A combination is poor when its error exceeds the least by more than the tolerance; a function is dropped when more
    than the given share of its combinations is poor, unless that would drop all.
    """
    poor = error > (1.0 + limits.tolerance) * error.min()
    of_comp = poor.mean(axis=1)
    of_comm = poor.reshape(len(error), communications, -1).mean(axis=(0, 2))
    drop_comp = of_comp > max(limits.strikes, of_comp.min())
    drop_comm = of_comm > max(limits.strikes, of_comm.min())
    bandwidths = error.shape[1] // communications
    return np.where(drop_comp[:, None] | np.repeat(drop_comm, bandwidths)[None, :], np.inf, error)


def _scalability_stage(stage: _Stage, pairs: Combinations, limits: Limits) -> tuple[Combinations, Floats, Floats, int]:
    """Section 3.3: every kept pair with every two scalability functions; the survivors are solved again by QR."""
    size, samples = len(SCALABILITY), len(stage.target)
    comp, comm, bw = (pairs[:, field, None] for field in range(3))
    scalability = np.arange(size)[None, :]
    first = stage.table.computation(comp, scalability)
    second = stage.table.communication(comm, bw, scalability)
    explained = pair_reductions(UnitColumns.of(first, stage.target), UnitColumns.of(second, stage.target))
    error = standard_error(stage.target @ stage.target - explained, max(samples, 3), 2).reshape(len(pairs), -1)
    pair, functions = _best_each(error, limits.scalability_each)
    pcomp, pcomm = np.divmod(functions, size)
    combinations = pairs[pair]
    combinations[:, 3], combinations[:, 4] = pcomp, pcomm
    columns = np.stack([first[pair, pcomp], second[pair, pcomm]], axis=1)
    fit = SquareRootSums.of(columns, stage.target).solve()
    error = standard_error(fit.sse, max(samples, 3), 2)
    order = _best(error, limits.tolerance, len(error))
    return combinations[order], fit.coefficients[order], error[order], len(pairs) * size * size


def _best(error: Floats, tolerance: float, limit: int) -> NDArray[np.intp]:
    """Positions of at most ``limit`` errors within the tolerance of the least, ascending; none if all are infinite."""
    limit = min(limit, error.size)
    chosen = np.argpartition(error, limit - 1)[:limit] if limit < error.size else np.arange(error.size)
    chosen = np.sort(chosen)
    chosen = chosen[ascending(error[chosen])]
    least = error[chosen[0]]
    return chosen[error[chosen] <= (1.0 + tolerance) * least] if np.isfinite(least) else chosen[:0]


def _best_each(error: Floats, limit: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows and columns of the ``limit`` least errors of each row, those that are finite."""
    limit = min(limit, error.shape[1])
    columns = np.sort(np.argpartition(error, limit - 1, axis=1)[:, :limit], axis=1)
    rows, places = np.nonzero(np.isfinite(np.take_along_axis(error, columns, axis=1)))
    return rows, columns[rows, places]
