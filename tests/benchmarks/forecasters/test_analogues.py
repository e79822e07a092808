"""Analogues against their definition written out, and the laws that hold of any series."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.forecasters.analogues import HISTORY, LIKENESSES, MEMORIES, Analogues
from benchmarks.forecasters.blend import Blend


def weighted_median(values: list[float], weights: np.ndarray) -> float:
    order = np.argsort(values)
    below = np.cumsum(weights[order])
    return values[order[np.argmax(below >= below[-1] / 2)]]


def by_hand(values: list[float]) -> list[float]:
    """The mixture's forecast after every value, each from scratch."""
    kinds = [(None, memory) for memory in MEMORIES] + [(like, memory) for like in LIKENESSES for memory in MEMORIES]
    shares = np.full(len(kinds), 1 / len(kinds))
    forecasts, said = [values[0]], None
    for now in range(1, len(values)):
        if said is not None:
            scale, before = said
            near = np.exp(-np.abs(values[now] - np.array(values[1:now])) / (0.7 * scale)) / 1.4
            shares = shares * (before @ near + 0.02)
            shares = 0.99 * shares / shares.sum() + 0.01 / len(kinds)
        past = np.array(values[: now + 1])
        middle = np.sort(past)[now // 2]
        scale = np.abs(past - middle).mean() + 1e-3 * abs(middle) + 1e-12
        weights = []
        for like, memory in kinds:
            row = []
            for moment in range(now):  # its value followed: values[moment + 1]
                alike = 1.0
                if like is not None:
                    fading, reach = like
                    steps = [abs(values[now - back] - values[moment - back]) for back in range(moment + 1)]
                    apart = sum((1 - fading) * fading**back * step for back, step in enumerate(steps))
                    alike = 0.01 + np.exp(-apart / (reach * scale))
                row.append(alike * (1 + (now - moment - 1) / memory) ** -2.0)
            weights.append(np.array(row) / np.sum(row))
        said = scale, np.array(weights)
        forecasts.append(weighted_median(values[1 : now + 1], shares @ np.array(weights)))
    return forecasts


@pytest.mark.parametrize("seed", range(3))
def test_the_forecast_is_the_median_of_the_mixture_by_its_definition(seed: int) -> None:
    noise = np.random.default_rng(seed)
    values = (0.5 + 0.3 * np.sin(np.arange(45)) + 0.1 * noise.normal(size=45)).tolist()
    forecaster, found = Analogues(1), []
    for value in values:
        forecaster.update([value])
        found.append(forecaster.forecast()[0])
    assert found == pytest.approx(by_hand(values))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.integers(-6, 12))
def test_in_another_unit_the_forecast_is_the_same(values: list[float], power: int) -> None:
    unit = 2.0**power
    rounded = [round(value, 3) for value in values]
    here, there = Analogues(1), Analogues(1)
    for value in rounded:
        here.update([value])
        there.update([value * unit])
    assert there.forecast()[0] == pytest.approx(here.forecast()[0] * unit, abs=1e-6 * unit)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40))
def test_the_forecast_is_a_value_that_was_there(values: list[float]) -> None:
    forecaster = Analogues(1)
    for value in values:
        forecaster.update([value])
    assert forecaster.forecast()[0] in values


@pytest.mark.parametrize("kind", [Analogues, Blend])
def test_a_missing_value_leaves_its_series_as_it_was(kind: type) -> None:
    values = np.random.default_rng(1).random((90, 3))
    holes = np.random.default_rng(2).random((90, 3)) < 0.3
    together, alone = kind(3), [kind(1) for _ in range(3)]
    for row, missing in zip(values, holes, strict=True):
        together.update(np.where(missing, np.nan, row))
        for column in np.flatnonzero(~missing):
            alone[column].update(row[[column]])
    assert together.forecast() == pytest.approx(np.concatenate([one.forecast() for one in alone]), abs=1e-12)


def test_a_pattern_that_repeats_is_found_though_no_primary_can() -> None:
    pattern = [0.1, 0.9, 0.4, 0.7, 0.2, 0.6, 0.95]
    forecasters, misses = (Analogues(1), Blend(1)), []
    for step in range(100):
        value = pattern[step % len(pattern)]
        misses.append([abs(forecaster.forecast()[0] - value) for forecaster in forecasters])
        for forecaster in forecasters:
            forecaster.update([value])
    assert np.max(misses[-20:]) < 0.02


def test_what_is_older_than_the_history_is_forgotten() -> None:
    fresh, old = Analogues(1), Analogues(1)
    noise = np.random.default_rng(3)
    for value in noise.random(50):
        old.update([1000 * value])
    for value in noise.random(HISTORY + 200):
        fresh.update([value])
        old.update([value])
    assert 0 <= old.forecast()[0] <= 1
    assert old.forecast()[0] == pytest.approx(fresh.forecast()[0], abs=0.2)
