"""The fronts of some numbers of processors do not depend on what was asked for before."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from metasched.placement.clusters.constraints import Constraints
from metasched.placement.search.cpu_bandwidth_fronts import Fronts
from tests.placement.search.test_needed_nodes import site


@settings(max_examples=100)
@given(st.integers(0, 100_000))
def test_fronts_found_one_after_the_other_are_those_found_at_once(seed: int) -> None:
    draw = np.random.default_rng(seed)
    state = site(draw)
    often = Fronts(state, Constraints())
    for _ in range(4):
        counts = np.unique(draw.integers(1, 60, draw.integers(1, 12))).tolist()
        found, once = often.of(counts), Fronts(state, Constraints()).of(counts)
        for name in ("processors", "domain", "step", "cpu", "bandwidth"):
            assert getattr(found, name).tolist() == getattr(once, name).tolist()


@settings(max_examples=100)
@given(st.integers(0, 100_000))
def test_a_front_has_every_set_that_no_other_beats(seed: int) -> None:
    draw = np.random.default_rng(seed)
    fronts = Fronts(site(draw), Constraints())
    front = fronts.of(range(1, 8))
    assert front.processors.tolist() == sorted(front.processors.tolist())
    for count in np.unique(front.processors).tolist():
        mine = front.processors == count
        # From the widest to the fastest, both change with every set.
        assert (np.diff(front.bandwidth[mine]) < 0).all()
        assert (np.diff(front.cpu[mine]) > 0).all()
        ends = fronts.ends([count])
        assert front.bandwidth[mine][0] == ends.bandwidth[0].max()
        assert front.cpu[mine][-1] == ends.cpu[1].max()
