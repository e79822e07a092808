"""Pairwise bandwidths: exact where the cliques can be listed, else feasible with a true gap."""

from __future__ import annotations

from itertools import combinations

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from known_model import Known

from metasched.placement.clusters import bandwidth_matrix as matrix
from metasched.placement.clusters.bandwidth_matrix import BandwidthMatrix
from metasched.placement.clusters.constraints import Constraints
from metasched.placement.clusters.state import ClusterState
from metasched.placement.clusters.switch_tree import Topology
from metasched.placement.explaining.breakdown import held_back_by
from metasched.placement.ranking.query import Question
from metasched.placement.ranking.ranker import rank
from metasched.records import InputError, ResourceSet

WIDTHS = st.sampled_from([5.0, 10.0, 30.0, 100.0, 300.0, 1000.0])


@st.composite
def measured(draw, most_nodes=7):
    size = draw(st.integers(1, most_nodes))
    width = np.zeros((size, size))
    for first, second in combinations(range(size), 2):
        width[first, second] = width[second, first] = draw(WIDTHS)
    return ClusterState.make(
        "m",
        [f"n{index}" for index in range(size)],
        processors=[draw(st.integers(1, 2)) for _ in range(size)],
        available_cpu=[draw(st.sampled_from([0.1, 0.4, 0.7, 1.0])) for _ in range(size)],
        available_bandwidth=[draw(WIDTHS) for _ in range(size)],
        network=BandwidthMatrix(width),
    )


def brute_force(cluster: ClusterState, predictor: Known) -> float:
    best = np.inf
    for size in range(1, len(cluster.nodes) + 1):
        for nodes in map(list, combinations(range(len(cluster.nodes)), size)):
            bandwidth = cluster.network.bandwidth(cluster.available_bandwidth, nodes)
            for processors in range(size, cluster.processors[nodes].sum() + 1):
                time = predictor.predict_many(1.0, processors, cluster.available_cpu[nodes].min(), bandwidth)
                best = min(best, time.execution_time.item())
    return best


@settings(max_examples=100, deadline=None)
@given(measured(), st.sampled_from([10.0, 1000.0, 20000.0]))
def test_small_matrices_are_searched_exactly(cluster, traffic) -> None:
    predictor = Known(traffic=traffic)
    ranking = rank([cluster], predictor, Question(1.0, Constraints(least_efficiency=0)))
    assert ranking.placements[0].completion == pytest.approx(brute_force(cluster, predictor), rel=1e-12)
    assert ranking.gap == 0


@given(measured())
def test_the_cliques_of_each_width_are_all_that_no_node_extends(cluster: ClusterState) -> None:
    assert isinstance(cluster.network, BandwidthMatrix)
    width = cluster.network.width
    expected = set()
    for size in range(2, len(cluster.nodes) + 1):
        for nodes in map(list, combinations(range(len(cluster.nodes)), size)):
            level = width[np.ix_(nodes, nodes)].min()
            others = np.delete(width[:, nodes], nodes, axis=0)
            if not (others >= level).all(axis=1).any():
                expected.add((frozenset(nodes), level))
    found = [(frozenset(nodes.tolist()), level) for nodes, level in matrix._maximal_cliques(width)]
    assert len(found) == len(set(found))
    assert set(found) == expected


def test_equal_pairs_are_searched_together(monkeypatch: pytest.MonkeyPatch) -> None:
    searches, find = [], networkx.find_cliques
    monkeypatch.setattr(networkx, "find_cliques", lambda *asked, **of: searches.append(asked) or find(*asked, **of))
    half = np.arange(30) < 15
    halves = np.where(half[:, None] == half, 100.0, 10.0)
    np.fill_diagonal(halves, np.inf)
    found = [(nodes.tolist(), level) for nodes, level in matrix._maximal_cliques(halves)]
    assert sorted(found) == [([*range(15)], 100.0), ([*range(30)], 10.0), ([*range(15, 30)], 100.0)]
    assert len(searches) == 2


@settings(max_examples=80, deadline=None)
@given(measured(), st.sampled_from([10.0, 1000.0, 20000.0]))
def test_beyond_the_limit_the_reported_gap_holds_the_truth(cluster, traffic) -> None:
    predictor = Known(traffic=traffic)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matrix, "MOST_EXACT_NODES", 0)
        ranking = rank([cluster], predictor, Question(1.0, Constraints(least_efficiency=0)))
    best = brute_force(cluster, predictor)
    assert ranking.placements[0].completion <= best * (1 + ranking.gap) * (1 + 1e-12)
    assert ranking.placements[0].completion >= best * (1 - 1e-12)


@given(measured(), st.data())
def test_what_holds_a_set_back_is_a_link_or_a_path_as_narrow_as_it_is(
    cluster: ClusterState, data: st.DataObject
) -> None:
    chosen = data.draw(st.lists(st.sampled_from(cluster.nodes), min_size=1, unique=True))
    numbers = [cluster.nodes.index(name) for name in chosen]
    width = cluster.network.bandwidth(cluster.available_bandwidth, numbers)
    _, narrowest = held_back_by(ResourceSet("m", tuple(chosen), len(chosen), 1.0, width), cluster)
    named = [cluster.nodes.index(word) for word in narrowest.split() if word in cluster.nodes]
    assert len(named) == (1 if narrowest.startswith("link of ") else 2)
    assert set(named) <= set(numbers)
    assert cluster.network.bandwidth(cluster.available_bandwidth, named) == width


def test_a_tree_measured_pair_by_pair_leaves_no_gap_however_large() -> None:
    random = np.random.default_rng(7)
    tree = Topology(
        tuple(f"s{index}" for index in range(9)),
        np.append(np.full(8, 8), -1),
        np.append(random.uniform(20, 500, 8), np.inf),
        np.repeat(np.arange(8), 12),
    )
    link = random.uniform(50, 1000, 96)
    pairs = np.array([[tree.bandwidth(link, [a, b]) for b in range(96)] for a in range(96)])
    names = [f"n{index}" for index in range(96)]
    cpu = random.uniform(0.2, 1, 96)
    by_tree, by_matrix = (
        rank(
            [ClusterState.make("c", names, available_cpu=cpu, available_bandwidth=link, network=network)],
            Known(traffic=3000.0),
            Question(1.0),
        )
        for network in (tree, BandwidthMatrix(pairs))
    )
    assert by_matrix.gap == 0
    assert by_matrix.placements[0].completion == pytest.approx(by_tree.placements[0].completion, rel=1e-12)


@pytest.mark.parametrize(
    ("width", "line"),
    [
        ([[0.0, 1.0]], "expected as many rows as columns"),
        ([[0.0, 0.0], [1.0, 0.0]], "has 0 in row 1, column 2, expected a finite number above 0"),
        ([[0.0, 1.0], [np.nan, 0.0]], "has nan in row 2, column 1"),
    ],
)
def test_a_matrix_that_is_none_is_refused(width, line) -> None:
    with pytest.raises(InputError, match=line):
        BandwidthMatrix(np.array(width))


def test_growing_finds_cliques_that_share_nodes() -> None:
    """Agglomeration gives each node to one clique of a width only."""
    size, planted = 12, (range(6), range(3, 10))
    width = np.random.default_rng(1).uniform(1.0, 10.0, (size, size))
    for nodes in planted:
        for first, second in combinations(nodes, 2):
            width[first, second] = 100.0
    width = np.triu(width, 1) + np.triu(width, 1).T
    np.fill_diagonal(width, np.inf)
    found = {frozenset(nodes.tolist()): level for nodes, level in matrix._grown(width)}
    assert {frozenset(nodes) for nodes in planted} <= found.keys()
    least = {nodes: min((width[a, b] for a, b in combinations(nodes, 2)), default=np.inf) for nodes in found}
    assert [nodes for nodes, level in found.items() if least[nodes] < level] == []
