"""How many sets are weighed with what jobs do to each other, and which come out first: by a made contention."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from known_model import Known

from metasched.placement.clusters.constraints import Constraints
from metasched.placement.clusters.queue_wait import QueueWait
from metasched.placement.clusters.state import ClusterState
from metasched.placement.clusters.switch_tree import Topology
from metasched.placement.ranking.contention import Share, Shared
from metasched.placement.ranking.objective import Objective
from metasched.placement.ranking.query import InfeasibleError, Question, Ranking
from metasched.placement.ranking.ranker import rank
from metasched.predictors.contract import Predictor


class Made:
    """Slows a job down by its number of processors, and keeps how many sets it was asked about at a time."""

    def __init__(self, slowdown: Callable[[int], float]) -> None:
        self.slowdown, self.asked = slowdown, list[int]()

    def effects(
        self, cluster: ClusterState, predictor: Predictor, shares: Sequence[Share], execution_time: np.ndarray
    ) -> Shared:
        self.asked.append(len(shares))
        factors = np.array([self.slowdown(int(share.processors.sum())) for share in shares])
        return Shared(factors, 0.5 * factors, ("made up",))


def ranked(nodes: int, contention: Made, top: int, **more: object) -> Ranking:
    """On equal nodes of one processor each: 100 s divided by their number."""
    cluster = ClusterState.make("c", [f"n{k}" for k in range(nodes)])
    constraints = Constraints(least_efficiency=0.0)
    return rank([cluster], Known(traffic=0.0), Question(1.0, constraints, contention=contention, top=top, **more))


@pytest.mark.parametrize(
    ("nodes", "top", "slowdown", "asked"),
    [
        # The eight with the most processors are enough: the next takes longer without any contention.
        (40, 1, lambda p: 1.0, [8]),
        (40, 8, lambda p: 1.0, [8]),
        (40, 9, lambda p: 1.0, [9]),
        # With 31 and more it takes twice as long: 5 s on 40 are more than 3.03 s, the least of those that are left.
        (40, 1, lambda p: 1.0 + (p > 30), [8, 16]),
        # Nothing rules out what is left: twice as many each time, up to all, or to 500.
        (40, 1, lambda p: 1e6, [8, 16, 16]),
        (600, 1, lambda p: 1e6, [8, 16, 32, 64, 128, 252]),
        (600, 20, lambda p: 1e6, [20, 40, 80, 160, 200]),
        (600, 600, lambda p: 1e6, [600]),
        # The worst of those that are wanted is as good as the best of what is left can be.
        (40, 8, lambda p: 1.0 if p <= 33 else p / 33.0, [8]),
    ],
)
def test_sets_are_weighed_until_what_is_left_can_be_no_better(
    nodes: int, top: int, slowdown: Callable[[int], float], asked: list[int]
) -> None:
    made = Made(slowdown)
    found = ranked(nodes, made, top)
    assert made.asked == asked
    # All sets by hand, as far as they were weighed.
    by_hand = sorted((slowdown(p) * 100.0 / p, p) for p in range(nodes, nodes - sum(asked), -1))[:top]
    assert [each.completion for each in found.placements] == pytest.approx([time for time, _ in by_hand])
    assert found.gap == pytest.approx(by_hand[0][0] / (100.0 / nodes) - 1.0)
    assert found.warnings == ("made up",)


def test_the_costs_of_a_placement_are_those_with_contention() -> None:
    """On two clusters, of which one has processes of two threads and a wait."""
    made = Made(lambda p: 1.0 + p / 10.0)
    clusters = [
        ClusterState.make("a", ["a0", "a1"], queue_wait=QueueWait.always(7.0)),
        ClusterState.make("b", ["b0", "b1"], available_cpu=0.5),
    ]
    weights = Objective(time=1.0, core_hours=36.0, risk=0.5, harm=2.0)
    constraints = Constraints(least_efficiency=0.0)
    found = rank(clusters, Known(traffic=0.0), Question(1.0, constraints, weights, contention=made, top=4))
    by_hand = []
    for name, cpu, wait in (("a", 1.0, 7.0), ("b", 0.5, 0.0)):
        for p in (1, 2):
            factor = 1.0 + p / 10.0
            time = factor * 100.0 / (p * cpu)
            costs = {
                "time": wait + time, "core_hours": p * time / 3600.0, "energy": 0.0, "risk": wait + 1.1 * time,
                "harm": 0.5 * factor,
            }  # fmt: skip
            score = costs["time"] + 36.0 * costs["core_hours"] + 0.5 * costs["risk"] + 2.0 * costs["harm"]
            by_hand.append((score, name, p, factor, wait, costs))
    by_hand.sort(key=lambda row: row[0])
    shown = [(each.resource_set.cluster, each.resource_set.processors) for each in found.placements]
    assert shown == [(name, p) for _, name, p, *_ in by_hand]
    assert [dict(costs) for costs in found.costs] == [pytest.approx(costs) for *_, costs in by_hand]
    assert [(each.slowdown, each.queue_wait) for each in found.placements] == [
        (pytest.approx(factor), wait) for *_, factor, wait, _ in by_hand
    ]


def test_a_set_of_one_rack_is_weighed_once_though_it_is_found_for_the_switch_above_too() -> None:
    racks = Topology(("r1", "r2", "top"), np.array([2, 2, -1]), np.array([50.0, 50.0, np.inf]), np.array([0, 0, 1, 1]))
    cluster = ClusterState.make("c", ["a", "b", "c", "d"], available_cpu=[1.0, 0.9, 0.8, 0.7], network=racks)
    made = Made(lambda p: 1.0)
    constraints = Constraints(least_efficiency=0.0)
    found = rank([cluster], Known(), Question(1.0, constraints, contention=made, top=20, scope="all"))
    sets = [frozenset(each.resource_set.nodes) for each in found.placements]
    assert sorted(map(sorted, sets)) == [
        ["a"], ["a", "b"], ["a", "b", "c"], ["a", "b", "c", "d"], ["c"], ["c", "d"],
    ]  # fmt: skip
    assert sum(made.asked) == 6 < found.compared


def test_where_no_time_is_finite_there_is_no_placement() -> None:
    undefined = Known(work=float("inf"))
    with pytest.raises(InfeasibleError, match=r"^no model of the application is defined for any of the resource sets$"):
        rank([ClusterState.make("c", ["n"])], undefined, Question(1.0))
