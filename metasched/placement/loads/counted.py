"""The one function that says what loads a placement counts with: :func:`counted`.

Everybody who ranks asks it: the ranker, the fast path, the daemon and the command line. Three things lie between what
was measured last and what a job will meet, and they are taken in one order:

1. The forecast over the run, of fresh nodes. What follows is about the loads to come, so it comes first. A node that
   is silent is not forecast: what its record says of the next hour is no better known than what it says of now.
2. Staleness: a silent node counts no better than the lower quartile of the fresh ones. Both sides must be of the same
   kind, so it is the quartile of forecasts where there are any: beside forecasts of 0.3 and 0.2 a node last seen at 0.9
   must not be preferred because the others were measured at 0.9 before.
3. Recent placements, which neither a measurement nor a forecast shows. They come last: jobs placed on the fresh nodes
   say nothing of a silent one, and would lower its quartile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from metasched.placement.clusters.state import ClusterState
from metasched.placement.loads.recent_placements import (
    RecentPlacement,
    after_recent_placements,
    with_recent_placements,
)
from metasched.placement.loads.staleness import STALE_AFTER, stale, with_stale_capped

#: The horizon that is tried first where none is known to be near (s).
FIRST_HORIZON = 60.0
#: The loads to expect over a number of seconds from now, in place of those measured now.
Forecast = Callable[[ClusterState, float], ClusterState]


@dataclass(frozen=True, slots=True)
class Loads:
    """What is known of the loads of this moment and of those to come, besides what was measured last.

    Parameters
    ----------
    forecast : the loads to expect over a run; those measured now where None.
    recent : jobs placed just now.
    now : the time of the state (s), for ``recent``.
    stale_after : age from which on measurements are stale (s).
    first_horizon : the horizon that is tried first (s); the one of a run that agrees with its own forecast is sought
        from there.
    waiting : whether the job waits until those of ``recent`` that have processors of their own are over.
    """

    forecast: Forecast | None = None
    recent: Sequence[RecentPlacement] = ()
    now: float = 0.0
    stale_after: float = STALE_AFTER
    first_horizon: float = FIRST_HORIZON
    waiting: bool = False


def counted(cluster: ClusterState, loads: Loads, horizon: float | None) -> tuple[ClusterState, tuple[str, ...]]:
    """The cluster with the loads that a placement counts with, and what the user should know of them.

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
    """The first two steps of :func:`counted`: forecasts and staleness, the same until something is measured.

    Parameters
    ----------
    cluster, loads : see :func:`counted`.
    horizon : how long the job should take (s); None for the loads of this moment.
    """
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
