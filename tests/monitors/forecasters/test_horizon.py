"""Forecasts of a mean over a run: what is certain, what is learned, and what the interval promises."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from monitors.forecasters.horizon import forecast_minimum
from monitors.forecasters.loads import forecast_loads
from monitors.forecasters.samples import Averages, Moments, carried_forward

TIME = np.arange(300) * 10.0


def autoregressive(memory: float, *, n: int = 4, seed: int = 0, length: int = 300) -> np.ndarray:
    """Series of shape (length, n) around 0.5 whose correlation over k steps is memory**k."""
    noise = np.random.default_rng(seed).normal(size=(length, n))
    series = np.zeros((length, n))
    for k in range(1, length):
        series[k] = memory * series[k - 1] + np.sqrt(1 - memory**2) * noise[k]
    return 0.5 + 0.1 * series


@given(arrays(float, (25, 3), elements=st.floats(0, 1)), st.floats(-20, 230), st.floats(0.01, 200))
def test_averages_over_spans_are_those_of_a_fine_sum(values: np.ndarray, start: float, width: float) -> None:
    time = np.cumsum(np.linspace(1.0, 19.0, 25))
    moments = start + width * (np.arange(4000) + 0.5) / 4000
    straight = np.stack([np.interp(moments, time, column) for column in values.T], axis=1)
    behind = values[np.minimum(np.searchsorted(time, moments), 24)]
    span = np.array([start]), np.array([start + width])
    assert Moments(time, values).mean(*span)[0] == pytest.approx(straight.mean(axis=0), abs=1e-3)
    assert Averages(time, values).mean(*span)[0] == pytest.approx(behind.mean(axis=0), abs=5e-3)


def test_missing_samples_carry_the_latest_forward_and_leave_an_empty_series_empty() -> None:
    values = np.array([[np.nan, np.nan], [0.2, np.nan], [np.nan, np.nan]])
    assert carried_forward(values)[:, 0].tolist() == [0.2, 0.2, 0.2]
    assert np.isnan(carried_forward(values)[:, 1]).all()


@given(st.integers(1, 120), st.integers(0, 50))
def test_samples_after_now_change_nothing(cut: int, seed: int) -> None:
    series = autoregressive(0.8, seed=seed)
    now = TIME[cut]
    spoiled = np.where(TIME[:, None] > now, 1e6, series)
    assert forecast_minimum(TIME, series, now, 77.0) == forecast_minimum(TIME, spoiled, now, 77.0)


def test_a_long_horizon_leans_on_history_and_a_short_one_on_the_present() -> None:
    series = autoregressive(0.95, n=1, length=300)
    series[-1] = 0.9
    near = forecast_minimum(TIME, series, TIME[-1] + 10.0, 10.0).expected
    far = forecast_minimum(TIME, series, TIME[-1] + 10.0, 900.0).expected
    assert abs(near - 0.9) < 0.1
    assert abs(far - series.mean()) < 0.1


def test_the_minimum_is_of_the_chosen_series_only() -> None:
    series = np.full((300, 3), [0.9, 0.1, 0.4])
    assert forecast_minimum(TIME, series, TIME[-1], 300.0, chosen=[0, 2]).expected == pytest.approx(0.4)


@given(st.floats(0.1, 1000), st.floats(-50, 50))
def test_forecasts_follow_a_change_of_unit(scale: float, shift: float) -> None:
    series = autoregressive(0.7)
    plain = forecast_minimum(TIME, series, TIME[-1], 200.0)
    other = forecast_minimum(TIME, shift + scale * series, TIME[-1], 200.0)
    assert other.expected == pytest.approx(shift + scale * plain.expected, rel=1e-6, abs=1e-6)
    assert other.low == pytest.approx(shift + scale * plain.low, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(("memory", "steps"), [(0.0, 1), (0.8, 6), (0.95, 30)])
def test_nine_intervals_in_ten_hold_the_outcome(memory: float, steps: int) -> None:
    inside = []
    for seed in range(60):
        series = autoregressive(memory, seed=seed, length=400)
        time = np.arange(400) * 10.0
        start = 400 - steps
        now = time[start - 1]
        outlook = forecast_minimum(time[:start], series[:start], now, steps * 10.0, samples="averages")
        inside.append(outlook.low <= series[start:].mean(axis=0).min() <= outlook.high)
    assert 0.8 <= np.mean(inside) <= 0.98


def test_an_old_sample_widens_the_interval() -> None:
    series = autoregressive(0.95, seed=3)
    fresh = forecast_minimum(TIME, series, TIME[-1] + 10.0, 60.0)
    stale = forecast_minimum(TIME, series, TIME[-1] + 300.0, 60.0)
    assert stale.high - stale.low > 1.2 * (fresh.high - fresh.low)


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_a_short_history_still_gives_an_interval_with_width(count: int) -> None:
    outlook = forecast_minimum(TIME[:count], autoregressive(0.5)[:count], TIME[count - 1] + 10.0, 3600.0)
    assert outlook.low < outlook.expected < outlook.high


def test_irregular_sampling_is_weighed_by_time_not_by_count() -> None:
    """Ten samples a second for a burst of 1.0, then one every 10 s of 0.2: time says 0.2, counting says 1.0."""
    time = np.concatenate([np.arange(100) * 0.1, 10.0 + 10.0 * np.arange(200)])
    values = np.concatenate([np.ones(100), np.full(200, 0.2)])[:, None]
    assert forecast_minimum(time, values, time[-1] + 10.0, 500.0).expected == pytest.approx(0.2, abs=0.01)


def test_loads_are_clamped_to_what_can_be() -> None:
    cpu = np.where(np.arange(300)[:, None] % 2, [1.0, 0.0], [0.0, 0.0])
    both = forecast_loads(TIME, ["a", "b"], cpu, 100 * cpu, now=TIME[-1], nodes=["a", "b"], horizon=500.0)
    assert 0 < both.available_cpu.low <= both.available_cpu.high <= 1
    assert both.available_bandwidth.low > 0


def test_a_node_without_loads_is_named() -> None:
    cpu = np.full((300, 1), 0.5)
    with pytest.raises(ValueError, match="node n9 has no loads"):
        forecast_loads(TIME, ["n0"], cpu, cpu, now=100.0, nodes=["n9"], horizon=10.0)


@pytest.mark.parametrize(
    "change",
    [{"horizon": 0.0}, {"level": 1.0}, {"now": -1.0}, {"values": np.ones(300)}, {"chosen": []}, {"samples": "sums"}],
)
def test_bad_arguments_are_refused_in_one_line(change: dict[str, object]) -> None:
    arguments = {"time": TIME, "values": np.ones((300, 1)), "now": 100.0, "horizon": 10.0} | change
    with pytest.raises(ValueError, match="expected") as caught:
        forecast_minimum(**arguments)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
