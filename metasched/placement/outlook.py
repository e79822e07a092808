"""Forecasts of the loads over the time a job is predicted to take, of nodes and of sets, from what was recorded."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from metasched.placement.cluster import ClusterState, Kept
from metasched.placement.freshness import LEAST_BANDWIDTH, LEAST_CPU
from monitors.forecasters.samples import Kind
from monitors.forecasters.sets import forecast_sets

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RecordedLoads:
    """Recorded loads that stand in for those measured now: a :data:`metasched.placement.question.Forecast`.

    Parameters
    ----------
    time : array of shape (t,), seconds, increasing.
    nodes : names of the n nodes recorded; a node that is not keeps its measured loads.
    available_cpu, available_bandwidth : arrays of shape (t, n); NaN where there is no sample.
    now : the time of the state (s); later samples are not looked at.
    samples : what a sample tells, see :func:`monitors.forecasters.horizon.forecast_minimum`.

    Examples
    --------
    >>> t = np.arange(0.0, 1000.0, 10.0)
    >>> recorded = RecordedLoads(t, ("n0",), np.full((100, 1), 0.5), np.full((100, 1), 80.0), now=990.0)
    >>> ahead = recorded(ClusterState.make("c", ["n0", "n1"]), 60.0)
    >>> ahead.available_cpu.round(6).tolist(), ahead.available_bandwidth.round(6).tolist()
    ([0.5, 1.0], [80.0, 1000.0])
    """

    time: Floats
    nodes: tuple[str, ...]
    available_cpu: Floats
    available_bandwidth: Floats
    now: float
    samples: Kind = "moments"

    def __call__(self, cluster: ClusterState, horizon: float) -> ClusterState:
        """The cluster with each node's expected average over the next ``horizon`` seconds, and what sets keep of it."""
        before = self.time <= self.now
        known = [index for index, name in enumerate(self.nodes) if np.isfinite(self.available_cpu[before, index]).any()]
        place = {self.nodes[index]: position for position, index in enumerate(known)}
        mine = [(number, place[name]) for number, name in enumerate(cluster.nodes) if name in place]
        if not mine:
            return cluster
        numbers, places = (np.array(column, dtype=np.int64) for column in zip(*mine, strict=True))
        time, rows = self.time[before], np.flatnonzero(before)[:, None]
        told = forecast_sets(
            time,
            np.minimum(self.available_cpu[rows, [known[place] for place in places]], 1.0),
            self.available_bandwidth[rows, [known[place] for place in places]],
            self.now,
            horizon,
            least=(LEAST_CPU, LEAST_BANDWIDTH),
            samples=self.samples,
        )
        cpu, bandwidth = cluster.available_cpu.copy(), cluster.available_bandwidth.copy()
        cpu[numbers], bandwidth[numbers] = told.cpu, told.bandwidth
        # Nodes are chosen the best first, each with all its processors.
        chosen = numbers[np.argsort(-cluster.speed[numbers] * told.cpu, kind="stable")]
        of = np.repeat(np.arange(chosen.size), np.maximum(cluster.processors[chosen], 1))
        return replace(
            cluster,
            available_cpu=cpu,
            available_bandwidth=bandwidth,
            kept=Kept(told.kept_cpu[of], told.kept_bandwidth[of]),
        )
