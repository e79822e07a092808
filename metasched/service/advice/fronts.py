"""A cache of the fronts for quick answers, computed once for each view, horizon and set of admitted nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from metasched.placement.clusters.constraints import Constraints
from metasched.placement.clusters.partition import Partition
from metasched.placement.clusters.state import ClusterState
from metasched.placement.loads.counted import Loads, expected
from metasched.placement.ranking.fast_path import fronts_of
from metasched.placement.ranking.preparation import rotated
from metasched.placement.ranking.query import Question
from metasched.placement.search.cpu_bandwidth_fronts import Fronts
from metasched.placement.search.needed_nodes import NeededNodes
from metasched.service.state.live_clusters import View
from metasched.service.state.load_forecasts import LADDER, Forecasts, nearest_horizon

#: Largest number of cached fronts of a view, and of views for which what is not asked for is still computed.
MOST_FRONTS, ASKED_WITHIN = 200, 10
#: Questions for at most so many processors share the nodes that they may need; for more, those for up to twice as many.
ALIKE = 32


@lru_cache(maxsize=MOST_FRONTS)
def _admission(constraints: Constraints) -> Constraints:
    """The constraints as far as they concern which nodes may be used: the same object where they are equal."""
    any_count = {"processors": (), "min_processors": 1, "max_processors": None, "least_efficiency": 0.0}
    return _one_of_equals(constraints.model_copy(update=any_count))


@lru_cache(maxsize=MOST_FRONTS)
def _one_of_equals(admission: Constraints) -> Constraints:
    return admission


#: What a front depends on in a view: the name of the partition's state, the admission, and the number of the horizon.
Key = tuple[str, Constraints, int | None]


@dataclass(slots=True)
class _Kept:
    """What is kept for one view and the forecasts of its time, from the loads without recently placed jobs.

    Parameters
    ----------
    view, forecasts : of what.
    expected, rotated, fronts : by what they depend on: the loads to expect, without and with the turns of nodes, and
        the fronts.
    recent : the fronts with the jobs placed just now, for a question that returns to the same horizon.
    needed : the nodes that such questions may need, by the largest number of processors, too.
    """

    view: View
    forecasts: Forecasts
    expected: dict[tuple[str, int | None], tuple[ClusterState, tuple[str, ...]]] = field(default_factory=dict)
    rotated: dict[tuple[str, int | None], tuple[ClusterState, tuple[str, ...]]] = field(default_factory=dict)
    fronts: dict[Key, Fronts] = field(default_factory=dict)
    recent: tuple[Loads | None, dict[Key, Fronts]] = (None, {})
    needed: dict[tuple[Key, int], NeededNodes] = field(default_factory=dict)


class FrontCache:
    """The fronts of the current view and forecasts, from the loads without recently placed jobs.

    Those that were asked for lately are computed for the next view before it is put up, so that questions need not wait
    for them.
    """

    def __init__(self) -> None:
        self._kept: _Kept | None = None
        self._next: _Kept | None = None
        #: The number of the view for which each was asked last.
        self._asked: dict[Key, int] = {}
        self._views = 0

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
        kept = self._of(view, forecasts)
        admission = _admission(question.constraints)
        return [
            self._front(kept, each, question, horizon, (each.state.name, admission, _step(horizon)))
            for each in partitions
        ]

    def expected(
        self, view: View, forecasts: Forecasts, loads: Loads, cluster: ClusterState, horizon: float | None
    ) -> tuple[ClusterState, tuple[str, ...]]:
        """What :func:`metasched.placement.loads.counted.expected` gives for a cluster of a view, computed once for it.

        Parameters
        ----------
        view, forecasts : those that are up.
        loads : as questions count them.
        cluster : of the view.
        horizon : seconds; None for the loads of now.
        """
        return _expected(self._of(view, forecasts), cluster, loads, horizon)

    def prepare(self, view: View, forecasts: Forecasts, loads: Loads, placing: bool) -> None:
        """Compute for a view that is about to be put up what was asked for lately.

        Parameters
        ----------
        view, forecasts : the view, and the forecasts that are up.
        loads : as questions count them, without recently placed jobs.
        placing : whether jobs were placed just now: then fronts are not kept, only the loads before these jobs.
        """
        self._views += 1
        known, kept = self._kept, _Kept(view, forecasts)
        for key, number in tuple(self._asked.items()):
            name, admission, step = key
            partition = view.named(name)
            if partition is None or self._views - number > ASKED_WITHIN:
                self._asked.pop(key, None)
                continue
            horizon = None if step is None else LADDER[step]
            question = Question(1.0, admission, loads=loads, rotation=rotation_of(view))
            before = _before(kept, partition.state, question, horizon)
            if not placing:
                kept.fronts[key] = found = fronts_of(before, question)
                if known is not None and key in known.fronts:
                    found.find_as(known.fronts[key])
        self._next = kept

    def _of(self, view: View, forecasts: Forecasts) -> _Kept:
        for kept in (self._kept, self._next):
            if kept is not None and kept.view is view and kept.forecasts is forecasts:
                break
        else:
            kept = _Kept(view, forecasts)
        self._kept = kept
        return kept

    def _front(self, kept: _Kept, partition: Partition, question: Question, horizon: float | None, key: Key) -> Fronts:
        if len(self._asked) < MOST_FRONTS or key in self._asked:
            self._asked[key] = self._views
        if not question.loads.recent:
            fronts = kept.fronts
        else:  # they are for this question alone, which may come back to them from another horizon
            if kept.recent[0] is not question.loads:
                kept.recent = question.loads, {}
            fronts = kept.recent[1]
        found = fronts.get(key)
        if found is None:
            found = fronts_of(_before(kept, partition.state, question, horizon), question, _needed(kept, key, question))
            if len(fronts) < MOST_FRONTS:
                fronts[key] = found
        return found


def _needed(kept: _Kept, key: Key, question: Question) -> NeededNodes | None:
    """The nodes that a question may need, which others share; None where fronts are kept for all questions."""
    most = question.constraints.most
    if most is None or not question.loads.recent:
        return None
    most = max(ALIKE, 1 << (most - 1).bit_length())
    if len(kept.needed) >= MOST_FRONTS:
        kept.needed.clear()
    return kept.needed.setdefault((key, most), NeededNodes(most))


def rotation_of(view: View) -> str:
    """What decides which of equal nodes come first: it changes with each view, so that not all jobs go to the same."""
    return f"{view.made_at}"


def _before(
    kept: _Kept, cluster: ClusterState, question: Question, horizon: float | None
) -> tuple[ClusterState, tuple[str, ...]]:
    """The loads without recently placed jobs, on whose admission they do not depend, and the turns of the nodes."""
    key = cluster.name, _step(horizon)
    if key not in kept.rotated:
        state, warnings = _expected(kept, cluster, question.loads, horizon)
        kept.rotated[key] = rotated(state, question.rotation), warnings
    return kept.rotated[key]


def _expected(
    kept: _Kept, cluster: ClusterState, loads: Loads, horizon: float | None
) -> tuple[ClusterState, tuple[str, ...]]:
    key = cluster.name, _step(horizon)
    if key not in kept.expected:
        kept.expected[key] = expected(cluster, replace(loads, kept=None), horizon)
    return kept.expected[key]


def _step(horizon: float | None) -> int | None:
    return None if horizon is None else nearest_horizon(horizon)
