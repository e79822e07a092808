"""A cache of the fronts for quick answers, computed once for each view, horizon and set of admitted nodes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeVar

from metasched.placement.clusters.constraints import Constraints
from metasched.placement.clusters.partition import Partition
from metasched.placement.clusters.state import ClusterState
from metasched.placement.ranking.fast_path import fronts_with
from metasched.placement.ranking.preparation import before_recent
from metasched.placement.ranking.query import Question
from metasched.placement.search.cpu_bandwidth_fronts import Fronts
from metasched.service.state.live_clusters import View
from metasched.service.state.load_forecasts import Forecasts, nearest_horizon

#: Largest number of cached fronts of a view.
MOST_FRONTS = 200


Kept = TypeVar("Kept")


@lru_cache(maxsize=MOST_FRONTS)
def _admission(constraints: Constraints) -> Constraints:
    """The constraints as far as they concern which nodes may be used."""
    return constraints.model_copy(
        update={"processors": (), "min_processors": 1, "max_processors": None, "least_efficiency": 0.0}
    )


#: What a front depends on in a view: the name of the partition's state, the admission, and the number of the horizon.
Key = tuple[str, Constraints, int | None]


class FrontCache:
    """The fronts of the current view and forecasts, from the loads without recently placed jobs."""

    def __init__(self) -> None:
        self._of: tuple[View, Forecasts] | None = None
        self._fronts: dict[Key, Fronts] = {}
        self._before: dict[Key, tuple[ClusterState, tuple[str, ...]]] = {}

    def fronts(
        self,
        partitions: Sequence[Partition],
        question: Question,
        view: View,
        forecasts: Forecasts,
        horizon: float | None,
    ) -> list[Fronts]:
        """The fronts of some partitions over a horizon (s): from the cache, unless a job was placed since.

        Parameters
        ----------
        partitions : where the job may run.
        question : what is asked.
        view, forecasts : those that are up.
        horizon : seconds; None for the loads of now.
        """
        if self._of is None or self._of[0] is not view or self._of[1] is not forecasts:
            self._of, self._fronts, self._before = (view, forecasts), {}, {}
        admission = _admission(question.constraints)
        return [
            self._front(each, question, horizon, (each.state.name, admission, _step(horizon))) for each in partitions
        ]

    def _front(self, partition: Partition, question: Question, horizon: float | None, key: Key) -> Fronts:
        recent = question.loads.recent
        if not recent and key in self._fronts:
            return self._fronts[key]
        before = self._before.get(key)
        if before is None:
            before = before_recent(partition.state, question.loads, horizon, question.rotation)
            _keep(self._before, key, before)
        found = fronts_with(before, question)
        if not recent:
            _keep(self._fronts, key, found)
        return found


def _step(horizon: float | None) -> int | None:
    return None if horizon is None else nearest_horizon(horizon)


def _keep(kept: dict[Key, Kept], key: Key, value: Kept) -> None:
    if len(kept) < MOST_FRONTS:
        kept[key] = value
