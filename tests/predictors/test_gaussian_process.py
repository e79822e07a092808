from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasched.arrays import Floats
from metasched.predictors.gaussian_process import (
    ResidualProcess,
    ScalePrior,
    Scales,
    most_probable,
    t_weights,
    well_chosen,
)
from metasched.predictors.porting.transfer import LEVER_SPREADS, PRIOR, transfer


def points(count: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    where = np.log(
        np.stack(
            [
                rng.uniform(100, 900, count),
                rng.choice([1, 2, 4, 8], count),
                rng.uniform(0.3, 1.0, count),
                rng.uniform(30, 90, count),
            ],
            axis=1,
        )
    )
    share = rng.uniform(0.3, 1.0, count)
    crowded = np.where(where[:, 1] > 1.0, 0.7, 0.0)
    return where, np.stack([share, 1.0 - share, (1.0 - share) * crowded], axis=1)


def computing(count: int):
    """Levers of runs that only compute."""
    return np.tile([1.0, 0.0, 0.0], (count, 1))


def covariance(x, s, y, t, scales: Scales) -> float:
    """The kernel as the docstring tells it, for one pair."""
    r = np.sqrt(5 * np.sum(((x - y) / scales.lengths) ** 2))
    return (
        sum(spread**2 * a * b for spread, a, b in zip(LEVER_SPREADS, s, t, strict=True))
        + scales.scaling**2 * min(x[1], y[1])
        + scales.bend**2 * (1 + r + r * r / 3) * np.exp(-r)
    )


def test_predictions_are_the_conditional_normal_distribution() -> None:
    scales = Scales(0.1, (1.0, 2.0, 0.5, 3.0), 0.2, 0.05)
    (known, basis), (new, new_levers) = points(12), points(5, seed=1)
    error = np.random.default_rng(2).normal(0, 0.2, 12)
    mean, spread = transfer(known, basis, error, scales).predict(new, new_levers)

    def matrix(a, s, b, t):
        return np.array(
            [[covariance(x, u, y, v, scales) for y, v in zip(b, t, strict=True)] for x, u in zip(a, s, strict=True)]
        )

    inverse = np.linalg.inv(matrix(known, basis, known, basis) + scales.noise**2 * np.eye(12))
    across = matrix(new, new_levers, known, basis)
    own = matrix(new, new_levers, new, new_levers) + scales.noise**2 * np.eye(5)
    assert mean == pytest.approx(across @ inverse @ error)
    assert spread == pytest.approx(np.sqrt(np.diag(own - across @ inverse @ across.T)))


def test_runs_with_noise_of_their_own_count_for_less() -> None:
    (known, basis), (new, new_levers) = points(12), points(5, seed=1)
    error = np.random.default_rng(2).normal(0, 0.2, 12)
    noise, extra = np.linspace(1.0, 4.0, 12), np.where(np.arange(12) == 3, 1e6, 0.0)
    scales = PRIOR.medians
    whole = ResidualProcess(known, basis, LEVER_SPREADS, error, scales, noise=noise, extra=extra)
    kept = np.arange(12) != 3
    without = ResidualProcess(known[kept], basis[kept], LEVER_SPREADS, error[kept], scales, noise=noise[kept])
    expected = without.predict(new, new_levers)
    assert np.stack(whole.predict(new, new_levers)) == pytest.approx(np.stack(expected), rel=1e-3)


def test_where_the_formula_stands_at_its_most_probable_levers_only_widen_the_spread() -> None:
    (known, basis), (new, new_levers) = points(12), points(5, seed=1)
    error = np.random.default_rng(2).normal(0, 0.2, 12)
    moved, still = (
        ResidualProcess(known, basis, LEVER_SPREADS, error, PRIOR.medians, moved=way) for way in (True, False)
    )
    assert moved.predict(new, new_levers)[1] == pytest.approx(still.predict(new, new_levers)[1])
    assert np.all(still.moves == 0.0)


def test_scales_of_two_inputs_with_fixed_lengths_are_found() -> None:
    rng = np.random.default_rng(1)
    where = np.log(np.stack([rng.uniform(100, 900, 60), rng.choice([1.0, 2.0, 4.0], 60)], axis=1))
    error = 0.2 * np.sin(where[:, 0]) + rng.normal(0, 0.05, 60)
    prior = ScalePrior(Scales(0.05, (2.0, 3.0), 0.05, 0.2), fixed_lengths=2)
    found = most_probable(where, np.ones((60, 1)), np.ones(1), error, prior, prior.medians)
    assert found.lengths == pytest.approx((2.0, 3.0))
    assert 0.04 < found.noise < 0.07


def test_no_scales_near_those_found_are_more_probable() -> None:
    rng = np.random.default_rng(4)
    where = np.log(np.stack([rng.uniform(100, 900, 40), rng.choice([1.0, 2.0, 4.0], 40)], axis=1))
    error = 0.2 * np.sin(4.0 * where[:, 0]) + 0.1 * where[:, 1] + rng.normal(0, 0.05, 40)
    prior = ScalePrior(Scales(0.1, (1.0, 3.0), 0.05, 0.1, 0.7), fixed_alone=False)

    def improbable(logs: Floats) -> float:
        """The negative logarithm of the posterior, by the kernel pair by pair."""
        bend, first, second, scaling, noise, alone = np.exp(logs)
        r = np.sqrt(5 * (((where[:, None] - where[None]) / [first, second]) ** 2).sum(axis=2))
        matrix = bend**2 * (1 + r + r * r / 3) * np.exp(-r) + scaling**2 * np.minimum.outer(where[:, 1], where[:, 1])
        matrix += 0.09  # one lever of all runs alike, with a spread of 0.3
        matrix += np.diag((noise * (1.0 - (1.0 - alone) / np.exp(where[:, 1]))) ** 2)
        away = (logs - prior.medians.logs) / prior.spread
        determinant = np.linalg.slogdet(matrix)[1]
        return float(0.5 * (error @ np.linalg.solve(matrix, error) + determinant + away @ away))

    found = most_probable(where, np.ones((40, 1)), np.array([0.3]), error, prior, prior.medians).logs
    steps = [0.1 * sign * np.eye(6)[which] for which in range(6) for sign in (-1, 1)]
    assert all(improbable(found + step) > improbable(found) for step in steps)


def test_leaving_one_out_is_what_a_process_without_that_run_predicts() -> None:
    known, basis = points(15)
    error = np.random.default_rng(2).normal(0, 0.2, 15)
    left_out, spread = transfer(known, basis, error).leave_one_out()
    others = np.arange(15) != 4
    mean, expected = transfer(known[others], basis[others], error[others]).predict(known[4:5], basis[4:5])
    assert left_out[4] == pytest.approx(error[4] - mean[0])
    assert spread[4] == pytest.approx(expected[0])


def test_a_group_that_the_others_do_not_expect_counts_less_by_its_distance_from_what_they_expect() -> None:
    scales = Scales(0.1, (1.0, 2.0, 0.5, 3.0), 0.2, 0.05)
    known, basis = points(12)
    error, groups = np.random.default_rng(2).normal(0, 0.02, 12), np.repeat([0, 1, 2], [1, 4, 7])
    error[1:5] -= 1.0
    every = zip(known, basis, strict=True)
    whole = np.array([[covariance(x, s, y, t, scales) for y, t in zip(known, basis, strict=True)] for x, s in every])
    whole += scales.noise**2 * np.eye(12)
    expected = np.empty(12)
    for group, count in enumerate((1, 4, 7)):
        own, other = groups == group, groups != group
        taught = whole[np.ix_(own, other)] @ np.linalg.inv(whole[np.ix_(other, other)])
        away = error[own] - taught @ error[other]
        spread = whole[np.ix_(own, own)] - taught @ whole[np.ix_(other, own)]
        expected[own] = min((4.0 + count) / (4.0 + away @ np.linalg.solve(spread, away)), 1.0)
    found = transfer(known, basis, error, scales).group_weights(groups)
    assert found == pytest.approx(expected)
    assert found[1] < 0.5
    assert found.max() == 1.0


def test_runs_that_are_off_by_a_scale_factor_teach_it_for_everywhere() -> None:
    known, basis = points(30)
    mean, spread = transfer(known, basis, 0.2 * basis[:, 1], search=True).predict(
        np.log([[5e4, 1.0, 1.0, 90.0]]), np.array([[0.2, 0.8, 0.0]])
    )
    assert mean[0] == pytest.approx(0.16, abs=0.02)
    assert spread[0] < 0.15


def test_the_more_processors_the_less_sure() -> None:
    known = np.log([[400.0, 1.0, 1.0, 90.0], [300.0, 2.0, 1.0, 90.0]])
    new = np.log([[200.0, p, 1.0, 90.0] for p in (2.0, 4.0, 8.0, 16.0, 32.0)])
    _, spread = transfer(known, computing(2), np.zeros(2)).predict(new, computing(5))
    assert np.all(np.diff(spread) > 0)


def test_scales_found_are_more_probable_than_those_started_from() -> None:
    known, basis = points(40)
    error = 0.3 * np.sin(2.0 * known[:, 0]) + np.random.default_rng(2).normal(0, 0.01, 40)
    found = transfer(known, basis, error, search=True)
    assert found.scales.bend > PRIOR.medians.bend
    assert found.scales.noise < PRIOR.medians.noise
    new, new_levers = points(200, seed=5)
    mean, _ = found.predict(new, new_levers)
    truth = 0.3 * np.sin(2.0 * new[:, 0])
    plain, _ = transfer(known, basis, error).predict(new, new_levers)
    assert np.mean((mean - truth) ** 2) < np.mean((plain - truth) ** 2)


def test_runs_that_crowd_a_link_teach_how_much_of_their_traffic_it_carries() -> None:
    known = np.log([[400.0, p, 1.0, 90.0] for p in (1.0, 2.0, 16.0, 16.0, 16.0)])
    crowded = np.log([1.0, 1.0, 2.0, 2.0, 2.0])
    basis = np.stack([np.full(5, 0.3), np.full(5, 0.7), 0.7 * crowded], axis=1)
    process = transfer(known, basis, -0.5 * 0.7 * crowded)
    lever = np.array([[0.3, 0.7, 0.7 * np.log(4.0)]])
    mean, _ = process.predict(np.log([[400.0, 32.0, 1.0, 90.0]]), lever)
    assert mean[0] == pytest.approx(-0.5 * 0.7 * np.log(4.0), rel=0.35)


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=30))
def test_the_farther_off_a_run_the_less_it_counts(errors: list[float]) -> None:
    weights = t_weights(np.array(errors))
    assert ((weights > 0.0) & (weights <= 1.0)).all()
    order = np.argsort(np.abs(errors))
    assert (np.diff(weights[order]) <= 1e-12).all()


def test_well_chosen_runs_hold_the_newest_and_the_outermost() -> None:
    where: Floats = np.log(np.random.default_rng(0).uniform(100, 900, (600, 2)))
    where[10] = np.log(1e6)
    chosen = well_chosen(where)
    assert len(chosen) <= 256
    assert set(range(600 - 192, 600)) <= set(chosen.tolist())
    assert 10 in chosen
    assert (np.diff(chosen) > 0).all()
