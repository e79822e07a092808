"""Failures: numbers worked out by hand, laws, and a simulation of jobs that are struck."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.stats import gamma

from metasched.blocks.failures import FailureRate, best_interval, from_scratch, with_checkpoints, young
from metasched.records import InputError

GALERA_PLUS = 5.03372e-10


def test_expected_completion_from_scratch() -> None:
    assert float(from_scratch(864.0, GALERA_PLUS * 100_000)) == pytest.approx(883.064, abs=5e-4)


@pytest.mark.parametrize(("nodes", "by_young", "exact"), [(100_000, 4_882.5, 4_491.0), (10_000, 15_440.0, 15_042.6)])
def test_intervals_between_checkpoints(nodes: int, by_young: float, exact: float) -> None:
    assert float(young(600.0, GALERA_PLUS * nodes)) == pytest.approx(by_young, abs=0.05)
    assert float(best_interval(600.0, GALERA_PLUS * nodes)) == pytest.approx(exact, abs=0.05)


@given(st.floats(-7, 1.3).map(lambda power: 10.0**power), st.floats(-9, 3).map(lambda power: 10.0**power))
def test_the_best_interval_satisfies_its_equation_and_lies_below_youngs(struck: float, rate: float) -> None:
    y = float(best_interval(struck / rate, rate)) * rate
    assert 0 < y < 1
    assert y < float(young(struck / rate, rate)) * rate
    # the derivative of (e^(y + x) - 1) / y is 0; what is left of log(1 - y) + y near 0 has few digits
    assert math.log1p(-y) + y == pytest.approx(-struck, rel=1e-7, abs=1e-15)


def test_the_two_ways_to_the_best_interval_meet() -> None:
    below, above = (float(best_interval(1e-4 * share, 1.0)) for share in (1 - 1e-9, 1 + 1e-9))
    assert above / below - 1 == pytest.approx(1e-9, abs=1e-10)


@given(st.floats(1e-4, 1e-2), st.floats(1.0, 200.0))
def test_no_other_interval_ends_a_long_job_sooner(rate: float, cost: float) -> None:
    work = 1e6
    best = minimize_scalar(lambda t: math.expm1(rate * (t + cost)) / t, bounds=(1e-2, 1e5), method="bounded")
    exact = float(best_interval(cost, rate))
    least = math.expm1(rate * (exact + cost)) / exact
    assert least <= best.fun * (1 + 1e-9)
    assert float(with_checkpoints(work, rate, cost, exact)) == pytest.approx(work * least / rate, rel=0.03)


@pytest.mark.parametrize(("checkpoint", "interval"), [(None, None), (30.0, 250.0), (30.0, 400.0), (5.0, 2_000.0)])
def test_a_simulation_of_struck_jobs_agrees(checkpoint: float | None, interval: float | None) -> None:
    rng, work, rate, jobs = np.random.default_rng(17), 1_000.0, 1 / 600.0, 20_000
    if checkpoint is None:
        stretches, expected = [work], float(from_scratch(work, rate))
    else:
        cuts = [*np.arange(interval, work - 1e-9, interval), work]
        stretches = [length + checkpoint for length in np.diff([0.0, *cuts[:-1]])] + [work - ([0.0, *cuts])[-2]]
        expected = float(with_checkpoints(work, rate, checkpoint, interval))
    ended = np.zeros(jobs)
    for stretch in stretches:
        going = np.arange(jobs)
        while going.size:
            failure = rng.exponential(1 / rate, going.size)
            ended[going] += np.minimum(failure, stretch)
            going = going[failure < stretch]
    assert expected == pytest.approx(ended.mean(), abs=4 * ended.std() / math.sqrt(jobs))


def test_success_with_a_known_rate_and_with_one_from_few_failures() -> None:
    assert FailureRate(GALERA_PLUS).success(7 * 86_400, 192) == pytest.approx(0.9432232, abs=5e-8)
    assert FailureRate(GALERA_PLUS).success_between(86_400, 192, 0.9) == pytest.approx((0.9916844,) * 2, abs=5e-8)
    seen = FailureRate.observed(2, 1e9)
    averaged, _ = quad(lambda rate: math.exp(-rate * 1e8) * gamma.pdf(rate, 2.5, scale=1e-9), 0, 4e-8)
    assert seen.success(1e6, 100) == pytest.approx(averaged, rel=1e-6)
    low, high = seen.success_between(1e6, 100, 0.9)
    assert 0 < low < seen.success(1e6, 100) < high < 1


def test_intervals_of_the_rate_hold_as_often_as_they_say() -> None:
    rng, rate, exposure = np.random.default_rng(3), 2e-8, 5e8
    seen = [FailureRate.observed(int(count), exposure) for count in rng.poisson(rate * exposure, 2_000)]
    held = np.mean([each.quantile(0.05) <= rate <= each.quantile(0.95) for each in seen])
    assert held == pytest.approx(0.9, abs=0.03)


@pytest.mark.parametrize("exposure", [0.0, -1.0, math.nan, math.inf])
def test_no_exposure_is_refused(exposure: float) -> None:
    with pytest.raises(InputError, match="expected a number above 0"):
        FailureRate.observed(0, exposure)


def test_what_never_ends_is_infinite() -> None:
    assert float(from_scratch(1e6, 1.0)) == math.inf
    assert float(with_checkpoints(1e6, 1.0, 1e4, 10.0)) == math.inf
