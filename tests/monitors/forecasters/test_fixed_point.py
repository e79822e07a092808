"""The horizon that agrees with the time predicted under it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.forecasters.fixed_point import solve_horizon


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
