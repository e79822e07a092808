"""Screening: whatever comes in, what is kept can be, nothing goes uncounted, and no forecast is poisoned."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.forecasters.sets import Sets, forecast_sets
from monitors.sources.screening import REFUSALS, REPAIRS, Rules, Triple, screen, sound

NOW = 10_000.0
RULES = Rules(ahead=60.0, oldest=9_000.0, bandwidth=1000.0)

any_number = st.one_of(
    st.floats(), st.floats(-0.02, 1.02), st.sampled_from([0.0, 1.0, 1000.0, 1010.1, -1e-9, 1e300, math.inf, math.nan])
)
any_time = st.one_of(st.floats(), st.floats(0.0, 1.1e4), st.integers(9_990, 10_070).map(float))
batches = st.lists(st.tuples(any_time, any_number, any_number), max_size=30)


@given(batches, st.floats(0, 1e4))
def test_every_sample_is_kept_or_counted_once_and_what_is_kept_can_be(batch: list[Triple], newest: float) -> None:
    found = screen(batch, NOW, RULES, newest=newest)
    assert len(found.kept) + found.refused.total() == len(batch)
    assert set(found.refused) <= set(REFUSALS)
    assert set(found.repaired) <= set(REPAIRS)
    times = [time for time, _, _ in found.kept]
    assert times == sorted(set(times))
    for time, cpu, bandwidth in found.kept:
        assert NOW - RULES.oldest <= time <= NOW + RULES.ahead
        assert 0.0 <= cpu <= 1.0
        assert 0.0 <= bandwidth <= RULES.bandwidth
    if found.kept:
        assert sound(*zip(*found.kept, strict=True)).all()


@given(batches)
def test_screening_twice_changes_nothing_more(batch: list[Triple]) -> None:
    once = screen(batch, NOW, RULES)
    again = screen(once.kept, NOW, RULES)
    assert (again.kept, again.refused.total(), again.repaired.total()) == (once.kept, 0, 0)


@given(batches)
def test_values_are_moved_by_rounding_at_most(batch: list[Triple]) -> None:
    first = {}
    for time, cpu, bandwidth in batch:
        if screen([(time, cpu, bandwidth)], NOW, RULES).kept:
            first.setdefault(time, (cpu, bandwidth))
    kept = screen(batch, NOW, RULES).kept
    moved = np.array([np.subtract(sample[1:], first[sample[0]]) for sample in kept]).reshape(len(kept), 2)
    assert (np.abs(moved) <= RULES.slack * np.array([1.0, RULES.bandwidth]) * (1 + 1e-12)).all()


@pytest.mark.parametrize(
    ("sample", "reason"),
    [
        ((NOW, math.nan, 90.0), "not a number"),
        ((NOW, 0.5, math.inf), "not a number"),
        ((math.nan, 0.5, 90.0), "not a number"),
        ((NOW, -0.5, 90.0), "negative"),
        ((NOW, 0.5, -50.0), "negative"),
        ((NOW, 1.5, 90.0), "above capacity"),
        ((NOW, 0.5, 1100.0), "above capacity"),
        ((NOW + 61.0, 0.5, 90.0), "from the future"),
        ((NOW - 9_001.0, 0.5, 90.0), "too old"),
    ],
)
def test_each_fault_is_called_by_its_name(sample: Triple, reason: str) -> None:
    found = screen([sample], NOW, RULES)
    assert (found.kept, dict(found.refused)) == ((), {reason: 1})


@pytest.mark.parametrize(
    ("sample", "kept"),
    [
        ((NOW + 60.0, 0.5, 90.0), (0.5, 90.0)),
        ((NOW - 9000.0, 0.5, 90.0), (0.5, 90.0)),
        ((NOW, 0.0, 0.0), (0.0, 0.0)),
        ((NOW, 1.0, 1000.0), (1.0, 1000.0)),
        ((NOW, -0.01, 90.0), (0.0, 90.0)),
        ((NOW, 1.01, 90.0), (1.0, 90.0)),
        ((NOW, 0.5, -10.0), (0.5, 0.0)),
        ((NOW, 0.5, 1010.0), (0.5, 1000.0)),
    ],
)
def test_what_lies_at_a_limit_is_kept_and_what_rounding_put_beyond_is_moved_there(
    sample: Triple, kept: tuple[float, float]
) -> None:
    found = screen([sample], NOW, RULES)
    assert found.kept == ((sample[0], *kept),)
    assert dict(found.repaired) == ({} if sample[1:] == kept else {"clamped": 1})


def test_of_two_samples_of_one_moment_the_first_counts() -> None:
    found = screen([(NOW, 0.5, 90.0), (NOW, 0.9, 10.0)], NOW)
    assert (found.kept, dict(found.refused)) == (((NOW, 0.5, 90.0),), {"duplicate": 1})


def test_nothing_of_an_unknown_node_is_kept() -> None:
    found = screen([(NOW, 0.5, 90.0)] * 3, NOW, known=False)
    assert (found.kept, dict(found.refused)) == ((), {"unknown node": 3})
    assert screen([], NOW, known=False).refused.total() == 0


bad = st.one_of(
    st.tuples(st.floats(NOW + 61, 1e11), st.floats(0, 1), st.floats(0, 1000)),
    st.tuples(st.floats(0, 990.0), st.floats(0, 1), st.floats(0, 1000)),
    st.tuples(st.floats(1000.0, NOW), st.sampled_from([math.nan, math.inf, -3.0, 8.0, 1.02]), st.floats(0, 1000)),
    st.tuples(st.floats(1000.0, NOW), st.floats(0, 1), st.sampled_from([math.nan, -math.inf, -30.0, 5e3])),
    st.just((math.nan, 0.5, 90.0)),
)


def assert_same(one: Sets, other: Sets) -> None:
    assert one.cpu.tolist() == other.cpu.tolist()
    assert one.bandwidth.tolist() == other.bandwidth.tolist()
    assert one.cpu_sets.ends.tolist() == other.cpu_sets.ends.tolist()
    assert one.bandwidth_sets.ends.tolist() == other.bandwidth_sets.ends.tolist()


@given(st.lists(bad, max_size=20), st.randoms())
def test_a_forecast_is_the_same_whatever_bad_samples_came_with_the_good_ones(
    strewn: list[Triple], draw: object
) -> None:
    moments = np.arange(NOW - 2000.0, NOW, 10.0)
    good = [(float(t), 0.5 + 0.3 * math.sin(t / 90), 500.0) for t in moments]
    batch = good + strewn
    draw.shuffle(batch)  # type: ignore[attr-defined]
    found = screen(batch, NOW, RULES)
    assert list(found.kept) == good
    time, cpu, link = (np.array(column) for column in zip(*found.kept, strict=True))
    clean = forecast_sets(moments, [[cpu] for _, cpu, _ in good], [[link] for _, _, link in good], NOW, 300.0)
    assert_same(forecast_sets(time, cpu[:, None], link[:, None], NOW, 300.0), clean)


def test_a_stored_value_that_is_not_finite_is_as_if_it_were_missing() -> None:
    moments = np.arange(0.0, 2000.0, 10.0)
    cpu = 0.5 + 0.3 * np.sin(moments[:, None] / 90)
    missing, infinite = cpu.copy(), cpu.copy()
    missing[40:45], infinite[40:45] = np.nan, np.inf
    of_infinite, of_missing = (forecast_sets(moments, each, each, 2000.0, 300.0) for each in (infinite, missing))
    assert_same(of_infinite, of_missing)
