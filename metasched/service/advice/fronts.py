"""The fronts that quick answers are found on: made once for each view, horizon and admission of nodes, then kept."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from metasched.placement.clusters.constraints import Constraints
from metasched.placement.clusters.partition import Partition
from metasched.placement.ranking.fast_path import fronts_of
from metasched.placement.ranking.query import Question
from metasched.placement.search.cpu_bandwidth_fronts import Fronts
from metasched.service.state.live_clusters import View
from metasched.service.state.load_forecasts import Forecasts, nearest_horizon

#: Fronts kept at most while a view is up.
MOST_FRONTS = 200


@lru_cache(maxsize=MOST_FRONTS)
def _admission(constraints: Constraints) -> Constraints:
    """The constraints as far as they say which nodes may be taken."""
    return constraints.model_copy(
        update={"processors": (), "min_processors": 1, "max_processors": None, "least_efficiency": 0.0}
    )


class FrontCache:
    """The fronts of the view and the forecasts that are up."""

    def __init__(self) -> None:
        self._of: tuple[View, Forecasts] | None = None
        self._fronts: dict[tuple[str, Constraints, int | None], Fronts] = {}

    def fronts(
        self,
        partitions: Sequence[Partition],
        question: Question,
        view: View,
        forecasts: Forecasts,
        horizon: float | None,
    ) -> list[Fronts]:
        """The fronts of some partitions over a horizon (s): as kept, unless a job was placed since."""
        if self._of is None or self._of[0] is not view or self._of[1] is not forecasts:
            self._of, self._fronts = (view, forecasts), {}
        admission = _admission(question.constraints)
        found = []
        for each in partitions:
            key = each.state.name, admission, None if horizon is None else nearest_horizon(horizon)
            fronts = self._fronts.get(key) if not question.loads.recent else None
            if fronts is None:
                fronts = fronts_of(each.state, question, horizon)
                if not question.loads.recent and len(self._fronts) < MOST_FRONTS:
                    self._fronts[key] = fronts
            found.append(fronts)
        return found
