"""Tables of the process for very many requests at once: it depends on N and P alone, and is smooth in log N.

For requests of one size the process is evaluated once for each P. The results are cached, since the best of compared
placements are requested again. For a batch of many sizes it is evaluated on a grid of log N for each P, and
interpolated in between; a few requests of different sizes are not interpolated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from metasched.arrays import Floats
from metasched.predictors.abilities import PowerTerm
from metasched.predictors.robust.model import Model

#: Batches of fewer requests of different sizes are not tabulated.
FEWEST = 256
#: Grid step in log N: for a length scale of 2 the interpolation error is below a thousandth of the standard deviation.
STEP = 1.0 / 8.0
#: Requests handled in one piece, so that its arrays stay in the cache.
PIECE = 4096
#: Largest logarithm of a term (s) whose sum with another is a number.
LARGEST_LOG = 709.0
#: Most processors that are tabulated.
MOST_PROCESSORS = 1 << 20


class Tabulated:
    """Predictions of a model for batches of requests."""

    def __init__(self, model: Model) -> None:
        self.model = model
        low, high = model.reach
        nodes = np.arange(low[0], high[0] + STEP, STEP)
        self._first = low[0]
        self._everywhere = {whole: OfCounts(partial(_grid, model, nodes, whole)) for whole in (False, True)}
        self._of_size = cached_grids(model)
        self._terms = cached_terms(model)
        self._few = cached_logs(model, self._terms)
        self._log_link = math.log(model.formula.bandwidth)

    def expect(self, n: Floats, p: Floats, cpu: Floats, bw: Floats) -> Floats:
        """Times (s), for arrays of one shape (n,)."""
        same = _same(n)
        whole = _whole(p, 1 if same else FEWEST)
        if whole is None:
            return self._expected_one_by_one(n, p, cpu, bw)
        time = np.empty(len(p))
        if same:
            terms, log_n = self._terms(float(n[0])), np.log(n[0])
            for piece in _pieces(len(p)):
                time[piece] = self.model.time_at(log_n, cpu[piece], bw[piece], *terms.of(whole[piece]).T)
            return time
        different, where = _different(whole)
        formula, grid = self.model.formula.of_counts(different.astype(np.float64))[:2].T, self._everywhere[False]
        means = grid.of(different)
        for piece in _pieces(len(p)):
            computation, communication = formula.take(where[piece], axis=0).T
            log_n = np.log(n[piece])
            residual = _between(means, where[piece], (log_n - self._first) / STEP)[:, 0]
            computation += residual
            communication += residual
            time[piece] = self.model.time_at(log_n, cpu[piece], bw[piece], computation, communication)
        return time

    def expect_few(self, n: float, points: Sequence[tuple[int, float, float]]) -> list[float]:
        """Times (s) of one size at a few points of P, CPU and bandwidth, without arrays."""
        return [self._time(cpu, bw, *self._few(n, p)) for p, cpu, bw in points]

    def _time(self, cpu: float, bw: float, log_size: float, computation: float, communication: float) -> float:
        """:meth:`Model.time_at` for one request, in a tenth of the time; infinite without any CPU or bandwidth."""
        if cpu <= 0.0 or bw <= 0.0:
            return math.inf
        logs = log_size, math.log(cpu), math.log(bw) - self._log_link
        terms = self.model.formula.log_terms(*logs, computation, communication)
        return math.inf if max(terms) > LARGEST_LOG else math.exp(terms[0]) + math.exp(terms[1])

    def power_terms(self, n: float, p: Floats) -> tuple[PowerTerm, ...]:
        """Computation and communication at one size on numbers of processors (k,), as powers of the loads."""
        whole = _whole(p, 1)
        if whole is None:
            computation, communication = self.model.formula.of_counts(p)[:2]
            residual = self.model.residual_mean(np.log(np.stack([np.full(len(p), n), p], axis=1)))
            return self.model.power_terms(n, computation + residual, communication + residual)
        different, where = _different(whole)
        of_counts = self.model.formula.of_counts(different.astype(np.float64))[:2]
        # Callers that compare these times then show intervals, which need the same rows.
        of_counts += self._of_size(float(n)).of(different)[:, 0, 0]
        return tuple(term._replace(factor=term.factor.take(where)) for term in self.model.power_terms(n, *of_counts))

    def predict(self, n: Floats, p: Floats, cpu: Floats, bw: Floats) -> tuple[Floats, Floats]:
        """Times (s) and spreads of their logarithms, for arrays of one shape (n,)."""
        same = _same(n)
        whole = _whole(p, 1 if same else FEWEST)
        if whole is None:
            return self.model.predict(n, p, cpu, bw)
        different, where = _different(whole)
        of_counts = self.model.of_counts(different.astype(np.float64))
        grid = (self._of_size(float(n[0])) if same else self._everywhere[True]).of(different)
        time, spread = np.empty(len(n)), np.empty(len(n))
        for piece in _pieces(len(n)):
            here, log_n = where[piece], np.log(n[piece])
            known = grid[:, 0].take(here, axis=0) if same else _between(grid, here, (log_n - self._first) / STEP)
            time[piece], spread[piece] = self.model.at(
                log_n, cpu[piece], bw[piece], of_counts.take(here, axis=1), known
            )
        return time, spread

    def _expected_one_by_one(self, n: Floats, p: Floats, cpu: Floats, bw: Floats) -> Floats:
        """The times alone, without a table: if requests are too few, or their processors not whole numbers."""
        points = np.log(np.stack([n, p], axis=1))
        computation, communication = self.model.formula.of_counts(p)[:2] + self.model.residual_mean(points)
        return self.model.time_at(points[:, 0], cpu, bw, computation, communication)


class OfCounts:
    """A cache of rows that depend on the number of processors, one for each number requested so far.

    Parameters
    ----------
    make : makes the rows of some processor counts, array of shape (k,), to an array of shape (k, ...).

    Examples
    --------
    >>> squares = OfCounts(lambda counts: counts**2)
    >>> squares.of(np.array([2, 8])).tolist(), squares.of(np.array([1, 2, 4])).tolist()
    ([4.0, 64.0], [1.0, 4.0, 16.0])
    """

    def __init__(self, make: Callable[[Floats], Floats]) -> None:
        self._make = make
        # The counts known, ascending, and their rows: replaced together, for readers in threads.
        self._known: tuple[NDArray[np.intp], Floats] | None = None

    def of(self, counts: NDArray[np.intp]) -> Floats:
        """The rows of some processor counts, array of shape (k,): an array of shape (k, ...)."""
        if self._known is None:
            new, place = _different(counts)
            self._known = new, self._make(new.astype(np.float64))
            return self._known[1].take(place, axis=0)
        known, rows = self._known
        place = known.searchsorted(counts)
        missing = known.take(place, mode="clip") != counts
        if missing.any():
            new, _ = _different(counts[missing])
            every = np.concatenate([known, new])
            order = np.argsort(every, kind="stable")
            known = every[order]
            rows = np.concatenate([rows, self._make(new.astype(np.float64))])[order]
            self._known = known, rows
            place = known.searchsorted(counts)
        return rows.take(place, axis=0)


def _grid(model: Model, nodes: Floats, whole: bool, counts: Floats) -> Floats:
    """The process at fixed sizes for some processor counts, shape (k, g, 12), or (k, g, 1) for means alone.

    Parameters
    ----------
    model : the model of the process.
    nodes : array of shape (g,), logarithms of the sizes.
    whole : whether to include the variance and the explained basis.
    counts : array of shape (k,).
    """
    points = np.stack(np.broadcast_arrays(nodes[None, :], np.log(counts)[:, None]), axis=-1).reshape(-1, 2)
    found = model.residual(points) if whole else model.residual_mean(points)[:, None]
    return found.reshape(len(counts), len(nodes), -1)


def _terms(model: Model, formula: OfCounts, log_n: float, counts: Floats) -> Floats:
    """The last two arguments of :meth:`Model.time_at` at one size for some processor counts, shape (k, 2).

    Parameters
    ----------
    model : the model.
    formula : the part of them that the formula gives, which does not depend on the size.
    log_n : logarithm of the size.
    counts : array of shape (k,).
    """
    points = np.empty((len(counts), 2))
    points[:, 0], points[:, 1] = log_n, np.log(counts)
    return formula.of(counts.astype(np.intp)) + model.residual_mean(points)[:, None]


def cached_grids(model: Model) -> Callable[[float], OfCounts]:
    """Complete grids of one size each, for the latest requested sizes."""
    return lru_cache(maxsize=8)(lambda size: OfCounts(partial(_grid, model, np.log([size]), True)))


def cached_terms(model: Model) -> Callable[[float], OfCounts]:
    """Both terms at one size each, without the effect of loads, for the latest requested sizes."""
    formula = OfCounts(lambda counts: model.formula.of_counts(counts)[:2].T)
    return lru_cache(maxsize=8)(lambda size: OfCounts(partial(_terms, model, formula, math.log(size))))


def cached_logs(model: Model, terms: Callable[[float], OfCounts]) -> Callable[[float, int], tuple[float, float, float]]:
    """log(N / N0) and both terms at one size and number of processors each, for the latest requested ones."""

    def logs(n: float, p: int) -> tuple[float, float, float]:
        computation, communication = terms(n).of(np.array([p]))[0].tolist()
        return math.log(n) - math.log(model.formula.size), computation, communication

    return lru_cache(maxsize=8)(logs)


def _same(n: Floats) -> bool:
    return len(n) > 0 and n[0] == n[-1] and (n.strides == (0,) or bool((n == n[0]).all()))


def _pieces(count: int) -> Iterator[slice]:
    return (slice(start, start + PIECE) for start in range(0, count, PIECE))


def _whole(p: Floats, fewest: int) -> NDArray[np.intp] | None:
    """Processor counts as whole numbers; None if they are not to be tabulated.

    Parameters
    ----------
    p : of each request, shape (n,).
    fewest : requests from which on a table is worth it.
    """
    if len(p) < fewest:
        return None
    whole = np.minimum(p, MOST_PROCESSORS).astype(np.intp)
    return None if (whole != p).any() else whole


def _different(whole: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The different processor counts, ascending, and the place of each request's among them, shape (n,)."""
    place = np.bincount(whole) > 0
    return np.flatnonzero(place), (np.cumsum(place) - 1).take(whole)


def _between(grid: Floats, row: NDArray[np.intp], place: Floats) -> Floats:
    """Rows of a grid (k, nodes, 12) at places between its nodes, which are counted from 0: shape (n, 12)."""
    place = np.clip(place, 0.0, grid.shape[1] - 1.000001)
    node = place.astype(np.intp)
    place -= node
    node += row * grid.shape[1]
    flat = grid.reshape(-1, grid.shape[2])
    low = flat.take(node, axis=0)
    node += 1
    high = flat.take(node, axis=0)
    high -= low
    high *= place[:, None]
    high += low
    return high
