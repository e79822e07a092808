"""The battery: scores, selectors and the choice, against a slow account kept by hand."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.forecasters.battery import SPANS, Battery, primaries
from benchmarks.forecasters.blend import Blend
from benchmarks.forecasters.scores import Scores


def series(steps: int, n: int, seed: int = 0) -> np.ndarray:
    noise = np.random.default_rng(seed)
    return np.clip(0.5 + 0.1 * noise.normal(size=(steps, n)).cumsum(axis=0), 0, 1)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_scores_are_the_sums_over_the_latest_errors(missing: float) -> None:
    noise = np.random.default_rng(3)
    scores, errors = Scores(4, 3, SPANS), [[] for _ in range(4)]
    for _ in range(260):
        rows = np.flatnonzero(noise.random(4) >= missing)
        misses = noise.exponential(size=(3, len(rows)))
        scores.add(rows, misses)
        for row, miss in zip(rows, misses.T, strict=True):
            errors[row].append(miss)
    for row in range(4):
        history = np.array(errors[row])
        by_hand = [(history[-span:] ** power).sum(axis=0).argmin() for power in (1, 2) for span in (0, *SPANS)]
        assert scores.best()[:, row].tolist() == by_hand


def test_an_enormous_error_leaves_no_trace_once_it_is_out_of_the_longest_span() -> None:
    scores = Scores(1, 2, SPANS)
    scores.add(np.array([0]), np.array([[1e12], [0.0]]))
    for _ in range(2 * SPANS[-1]):
        scores.add(np.array([0]), np.array([[1e-6], [2e-6]]))
    assert (scores.best().reshape(2, -1)[:, 1:] == 0).all()


def by_hand(values: np.ndarray) -> tuple[float, float]:
    """Forecast and error after ``values`` (t,), with every selector's account kept in plain lists."""
    forecasters = list(primaries(1).values())
    errors: list[np.ndarray] = []
    cumulative = np.zeros(2 * (len(SPANS) + 1))
    choices = np.zeros(len(cumulative), dtype=int)
    pending = np.full(len(forecasters), np.nan)
    for value in values:
        if errors or not np.isnan(pending).any():
            miss = np.abs(pending - value)
            cumulative += miss[choices]
            errors.append(miss.astype(np.float32).astype(float))
            history = np.array(errors)
            choices = np.array([(history[-s:] ** p).sum(axis=0).argmin() for p in (1, 2) for s in (0, *SPANS)])
        for forecaster in forecasters:
            forecaster.update([value])
        pending = np.array([forecaster.forecast()[0] for forecaster in forecasters])
    best = cumulative.argmin()
    return pending[choices[best]], cumulative[best] / len(errors)


@pytest.mark.parametrize("seed", range(4))
def test_the_answer_is_that_of_the_selector_with_the_least_cumulative_error(seed: int) -> None:
    values = series(150, 1, seed)
    battery = Battery(1)
    for row in values:
        battery.update(row)
    forecast, error = by_hand(values[:, 0])
    assert battery.forecast()[0] == pytest.approx(forecast)
    assert battery.error()[0] == pytest.approx(error)


def test_many_series_give_what_each_gives_alone() -> None:
    values = series(60, 1003)
    together, alone = Battery(1003), Battery(2)
    for row in values:
        together.update(row)
        alone.update(row[[0, 1002]])
    assert together.forecast()[[0, 1002]] == pytest.approx(alone.forecast())
    assert (together.method()[0], together.method()[1002]) == alone.method()


@pytest.mark.parametrize("holes_from", [0, 3, 70, 130])
def test_series_that_fall_out_of_step_give_what_each_gives_alone(holes_from: int) -> None:
    values = series(180, 3, seed=6)
    holes = np.random.default_rng(8).random(values.shape) < 0.2
    holes[:holes_from] = False
    together, alone = Battery(3), [Battery(1) for _ in range(3)]
    for row, missing in zip(values, holes, strict=True):
        together.update(np.where(missing, np.nan, row))
        for column in np.flatnonzero(~missing):
            alone[column].update(row[[column]])
    assert together.forecast() == pytest.approx(np.concatenate([one.forecast() for one in alone]), abs=1e-12)
    assert together.error() == pytest.approx(np.concatenate([one.error() for one in alone]), abs=1e-12)
    assert together.method() == tuple(one.method()[0] for one in alone)


def test_the_battery_finds_the_forecaster_that_suits_each_series() -> None:
    steps = np.arange(400)
    noise = np.random.default_rng(5).normal(size=400)
    battery = Battery(2)
    for walk, level in zip(steps * 0.5, noise, strict=True):
        battery.update([walk, level])
    assert battery.method()[0] == "last value"
    assert battery.error()[1] < 1.05 * np.abs(noise).mean()


def test_the_blend_is_never_far_from_the_best_primary() -> None:
    values = series(400, 5, seed=7)
    battery, blend = Battery(5), Blend(5)
    blended, singles = [], []
    for row in values:
        blended.append(np.abs(blend.forecast() - row))
        blend.update(row)
        singles.append(np.abs(battery.forecasts() - row[:, None]))
        battery.update(row)
    best = np.mean(singles[50:], axis=0).min(axis=1)
    rounding = 1e-15  # one of the series soon stands still, and is foretold without any error by the best
    assert (np.mean(blended[50:], axis=0) <= 1.05 * best + rounding).all()


def test_a_missing_value_leaves_the_blend_as_it_is() -> None:
    values = series(120, 2, seed=3)
    whole, holed = Blend(2), Blend(2)
    for step, row in enumerate(values):
        whole.update(row)
        holed.update(row)
        if step % 3 == 0:
            holed.update([np.nan, np.nan])
    assert np.isnan(Blend(2).forecast()).all()
    np.testing.assert_array_equal(whole.forecast(), holed.forecast())


def test_a_missing_value_changes_nothing() -> None:
    values = series(80, 1, seed=9)
    gaps, dense = Battery(1), Battery(1)
    for row in values:
        gaps.update([np.nan])
        gaps.update(row)
        dense.update(row)
    assert gaps.forecast() == pytest.approx(dense.forecast())
    assert gaps.error() == pytest.approx(dense.error())
    assert gaps.method() == dense.method()


def test_before_any_value_nothing_is_expected() -> None:
    battery = Battery(2)
    assert np.isnan(battery.forecast()).all()
    assert np.isnan(battery.error()).all()
