"""Forecasts of nodes and sets over a run: what is certain, what is learned, and what the ends promise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.forecasters.sets import HISTORY, LEARNED_FROM, LEVEL, NEAR_PART, _Like, forecast_sets

TIME = np.arange(300) * 10.0


def autoregressive(memory: float, *, n: int = 4, seed: int = 0, length: int = 300) -> np.ndarray:
    """Series of shape (length, n) around 0.5 whose correlation over k steps is memory**k."""
    noise = np.random.default_rng(seed).normal(size=(length, n))
    series = np.zeros((length, n))
    for k in range(1, length):
        series[k] = memory * series[k - 1] + np.sqrt(1 - memory**2) * noise[k]
    return 0.5 + 0.1 * series


def whole(time: np.ndarray, cpu: np.ndarray, now: float, horizon: float, **more: object) -> tuple[float, float, float]:
    """The least available CPU of all nodes: expected, and its ends."""
    found = forecast_sets(time, cpu, cpu, now, horizon, chosen=range(cpu.shape[1]), **more)  # type: ignore[arg-type]
    expected = float(found.cpu.min() * found.cpu_sets.part[0])
    low, high = expected * found.cpu_sets.ends[:, 0]
    return expected, float(low), float(high)


@pytest.mark.parametrize("chosen", [None, (0, 2)])
@given(st.integers(1, 120), st.integers(0, 50))
def test_samples_after_now_change_nothing(chosen: tuple[int, ...] | None, cut: int, seed: int) -> None:
    series = autoregressive(0.8, seed=seed)
    now = TIME[cut]
    spoiled = np.where(TIME[:, None] > now, 1e6, series)
    plain, other = (forecast_sets(TIME, each, each, now, 77.0, chosen=chosen) for each in (series, spoiled))
    assert plain.cpu.tolist() == other.cpu.tolist()
    assert plain.bandwidth_sets.ends.tolist() == other.bandwidth_sets.ends.tolist()


def test_a_node_that_was_silent_for_all_of_the_history_that_is_used_keeps_its_last_sample() -> None:
    time = 10.0 * np.arange(2 * HISTORY)
    cpu = np.full((time.size, 2), 0.5)
    cpu[: HISTORY // 2, 1] = 0.25
    cpu[HISTORY // 2 :, 1] = np.nan
    found = forecast_sets(time, cpu, 100.0 * cpu, time[-1], 60.0)
    assert found.cpu == pytest.approx([0.5, 0.25])
    assert found.bandwidth == pytest.approx([50.0, 25.0])


def test_half_of_the_spans_come_out_above_the_middle_of_what_a_few_bad_ones_make_of_the_average() -> None:
    random = np.random.default_rng(3)
    time = 60.0 * np.arange(600)
    series = np.where(random.random((600, 4)) < 0.1, 0.2, 0.9) + 0.02 * random.normal(size=(600, 4))
    found = forecast_sets(time, series, series, time[-1], 60.0)
    middle = found.cpu.max() * found.cpu_sets.part[0] * found.cpu_sets.middle[0]
    assert found.cpu_sets.middle[0] > 1.1
    assert middle == pytest.approx(np.median(series), rel=0.05)
    assert np.all(found.cpu_sets.ends[0] <= found.cpu_sets.middle)
    assert np.all(found.cpu_sets.middle <= found.cpu_sets.ends[1])


def test_a_long_horizon_leans_on_history_and_a_short_one_on_the_present() -> None:
    series = autoregressive(0.95, n=1)
    series[-1] = 0.7
    near = whole(TIME, series, TIME[-1] + 10.0, 10.0)[0]
    far = whole(TIME, series, TIME[-1] + 10.0, 900.0)[0]
    assert abs(near - 0.7) < 0.1
    assert abs(far - series.mean()) < 0.1


def test_what_followed_like_samples_is_averaged_over_all_equal_ones_and_over_the_nearest_part_of_the_others() -> None:
    random = np.random.default_rng(4)
    sample = np.concatenate([np.full(8, 0.3), np.linspace(0.5, 0.9, 32)])
    outcome, mixed = random.uniform(0.1, 1.0, sample.size), random.permutation(sample.size)
    near = round(NEAR_PART * sample.size)
    like = _Like(sample[mixed], outcome[mixed])

    def harmonic(part: slice) -> float:
        return float(1.0 / np.mean(1.0 / outcome[part]))

    asked = like(np.array([0.3, 1.0, sample[20]]))
    # Above all others the nearest ones are at the end; in the middle they lie on both sides.
    expected = [slice(0, 8), slice(-near, None), slice(20 - near // 2, 20 + near // 2)]
    assert asked == pytest.approx([harmonic(part) for part in expected])


def test_a_node_that_is_often_busy_is_not_expected_to_stay_free() -> None:
    """Two nodes alike at this moment: one is nearly always busy, the other nearly always free."""
    cpu = np.tile([0.2, 0.9], (300, 1))
    cpu[::20] = cpu[::20, ::-1]
    cpu[-1] = 0.9
    found = forecast_sets(TIME, cpu, np.full((300, 2), 80.0), TIME[-1], 1000.0)
    assert found.cpu[0] < 0.4
    assert found.cpu[1] > 0.6


def test_the_set_asked_about_is_judged_by_its_own_nodes() -> None:
    still, wild = np.full((300, 2), [0.9, 0.5]), 0.2 + np.abs(autoregressive(0.5, n=2))
    series = np.column_stack([still, wild])
    found = forecast_sets(TIME, series, series, TIME[-1], 300.0, chosen=(0, 1))
    assert found.cpu[:2] == pytest.approx([0.9, 0.5])
    assert (found.cpu_sets.part.shape, found.cpu_sets.ends.shape) == ((1,), (2, 1))
    assert found.cpu_sets.ends == pytest.approx(1.0)


@given(st.floats(0.1, 1000))
def test_forecasts_follow_a_change_of_unit(scale: float) -> None:
    series = 0.2 + np.abs(autoregressive(0.7))
    plain = forecast_sets(TIME, series, 10 * series, TIME[-1], 200.0)
    other = forecast_sets(TIME, series, 10 * scale * series, TIME[-1], 200.0)
    assert other.bandwidth == pytest.approx(scale * plain.bandwidth, rel=1e-6)
    assert other.bandwidth_sets.ends == pytest.approx(plain.bandwidth_sets.ends, rel=1e-6)


@pytest.mark.parametrize(("memory", "steps"), [(0.0, 1), (0.8, 6), (0.95, 30)])
def test_nine_intervals_in_ten_hold_the_outcome(memory: float, steps: int) -> None:
    inside = []
    for seed in range(60):
        series = autoregressive(memory, seed=seed, length=400)
        time = np.arange(400) * 10.0
        start = 400 - steps
        _, low, high = whole(time[:start], series[:start], time[start - 1], steps * 10.0)
        inside.append(low <= series[start:].mean(axis=0).min() <= high)
    assert LEVEL == 0.9
    assert 0.8 <= np.mean(inside) <= 0.98


def test_an_old_sample_widens_the_interval() -> None:
    series = autoregressive(0.95, seed=3)
    _, low, high = whole(TIME, series, TIME[-1] + 10.0, 60.0)
    _, stale_low, stale_high = whole(TIME, series, TIME[-1] + 300.0, 60.0)
    assert stale_high - stale_low > 1.2 * (high - low)


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_a_short_history_still_gives_an_interval_with_width(count: int) -> None:
    expected, low, high = whole(TIME[:count], autoregressive(0.5)[:count], TIME[count - 1] + 10.0, 3600.0)
    assert low < expected < high


def test_irregular_sampling_is_weighed_by_time_not_by_count() -> None:
    """Ten samples a second for a burst of 1.0, then one every 10 s of 0.2: time says 0.2, counting says 1.0."""
    time = np.concatenate([np.arange(100) * 0.1, 10.0 + 10.0 * np.arange(200)])
    values = np.concatenate([np.ones(100), np.full(200, 0.2)])[:, None]
    assert whole(time, values, time[-1] + 10.0, 500.0)[0] == pytest.approx(0.2, abs=0.01)


def test_of_a_large_cluster_the_set_asked_about_is_always_learned_from() -> None:
    series = np.full((300, 2 * LEARNED_FROM), 0.8)
    series[:, 1] = 0.2 + 0.5 * np.random.default_rng(1).random(300)
    found = forecast_sets(TIME, series, series, TIME[-1], 10.0, chosen=(1,))
    assert found.cpu.shape == (2 * LEARNED_FROM,)
    assert found.cpu_sets.ends[0, 0] < 0.9


@pytest.mark.parametrize(
    "change",
    [{"horizon": 0.0}, {"now": -1.0}, {"cpu": np.ones(300)}, {"cpu": np.full((300, 1), np.nan)}],
)
def test_bad_arguments_are_refused_in_one_line(change: dict[str, object]) -> None:
    ones = np.ones((300, 1))
    arguments = {"time": TIME, "cpu": ones, "bandwidth": ones, "now": 100.0, "horizon": 10.0} | change
    with pytest.raises(ValueError, match="expected") as caught:
        forecast_sets(**arguments)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("horizon", [0.0, -10.0, np.inf, np.nan])
def test_a_horizon_that_no_run_has_is_refused(horizon: float) -> None:
    series = autoregressive(0.8)
    with pytest.raises(ValueError, match="expected a finite number of seconds above 0"):
        forecast_sets(TIME, series, series, TIME[-1], horizon)
