from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from candidate_functions.exhaustive import exhaustive_search
from candidate_functions.square_root import SquareRootSums
from candidate_functions.terms import TermTable
from metasched.predictors.formulas.sorted_list import PATIENCE, SortedList
from metasched.predictors.memory.calibration import Calibration, score
from metasched.predictors.memory.window import RunWindow, observations
from metasched.records import Run
from tests.predictors.made import runs


@given(st.lists(st.integers(1, 5), min_size=1, max_size=80), st.integers(1, 20))
def test_a_window_never_outgrows_its_capacity_and_keeps_order(counts: list[int], capacity: int) -> None:
    window = RunWindow(capacity=capacity)
    for number, p in enumerate(counts):
        window.add(Run("a", "c", 100.0 + number, p, 1.0, 90.0, 1.0 + number))
    kept = [run.execution_time for run in window]
    assert len(kept) == len(window) == min(capacity, len(counts))
    assert kept == sorted(kept)
    assert window.seen == len(counts)
    assert all(window._shares.values())


def test_a_full_window_keeps_rare_processor_counts_and_the_range_of_sizes() -> None:
    window = RunWindow(capacity=40)
    window.add(Run("a", "c", 500.0, 64, 1.0, 90.0, 1.0))
    window.add(Run("a", "c", 1e6, 2, 1.0, 90.0, 1.0))
    for number in range(1000):
        window.add(Run("a", "c", 500.0 + number % 7, 2, 1.0, 90.0, 1.0))
    assert any(run.processors == 64 for run in window)
    assert [run.problem_size for run in window][-1] == 500.0 + 999 % 7


@settings(deadline=None, max_examples=8)
@given(st.integers(0, 1000), st.booleans(), st.booleans())
def test_a_list_that_learned_equals_one_fitted_to_all(seed: int, relative: bool, nonnegative: bool) -> None:
    seen = observations(runs(40, seed=seed))
    combinations = exhaustive_search(seen, best=30).combinations
    first = np.arange(40) < 25
    learned = SortedList.of(combinations, seen.where(first), relative=relative, nonnegative=nonnegative).learned(
        seen.where(~first)
    )
    weight = 1 / seen.time if relative else np.ones(40)
    fit = SquareRootSums.of(TermTable.at(seen).columns(learned.combinations) * weight, seen.time * weight).solve(
        nonnegative=nonnegative
    )
    np.testing.assert_allclose(learned.coefficients, fit.coefficients, rtol=1e-6, atol=1e-15)
    np.testing.assert_allclose(learned.standard_error, np.sqrt(fit.sse / 38), rtol=1e-7)
    assert (np.diff(learned.standard_error) >= 0).all()


def test_a_combination_that_stays_in_the_last_tenth_is_dropped_after_five_runs() -> None:
    seen = observations(runs(60))
    combinations = exhaustive_search(seen, best=100).combinations
    models = SortedList.of(combinations, seen)
    lengths = []
    same = seen.where(np.arange(60) == 3)
    for _ in range(PATIENCE + 1):
        models = models.learned(same)
        lengths.append(len(models))
    assert lengths[: PATIENCE - 1] == [100] * (PATIENCE - 1)
    assert 90 <= lengths[PATIENCE - 1] < 100


def test_a_list_shrinks_to_the_most_promising_and_not_to_nothing() -> None:
    seen = observations(runs(60))
    models = SortedList.of(exhaustive_search(seen, best=40).combinations, seen)
    for _ in range(300):
        models = models.learned(seen.where(np.arange(60) == 1))
    assert 1 <= len(models) < 10


@given(st.lists(st.floats(0, 10), min_size=30, max_size=250), st.sampled_from([0.5, 0.8, 0.9]))
def test_the_reach_covers_the_level_of_the_scores_kept(scores: list[float], level: float) -> None:
    calibration = Calibration.starting(scores)
    kept = np.array(calibration.scores)
    assert len(kept) <= 200
    assert (kept <= calibration.reach(level)).mean() >= level


def test_the_reach_without_scores_is_cautious() -> None:
    assert Calibration().reach(0.9) > 5
    few = Calibration((0.5, 0.4, 0.6))
    assert few.reach(0.9) > 0.6


def test_an_outcome_that_was_not_predicted_is_not_scored() -> None:
    calibration = Calibration((1.0,))
    assert calibration.learned(score(5.0, np.inf, 0.1)) == calibration
    assert calibration.learned(score(5.0, -1.0, 0.1)) == calibration


def test_real_scores_drive_out_rehearsed_ones() -> None:
    calibration = Calibration.starting([0.1] * 60)
    for _ in range(30):
        calibration = calibration.learned(3.0)
    assert set(calibration.scores) == {3.0}
    assert calibration.reach(0.9) == 3.0
