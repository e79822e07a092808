"""The q-th processor of the first nodes, found by counting or by trees, is the one that sorting finds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasched.placement.search import prefix_quantiles
from metasched.placement.search.prefix_quantiles import PrefixQuantiles


@given(st.integers(0, 100_000), st.integers(1, 30))
def test_counting_trees_and_sorting_agree(seed: int, ends: int) -> None:
    draw = np.random.default_rng(seed)
    sizes = draw.integers(1, 40, draw.integers(1, 6))
    start = np.cumsum(sizes) - sizes
    values = draw.choice([0.25, 0.5, draw.uniform(), draw.uniform(), 1.0], sizes.sum())
    weights = draw.integers(1, draw.choice([2, 5]), sizes.sum())
    group = draw.integers(0, sizes.size, 60)
    # Queries of a group end at this many places of it at most.
    places = [draw.integers(1, size + 1, ends) for size in sizes]
    count = np.array([draw.choice(places[own]) for own in group])
    before = np.concatenate([[0], np.cumsum(weights)])
    q = draw.integers(1, before[start[group] + count] - before[start[group]] + 1)
    expected = []
    for own, many, sought in zip(group, count, q, strict=True):
        part = slice(start[own], start[own] + many)
        order = np.argsort(-values[part], kind="stable")
        expected.append(values[part][order][np.searchsorted(np.cumsum(weights[part][order]), sought)])
    # All rows together, each by itself, a few at a time, and trees.
    for few, counted in ((0, prefix_quantiles.MOST_COUNTED), (1000, 1), (1000, 150), (0, 1)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(prefix_quantiles, "FEW_ENDS", few)
            patch.setattr(prefix_quantiles, "MOST_COUNTED", counted)
            found = PrefixQuantiles(values, weights, start)
            assert found.largest(group, count, q).tolist() == expected
            least = found.least(group, count)
            smallest = [values[start[own] : start[own] + many].min() for own, many in zip(group, count, strict=True)]
            assert found.falling[least].tolist() == smallest
            assert np.searchsorted(start, least, side="right").tolist() == (group + 1).tolist()
            part = count < sizes[group]
            inside = found.places_inside(group[part], count[part], q[part])
            assert found.falling[inside].tolist() == np.array(expected)[part].tolist()


def test_no_tree_is_built_for_few_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefix_quantiles, "_Trees", None)
    monkeypatch.setattr(prefix_quantiles, "MOST_COUNTED", 1000)
    best = PrefixQuantiles(np.arange(100.0), np.ones(100), [0, 50])
    group, count = np.repeat([0, 1], 10), np.tile([10, 20], 10)
    assert best.largest(group, count, np.full(20, 3)).tolist() == [7.0, 17.0] * 5 + [57.0, 67.0] * 5
    with pytest.raises(TypeError):
        best.largest(np.zeros(40, int), np.arange(2, 42), np.ones(40))
