"""The horizon that agrees with the time predicted under it."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.forecasters.fixed_point import Horizon, solve_horizon


@given(st.floats(0.05, 1), st.floats(0.05, 1), st.floats(1, 1e5), st.floats(1, 1e5))
def test_the_horizon_predicts_itself(present: float, history: float, work: float, relaxation: float) -> None:
    def forecast(horizon: float) -> float:
        weight = relaxation / horizon * -math.expm1(-horizon / relaxation)
        return history + weight * (present - history)

    found = solve_horizon(lambda cpu: work / cpu, forecast)
    assert work / found.forecast == pytest.approx(found.seconds, rel=0.011)
    assert found.steps <= 8


def test_a_forecast_that_jumps_ends_at_the_jump_instead_of_swinging() -> None:
    found = solve_horizon(lambda cpu: 100.0 / cpu, lambda T: 1.0 if T > 150 else 0.25, most_steps=30)
    assert found.seconds == pytest.approx(150.0, rel=0.02)


def test_a_start_that_is_right_takes_one_prediction() -> None:
    assert solve_horizon(lambda cpu: 50.0, lambda T: 0.5, start=50.0).steps == 1


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_a_predicted_time_that_cannot_be_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="expected a finite number of seconds"):
        solve_horizon(lambda cpu: bad, lambda T: 0.5)


def visited(log_time: Callable[[float], float], **options: float) -> tuple[list[float], Horizon[float]]:
    """The logarithms of the horizons that are tried where log g is a function of log T, and what is found."""
    tried: list[float] = []

    def forecast(seconds: float) -> float:
        tried.append(math.log(seconds))
        return tried[-1]

    found = solve_horizon(lambda view: math.exp(log_time(view)), forecast, start=1.0, **options)  # type: ignore[arg-type]
    return tried, found


@pytest.mark.parametrize(
    ("slope", "tried"),
    [
        # Of a straight line the secant through two points is the answer.
        (-0.5, [0.0, 1.0, 2 / 3]),
        (0.5, [0.0, 1.0, 2.0]),
        (0.7, [0.0, 1.0, 1 / 0.3]),
        # A secant that leads four times as far as the plain step, or farther, is not trusted.
        (0.8, [0.0, 1.0, 1.8, 2.44]),
        # Once the answer lies between two guesses, nothing outside is tried.
        (-4.0, [0.0, 1.0, 0.2]),
        (0.0, [0.0, 1.0]),
    ],
)
def test_the_horizons_that_are_tried(slope: float, tried: list[float]) -> None:
    found, horizon = visited(lambda position: 1.0 + slope * position, tolerance=1e-9, most_steps=len(tried))
    assert found == pytest.approx(tried)
    assert horizon.steps == len(tried)
    assert math.log(horizon.seconds) == pytest.approx(horizon.forecast) == pytest.approx(tried[-1])


def test_a_step_that_leaves_the_bracket_is_replaced_by_its_middle() -> None:
    """log g jumps from 3 down to -3 at log T = 1: 0 leads to 3, and then the two ends close in by halves."""
    tried, horizon = visited(lambda position: 3.0 if position < 1.0 else -3.0, most_steps=6)
    assert tried[:2] == [0.0, 3.0]
    low, high = 0.0, 3.0
    for each in tried[2:]:
        assert low < each < high
        low, high = (each, high) if each < 1.0 else (low, each)
    assert high - low < 1.5
    assert horizon.steps <= 6


@pytest.mark.parametrize(("tolerance", "steps"), [(0.5, 1), (0.49, 2)])
def test_a_change_as_large_as_the_tolerance_is_small_enough(tolerance: float, steps: int) -> None:
    tried, horizon = visited(lambda position: 0.5, tolerance=tolerance)
    assert (len(tried), horizon.steps) == (steps, steps)


def test_after_the_last_step_the_best_so_far_counts() -> None:
    """log g - log T is 1, then 0.25, then 4: the second horizon is the best of three."""
    left = iter([1.0, 0.25, 4.0])
    tried, horizon = visited(lambda position: position + next(left), most_steps=3)
    assert len(tried) == 3
    assert (math.log(horizon.seconds), horizon.steps) == (pytest.approx(1.0), 2)
