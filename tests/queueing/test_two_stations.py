"""Two stations and a delay at one population: the same as mean value analysis, which visits all smaller ones."""

from __future__ import annotations

import numpy as np
import pytest

from metasched.queueing.single_class import mean_value_analysis
from metasched.queueing.two_stations import throughput


@pytest.mark.parametrize("jobs", [1, 2, 3, 10, 57, 400, 3000])
def test_the_throughput_is_that_of_mean_value_analysis(jobs: int) -> None:
    draw = np.random.default_rng(jobs)
    demands, idle = np.exp(draw.uniform(-6, 6, (160, 2))), np.exp(draw.uniform(-8, 14, 160))
    demands[:20, 1] = demands[:20, 0]
    demands[20:40, 1] = demands[20:40, 0] * (1.0 - 1e-9)
    demands[40:60, 1] = 0.0
    idle[60:80] = 0.0
    demands[80:90] = 0.0
    idle[90:120] = jobs * demands[90:120].max(axis=1) * draw.uniform(0.8, 1.2, 30)  # where the station saturates
    expected = mean_value_analysis(demands, idle, jobs).throughput[:, -1]
    np.testing.assert_allclose(throughput(demands, idle, np.full(160, jobs)), expected, rtol=1e-10)


def test_each_network_has_a_population_of_its_own() -> None:
    found = throughput([[1.0, 2.0]] * 3, [50.0] * 3, [1, 20, 100_000])
    curve = mean_value_analysis([1.0, 2.0], 50.0, 20).throughput
    np.testing.assert_allclose(found, [curve[0], curve[-1], 0.5], rtol=1e-12)


@pytest.mark.parametrize("least", [5e-324, 1e-310, 1e-200, 1e-30])
def test_a_service_too_short_to_be_waited_for_has_no_effect(least: float) -> None:
    assert throughput([[least, 0.0]], [4.0], [3]).tolist() == [0.75]
