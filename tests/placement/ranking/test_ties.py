"""Placements that are about as good: their order, and which the scheduler may choose from."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from metasched.placement.ranking.candidates import Candidate
from metasched.placement.ranking.contention import Share
from metasched.placement.ranking.near_ties import Reach, near_ties
from metasched.placement.ranking.ties import settle_ties
from metasched.records import Interval, Placement, Prediction, ResourceSet

NOTHING = Share(np.empty(0, np.int64), np.empty(0, np.int64))


def candidate(score: float, processors: int = 1, cluster: str = "c", nodes: str = "n") -> Candidate:
    chosen = ResourceSet(cluster, tuple(nodes), processors, 1.0, 100.0)
    return Candidate(Placement(chosen, Prediction(score, Interval(score, score, 0.9), "")), 0, {}, score, NOTHING)


def settled(tolerance: float, rotation: str | None, *candidates: Candidate) -> list[tuple[float, int, str, str]]:
    return [
        (each.score, each.placement.resource_set.processors, each.placement.resource_set.cluster,
         "".join(each.placement.resource_set.nodes))
        for each in settle_ties(candidates, tolerance, rotation)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("tolerance", "order"),
    [
        (0.0, [(100.0, 8), (110.0, 4), (121.0, 2), (133.2, 1)]),
        (0.0999, [(100.0, 8), (110.0, 4), (121.0, 2), (133.2, 1)]),
        # 110 is a tie of 100; 121 is one of 110 and not of the best, and 133.2 is too far from it.
        (0.1001, [(110.0, 4), (100.0, 8), (121.0, 2), (133.2, 1)]),
        (0.2101, [(121.0, 2), (110.0, 4), (100.0, 8), (133.2, 1)]),
        (0.3321, [(133.2, 1), (121.0, 2), (110.0, 4), (100.0, 8)]),
    ],
)  # fmt: skip
def test_of_ties_those_with_the_fewest_processors_come_first(tolerance: float, order: list[tuple[float, int]]) -> None:
    given = [candidate(score, processors) for score, processors in ((100.0, 8), (110.0, 4), (121.0, 2), (133.2, 1))]
    assert [(score, processors) for score, processors, *_ in settled(tolerance, None, *given)] == order


def test_equal_ones_come_by_their_processors_their_clusters_and_their_nodes() -> None:
    order = [(1, "a", "x"), (1, "b", "a"), (2, "a", "bc"), (2, "a", "bd"), (2, "b", "a")]
    for given in permutations(order):
        found = settled(0.0, None, *(candidate(5.0, *each) for each in given))
        assert [each[1:] for each in found] == order
    # The order in which nodes are named does not matter.
    found = settled(0.0, None, candidate(5.0, 2, "a", "db"), candidate(5.0, 2, "a", "ca"))
    assert [each[3] for each in found] == ["ca", "db"]


def test_each_word_shuffles_ties_its_own_way_and_always_the_same_and_nothing_else() -> None:
    given = [candidate(5.0, 1, "a", node) for node in "uvwxyz"] + [candidate(9.0, 1, "a", "t")]
    orders = {word: settled(0.0, word, *given) for word in ("one", "two", "three", "four")}
    assert len({tuple(order) for order in orders.values()}) == 4
    for word, order in orders.items():
        assert order == settled(0.0, word, *given[5::-1], given[6])
        assert order[-1][0] == 9.0
    # What differs in its cluster or its processors only is another one.
    firsts = set()
    for word in "abcdefghij":
        pair = candidate(5.0, 1, "a"), candidate(5.0, 1, "b"), candidate(5.0, 2, "a")
        order = settled(0.0, word, *pair)
        assert order == settled(0.0, word, *pair[::-1])
        firsts.add(order[0])
    assert len(firsts) == 3


@pytest.mark.parametrize(("soonest", "tied"), [(0.0, ["a", "b"]), (199.9, ["a", "b"]), (200.0, ["a"]), (300.0, ["a"])])
def test_what_may_be_earlier_than_the_latest_of_the_first_is_a_near_tie(soonest: float, tied: list[str]) -> None:
    assert near_ties({"b": Reach(310.0, soonest, 400.0), "a": Reach(150.0, 100.0, 200.0)}) == tied


def test_near_ties_come_by_what_is_expected_and_equal_ones_as_they_were_given() -> None:
    reaches = {"c": Reach(3.0, 1.0, 9.0), "b": Reach(2.0, 2.0, 2.5), "a": Reach(2.0, 1.0, 9.0)}
    reaches["d"] = Reach(4.0, 2.0, 9.0)
    assert near_ties(reaches) == ["b", "a", "c", "d"]
    # The first counts even where its own reach is a point.
    assert near_ties({"a": Reach(2.0, 2.0, 2.0), "b": Reach(2.0, 2.0, 2.0)}) == ["a"]


def test_a_reach_is_the_mean_and_the_range() -> None:
    assert Reach.of([3.0, 1.0, 5.0, 3.5]) == Reach(3.125, 1.0, 5.0)
