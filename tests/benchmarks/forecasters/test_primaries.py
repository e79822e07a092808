"""Every primary forecaster against its definition, and what all of them promise about missing values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.forecasters.adaptive_median import AdaptiveMedian
from benchmarks.forecasters.battery import primaries
from benchmarks.forecasters.recursive import ExponentialSmoothing
from benchmarks.forecasters.windowed import SlidingMean, SlidingMedian, TrimmedMean

numbers = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=70)


def after(forecaster, values):
    for value in values:
        forecaster.update([value])
    return forecaster.forecast()[0]


def trimmed(values: list[float], trim: float) -> float:
    left_out = int(trim * len(values))
    return float(np.mean(sorted(values)[left_out : len(values) - left_out]))


@given(numbers, st.integers(1, 51))
def test_windowed_forecasts_are_those_of_the_latest_values(values: list[float], width: int) -> None:
    latest = values[-width:]
    assert after(SlidingMean(1, width), values) == pytest.approx(np.mean(latest), abs=1e-6)
    assert after(SlidingMedian(1, width), values) == pytest.approx(np.median(latest), abs=1e-6)
    assert after(TrimmedMean(1, width, 0.3), values) == pytest.approx(trimmed(latest, 0.3), abs=1e-6)


@given(numbers)
def test_running_mean_and_smoothing_follow_their_definitions(values: list[float]) -> None:
    level = values[0]
    for value in values[1:]:
        level += 0.3 * (value - level)
    assert after(primaries(1)["running mean"], values) == pytest.approx(np.mean(values), abs=1e-6)
    assert after(ExponentialSmoothing(1, 0.3), values) == pytest.approx(level, abs=1e-6)


def adaptive_by_hand(values: list[float], least: int, most: int, start: int, step: int) -> tuple[float, int]:
    length, seen = start, []
    for value in values:
        if seen:
            options = [length, max(length - step, least), min(length + step, most)]
            length = min(options, key=lambda size: abs(value - np.median(seen[-size:])))
        seen.append(value)
    return float(np.median(seen[-length:])), length


@given(numbers)
def test_adaptive_median_follows_the_best_of_three_lengths_and_stays_in_its_range(values: list[float]) -> None:
    for least, most, start, step in [(5, 21, 10, 1), (21, 51, 30, 5), (1, 4, 2, 1)]:
        forecaster = AdaptiveMedian(1, least, most, start, step)
        forecast, length = adaptive_by_hand(values, least, most, start, step)
        assert after(forecaster, values) == pytest.approx(forecast, abs=1e-6)
        assert forecaster.length[0] == length


@pytest.mark.parametrize("name", list(primaries(1)))
def test_a_missing_value_leaves_its_series_as_it_was(name: str) -> None:
    values = np.random.default_rng(1).random((120, 3))
    holes = np.random.default_rng(2).random((120, 3)) < 0.3
    together = primaries(3)[name]
    alone = [primaries(1)[name] for _ in range(3)]
    for row, missing in zip(values, holes, strict=True):
        together.update(np.where(missing, np.nan, row))
        for column in np.flatnonzero(~missing):
            alone[column].update(row[[column]])
    assert together.forecast() == pytest.approx(np.concatenate([one.forecast() for one in alone]), abs=1e-12)


@pytest.mark.parametrize("name", list(primaries(1)))
def test_a_constant_is_forecast_and_before_the_first_value_nothing_is(name: str) -> None:
    forecaster = primaries(2)[name]
    assert np.isnan(forecaster.forecast()).all()
    for _ in range(60):
        forecaster.update([0.7, np.nan])
    assert forecaster.forecast()[0] == pytest.approx(0.7)
    assert np.isnan(forecaster.forecast()[1])


@pytest.mark.parametrize("bad", [[1.0], [1.0, 2.0, 3.0], [[1.0, 2.0]], [np.inf, 0.0]])
def test_values_of_another_shape_and_infinite_ones_are_refused(bad: list[float]) -> None:
    with pytest.raises(ValueError, match="expected"):
        SlidingMean(2, 5).update(bad)


def test_parameters_out_of_range_are_refused() -> None:
    for wrong in (
        lambda: ExponentialSmoothing(1, 0.0),
        lambda: SlidingMean(1, 0),
        lambda: TrimmedMean(1, 5, 0.5),
        lambda: AdaptiveMedian(1, 5, 4, 5, 1),
    ):
        with pytest.raises(ValueError, match="expected"):
            wrong()
