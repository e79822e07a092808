"""The loads that a placement counts with: :func:`counted`, the only function that prepares them.

The ranker, the fast path, the daemon and the command line all call it. From the latest measurements to the loads that a
job will have, there are three steps, always in this order:

1. The forecast over the run, for nodes with fresh measurements. It is the first step, since the others concern the
   loads to come. Nodes with stale measurements are not forecast.
2. Staleness: the load of a stale node is capped at the lower quartile of the fresh ones. Both must be of the same kind,
   so it is the quartile of the forecasts, if there are any: if the forecasts are 0.3 and 0.2, a node last measured at
   0.9 must not be preferred because the others were measured at 0.9 before, too.
3. Recent placements, which neither measurements nor forecasts show. They are last, since jobs placed on the fresh nodes
   would lower the quartile that caps a stale one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from metasched.placement.clusters.state import ClusterState
from metasched.placement.loads.recent_placements import RecentPlacement, after_recent_placements, with_recent_placements
from metasched.placement.loads.staleness import STALE_AFTER, stale, with_stale_capped

#: The horizon that is tried first if no better one is known (s).
FIRST_HORIZON = 60.0
#: The loads to expect over a number of seconds from now, in place of those measured now.
Forecast = Callable[[ClusterState, float], ClusterState]
#: What is expected of a cluster over a number of seconds, None for now, and warnings: the result of :func:`expected`.
Expected = Callable[[ClusterState, float | None], tuple[ClusterState, tuple[str, ...]]]


@dataclass(frozen=True, slots=True)
class Loads:
    """What is known about present and future loads, in addition to the latest measurements.

    Parameters
    ----------
    forecast : the loads to expect over a run; those measured now where None.
    recent : jobs placed just now.
    now : the time of the state (s), for ``recent``.
    stale_after : age from which on measurements are stale (s).
    first_horizon : the horizon that is tried first (s); the one of a run that agrees with its own forecast is sought
        from there.
    waiting : whether the job waits until those of ``recent`` that have processors of their own are over.
    kept : gives the results of :func:`expected` where they are kept, the same objects for the same question; they are
        computed where None.
    """

    forecast: Forecast | None = None
    recent: Sequence[RecentPlacement] = ()
    now: float = 0.0
    stale_after: float = STALE_AFTER
    first_horizon: float = FIRST_HORIZON
    waiting: bool = False
    kept: Expected | None = None


def counted(cluster: ClusterState, loads: Loads, horizon: float | None) -> tuple[ClusterState, tuple[str, ...]]:
    """The cluster with the loads that a placement counts with, and warnings about them.

    Parameters
    ----------
    cluster : as measured, with the age of each measurement.
    loads : what else is known.
    horizon : how long the job should take (s); None for the loads of this moment.

    Examples
    --------
    Two nodes are about to become busy, and one has been silent for a quarter of an hour.

    >>> cluster = ClusterState.make("c", ["a", "b", "silent"], available_cpu=[0.9, 0.8, 0.9], age=[0.0, 0.0, 900.0])
    >>> def forecast(state, seconds):
    ...     return replace(state, available_cpu=np.array([0.3, 0.2, 0.9]))
    >>> counted(cluster, Loads(forecast), 60.0)[0].available_cpu.tolist()
    [0.3, 0.2, 0.225]
    >>> counted(cluster, Loads(), 60.0)[0].available_cpu.round(3).tolist()
    [0.9, 0.8, 0.825]
    """
    return with_recent(*expected(cluster, loads, horizon), loads)


def expected(cluster: ClusterState, loads: Loads, horizon: float | None) -> tuple[ClusterState, tuple[str, ...]]:
    """The first two steps of :func:`counted`: forecasts over a horizon (s), and staleness; until loads are measured."""
    if loads.kept is not None:
        return loads.kept(cluster, horizon)
    if loads.forecast is not None and horizon is not None:
        old = stale(cluster, loads.stale_after)
        later = loads.forecast(cluster, horizon)
        cluster = replace(
            later,
            available_cpu=np.where(old, cluster.available_cpu, later.available_cpu),
            available_bandwidth=np.where(old, cluster.available_bandwidth, later.available_bandwidth),
        )
    return with_stale_capped(cluster, loads.stale_after)


def with_recent(cluster: ClusterState, warnings: tuple[str, ...], loads: Loads) -> tuple[ClusterState, tuple[str, ...]]:
    """The last step of :func:`counted`: the jobs placed just now, to which each placement adds one.

    Parameters
    ----------
    cluster, warnings : what :func:`expected` gave.
    loads : with the jobs.
    """
    if loads.recent:
        recent = after_recent_placements if loads.waiting else with_recent_placements
        cluster = recent(cluster, loads.recent, loads.now)
    return cluster, warnings
