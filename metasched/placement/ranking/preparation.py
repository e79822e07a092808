"""The preparation of every ranking: clusters with the loads that count, over the run time of the best placement."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np

from metasched.placement.clusters.state import ClusterState
from metasched.placement.loads.counted import Loads, expected
from monitors.forecasters.fixed_point import solve_horizon

Found = TypeVar("Found")

#: Largest number of rounds until the forecast's horizon is the predicted time, and the relative tolerance.
ROUNDS, AGREED = 4, 0.1
#: Times shorter than this are no horizon (s).
LEAST_HORIZON = 1e-3


def before_recent(
    cluster: ClusterState, loads: Loads, horizon: float | None, rotation: str | None
) -> tuple[ClusterState, tuple[str, ...]]:
    """A cluster with the loads that a ranking counts with, but for recently placed jobs, and warnings about them.

    Parameters
    ----------
    cluster : as measured.
    loads : what counts besides: forecasts, jobs just placed, when loads are stale.
    horizon : how far ahead loads are forecast (s); None for those of now.
    rotation : decides which of equal nodes come first; None leaves their order.
    """
    state, warnings = expected(cluster, loads, horizon)
    return state if rotation is None else rotated(state, rotation), warnings


def rotated(cluster: ClusterState, rotation: str) -> ClusterState:
    """The cluster with another order of its nodes among equal ones.

    The nodes themselves stay where they are: to move a hundred thousand names takes a tenth of a second.
    """
    seed = int.from_bytes(hashlib.blake2b(f"{rotation}/{cluster.name}".encode(), digest_size=8).digest(), "big")
    return replace(cluster, turn=np.random.default_rng(seed).permutation(len(cluster.nodes)))


def at_its_own_horizon(
    loads: Loads, ranked: Callable[[float | None], Found], completion: Callable[[Found], float]
) -> Found:
    """What is found with the loads forecast until the best placement is complete; with those of now without forecasts.

    Parameters
    ----------
    loads : what is known of the loads.
    ranked : ranks with the loads counted over a horizon (s).
    completion : of the best placement found (s).
    """
    if loads.forecast is None:
        return ranked(None)
    return solve_horizon(
        lambda found: max(completion(found), LEAST_HORIZON),
        ranked,
        start=loads.first_horizon,
        tolerance=AGREED,
        most_steps=ROUNDS,
    ).forecast
