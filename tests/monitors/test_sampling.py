"""Sampling: the average is weighted by time, the minimum comes last, and no sensor can spoil a run."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.sampling import Average, Sampler, _Account


class Scripted:
    """A sensor that says what it is told, then repeats the last; an exception among it is raised."""

    def __init__(self, *readings: list[float] | Exception) -> None:
        self.readings = list(readings)

    def read(self) -> np.ndarray:
        reading = self.readings.pop(0) if len(self.readings) > 1 else self.readings[0]
        if isinstance(reading, Exception):
            raise reading
        return np.array(reading)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0.01, 10)), min_size=1))
def test_each_thing_is_averaged_over_time_before_the_minimum_is_taken(
    readings: list[tuple[float, float, float]],
) -> None:
    account = _Account()
    for first, second, elapsed in readings:
        account.add(np.array([first, second]), elapsed)
    a, b, weights = np.array(readings).T
    expected = min(np.average(a, weights=weights), np.average(b, weights=weights))
    assert account.average().smallest() == pytest.approx(expected)


def test_the_minimum_of_the_averages_is_not_the_average_of_the_minima() -> None:
    account = _Account()
    account.add(np.array([1.0, 0.2]), 1.0)
    account.add(np.array([0.2, 1.0]), 1.0)
    assert account.average().smallest() == pytest.approx(0.6)


def test_a_run_shorter_than_the_interval_is_sampled_once() -> None:
    with Sampler({"cpu": Scripted([0.5, 0.25])}, interval=60) as sampler:
        pass
    assert sampler.averages["cpu"].samples == 1
    assert sampler.averages["cpu"].smallest() == 0.25
    assert sampler.averages["cpu"].smallest(first=1) == 0.5


def test_a_longer_run_is_sampled_again_and_again() -> None:
    with Sampler({"cpu": Scripted([0.5])}, interval=0.02) as sampler:
        deadline = time.monotonic() + 20
        while sampler.averages["cpu"].samples < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
    assert sampler.averages["cpu"].samples >= 4


def test_a_sensor_that_fails_is_reported_and_the_others_go_on() -> None:
    sensors = {"cpu": Scripted(OSError("gone")), "link": Scripted([90.0])}
    with Sampler(sensors, interval=60) as sampler:
        pass
    assert sampler.averages["cpu"].smallest() is None
    assert sampler.averages["cpu"].fault == "OSError: gone"
    assert sampler.averages["link"].smallest() == 90.0


def test_a_reading_that_is_missing_leaves_the_average_of_the_rest() -> None:
    account = _Account()
    account.add(np.array([np.nan, 0.5]), 1.0)
    account.add(np.array([0.25, 0.75]), 1.0)
    np.testing.assert_allclose(account.average().mean, [0.25, 0.625])


def test_without_any_reading_there_is_no_minimum() -> None:
    assert Average(np.empty(0), 0, "").smallest() is None
    assert Average(np.array([np.nan]), 0, "").smallest() is None
