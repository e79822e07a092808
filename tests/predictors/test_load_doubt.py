"""The interval of one prediction is that of the same prediction among many."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasched.predictors.contract import Predictions
from metasched.predictors.load_doubt import LoadDoubt, widen_one, widened
from metasched.records import Interval, Prediction

TIMES = st.floats(1e-3, 1e6)
ODD = st.sampled_from([0.0, 1e-320, 1e308, math.inf])


@given(TIMES, st.floats(1.0, 100.0), st.floats(1.0, 100.0), st.lists(TIMES | ODD, min_size=4, max_size=4))
def test_one_is_widened_as_many_are(time: float, below: float, above: float, at_ends: list[float]) -> None:
    found = Prediction(time, Interval(time / below, time * above, 0.9), "")
    compared(found, at_ends)


@pytest.mark.parametrize(("time", "low", "high"), [(1.0, 0.0, 2.0), (1.0, 0.5, math.inf), (1e-310, 0.0, 1e308)])
def test_ends_that_have_no_logarithm_pass_through(time: float, low: float, high: float) -> None:
    compared(Prediction(time, Interval(low, high, 0.9), ""), [0.5 * time, time, 2.0 * time, time])


def compared(found: Prediction, at_ends: list[float]) -> None:
    time, interval = found.execution_time, found.interval
    alone = Predictions(np.array([time]), np.array([interval.low]), np.array([interval.high]), 0.9)
    many = widened(alone, np.array(at_ends)[:, None])
    one = widen_one(found, np.array(at_ends)).interval
    assert (one.low, one.high) == pytest.approx((many.low[0], many.high[0]), rel=1e-12, abs=0.0)


def test_the_four_points_of_many_sets_are_those_of_each() -> None:
    draw = np.random.default_rng(1)
    cpu, bandwidth = draw.uniform(0.1, 1.0, 5), draw.uniform(10.0, 1000.0, 5)
    of_each = LoadDoubt(draw.uniform(0.5, 1.5, (2, 5)), draw.uniform(0.5, 1.5, (2, 5)))
    of_all = LoadDoubt(of_each.cpu[:, 0], of_each.bandwidth[:, 0])
    for number in range(5):
        alone = LoadDoubt(of_each.cpu[:, number], of_each.bandwidth[:, number])
        for many, one in ((of_each, alone), (of_all, of_all)):
            found = [side[:, number].tolist() for side in many.ends(cpu, bandwidth)]
            assert found == [side.tolist() for side in one.ends(cpu[number], bandwidth[number])]
    more_cpu, same, less_cpu, _ = of_all.ends(0.5, 1.0)[0].tolist()
    assert (more_cpu, same, less_cpu) == (of_all.cpu[1] * 0.5, 0.5, of_all.cpu[0] * 0.5)
