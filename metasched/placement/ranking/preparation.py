"""The preparation of every ranking: clusters with the loads that count, over the run time of the best placement."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np

from metasched.placement.clusters.state import ClusterState
from metasched.placement.loads.counted import Loads
from monitors.forecasters.fixed_point import solve_horizon

Found = TypeVar("Found")

#: Largest number of rounds until the forecast's horizon is the predicted time, and the relative tolerance.
ROUNDS, AGREED = 4, 0.1
#: Times shorter than this are no horizon (s).
LEAST_HORIZON = 1e-3


def rotated(cluster: ClusterState, rotation: str | None) -> ClusterState:
    """The cluster with another order of its nodes among equal ones; None leaves their order.

    The nodes themselves stay where they are: to move a hundred thousand names takes a tenth of a second.
    """
    if rotation is None:
        return cluster
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
