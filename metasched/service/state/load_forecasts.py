"""What the loads of the next minutes and hours should be: recorded in memory, forecast by periodic work.

A prediction needs the average load over the run, not the load of this moment. Every node's loads of the last two hours
are kept on one grid of time; every half minute those of each cluster are forecast for a ladder of horizons, and a
placement takes the one that is nearest to the time that its job should take.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from threading import Lock
from types import MappingProxyType

import numpy as np

from metasched.arrays import Floats, Ints
from metasched.placement.clusters.state import ClusterState
from metasched.placement.loads.forecast import places_of, with_forecast
from metasched.placement.loads.staleness import STALE_AFTER
from metasched.records import Load
from metasched.store.files.loads import Loads
from monitors.forecasters.sets import Sets, forecast_sets

#: Seconds from one row of the record to the next, and rows kept: two hours.
STEP, ROWS = 30.0, 240
#: Horizons that are forecast (s).
LADDER = (60.0, 300.0, 1200.0, 3600.0)
#: Where the next one becomes the nearer one, as a factor (s).
BETWEEN = tuple(math.sqrt(one * other) for one, other in pairwise(LADDER))
#: Rows before anything is forecast: with fewer the present is the best that is known.
LEAST_ROWS = 8


@dataclass(frozen=True, slots=True)
class Forecasts:
    """What was forecast last of each cluster, for each horizon of the ladder.

    Parameters
    ----------
    of : by name of the cluster its nodes, the number of each in the forecasts, -1 where it has none, and a forecast for
        each horizon.
    """

    of: Mapping[str, tuple[tuple[str, ...], Ints, tuple[Sets, ...]]] = field(default_factory=dict)

    def over(self, cluster: ClusterState, horizon: float) -> ClusterState:
        """The cluster with the loads to expect; a node without a forecast keeps what it has.

        It is a :data:`metasched.placement.loads.counted.Forecast`.

        Parameters
        ----------
        cluster : with the loads measured last.
        horizon : how long the run will take (s).
        """
        if cluster.name not in self.of:
            return cluster
        nodes, places, forecasts = self.of[cluster.name]
        if cluster.nodes is not nodes:  # else no name has to be looked up: there may be a hundred thousand
            places = np.append(places, -1)[places_of(cluster.nodes, nodes)]
        return with_forecast(cluster, forecasts[nearest_horizon(horizon)], places)


@dataclass(frozen=True, slots=True)
class _Row:
    """What was measured of the nodes at one moment: available CPU and bandwidth, shape (n, 2)."""

    at: float
    nodes: tuple[str, ...]
    values: Floats


_MISSING = np.full((1, 2), np.nan)


class LoadForecaster:
    """The record, and the forecasts that were last made of it.

    A node that is busy every other half minute is half free over the next hour.

    >>> forecaster = LoadForecaster()
    >>> for k in range(100):
    ...     forecaster.note([Load(30.0 * k, "n0", 0.25 + 0.5 * (k % 2), 90.0)], now=30.0 * k)
    >>> state = ClusterState.make("c", ["n0", "n1"], available_cpu=[0.75, 0.9])
    >>> forecaster.forecast([state], now=2970.0)
    >>> forecaster.forecasts.over(state, 3000.0).available_cpu.round(1).tolist()
    [0.5, 0.9]
    """

    def __init__(self) -> None:
        self._rows: list[_Row] = []
        self._noting = Lock()
        self.forecasts = Forecasts()

    def restore(self, parts: Iterable[Loads]) -> None:
        """Take up what was measured before a restart: it comes before whatever was noted since.

        With the rows since the start alone, an interval over an hour would follow from what loads did for minutes.

        Parameters
        ----------
        parts : samples of one period after the other; of each node the newest of each :data:`STEP` counts.
        """
        nodes, rows = dict[str, int](), dict[float, tuple[Ints, Floats]]()
        for loads in parts:
            place = np.array([nodes.setdefault(name, len(nodes)) for name in loads.nodes], dtype=np.int64)
            node, step = np.repeat(place, np.diff(loads.offsets)), STEP * np.ceil(loads.time / STEP)
            values = np.stack([loads.available_cpu, loads.available_bandwidth], axis=1)
            last = np.append((np.diff(node) != 0) | (np.diff(step) != 0), True)[: len(loads)]
            for at in np.unique(step).tolist():
                inside = last & (step == at)
                earlier = rows.get(at, (np.empty(0, np.int64), np.empty((0, 2))))
                rows[at] = np.append(earlier[0], node[inside]), np.concatenate([earlier[1], values[inside]])
        names, taken = tuple(nodes), []
        for at in sorted(rows)[-ROWS:]:
            whole = np.full((len(names), 2), np.nan)
            whole[rows[at][0]] = rows[at][1]  # the last one stays
            taken.append(_Row(at, names, whole))
        with self._noting:
            first = self._rows[0].at if self._rows else math.inf
            self._rows = [*(row for row in taken if row.at < first), *self._rows][-ROWS:]

    def note(self, loads: Iterable[Load], now: float) -> None:
        """Take the newest loads of all nodes as they are now, where the last row is old enough.

        Parameters
        ----------
        loads : of all nodes.
        now : seconds since 1970; where the clock was set back, the rows of later times are dropped.
        """
        if self._rows and self._rows[-1].at > now:
            with self._noting:
                self._rows = [row for row in self._rows if row.at <= now]
        if self._rows and now - self._rows[-1].at < STEP:
            return
        fresh = [load for load in loads if now - load.time <= STALE_AFTER]
        if fresh:
            nodes = tuple(load.node for load in fresh)
            if self._rows and self._rows[-1].nodes == nodes:
                nodes = self._rows[-1].nodes  # one tuple for all rows
            values = np.array([(load.available_cpu, load.available_bandwidth) for load in fresh])
            with self._noting:
                self._rows = [*self._rows[1 - ROWS :], _Row(now, nodes, values)]

    def forecast(
        self,
        clusters: Iterable[ClusterState],
        now: float,
        *,
        names: Mapping[str, Sequence[str]] = MappingProxyType({}),
        pause: float = 0.0,
    ) -> None:
        """Make the forecasts again, with a rest (s) between pieces, in which other threads get their turn.

        Parameters
        ----------
        clusters : whose nodes.
        now : seconds since 1970.
        names : the names of the nodes in the noted loads, by the name of a cluster; by default their own.
        pause : length of a rest (s).
        """
        rows = self._rows
        if len(rows) < LEAST_ROWS:
            self.forecasts = Forecasts()
            return
        times, newest = np.array([row.at for row in rows]), frozenset(rows[-1].nodes)
        made: dict[str, tuple[tuple[str, ...], Ints, tuple[Sets, ...]]] = {}
        for cluster in clusters:
            named = names.get(cluster.name, cluster.nodes)
            nodes = [node for node in named if node in newest]
            if not nodes:
                continue
            places = {known: places_of(nodes, known) for known in {row.nodes for row in rows}}
            loads = np.array([np.vstack([row.values, _MISSING])[places[row.nodes]] for row in rows])
            found = []
            for horizon in LADDER:
                found.append(forecast_sets(times, loads[..., 0], loads[..., 1], now, horizon))
                time.sleep(pause)
            made[cluster.name] = cluster.nodes, places_of(named, nodes), tuple(found)
        self.forecasts = Forecasts(made)


def nearest_horizon(horizon: float) -> int:
    """The number of the horizon in the ladder that is nearest, as a factor.

    >>> [nearest_horizon(seconds) for seconds in (1.0, 100.0, 200.0, 1e6)]
    [0, 0, 1, 3]
    """
    return bisect_left(BETWEEN, horizon)
