"""Forecasts of the loads over the time a job is predicted to take, of nodes and of sets, from what was recorded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from metasched.arrays import Floats, Ints
from metasched.placement.clusters.state import ClusterState, SetMinima
from metasched.placement.loads.staleness import LEAST_BANDWIDTH, LEAST_CPU
from monitors.forecasters.sets import Sets, forecast_sets


def with_forecast(cluster: ClusterState, forecast: Sets, places: Ints) -> ClusterState:
    """The cluster with what is expected of its nodes, and of sets of them.

    Parameters
    ----------
    cluster : a node that is not forecast keeps its measured loads.
    forecast : of some nodes.
    places : array of shape (n,), the number of each node of the cluster in the forecast, -1 where it is not.

    Examples
    --------
    >>> t = np.arange(0.0, 1000.0, 10.0)[:, None]
    >>> forecast = forecast_sets(t[:, 0], 0.5 + 0 * t, 80.0 + 0 * t, 990.0, 60.0)
    >>> expected = with_forecast(ClusterState.make("c", ["n0", "n1"]), forecast, np.array([0, -1]))
    >>> expected.available_cpu.round(6).tolist(), expected.available_bandwidth.round(6).tolist()
    ([0.5, 1.0], [80.0, 1000.0])
    """
    known = places >= 0
    if not known.any():
        return cluster
    cpu = np.where(known, np.minimum(forecast.cpu[places], 1.0), cluster.available_cpu)
    bandwidth = np.where(known, forecast.bandwidth[places], cluster.available_bandwidth)
    # Nodes are chosen the best first, each with all its processors.
    numbers = np.flatnonzero(known)
    chosen = numbers[np.argsort(-cluster.speed[numbers] * cpu[numbers], kind="stable")]
    minima = SetMinima(
        forecast.cpu_sets.part,
        forecast.bandwidth_sets.part,
        forecast.cpu_sets.ends,
        forecast.bandwidth_sets.ends,
        forecast.cpu_sets.middle,
        forecast.bandwidth_sets.middle,
        cluster.processors[chosen],
        chosen,
    )
    return replace(cluster, available_cpu=cpu, available_bandwidth=bandwidth, minima=minima)


def places_of(nodes: Iterable[str], known: Sequence[str]) -> Ints:
    """The number of each node among those known, -1 where it is not.

    >>> places_of(["n0", "n1", "n2"], ["n2", "n0"]).tolist()
    [1, -1, 0]
    """
    place = {name: number for number, name in enumerate(known)}
    return np.array([place.get(name, -1) for name in nodes], dtype=np.int64)


@dataclass(frozen=True)
class RecordedLoads:
    """Loads forecast from those recorded until a moment: a :data:`metasched.placement.loads.counted.Forecast`.

    Parameters
    ----------
    time : array of shape (t,), seconds, increasing.
    nodes : names of the n nodes recorded; a node that is not keeps its measured loads.
    available_cpu, available_bandwidth : arrays of shape (t, n); NaN where there is no sample.
    now : the time of the state (s); later samples are ignored.

    Examples
    --------
    >>> t = np.arange(0.0, 1000.0, 10.0)
    >>> recorded = RecordedLoads(t, ("n0",), np.full((100, 1), 0.5), np.full((100, 1), 80.0), now=990.0)
    >>> recorded(ClusterState.make("c", ["n0", "n1"]), 60.0).available_cpu.round(6).tolist()
    [0.5, 1.0]
    """

    time: Floats
    nodes: tuple[str, ...]
    available_cpu: Floats
    available_bandwidth: Floats
    now: float

    def __call__(self, cluster: ClusterState, horizon: float) -> ClusterState:
        """The cluster with the loads to expect over the next ``horizon`` seconds."""
        asked = frozenset(cluster.nodes)
        before = self.time <= self.now
        known = [
            index
            for index, name in enumerate(self.nodes)
            if name in asked and np.isfinite(self.available_cpu[before, index]).any()
        ]
        if not known:
            return cluster
        forecast = forecast_sets(
            self.time[before],
            self.available_cpu[before][:, known],
            self.available_bandwidth[before][:, known],
            self.now,
            horizon,
            least=(LEAST_CPU, LEAST_BANDWIDTH),
        )
        return with_forecast(cluster, forecast, places_of(cluster.nodes, [self.nodes[index] for index in known]))
