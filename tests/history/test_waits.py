"""Forecasts of waits step by step: what is pooled, how levels move, and which of two forecasts counts, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from metasched.history.backfilling import outlived
from metasched.history.waits import Wait, WaitErrors

#: Waits after a forecast of 600 s, all within the interval that is given before anything is known.
WAITED = [100.0 + 150.0 * k for k in range(20)]


def of(simulated: float, corrected: float, low: float = 0.0, high: float = 1e9) -> Wait:
    return Wait(simulated, low, high, simulated, corrected)


def learned(errors: WaitErrors, simulated: float, waited: list[float]) -> WaitErrors:
    for each in waited:
        errors.learn(of(simulated, simulated), each)
    return errors


def test_from_twenty_waits_on_the_interval_and_the_correction_are_quantiles_of_their_ratios() -> None:
    errors = learned(WaitErrors(), 600.0, WAITED[:19])
    assert errors.expect(600.0) == Wait(600.0, 0.0, 3600.0, 600.0, 600.0)
    learned(errors, 600.0, WAITED[19:])
    # Each of twenty that were held has moved both levels of 5 % by a hundredth of that.
    ratios = [math.log((each + 60.0) / 660.0) for each in WAITED]
    low, middle, high = (math.exp(np.quantile(ratios, level)) * 760.0 - 60.0 for level in (0.06, 0.5, 0.94))
    found = errors.expect(700.0)
    assert found == pytest.approx(Wait(700.0, low, high, 700.0, middle))
    # As none was corrected before, the correction is not better: the simulation counts, within the interval.
    far = learned(WaitErrors(), 600.0, [3000.0 + each for each in WAITED]).expect(600.0)
    assert far.seconds == far.low > 600.0
    near = learned(WaitErrors(), 600.0, [each / 40.0 for each in WAITED]).expect(600.0)
    assert near.seconds == near.high < 600.0


def test_no_wait_is_less_than_none() -> None:
    found = learned(WaitErrors(), 600.0, [0.0] * 20).expect(400.0)
    assert (found.low, found.corrected, found.seconds) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("ends", "low", "high"),
    [
        ([(1.0, 9.0)] * 3, 0.0515, 0.9485),  # held
        ([(6.0, 9.0)] * 2, 0.031, 0.949),  # it waited less than the interval says
        ([(1.0, 4.0)] * 2, 0.051, 0.969),  # or longer
        ([(5.0, 5.0)], 0.0505, 0.9495),  # the ends are within
        ([(6.0, 9.0)] * 99, 0.0, 0.9995 + 0.0005 - 0.0995),
        ([(1.0, 4.0)] * 99, 0.05 + 99 * 0.0005, 1.0),
        ([(1.0, 9.0)] * 999, 0.3, 0.7),
    ],
)
def test_levels_follow_what_intervals_held_within_limits(
    ends: list[tuple[float, float]], low: float, high: float
) -> None:
    errors = WaitErrors()
    for least, most in ends:
        errors.learn(of(600.0, 600.0, least, most), 5.0)
    assert (errors._low, errors._high) == pytest.approx((low, min(high, 1.0)), abs=1e-9)


def test_the_correction_counts_while_its_latest_errors_are_smaller() -> None:
    """Errors fade by a hundredth with each wait: 10 s before 71 others are 10 * 0.99^71 = 4.90 s."""
    errors = learned(WaitErrors(), 600.0, WAITED)
    base = errors.expect(600.0)
    assert base.corrected != base.seconds
    missed = sum(0.99 ** (19 - k) * abs(600.0 - each) for k, each in enumerate(WAITED))
    assert errors._missed == errors._missed_corrected == pytest.approx(missed)
    errors.learn(of(620.0, 610.0), 600.0)
    assert errors.expect(600.0).seconds == errors.expect(600.0).corrected
    for step in range(70):
        errors.learn(of(600.0, 600.0), (500.0, 700.0, 900.0)[step % 3])
    errors.learn(of(600.0, 604.85), 600.0)
    assert errors.expect(600.0).seconds == errors.expect(600.0).corrected
    errors.learn(of(600.0, 600.2), 600.0)
    assert errors.expect(600.0).seconds != errors.expect(600.0).corrected


@pytest.mark.parametrize(
    ("learned_at", "same", "other"),
    [
        (0.0, [0.0], [0.1, 299.0]), (100.0, [0.1, 299.9], [0.0, 300.0]), (600.0, [300.0, 1799.0], [299.0, 1800.0]),
        (1800.0, [7199.0], [1799.0, 7200.0]), (7200.0, [21_599.0], [7199.0, 21_600.0]),
        (21_600.0, [86_399.0], [21_599.0, 86_400.0]), (1e6, [86_400.0, 1e9], [86_399.0]),
    ],
)  # fmt: skip
def test_forecasts_of_about_the_same_length_are_pooled(
    learned_at: float, same: list[float], other: list[float]
) -> None:
    errors = learned(WaitErrors(), learned_at, [2.0 * learned_at + 30.0] * 20)
    assert all(errors.expect(said).high != max(4.0 * said, 3600.0) for said in same)
    assert all(errors.expect(said) == (said, 0.0, max(4.0 * said, 3600.0), said, said) for said in other)


@pytest.mark.parametrize(
    ("ran", "limit", "expected"),
    [
        (0.0, 1e9, 60.0), (119.0, 1e9, 179.0), (120.0, 1e9, 420.0), (599.0, 1e9, 899.0), (600.0, 1e9, 1500.0),
        (1800.0, 1e9, 3600.0), (3600.0, 1e9, 7200.0), (7200.0, 1e9, 14_400.0), (14_400.0, 1e9, 32_400.0),
        (36_000.0, 1e9, 72_000.0), (72_000.0, 1e9, 144_000.0), (144_000.0, 1e9, 324_000.0),
        (360_000.0, 1e9, 720_000.0), (1e6, 1e9, 1.36e6),
        (100.0, 160.0, 160.0), (100.0, 159.0, 159.0), (100.0, 100.1, 100.1),
        (100.0, 100.0, 160.0), (100.0, 50.0, 160.0),  # it has outlived its limit, too
    ],
)  # fmt: skip
def test_a_job_that_outlives_its_prediction_gets_the_first_correction_above_half_of_its_time(
    ran: float, limit: float, expected: float
) -> None:
    """Minutes, 5, 15 and 30 minutes, 1, 2, 5, 10, 20, 50 and 100 hours (Tsafrir et al., Section 4.3)."""
    assert outlived(ran, limit) == expected
