from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

from candidate_functions.least_squares import UnitColumns, pair_reductions, standard_error
from candidate_functions.square_root import SquareRootSums

seeds = st.integers(0, 10**6)


def _design(seed: int, m: int = 5, n: int = 12) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.uniform(-8, 8, (2 * m, 1))
    columns = rng.uniform(0.0, 1.0, (2 * m, n)) * scale
    return columns[:m], columns[m:], rng.uniform(0.5, 2.0, n)


@settings(deadline=None)
@given(seeds)
def test_closed_form_agrees_with_lstsq_for_every_pair(seed: int) -> None:
    first, second, y = _design(seed)
    reductions = pair_reductions(UnitColumns.of(first, y), UnitColumns.of(second, y))
    for i in range(len(first)):
        for j in range(len(second)):
            design = np.stack([first[i] / first[i].max(), second[j] / second[j].max()], axis=1)
            solution, *_ = np.linalg.lstsq(design, y, rcond=None)
            sse = float(((y - design @ solution) ** 2).sum())
            assert y @ y - reductions[i, j] == pytest.approx(sse, rel=1e-8, abs=1e-10)


@settings(deadline=None)
@given(seeds)
def test_a_nonnegative_fit_agrees_with_nnls(seed: int) -> None:
    first, second, y = _design(seed)
    columns = np.stack([np.stack([u, v]) for u in first for v in second])
    fit = SquareRootSums.of(columns, y).solve(nonnegative=True)
    assert (fit.coefficients >= 0).all()
    for position, (u, v) in enumerate(columns):
        _, norm = scipy.optimize.nnls(np.stack([u / u.max(), v / v.max()], axis=1), y)
        assert fit.sse[position] == pytest.approx(norm**2, rel=1e-8, abs=1e-12)


@settings(deadline=None)
@given(seeds, st.booleans())
def test_scaling_a_column_scales_its_coefficient_and_nothing_else(seed: int, nonnegative: bool) -> None:
    first, second, y = _design(seed, m=1)
    columns = np.stack([first[0], second[0]])[None]
    fit = SquareRootSums.of(columns, y).solve(nonnegative=nonnegative)
    scaled = SquareRootSums.of(columns * np.array([1e6, 1e-5])[None, :, None], y).solve(nonnegative=nonnegative)
    np.testing.assert_allclose(scaled.coefficients * [1e6, 1e-5], fit.coefficients, rtol=1e-9)
    np.testing.assert_allclose(scaled.sse, fit.sse, rtol=1e-9)


def test_a_fit_keeps_its_digits_where_columns_are_nearly_collinear() -> None:
    x = np.linspace(1.0, 2.0, 30)
    u, v = x, x + 1e-7 * x**2
    fit = SquareRootSums.of(np.stack([u, v])[None], 3.0 * u + 2.0 * v).solve()
    np.testing.assert_allclose(fit.coefficients[0], [3.0, 2.0], rtol=1e-6)
    assert fit.sse[0] < 1e-24


def test_identical_columns_count_as_one() -> None:
    x = np.linspace(1.0, 2.0, 10)
    fit = SquareRootSums.of(np.stack([x, x])[None], 3.0 * x).solve()
    assert fit.coefficients[0].tolist() == pytest.approx([3.0, 0.0])
    unit = UnitColumns.of(x[None], 3.0 * x)
    assert pair_reductions(unit, unit)[0, 0] == pytest.approx(9.0 * x @ x)


def test_a_column_that_is_not_finite_is_never_chosen() -> None:
    y = np.ones(4)
    good, bad, huge = np.arange(1.0, 5.0), np.array([1.0, np.inf, 1.0, 1.0]), np.full(4, 1e300)
    unit = UnitColumns.of(np.stack([good, bad, huge]), y)
    assert unit.usable.tolist() == [True, False, False]
    assert np.isneginf(pair_reductions(unit, unit)[0, 1:]).all()
    fit = SquareRootSums.of(np.stack([np.stack([good, bad]), np.stack([good, good**2])]), y).solve()
    assert np.isinf(fit.sse[0])
    assert np.isfinite(fit.sse[1])


def test_a_column_of_zeros_explains_nothing() -> None:
    x = np.arange(1.0, 5.0)
    fit = SquareRootSums.of(np.stack([x, np.zeros(4)])[None], 2.0 * x).solve()
    assert fit.coefficients[0].tolist() == pytest.approx([2.0, 0.0])


def test_standard_error_is_infinite_where_runs_do_not_outnumber_terms() -> None:
    assert np.isinf(standard_error(np.array([1.0]), samples=2, terms=2)).all()


@settings(deadline=None)
@given(seeds, st.booleans(), st.integers(0, 8), st.integers(0, 8))
def test_learning_one_run_at_a_time_agrees_with_fitting_all_at_once(
    seed: int, nonnegative: bool, without_first: int, without_second: int
) -> None:
    first, second, y = _design(seed)
    columns = np.stack([first, second], axis=1)
    columns[:, 0, :without_first] = columns[:, 1, :without_second] = 0.0
    sums = SquareRootSums.of(columns[:, :, :4], y[:4])
    for run in range(4, len(y)):
        sums.add(columns[:, :, run], y[run])
    at_once = SquareRootSums.of(columns, y).solve(nonnegative=nonnegative)
    learned = sums.solve(nonnegative=nonnegative)
    np.testing.assert_allclose(learned.coefficients, at_once.coefficients, rtol=1e-6, atol=1e-12 / columns.max())
    np.testing.assert_allclose(learned.sse, at_once.sse, rtol=1e-8)


def test_twenty_thousand_runs_leave_the_error_sum_exact() -> None:
    rng = np.random.default_rng(0)
    columns = rng.uniform(1.0, 2.0, (1, 2, 20_000)) * np.array([1e6, 1.0])[None, :, None]
    target = 3.0 * columns[0, 0] + 5.0 * columns[0, 1] + 1e-3 * rng.standard_normal(20_000)
    sums = SquareRootSums.of(columns[:, :, :3], target[:3])
    for run in range(3, 20_000):
        sums.add(columns[:, :, run], target[run])
    # The errors are 1e-9 of the target: a difference of Gram sums would have lost them entirely.
    assert sums.solve().sse[0] == pytest.approx(SquareRootSums.of(columns, target).solve().sse[0], rel=1e-5)
