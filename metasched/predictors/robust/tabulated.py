"""What the process says of very many requests at once: it depends on N and P alone, and is smooth in log N.

For a batch of requests the process is asked once for each (N, P) where there are few of those, and else on a grid of
log N for each P, interpolated in between. Asked one by one, or so, requests are not interpolated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from metasched.predictors.contract import Floats, PowerTerm
from metasched.predictors.robust.model import Model

#: Batches of fewer requests are not tabulated, of many sizes and of one.
FEWEST, FEWEST_OF_SIZE = 256, 16
#: Distance of the grid in log N: for a bend of length 2 the interpolation errs by less than a thousandth of its spread.
STEP = 1.0 / 8.0
#: Requests handled in one piece, so that its arrays stay in the cache.
PIECE = 4096
#: Most processors that are tabulated.
MOST_PROCESSORS = 1 << 20


class Tabulated:
    """A model's answers to batches.

    Parameters
    ----------
    model : whose process is tabulated.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        low, high = model.reach
        nodes = np.arange(low[0], high[0] + STEP, STEP)
        self._first = low[0]
        self._everywhere = {whole: Grid(model, nodes, whole=whole) for whole in (False, True)}
        self._of_size = cached_grids(model)

    def expect(self, n: Floats, p: Floats, cpu: Floats, bw: Floats) -> Floats:
        """Times (s), for arrays of one shape (n,)."""
        same = _same(n)
        counts = _whole(p, FEWEST_OF_SIZE if same else FEWEST)
        if counts is None:
            return self._one_by_one(n, p, cpu, bw)[0]
        different, where = counts
        time, of_counts = np.empty(len(p)), self.model.formula.of_counts(different.astype(np.float64))[:2]
        if same:
            of_counts += self._of_size(float(n[0]), False).of(different)[:, 0, 0]
        else:
            grid = self._everywhere[False].of(different)
        for piece in _pieces(len(p)):
            computation, communication = (each.take(where[piece]) for each in of_counts)
            log_n = np.log(n[0] if same else n[piece])
            if not same:
                bend = _between(grid, where[piece], (log_n - self._first) / STEP)[:, 0]
                computation += bend
                communication += bend
            time[piece] = self.model.time_at(log_n, cpu[piece], bw[piece], computation, communication)
        return time

    def power_terms(self, n: float, p: Floats) -> tuple[PowerTerm, ...]:
        """Computation and communication at one size on numbers of processors (k,), as powers of the loads."""
        counts = _whole(p, 1)
        if counts is None:
            computation, communication = self.model.formula.of_counts(p)[:2]
            bend = self.model.bend_mean(np.log(np.stack([np.full(len(p), n), p], axis=1)))
            return self.model.power_terms(n, computation + bend, communication + bend)
        different, where = counts
        of_counts = self.model.formula.of_counts(different.astype(np.float64))[:2]
        # Whoever asks for these compares and then shows intervals, which the same rows tell.
        of_counts += self._of_size(float(n), True).of(different)[:, 0, 0]
        return tuple(term._replace(factor=term.factor.take(where)) for term in self.model.power_terms(n, *of_counts))

    def predict(self, n: Floats, p: Floats, cpu: Floats, bw: Floats) -> tuple[Floats, Floats]:
        """Times (s) and spreads of their logarithms, for arrays of one shape (n,)."""
        same = _same(n)
        counts = _whole(p, FEWEST_OF_SIZE if same else FEWEST)
        if counts is None:
            return self._one_by_one(n, p, cpu, bw)
        different, where = counts
        of_counts = self.model.of_counts(different.astype(np.float64))
        grid = (self._of_size(float(n[0]), True) if same else self._everywhere[True]).of(different)
        time, spread = np.empty(len(n)), np.empty(len(n))
        for piece in _pieces(len(n)):
            here, log_n = where[piece], np.log(n[piece])
            known = grid[:, 0].take(here, axis=0) if same else _between(grid, here, (log_n - self._first) / STEP)
            time[piece], spread[piece] = self.model.at(
                log_n, cpu[piece], bw[piece], of_counts.take(here, axis=1), known
            )
        return time, spread

    def _one_by_one(self, n: Floats, p: Floats, cpu: Floats, bw: Floats) -> tuple[Floats, Floats]:
        """Without a table: where requests are too few, or their processors no whole numbers."""
        time, spread = np.empty(len(n)), np.empty(len(n))
        for piece in _pieces(len(n)):
            time[piece], spread[piece] = self.model.predict(n[piece], p[piece], cpu[piece], bw[piece])
        return time, spread


class Grid:
    """What the process says at fixed sizes, for every processor count that was asked about so far.

    Parameters
    ----------
    model : whose process it is.
    nodes : array of shape (g,), logarithms of the sizes.
    whole : whether the variance and what the process takes over of the numbers are wanted too.
    """

    def __init__(self, model: Model, nodes: Floats, *, whole: bool) -> None:
        self._model, self._nodes, self._whole = model, nodes, whole
        # Where the row of each count stands (-1: not known) and the rows: replaced together, for readers in threads.
        self._known = np.full(1, -1), np.empty((0, len(nodes), 1))

    def of(self, counts: NDArray[np.intp]) -> Floats:
        """The rows of some processor counts, ascending: shape (k, g, 12), or (k, g, 1) where only means are wanted."""
        places, rows = self._known
        if counts[-1] >= len(places):
            places = np.append(places, np.full(counts[-1] + 1 - len(places), -1))
        new = counts[places[counts] < 0]
        if len(new):
            made = self._made(new.astype(np.float64))
            places = places.copy()
            places[new] = len(rows) + np.arange(len(new))
            rows = np.concatenate([rows, made]) if len(rows) else made
            self._known = places, rows
        return rows.take(places[counts], axis=0)

    def _made(self, counts: Floats) -> Floats:
        points = np.stack(np.broadcast_arrays(self._nodes[None, :], np.log(counts)[:, None]), axis=-1).reshape(-1, 2)
        found = self._model.bend(points) if self._whole else self._model.bend_mean(points)[:, None]
        return found.reshape(len(counts), len(self._nodes), -1)


def cached_grids(model: Model) -> Callable[[float, bool], Grid]:
    """Grids of one size each, by N and whether they are whole; those asked for last are kept."""
    return lru_cache(maxsize=8)(lambda size, whole: Grid(model, np.log([size]), whole=whole))


def _same(n: Floats) -> bool:
    return len(n) > 0 and n[0] == n[-1] and bool((n == n[0]).all())


def _pieces(count: int) -> Iterator[slice]:
    return (slice(start, start + PIECE) for start in range(0, count, PIECE))


def _whole(p: Floats, fewest: int) -> tuple[NDArray[np.intp], NDArray[np.intp]] | None:
    """The different processor counts, ascending, and the place of each request's among them; or that none is tabulated.

    Parameters
    ----------
    p : of each request, shape (n,).
    fewest : requests from which on a table is worth it.
    """
    if len(p) < fewest or p.max() > MOST_PROCESSORS:
        return None
    whole = p.astype(np.intp)
    if (whole != p).any():
        return None
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
