"""How times follow the clock: what the doubt about that does to a predicted time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasched.predictors.energy.clock import MEANS, OUTSIDE, Clock

CLOCK = Clock(
    reference=2000.0, least=1000.0, most=3000.0, numbers=(0.4, 0.3, -0.2, 0.1, 0.3, -1.5),
    middle=(6.0, 1.0), unit=(0.7, 0.8),
)  # fmt: skip
POINTS = np.column_stack([np.log([[300.0, 2.0, 0.9, 60.0], [900.0, 16.0, 0.5, 90.0]]), [0.8, 0.3]])


@given(clock=st.floats(1000.0, 3000.0), beside=st.none() | st.floats(1000.0, 3000.0), seed=st.integers(0, 1000))
def test_the_spread_is_what_the_doubt_about_the_numbers_makes_of_the_logarithm_of_the_factor(
    clock: float, beside: float | None, seed: int
) -> None:
    doubt = np.random.default_rng(seed).normal(0.0, 0.1, (len(MEANS), len(MEANS)))
    step, slopes = 1e-6, []
    for place in range(len(MEANS)):
        ends = []
        for side in (step, -step):
            numbers = list(CLOCK.numbers)
            numbers[place] += side
            moved = replace(CLOCK, numbers=tuple(numbers))
            of, than = (moved.factor(POINTS, np.full(2, each)) for each in (clock, beside or CLOCK.reference))
            ends.append(np.log(of / than))
        slopes.append((ends[0] - ends[1]) / (2.0 * step))
    expected = np.linalg.norm(np.array(slopes).T @ doubt.T, axis=1)
    found = replace(CLOCK, doubt=tuple(doubt.ravel())).spread(POINTS, clock, beside)
    assert found == pytest.approx(expected, rel=1e-4, abs=1e-8)


@pytest.mark.parametrize(
    ("clock", "beyond"), [(500.0, 2.0), (1000.0, 1.0), (1700.0, 1.0), (3000.0, 1.0), (6000.0, 2.0)]
)
def test_a_clock_outside_those_learned_is_doubted_by_how_far_it_is(clock: float, beyond: float) -> None:
    assert CLOCK.outside(clock) == pytest.approx(np.log(beyond))
    assert CLOCK.spread(POINTS, clock) == pytest.approx(np.full(2, OUTSIDE * np.log(beyond)))
    assert CLOCK.spread(POINTS, 6000.0) == pytest.approx(np.full(2, 0.104), abs=1e-3)


@given(
    clock=st.floats(500.0, 6000.0), at=st.tuples(st.floats(3.0, 9.0), st.floats(0.0, 6.0)),
    computing=st.floats(0.0, 1.0), powers=st.tuples(st.floats(0.1, 1.5), st.floats(0.1, 1.5)),
)  # fmt: skip
def test_at_any_clock_more_cpu_or_bandwidth_makes_no_run_longer(
    clock: float, at: tuple[float, float], computing: float, powers: tuple[float, float]
) -> None:
    loads = np.array([[0.1, 0.9, 0.9], [10.0, 10.0, 100.0]])
    parts = np.array([[computing], [1.0 - computing]]) * loads ** -np.array(powers)[:, None]
    points = np.column_stack([np.tile(at, (3, 1)), np.log(loads).T, parts[0] / np.maximum(parts.sum(axis=0), 1e-300)])
    times = parts.sum(axis=0) * CLOCK.factor(points, np.full(3, clock))
    assert np.all(np.diff(times) <= 1e-12 * times[:-1])


def test_each_term_follows_the_clock_by_its_own_share() -> None:
    apart = np.column_stack([np.tile(POINTS[0, :4], (3, 1)), [0.0, 1.0, 0.25]])
    communication, computation, both = CLOCK.factor(apart, np.full(3, 1000.0))
    assert 1.0 < communication < computation < 2.0
    assert (computation, communication) == tuple(float(each[0]) for each in CLOCK.factors(apart, np.full(3, 1000.0)))
    assert both == pytest.approx(0.75 * communication + 0.25 * computation)


@given(clocks=st.tuples(*[st.floats(500.0, 6000.0)] * 3), seed=st.integers(0, 1000))
def test_the_doubt_between_clocks_is_a_distance(clocks: tuple[float, float, float], seed: int) -> None:
    doubt = np.random.default_rng(seed).normal(0.0, 0.1, (len(MEANS), len(MEANS)))
    clock = replace(CLOCK, doubt=tuple(doubt.ravel()))
    one, two, three = clocks
    between = clock.spread(POINTS, one, two)
    assert clock.spread(POINTS, two, one) == pytest.approx(between)
    assert clock.spread(POINTS, one, one).tolist() == [0.0, 0.0]
    assert np.all(between <= clock.spread(POINTS, one, three) + clock.spread(POINTS, three, two) + 1e-9)


def test_without_a_clock_a_time_is_that_at_the_reference() -> None:
    anywhere = np.random.default_rng(1).normal(size=(200, POINTS.shape[1]))
    assert set(CLOCK.factor(anywhere, np.full(200, np.nan)).tolist()) == {1.0}
    assert CLOCK.factor(POINTS, np.array([np.nan, 2000.0])).tolist() == [1.0, 1.0]
    assert CLOCK.pace(POINTS, np.array([np.nan, 1500.0]))[0] == CLOCK.pace(POINTS, np.array([2000.0, 1500.0]))[0]
