"""The exact search against brute force over every subset of nodes."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from known_model import Known

from metasched.placement.clusters.switch_tree import Topology
from metasched.placement.search import exact_search
from metasched.placement.search.exact_search import Domains, search
from metasched.placement.search.prefix_quantiles import PrefixQuantiles
from metasched.records import InputError

LINKS = st.sampled_from([10.0, 20.0, 50.0, 100.0, 200.0, 1000.0])
CPUS = st.sampled_from([0.1, 0.25, 0.5, 0.75, 0.9, 1.0, 1.5])


@st.composite
def instances(draw, most_nodes=6):
    """A random forest of switches with a few nodes, each with 1 to 3 processors."""
    switches = draw(st.integers(1, 4))
    parent = [draw(st.integers(-1, index - 1)) if index else -1 for index in range(switches)]
    nodes = draw(st.integers(1, most_nodes))
    return {
        "tree": Topology(
            tuple(f"s{index}" for index in range(switches)),
            np.array(parent),
            np.array([draw(LINKS) if up >= 0 else np.inf for up in parent]),
            np.array([draw(st.integers(0, switches - 1)) for _ in range(nodes)]),
        ),
        "link": np.array([draw(LINKS) for _ in range(nodes)]),
        "cpu": np.array([draw(CPUS) for _ in range(nodes)]),
        "processors": np.array([draw(st.integers(1, 3)) for _ in range(nodes)]),
        "traffic": draw(st.sampled_from([0.0, 10.0, 1000.0, 20000.0])),
    }


def domains_of(instance) -> Domains:
    switch, node, width = instance["tree"].domains(instance["link"])
    return Domains(switch, node, width, instance["cpu"][node], instance["processors"][node])


def brute_force(instance, predictor) -> dict[int, float]:
    """For every P the least predicted time over every way to take processors on nodes of one tree."""
    best: dict[int, float] = {}
    for counts in product(*(range(most + 1) for most in instance["processors"])):
        nodes = np.flatnonzero(counts)
        if not nodes.size:
            continue
        bandwidth = instance["tree"].bandwidth(instance["link"], nodes)
        if bandwidth == 0:
            continue
        p = sum(counts)
        time = predictor.predict_many(1.0, p, instance["cpu"][nodes].min(), bandwidth).execution_time.item()
        best[p] = min(best.get(p, np.inf), time)
    return best


def found_by(instance, predictor, scope, top=10):
    domains = domains_of(instance)
    allowed = np.arange(1, int(domains.sizes.max()) + 1)
    _, processors = domains.pairs(allowed)

    def score(pair, place, step):
        cpu, bandwidth = domains.falling[place], domains.step_width[step]
        return predictor.predict_many(1.0, processors[pair], cpu, bandwidth).execution_time

    return search(domains, allowed, score, scope, top), domains


@settings(max_examples=100, deadline=None)
@given(instances())
def test_best_for_every_number_of_processors_is_that_of_brute_force(instance) -> None:
    predictor = Known(traffic=instance["traffic"])
    expected = brute_force(instance, predictor)
    for scope in ("processors", "all"):
        found, _ = found_by(instance, predictor, scope)
        got = {p: found.score[found.processors == p].min() for p in set(found.processors.tolist())}
        assert got == pytest.approx(expected, rel=1e-12)


@settings(max_examples=80, deadline=None)
@given(instances(), st.integers(1, 5))
def test_top_pairs_are_those_of_the_full_search(instance, top) -> None:
    predictor = Known(traffic=instance["traffic"])
    full, _ = found_by(instance, predictor, "all")
    quick, _ = found_by(instance, predictor, "top", top)
    assert np.sort(quick.score)[:top] == pytest.approx(np.sort(full.score)[:top], rel=1e-12)
    assert quick.evaluations <= full.evaluations


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 10.0, 1000.0, 20000.0]), st.booleans())
def test_among_many_widths_the_best_is_that_of_every_step(seed, traffic, alike) -> None:
    random = np.random.default_rng(seed)
    nodes = int(random.integers(30, 120))
    uplinks = np.append(random.choice([300.0, 1000.0], 3), np.inf)
    leaf = random.choice([0, 0, 0, 0, 1, 2], nodes)
    instance = {
        "tree": Topology(("s0", "s1", "s2", "top"), np.array([3, 3, 3, -1]), uplinks, leaf),
        "link": random.uniform(10.0, 1000.0, nodes),
        "cpu": random.choice([0.25, 0.5, 1.0], nodes) if alike else random.uniform(0.1, 1.0, nodes),
        "processors": random.integers(1, 3, nodes),
    }
    predictor = Known(traffic=traffic)
    found, domains = found_by(instance, predictor, "all")
    steps = [domains.first_step(found.domain, found.processors), domains.last_step(found.domain)]
    every = np.full(found.score.size, np.inf)
    for pair, (first, last) in enumerate(zip(*steps, strict=True)):
        step = np.arange(first, last + 1)
        domain, p = (np.full(step.size, each[pair]) for each in (found.domain, found.processors))
        cpu, bandwidth = domains.falling[domains.place(domain, p, step)], domains.step_width[step]
        every[pair] = predictor.predict_many(1.0, p, cpu, bandwidth).execution_time.min()
    assert found.score.tolist() == every.tolist()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(exact_search, "PIECE", 50)
        assert found_by(instance, predictor, "all")[0].score.tolist() == every.tolist()
    quick, _ = found_by(instance, predictor, "processors", 3)
    for p in np.unique(found.processors):
        assert quick.score[found.processors == p].min() == every[found.processors == p].min()
    assert np.sort(quick.score)[:3].tolist() == np.sort(every)[:3].tolist()


@settings(max_examples=80, deadline=None)
@given(instances())
def test_members_have_the_minima_that_were_scored_or_better(instance) -> None:
    found, domains = found_by(instance, Known(traffic=instance["traffic"]), "all")
    for pair in range(found.score.size):
        nodes, counts = domains.members(
            int(found.domain[pair]), int(found.processors[pair]), int(found.step[pair]), float(found.cpu[pair])
        )
        assert counts.sum() == found.processors[pair]
        assert np.all(counts >= 1)
        assert np.all(counts <= instance["processors"][nodes])
        assert instance["cpu"][nodes].min() == found.cpu[pair]
        assert instance["tree"].bandwidth(instance["link"], nodes) >= found.bandwidth[pair]


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_prefix_quantiles_are_those_of_sorting(data) -> None:
    sizes = data.draw(st.lists(st.integers(1, 12), min_size=1, max_size=4))
    start = np.cumsum([0, *sizes])[:-1]
    values = np.array(data.draw(st.lists(CPUS, min_size=sum(sizes), max_size=sum(sizes))))
    weights = np.array(
        data.draw(st.lists(st.integers(1, data.draw(st.integers(1, 4))), min_size=sum(sizes), max_size=sum(sizes)))
    )
    asked, expected = [], []
    for group, (first, size) in enumerate(zip(start, sizes, strict=True)):
        for count in range(1, size + 1):
            own = slice(first, first + count)
            falling = np.sort(np.repeat(values[own], weights[own]))[::-1]
            asked += [(group, count, q) for q in range(1, falling.size + 1)]
            expected += falling.tolist()
    mixed = np.array(data.draw(st.permutations(range(len(asked)))))
    got = PrefixQuantiles(values, weights, start).largest(*np.array(asked)[mixed].T)
    assert got.tolist() == np.array(expected)[mixed].tolist()


@pytest.mark.parametrize("heaviest", [1, 4])
def test_prefix_quantiles_of_small_and_large_groups_side_by_side(heaviest: int) -> None:
    random = np.random.default_rng(heaviest)
    sizes = np.array([255, 256, 1, 700, 16, 17])
    start = np.cumsum(sizes) - sizes
    values = random.choice(np.linspace(0.1, 1.0, 50), sizes.sum())
    weights = random.integers(1, heaviest + 1, sizes.sum())
    group = random.integers(0, sizes.size, 2000)
    count = 1 + random.integers(0, sizes[group])
    taken = [slice(first, first + many) for first, many in zip(start[group], count, strict=True)]
    q = 1 + random.integers(0, [weights[own].sum() for own in taken])
    expected = [
        np.sort(np.repeat(values[own], weights[own]))[::-1][number - 1] for own, number in zip(taken, q, strict=True)
    ]
    assert PrefixQuantiles(values, weights, start).largest(group, count, q).tolist() == expected


@settings(max_examples=80, deadline=None)
@given(instances(), st.data())
def test_bandwidth_of_nodes_is_an_ultrametric(instance, data) -> None:
    tree, link = instance["tree"], instance["link"]
    a, b, c = (data.draw(st.integers(0, link.size - 1)) for _ in range(3))
    width = {pair: tree.bandwidth(link, list(pair)) for pair in ((a, b), (b, c), (a, c))}
    assert width[a, c] >= min(width[a, b], width[b, c])


def test_a_ring_of_switches_is_refused() -> None:
    with pytest.raises(InputError, match="part of a cycle, expected a tree"):
        Topology(("a", "b", "c"), np.array([1, 0, 0]), np.ones(3), np.zeros(2, int))


def test_an_uplink_of_zero_is_refused() -> None:
    with pytest.raises(InputError, match="uplink of switch b is 0, expected more than 0"):
        Topology(("a", "b"), np.array([-1, 0]), np.array([1.0, 0.0]), np.zeros(2, int))
