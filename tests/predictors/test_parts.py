from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from candidate_functions.exhaustive import exhaustive_search
from candidate_functions.least_squares import orthogonal_fit
from candidate_functions.terms import TermTable
from metasched.predictors.calibration import Calibration, score
from metasched.predictors.committee import Record, combine
from metasched.predictors.contract import Floats
from metasched.predictors.heavy_tails import t_weights
from metasched.predictors.log_polynomial import LogPolynomial
from metasched.predictors.residual import ResidualProcess, inputs, well_chosen
from metasched.predictors.sorted_list import PATIENCE, SortedList
from metasched.predictors.window import RunWindow, observations
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


def test_a_full_window_keeps_rare_processor_counts_and_the_range_of_sizes() -> None:
    window = RunWindow(capacity=40)
    window.add(Run("a", "c", 500.0, 64, 1.0, 90.0, 1.0))
    window.add(Run("a", "c", 1e6, 2, 1.0, 90.0, 1.0))
    for number in range(1000):
        window.add(Run("a", "c", 500.0 + number % 7, 2, 1.0, 90.0, 1.0))
    assert any(run.processors == 64 for run in window)
    assert [run.problem_size for run in window][-1] == 500.0 + 999 % 7


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 1000), st.booleans(), st.booleans())
def test_a_list_that_learned_equals_one_fitted_to_all(seed: int, relative: bool, nonnegative: bool) -> None:
    seen = observations(runs(40, seed=seed))
    combinations = exhaustive_search(seen, best=30).combinations
    first = np.arange(40) < 25
    learned = SortedList.of(combinations, seen.where(first), relative=relative, nonnegative=nonnegative).learned(
        seen.where(~first)
    )
    weight = 1 / seen.time if relative else np.ones(40)
    fit = orthogonal_fit(
        TermTable.at(seen).columns(learned.combinations) * weight, seen.time * weight, nonnegative=nonnegative
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


def test_leave_one_out_agrees_with_leaving_one_out() -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(25, 4))
    residual = 0.1 * np.sin(points[:, 0]) + 0.01 * rng.normal(size=25)
    process = ResidualProcess(points, residual, optimise=True)
    error, spread = process.leave_one_out()
    # Leave the last one out, keeping the scaling of the whole by giving the kernel the scaled points.
    kernel = process._process.kernel_
    scaled = process.scaling(points)
    noise = process._extra_noise
    k = kernel(scaled) + np.diag(1e-10 + noise)
    mean = k[-1, :-1] @ np.linalg.solve(k[:-1, :-1], residual[:-1])
    variance = k[-1, -1] - k[-1, :-1] @ np.linalg.solve(k[:-1, :-1], k[:-1, -1])
    assert error[-1] == pytest.approx(residual[-1] - mean, rel=1e-6)
    assert spread[-1] == pytest.approx(np.sqrt(variance - noise[-1]), rel=1e-6)


def _bump_and_wild_run() -> tuple[Floats, Floats, Floats]:
    """A smooth residual without noise to speak of, and the same with one run that took twice as long."""
    rng = np.random.default_rng(4)
    points = np.full((40, 4), 0.3)
    points[:, 0] = rng.uniform(-1.0, 1.0, 40)
    residual = 0.1 * np.sin(2.0 * points[:, 0]) + 0.01 * rng.normal(size=40)
    wild = residual.copy()
    wild[7] += np.log(2.0)
    return points, residual, wild


def test_one_wild_run_does_not_bend_the_process() -> None:
    points, residual, wild = _bump_and_wild_run()
    others = np.delete(points, 7, axis=0)  # left to itself, the process follows the wild run by 0.05
    without = ResidualProcess(points, residual, optimise=True).predict(others)[0]
    with_it = ResidualProcess(points, wild, optimise=True).predict(others)[0]
    assert np.abs(with_it - without).max() < 0.02


def test_one_wild_run_does_not_bend_a_resistant_polynomial() -> None:
    rng = np.random.default_rng(5)
    points = rng.normal(size=(40, 4))
    law = points @ np.array([0.9, -0.8, -1.0, -0.2]) + 0.01 * rng.normal(size=40)
    wild = law.copy()
    wild[7] += np.log(2.0)
    resistant, plain = (
        np.abs(LogPolynomial(1, points, wild, resistant=way)(points) - law).mean() for way in (True, False)
    )
    assert resistant < 0.5 * plain


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=30))
def test_the_farther_off_a_run_the_less_it_counts(errors: list[float]) -> None:
    weights = t_weights(np.array(errors))
    assert ((weights > 0.0) & (weights <= 1.0)).all()
    order = np.argsort(np.abs(errors))
    assert (np.diff(weights[order]) <= 1e-12).all()


def test_well_chosen_runs_hold_the_newest_and_the_outermost() -> None:
    seen = observations(runs(600, largest=3000))
    seen.problem_size[10] = 1e6
    chosen = well_chosen(seen)
    assert len(chosen) <= 256
    assert set(range(600 - 192, 600)) <= set(chosen.tolist())
    assert 10 in chosen
    assert (np.diff(chosen) > 0).all()


def test_a_direction_in_which_nothing_varies_does_no_harm() -> None:
    seen = observations(runs(20, counts=(4,)))
    points = inputs(seen.problem_size, seen.processors, seen.cpu, seen.bw)
    mean, spread = ResidualProcess(points, np.zeros(20), optimise=True).predict(points)
    assert np.isfinite(mean).all()
    assert np.isfinite(spread).all()


def test_real_scores_drive_out_rehearsed_ones() -> None:
    calibration = Calibration.starting([0.1] * 60)
    for _ in range(30):
        calibration = calibration.learned(3.0)
    assert set(calibration.scores) == {3.0}
    assert calibration.reach(0.9) == 3.0


@given(st.lists(st.floats(-1, 1), min_size=4, max_size=4), st.integers(1, 50))
def test_a_committee_trusts_the_expert_with_the_better_record(errors: list[float], times: int) -> None:
    record = Record.fresh(4)
    for _ in range(times):
        record = record.learned(np.array(errors))
    weights = record.weights()
    assert weights.sum() == pytest.approx(1.0)
    assert (weights > 0).all()
    order = np.argsort(np.minimum(np.abs(errors), 0.2), kind="stable")
    assert (np.diff(weights[order]) <= 1e-12).all()


def test_an_expert_without_an_answer_leaves_it_to_the_others() -> None:
    log_time = np.array([[np.inf, np.inf], [1.0, np.inf]])
    mean, spread = combine(log_time, np.full((2, 2), 0.1), np.array([0.9, 0.1]))
    assert mean.tolist() == [1.0, np.inf]
    assert spread[0] == pytest.approx(0.1)


def test_disagreement_widens_the_spread() -> None:
    together = combine(np.array([[1.0], [1.0]]), np.full((2, 1), 0.1), np.array([0.5, 0.5]))[1]
    apart = combine(np.array([[1.0], [2.0]]), np.full((2, 1), 0.1), np.array([0.5, 0.5]))[1]
    assert apart[0] > together[0] == pytest.approx(0.1)


def test_one_expert_far_from_the_others_cannot_pull_the_committee_away() -> None:
    log_time = np.array([[1.0], [1.1], [0.9], [300.0]])
    mean, spread = combine(log_time, np.full((4, 1), 0.1), np.full(4, 0.25))
    assert abs(mean[0] - 1.0) < 0.5
    assert 0.3 < spread[0] < 1.0


def test_the_process_predicts_what_the_library_predicts() -> None:
    draw = np.random.default_rng(3)
    points = draw.normal(size=(40, 4))
    process = ResidualProcess(points, np.sin(points[:, 0]) + 0.1 * draw.normal(size=40), optimise=True)
    new = draw.normal(size=(7, 4))
    mean, spread = process._process.predict(process.scaling(new), return_std=True)
    assert process.predict(new)[0] == pytest.approx(mean)
    assert process.predict(new)[1] == pytest.approx(spread)
