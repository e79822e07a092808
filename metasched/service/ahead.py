"""What the loads of the next minutes and hours should be: recorded in memory, forecast by periodic work.

A prediction needs the average load over the run, not the load of this moment. Every node's loads of the last two hours
are kept on one grid of time; every half minute they are forecast for a ladder of horizons, and a placement takes the
rung that is nearest to the time that its job should take.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from metasched.placement.cluster import ClusterState
from metasched.placement.freshness import LEAST_BANDWIDTH, LEAST_CPU, STALE_AFTER
from metasched.records import Load
from monitors.forecasters.horizon import forecast_each

Floats = NDArray[np.float64]

#: Seconds from one row of the record to the next, and rows kept: two hours.
STEP, ROWS = 30.0, 240
#: Horizons that are forecast (s).
LADDER = (60.0, 300.0, 1200.0, 3600.0)
#: Rows before anything is forecast: with fewer the present is the best that is known.
LEAST_ROWS = 8
#: Nodes that are forecast together: they share what is learned of how far to look back, and a piece of memory.
PANEL = 200


@dataclass(frozen=True, slots=True)
class Forecasts:
    """Expected averages of each node over each horizon of the ladder.

    Parameters
    ----------
    place : the number of each node.
    available_cpu, available_bandwidth : arrays of shape (horizons, n).
    """

    place: Mapping[str, int]
    available_cpu: Floats
    available_bandwidth: Floats

    def over(self, cluster: ClusterState, horizon: float) -> ClusterState:
        """The cluster with the loads to expect; a node without a forecast, or not heard of lately, keeps what it has.

        It is a :data:`metasched.placement.question.Forecast`.
        """
        known = np.array([self.place.get(node, -1) for node in cluster.nodes], dtype=np.int64)
        able = (known >= 0) & (cluster.age <= STALE_AFTER)
        if not able.any():
            return cluster
        row = rung(horizon)
        return replace(
            cluster,
            available_cpu=np.where(able, self.available_cpu[row, known], cluster.available_cpu),
            available_bandwidth=np.where(able, self.available_bandwidth[row, known], cluster.available_bandwidth),
        )


#: No forecast at all.
NONE = Forecasts({}, np.empty((len(LADDER), 0)), np.empty((len(LADDER), 0)))


@dataclass(frozen=True, slots=True)
class _Row:
    """What was measured of the nodes at one moment: available CPU and bandwidth, shape (n, 2)."""

    at: float
    nodes: tuple[str, ...]
    values: Floats


_MISSING = np.full((1, 2), np.nan)


class Ahead:
    """The record, and the forecasts that were last made of it.

    Examples
    --------
    A node that is busy every other half minute is half free over the next hour.

    >>> ahead = Ahead()
    >>> for k in range(100):
    ...     ahead.note([Load(30.0 * k, "n0", 0.25 + 0.5 * (k % 2), 90.0)], now=30.0 * k)
    >>> ahead.forecast(now=2970.0)
    >>> state = ClusterState.make("c", ["n0", "n1"], available_cpu=[0.75, 0.9])
    >>> ahead.forecasts.over(state, 3000.0).available_cpu.round(1).tolist()
    [0.5, 0.9]
    """

    def __init__(self) -> None:
        self._rows: list[_Row] = []
        self.forecasts = NONE

    def note(self, loads: Iterable[Load], now: float) -> None:
        """Take the newest loads of all nodes as they are now, where the last row is old enough."""
        if self._rows and now - self._rows[-1].at < STEP:
            return
        fresh = [load for load in loads if now - load.time <= STALE_AFTER]
        if fresh:
            nodes = tuple(load.node for load in fresh)
            if self._rows and self._rows[-1].nodes == nodes:
                nodes = self._rows[-1].nodes  # one tuple for all rows
            values = np.array([(load.available_cpu, load.available_bandwidth) for load in fresh])
            self._rows = [*self._rows[1 - ROWS :], _Row(now, nodes, values)]

    def forecast(self, now: float, *, pause: float = 0.0) -> None:
        """Make the forecasts anew, with a rest (s) between pieces, in which other threads get their turn."""
        rows = self._rows
        if len(rows) < LEAST_ROWS:
            return
        nodes = sorted(rows[-1].nodes)
        times = np.array([row.at for row in rows])
        places = {known: _places(known, nodes) for known in {row.nodes for row in rows}}
        cpu = np.empty((len(LADDER), len(nodes)))
        bandwidth = np.empty_like(cpu)
        for start in range(0, len(nodes), PANEL):
            own = slice(start, start + PANEL)
            loads = np.array([np.vstack([row.values, _MISSING])[places[row.nodes][own]] for row in rows])
            for number, horizon in enumerate(LADDER):
                cpu[number, own] = np.clip(forecast_each(times, loads[..., 0], now, horizon), LEAST_CPU, 1.0)
                bandwidth[number, own] = np.maximum(forecast_each(times, loads[..., 1], now, horizon), LEAST_BANDWIDTH)
                time.sleep(pause)
        self.forecasts = Forecasts({node: number for number, node in enumerate(nodes)}, cpu, bandwidth)


def _places(known: tuple[str, ...], nodes: list[str]) -> NDArray[np.int64]:
    """Where each of the nodes stands among those known, -1 where it does not."""
    place = {node: number for number, node in enumerate(known)}
    return np.array([place.get(node, -1) for node in nodes], dtype=np.int64)


def rung(horizon: float) -> int:
    """The number of the horizon in the ladder that is nearest, as a factor.

    Examples
    --------
    >>> [rung(seconds) for seconds in (1.0, 100.0, 200.0, 1e6)]
    [0, 0, 1, 3]
    """
    return int(np.argmin([abs(np.log(max(horizon, 1e-9) / each)) for each in LADDER]))
