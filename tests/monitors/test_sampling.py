"""Sampling: the average is weighted by time, and no sensor can spoil a run."""

from __future__ import annotations

import math
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from waiting import until

from monitors import sampling
from monitors.sampling import Average, Sampler, _Account


class Scripted:
    """A sensor that returns what it is given, then repeats the last; an exception among it is raised."""

    def __init__(self, *readings: float | Exception) -> None:
        self.readings = list(readings)

    def read(self) -> float:
        reading = self.readings.pop(0) if len(self.readings) > 1 else self.readings[0]
        if isinstance(reading, Exception):
            raise reading
        return reading


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0.01, 10)), min_size=1))
def test_each_reading_counts_by_the_time_it_covers(readings: list[tuple[float, float]]) -> None:
    account = _Account()
    for value, elapsed in readings:
        account.add(value, elapsed)
    values, weights = zip(*readings, strict=True)
    assert account.average().mean == pytest.approx(np.average(values, weights=weights))
    assert account.average().samples == len(readings)


def test_a_run_shorter_than_the_interval_is_sampled_once() -> None:
    with Sampler({"cpu": Scripted(0.25)}, interval=60) as sampler:
        pass
    assert sampler.averages["cpu"].samples == 1
    assert sampler.averages["cpu"].mean == 0.25


def test_a_longer_run_is_sampled_again_and_again() -> None:
    with Sampler({"cpu": Scripted(0.5)}, interval=0.02) as sampler:
        until(lambda: sampler.averages["cpu"].samples >= 3)
    assert sampler.averages["cpu"].samples >= 4


def test_a_sensor_that_fails_is_reported_and_the_others_go_on() -> None:
    sensors = {"cpu": Scripted(OSError("gone")), "link": Scripted(90.0)}
    with Sampler(sensors, interval=60) as sampler:
        pass
    assert math.isnan(sampler.averages["cpu"].mean)
    assert sampler.averages["cpu"].fault == "OSError: gone"
    assert sampler.averages["link"].mean == 90.0


def test_a_reading_that_is_missing_leaves_the_average_of_the_rest() -> None:
    account = _Account()
    for value in (math.nan, 0.5, 0.75):
        account.add(value, 1.0)
    assert account.average() == Average(0.625, 2, "")


def test_without_any_reading_there_is_no_average() -> None:
    account = _Account()
    account.add(math.nan, 1.0)
    assert math.isnan(account.average().mean)
    assert account.average().samples == 0


def test_a_sampler_weighs_each_reading_by_the_time_since_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter([100.0, 102.0, 103.0, 108.0])
    monkeypatch.setattr(sampling, "time", SimpleNamespace(monotonic=lambda: next(moments)))
    sensors = {"cpu": Scripted(0.5, OSError("gone"), 1.0), "link": Scripted(90.0, 30.0, math.inf)}
    sampler = Sampler(sensors, interval=3600)
    sampler.start()
    sampler._sample()
    sampler._sample()
    sampler.stop()
    assert sampler.averages == {
        "cpu": Average((0.5 * 2.0 + 1.0 * 5.0) / 7.0, 2, "OSError: gone"),
        "link": Average((90.0 * 2.0 + 30.0 * 1.0) / 3.0, 2, ""),
    }
    assert not any(thread.name == "metasched-_sample" for thread in threading.enumerate())
