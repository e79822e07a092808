"""Approximate mean value analysis for populations whose lattice is too large: Bard, Schweitzer, Linearizer.

All three solve the same fixed point; they differ in what an arriving job is said to find. Many networks are solved in
one call. Axis order: (network, station, class).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from metasched.arrays import Floats
from metasched.queueing.crowding import Crowding
from metasched.queueing.multi_class import Steady
from metasched.queueing.solution import PrecisionError

Level = Literal["bard", "schweitzer", "linearizer"]

#: Relative change of the queues at which an iteration has converged.
_CONVERGED = 1e-8
_ITERATIONS = 20_000
#: Corrections of Linearizer; more change nothing that counts (Chandy and Neuse).
_CORRECTIONS = 2


def solve_approximately(
    demands: ArrayLike,
    think_time: ArrayLike,
    population: ArrayLike,
    stations: Sequence[tuple[float, ...]] | None = None,
    level: Level = "schweitzer",
) -> Steady:
    """Solve networks approximately.

    Parameters
    ----------
    demands : array of shape (..., stations, classes), seconds of service in each cycle at speed 1.
    think_time : array of shape (..., classes), seconds.
    population : array of shape (classes,), the jobs of each class, at least 1.
    stations : for each station its speed with 1, 2, ... jobs, the last one staying; empty for a delay. All single
        servers where not given.
    level : ``"bard"``, an arriving job finds the mean queue, itself included; ``"schweitzer"``, it finds the mean queue
        less its own share; ``"linearizer"``, that share is corrected by what one job less would change.

    Raises
    ------
    PrecisionError : when the iteration does not converge.

    References
    ----------
    Bard, Some extensions to multiclass queueing network analysis, 1979; Schweitzer, Approximate analysis of multiclass
    closed networks of queues, 1979; Chandy and Neuse, Linearizer: a heuristic algorithm for queueing network models of
    computing systems, CACM 25(2), 1982, with the sums of de Souza e Silva and Muntz, A note on the computational cost
    of the linearizer algorithm for queueing networks, IEEE Trans. Comp. 39(6), 1990.

    Examples
    --------
    >>> solve_approximately([[1.0], [0.5]], [0.0], [3], level="linearizer").throughput.round(4)
    array([0.9313])
    """
    demands = np.asarray(demands, dtype=float)
    shape, (places, classes) = demands.shape[:-2], demands.shape[-2:]
    demands = demands.reshape(-1, 1, places, classes)
    think_time = np.broadcast_to(np.asarray(think_time, dtype=float), (*shape, classes)).reshape(-1, 1, 1, classes)
    jobs = np.asarray(population, dtype=float)
    kinds = [(1.0,)] * places if stations is None else list(stations)
    # Stations of one kind stand next to each other, so that each kind is a slice.
    first = {kind: position for position, kind in reversed(list(enumerate(kinds)))}
    order = np.argsort([first[kind] for kind in kinds], kind="stable")
    demands, kinds = demands[:, :, order], [kinds[position] for position in order]

    # Populations on the second axis: all jobs, then one job less of each class.
    lacking = np.zeros((1, classes)) if level != "linearizer" else np.vstack([np.zeros(classes), np.eye(classes)])
    populations = (jobs - lacking)[:, None, :]
    busy = np.where(demands > 0, 1.0, 0.0)
    spread = busy / np.maximum(busy.sum(axis=2, keepdims=True), 1.0)
    queue = np.broadcast_to(populations * spread, (demands.shape[0], len(lacking), places, classes))
    found = _Found(kinds, np.maximum((jobs - lacking).sum(axis=1) - 1, 0), own_share=level != "bard")
    throughput, queue = _fixed_point(demands, think_time, populations, found, 0.0, queue)
    for _ in range(_CORRECTIONS if level == "linearizer" else 0):
        correction = _correction(queue, populations)
        throughput, queue = _fixed_point(demands, think_time, populations, found, correction, queue)
    back = np.argsort(order, kind="stable")
    return Steady(throughput[:, 0, 0].reshape(*shape, classes), queue[:, 0, back].reshape(*shape, places, classes))


class _Found:
    """Residence over demand of arriving jobs, station by station, for each population."""

    def __init__(self, kinds: Sequence[tuple[float, ...]], others: Floats, *, own_share: bool) -> None:
        self.own_share = own_share
        rates = np.array([kind[0] if kind else np.inf for kind in kinds])
        self.waits = np.where(np.isfinite(rates), 1.0, 0.0)[:, None]
        self.speed = np.where(np.isfinite(rates), rates, 1.0)[:, None]
        self.groups = [
            (_slice_of(kind, kinds), [Crowding.of(kind, int(count)) for count in others])
            for kind in dict.fromkeys(kind for kind in kinds if len(set(kind)) > 1)
        ]

    def stretch(self, queue: Floats, populations: Floats, correction: Floats | float) -> Floats:
        """Residence over demand, shape (networks, populations, stations, classes)."""
        arrival = queue.sum(axis=-1, keepdims=True) + correction
        if self.own_share:
            arrival = arrival - queue * np.divide(
                1.0, populations, out=np.zeros_like(populations), where=populations > 0
            )
        arrival = np.maximum(np.broadcast_to(arrival, queue.shape), 0.0)
        result: Floats = (1.0 + self.waits * arrival) / self.speed
        for places, tables in self.groups:
            for index, table in enumerate(tables):
                result[:, index, places] = table.stretch(arrival[:, index, places])
        return result


def _slice_of(kind: tuple[float, ...], kinds: Sequence[tuple[float, ...]]) -> slice:
    first = kinds.index(kind)
    return slice(first, first + kinds.count(kind))


def _fixed_point(
    demands: Floats, think_time: Floats, populations: Floats, found: _Found, correction: Floats | float, queue: Floats
) -> tuple[Floats, Floats]:
    scale = populations.sum(axis=-1).max()
    for _ in range(_ITERATIONS):
        residence = demands * found.stretch(queue, populations, correction)
        throughput = populations / (think_time + residence.sum(axis=2, keepdims=True))
        following = throughput * residence
        change = np.abs(following - queue).max()
        queue = following
        if change < _CONVERGED * scale:
            return throughput, queue
    raise PrecisionError(f"the approximate solution did not converge in {_ITERATIONS} iterations")


def _correction(queue: Floats, populations: Floats) -> Floats:
    """What Linearizer adds to the queue found: shape (networks, populations, stations, classes)."""
    share = np.divide(queue, populations, out=np.zeros_like(queue), where=populations > 0)
    # change[r, k, s]: share of class s at station k when a job of class r is missing, less the share with all jobs.
    change = np.where(populations[1:] > 0, share[:, 1:] - share[:, :1], 0.0)
    own = np.einsum("nrkr->nkr", change)
    full = np.einsum("s,nrks->nkr", populations[0, 0], change) - own
    less = full[:, None] - np.einsum("nrkt->ntkr", change)
    return np.concatenate([full[:, None], less], axis=1)
