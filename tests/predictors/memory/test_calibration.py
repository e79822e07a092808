"""Reaches of intervals by hand: of few scores, of enough, and of those that were only rehearsed."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy

from metasched.predictors.memory.background import BackgroundSearch
from metasched.predictors.memory.calibration import Calibration, score
from metasched.records import InputError


@pytest.mark.parametrize(
    ("measured", "predicted", "spread", "expected"),
    [
        (10.0, 10.0, 0.1, 0.0), (20.0, 10.0, 0.5, 2.0 * math.log(2.0)), (5.0, 10.0, 0.5, 2.0 * math.log(2.0)),
        (5.0, 0.0, 0.5, math.inf), (5.0, -1.0, 0.5, math.inf), (5.0, math.inf, 0.5, math.inf),
        (5.0, math.nan, 0.5, math.inf),
    ],
)  # fmt: skip
def test_a_score_is_a_distance_on_the_logarithm(
    measured: float, predicted: float, spread: float, expected: float
) -> None:
    assert score(measured, predicted, spread) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("count", "level", "rank"),
    [(9, 0.9, 9), (9, 0.5, 5), (10, 0.9, 10), (19, 0.9, 18), (20, 0.9, 19), (99, 0.95, 95), (10, 0.1, 2)],
)
def test_with_enough_scores_the_reach_is_their_quantile(count: int, level: float, rank: int) -> None:
    """Of the scores 1, 2, 3, ... the rank-th smallest, in whatever order they came."""
    scores = np.random.default_rng(1).permutation(np.arange(1.0, count + 1))
    assert Calibration(tuple(scores)).reach(level) == rank


@pytest.mark.parametrize(
    ("scores", "level"),
    [((), 0.9), ((0.1,), 0.9), ((3.0, 0.1), 0.5), ((0.5,) * 8, 0.5), ((0.5,) * 9, 0.95), ((50.0, 1.0), 0.5)],
)  # fmt: skip
def test_with_few_scores_it_is_students_over_one_more_of_two(scores: tuple[float, ...], level: float) -> None:
    count = len(scores) + 1
    spread = math.sqrt((4.0 + sum(each**2 for each in scores)) / count)
    expected = max(spread * scipy.stats.t(df=count).ppf((1.0 + level) / 2.0), *scores, 0.0)
    calibration = Calibration(scores)
    assert [calibration.reach(level), calibration.reach(level)] == pytest.approx([expected] * 2)


def test_each_real_score_drives_out_two_that_were_rehearsed_and_then_the_oldest() -> None:
    found = Calibration.starting([1.0, 2.0, math.inf, 3.0, math.nan])
    assert (found.scores, found.rehearsed) == ((1.0, 2.0, 3.0), 3)
    found = found.learned(4.0)
    assert (found.scores, found.rehearsed) == ((3.0, 4.0), 1)
    found = found.learned(5.0)
    assert (found.scores, found.rehearsed) == ((4.0, 5.0), 0)
    assert found.learned(math.inf) is found.learned(math.nan) is found
    assert found.learned(6.0).scores == (4.0, 5.0, 6.0)
    assert Calibration.starting(range(300)).scores == tuple(map(float, range(100, 300)))
    full = Calibration(tuple(map(float, range(200))))
    assert full.learned(7.0).scores == (*map(float, range(1, 200)), 7.0)


@pytest.mark.parametrize("last", [0.1, 1.0, 10.0])
def test_as_many_outcomes_as_should_lie_within_their_intervals_though_scores_become_smaller_or_larger(
    last: float,
) -> None:
    rng = np.random.default_rng(2)
    found = Calibration.starting(np.abs(rng.normal(size=80)))
    inside = {0.8: 0, 0.9: 0}
    for outcome in np.abs(rng.normal(size=150)) * np.geomspace(1.0, last, 150):
        for level in inside:
            inside[level] += outcome <= found.reach(level)
        found = found.learned(float(outcome))
    assert inside[0.9] / 150 == pytest.approx(0.9, abs=0.06)
    assert inside[0.8] / 150 == pytest.approx(0.8, abs=0.1)


def test_levels_follow_the_outcomes_so_far_and_no_farther() -> None:
    inside, outside = Calibration((1.0,) * 30).learned(0.5), Calibration((1.0,) * 30).learned(2.0)
    assert (inside.shift, outside.shift) == pytest.approx((-0.03, 0.27))
    scores = tuple(np.arange(1.0, 200.0))
    # Level 0.9 has the odds 9; with e times these it is 24.46 / 25.46 = 0.9607.
    assert [Calibration(scores, shift=shift).reach(0.9) for shift in (0.0, 1.0, -1.0)] == [180.0, 193.0, 154.0]
    for growth, farthest in ((0.0, -2.0), (1e3, 2.0)):
        found = Calibration(scores)
        for step in range(100):
            found = found.learned(growth * step)
        assert found.shift == farthest


def test_the_ends_are_as_many_spreads_away_on_the_logarithm_and_no_farther_than_numbers_go() -> None:
    calibration = Calibration(tuple(np.arange(1.0, 10.0)))
    low, high = calibration.ends(np.array([10.0, 20.0]), np.array([0.1, 0.2]), 0.5)
    assert low.tolist() == pytest.approx([10.0 * math.exp(-0.5), 20.0 * math.exp(-1.0)])
    assert high.tolist() == pytest.approx([10.0 * math.exp(0.5), 20.0 * math.exp(1.0)])
    found = calibration.around(np.array([10.0, 1e300]), 100.0, 0.5)
    assert (found.level, found.execution_time.tolist()) == (0.5, [10.0, 1e300])
    assert found.low.tolist() == pytest.approx([10.0 * math.exp(-50.0), 1e300 * math.exp(-50.0)])
    assert found.high.tolist() == [pytest.approx(10.0 * math.exp(50.0)), math.inf]


def test_a_search_beside_predictions_is_one_at_a_time_and_its_failure_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    search = BackgroundSearch[int]()
    search.wait()
    assert (search.running, search.take()) == (False, None)

    def fails() -> int:
        raise ValueError("no formula")

    assert search.start(fails)
    assert not search.start(lambda: 1)
    search.wait()
    assert search.running
    assert search.take() is None
    assert caplog.messages == ["a search failed, its result is lost: no formula"]
    assert not search.running
    assert search.start(lambda: 0)
    search.wait()
    assert [search.take(), search.running] == [0, False]


@pytest.mark.parametrize("level", [-1.0, 0.0, 1.0, 1.5, 1e308, math.inf, math.nan])
def test_a_level_that_is_not_between_0_and_1_is_refused(level: float) -> None:
    with pytest.raises(InputError, match=r"^level is .*, expected a number between 0 and 1$"):
        Calibration((1.0,) * 20).reach(level)
