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

from metasched.blocks.failures import FailureRate, best_interval, best_pieces, from_scratch, in_pieces, young
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
    assert float(in_pieces(work, rate, cost, work / exact)) == pytest.approx(work * least / rate, rel=0.03)


@given(st.floats(-2, 1.5), st.floats(-3, 1.5), st.floats(-3, 1))
def test_no_other_number_of_pieces_ends_a_job_sooner(work: float, cost: float, rate: float) -> None:
    work, cost, rate = 10**work, 10**cost, 10**rate
    pieces = float(best_pieces(work, rate, cost))
    every = np.concatenate([np.arange(1.0, 2_000.0), np.geomspace(2_000, 1e8, 200).round()])
    ends = in_pieces(work, rate, cost, every)
    assert pieces >= 1.0
    assert pieces == int(pieces)
    assert float(in_pieces(work, rate, cost, pieces)) <= ends.min() * (1 + 1e-9)


@given(st.floats(0.2, 20.0), st.floats(0.01, 3.0), st.floats(0.02, 1.0), st.lists(st.floats(0.01, 1.0), max_size=8))
def test_no_other_way_to_part_a_job_ends_sooner(work: float, cost: float, rate: float, shares: list[float]) -> None:
    """Any checkpoints at all, one by one: those at equal distances, too."""
    best = float(in_pieces(work, rate, cost, best_pieces(work, rate, cost)))
    for cuts in ([*shares, 1.0], np.ones(len(shares) + 1)):
        lengths = work * np.asarray(cuts) / np.sum(cuts) + np.r_[np.full(len(cuts) - 1, cost), 0.0]
        assert best <= float(from_scratch(lengths, rate).sum()) * (1 + 1e-12)


@pytest.mark.parametrize(("work", "completion"), [(4_600.0, 5_176.2), (500.0, 506.3)])
def test_short_work_is_best_without_a_checkpoint(work: float, completion: float) -> None:
    struck = GALERA_PLUS * 100_000
    assert float(best_pieces(work, struck, 600.0)) == 1.0
    assert float(in_pieces(work, struck, 600.0, 1.0)) == pytest.approx(completion, abs=0.05)


@pytest.mark.parametrize(("checkpoint", "pieces"), [(30.0, 1), (30.0, 4), (30.0, 3), (200.0, 2)])
def test_a_simulation_of_struck_jobs_agrees(checkpoint: float, pieces: int) -> None:
    rng, work, rate, jobs = np.random.default_rng(17), 1_000.0, 1 / 600.0, 20_000
    expected = float(in_pieces(work, rate, checkpoint, pieces))
    each = (work - checkpoint) / pieces
    stretches = [each + checkpoint] * (pieces - 1) + [work - (pieces - 1) * each]
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


@pytest.mark.parametrize("failures", [0, 1, 5])
@pytest.mark.parametrize("hours", [1e-3, 1.0, 24.0, 168.0, 1e4])
def test_the_interval_of_success_holds_its_value(failures: int, hours: float) -> None:
    """After few hours without a failure the mean is that of a few lucky rates, far above most others."""
    rate = FailureRate.observed(failures, 10 * 3_600.0)
    value = rate.success(hours * 3_600.0, 200)
    low, high = rate.success_between(hours * 3_600.0, 200, 0.9)
    most, least = rate.quantile(0.95), rate.quantile(0.05)
    assert low <= value <= high
    assert (low, high) == (
        pytest.approx(min(math.exp(-most * hours * 720_000.0), value)),
        pytest.approx(max(math.exp(-least * hours * 720_000.0), value)),
    )


def test_intervals_of_the_rate_hold_as_often_as_they_say() -> None:
    rng, rate, exposure = np.random.default_rng(3), 2e-8, 5e8
    seen = [FailureRate.observed(int(count), exposure) for count in rng.poisson(rate * exposure, 2_000)]
    held = np.mean([each.quantile(0.05) <= rate <= each.quantile(0.95) for each in seen])
    assert held == pytest.approx(0.9, abs=0.03)


@pytest.mark.parametrize("exposure", [0.0, -1.0, math.nan, math.inf])
def test_no_exposure_is_refused(exposure: float) -> None:
    with pytest.raises(InputError, match="expected a number above 0"):
        FailureRate.observed(0, exposure)


@pytest.mark.parametrize("rate", [0.0, 5e-324, 1e-320, 1e-310, 1e-30])
def test_work_that_nothing_strikes_takes_its_time(rate: float) -> None:
    work = np.array([0.0, 0.3, 1.5, 864.0])
    assert from_scratch(work, rate) == pytest.approx(work, rel=1e-15)


def test_what_never_ends_is_infinite() -> None:
    assert float(from_scratch(1e6, 1.0)) == math.inf
    assert float(in_pieces(1e6, 1.0, 1e4, 100.0)) == math.inf
    assert float(best_pieces(1e6, 1e6, 1e4)) >= 1.0
