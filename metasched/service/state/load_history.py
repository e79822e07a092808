"""How the loads of each cluster went over the last hours, as a few lines in memory for whoever wants to see them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from metasched.arrays import Floats
from metasched.placement.clusters.partition import Partition
from metasched.placement.clusters.state import ClusterState
from metasched.placement.loads.staleness import STALE_AFTER
from metasched.store.files.loads import Loads

#: Seconds from one row to the next, and rows kept: two hours finely, a day coarsely.
FINE, COARSE = (15.0, 480), (300.0, 288)
#: Low end, middle and high end of the nodes (%).
ENDS = (10.0, 50.0, 90.0)


@dataclass(frozen=True, slots=True)
class Row:
    """What the nodes of a cluster had to spare at one moment: the ends and the middle of CPU and of bandwidth.

    Parameters
    ----------
    time : seconds.
    cpu, bandwidth : the 10th, 50th and 90th percentile over the nodes whose loads are fresh.
    fresh : how many those are.
    """

    time: float
    cpu: tuple[float, float, float]
    bandwidth: tuple[float, float, float]
    fresh: int


class LoadHistory:
    """Rows of every cluster, at two paces.

    >>> traces = LoadHistory()
    >>> state = ClusterState.make("c", ["n0", "n1"], available_cpu=[0.5, 1.0], available_bandwidth=100.0)
    >>> for now in (0.0, 5.0, 20.0):
    ...     traces.note([Partition.of(state)], now)
    >>> [(row.time, row.cpu[1], row.fresh) for row in traces.of("c")]
    [(0.0, 0.75, 2), (20.0, 0.75, 2)]
    """

    def __init__(self) -> None:
        self._fine: dict[str, deque[Row]] = {}
        self._coarse: dict[str, deque[Row]] = {}

    def note(self, partitions: Iterable[Partition], now: float) -> None:
        """Read the clusters: add a row to each whose last one is old enough.

        Parameters
        ----------
        partitions : with the newest loads.
        now : seconds; where the clock was set back, the rows of later times are dropped.
        """
        for partition in partitions:
            name = partition.state.name
            for rows, (step, most) in ((self._fine, FINE), (self._coarse, COARSE)):
                own = rows.setdefault(name, deque(maxlen=most))
                while own and own[-1].time > now:
                    own.pop()
                if (not own or now - own[-1].time >= step) and (row := _row(partition.state, now)) is not None:
                    own.append(row)

    def restore(self, names: Mapping[str, Iterable[str]], parts: Iterable[Loads]) -> None:
        """Take up means from before a restart: they come before whatever was noted since.

        Parameters
        ----------
        names : under which the loads of the nodes of each cluster are stored.
        parts : the means of one period after the other, so that never those of a whole day are in memory.
        """
        before: dict[str, list[Row]] = {}
        own = [frozenset(each) for each in names.values()]
        nodes, inside = tuple[str, ...](), [np.zeros(0, dtype=np.bool_) for _ in own]
        for loads in parts:
            if loads.nodes != nodes:  # they are mostly those of the part before
                nodes = loads.nodes
                inside = [np.fromiter(map(each.__contains__, nodes), np.bool_, len(nodes)) for each in own]
            for cluster, mine in zip(names, inside, strict=True):
                index = np.flatnonzero(np.repeat(mine, np.diff(loads.offsets)))
                if not index.size:
                    continue
                index = index[np.argsort(loads.time[index], kind="stable")]
                times, first_of = np.unique(loads.time[index], return_index=True)
                before.setdefault(cluster, []).extend(
                    _of(float(time), loads.available_cpu[at], loads.available_bandwidth[at])
                    for time, at in zip(times, np.split(index, first_of[1:]), strict=True)
                )
        for name, kept in before.items():
            for rows, (step, most) in ((self._fine, FINE), (self._coarse, COARSE)):
                since = tuple(rows.get(name, ()))
                first = since[0].time if since else np.inf
                oldest = (since[-1].time if since else kept[-1].time) - step * most
                rows[name] = deque((*(row for row in kept if oldest < row.time < first), *since), maxlen=most)

    def of(self, cluster: str, *, day: bool = False) -> Sequence[Row]:
        """The rows of a cluster, oldest first: of the last two hours, or of the last day."""
        return tuple((self._coarse if day else self._fine).get(cluster, ()))


def _row(state: ClusterState, now: float) -> Row | None:
    fresh = state.up & ~(state.age > STALE_AFTER)
    return _of(now, state.available_cpu[fresh], state.available_bandwidth[fresh]) if fresh.any() else None


def _of(time: float, cpu: Floats, bandwidth: Floats) -> Row:
    low, middle, high = np.percentile(cpu, ENDS).tolist()
    least, usual, most = np.percentile(bandwidth, ENDS).tolist()
    return Row(time, (low, middle, high), (least, usual, most), cpu.size)
