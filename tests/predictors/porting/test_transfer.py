from __future__ import annotations

import numpy as np
import pytest

from metasched.predictors.porting.transfer import (
    LEVER_SPREADS,
    TransferProcess,
    TransferScales,
)


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


def covariance(x, s, y, t, scales: TransferScales) -> float:
    """The kernel as the docstring tells it, for one pair."""
    r = np.sqrt(5 * np.sum(((x - y) / scales.lengths) ** 2))
    return (
        sum(spread**2 * a * b for spread, a, b in zip(LEVER_SPREADS, s, t, strict=True))
        + scales.scaling**2 * min(x[1], y[1])
        + scales.bend**2 * (1 + r + r * r / 3) * np.exp(-r)
    )


def test_predictions_are_the_conditional_normal_distribution() -> None:
    scales = TransferScales(0.1, (1.0, 2.0, 0.5, 3.0), 0.2, 0.05)
    (known, levers), (new, new_levers) = points(12), points(5, seed=1)
    error = np.random.default_rng(2).normal(0, 0.2, 12)
    mean, spread = TransferProcess(known, levers, error, scales).predict(new, new_levers)

    def matrix(a, s, b, t):
        return np.array(
            [[covariance(x, u, y, v, scales) for y, v in zip(b, t, strict=True)] for x, u in zip(a, s, strict=True)]
        )

    inverse = np.linalg.inv(matrix(known, levers, known, levers) + scales.noise**2 * np.eye(12))
    across = matrix(new, new_levers, known, levers)
    own = matrix(new, new_levers, new, new_levers) + scales.noise**2 * np.eye(5)
    assert mean == pytest.approx(across @ inverse @ error)
    assert spread == pytest.approx(np.sqrt(np.diag(own - across @ inverse @ across.T)))


def test_leaving_one_out_is_what_a_process_without_that_run_predicts() -> None:
    known, levers = points(15)
    error = np.random.default_rng(2).normal(0, 0.2, 15)
    left_out, spread = TransferProcess(known, levers, error).leave_one_out()
    others = np.arange(15) != 4
    mean, expected = TransferProcess(known[others], levers[others], error[others]).predict(known[4:5], levers[4:5])
    assert left_out[4] == pytest.approx(error[4] - mean[0])
    assert spread[4] == pytest.approx(expected[0])


def test_runs_that_are_off_by_a_scale_factor_teach_it_for_everywhere() -> None:
    known, levers = points(30)
    mean, spread = TransferProcess(known, levers, 0.2 * levers[:, 1], optimise=True).predict(
        np.log([[5e4, 1.0, 1.0, 90.0]]), np.array([[0.2, 0.8, 0.0]])
    )
    assert mean[0] == pytest.approx(0.16, abs=0.02)
    assert spread[0] < 0.15


def test_the_more_processors_the_less_sure() -> None:
    known = np.log([[400.0, 1.0, 1.0, 90.0], [300.0, 2.0, 1.0, 90.0]])
    new = np.log([[200.0, p, 1.0, 90.0] for p in (2.0, 4.0, 8.0, 16.0, 32.0)])
    _, spread = TransferProcess(known, computing(2), np.zeros(2)).predict(new, computing(5))
    assert np.all(np.diff(spread) > 0)


def test_scales_found_are_more_probable_than_those_started_from() -> None:
    known, levers = points(40)
    error = 0.3 * np.sin(2.0 * known[:, 0]) + np.random.default_rng(2).normal(0, 0.01, 40)
    found = TransferProcess(known, levers, error, optimise=True)
    assert found.scales.bend > TransferScales().bend
    assert found.scales.noise < TransferScales().noise
    new, new_levers = points(200, seed=5)
    mean, _ = found.predict(new, new_levers)
    truth = 0.3 * np.sin(2.0 * new[:, 0])
    plain, _ = TransferProcess(known, levers, error).predict(new, new_levers)
    assert np.mean((mean - truth) ** 2) < np.mean((plain - truth) ** 2)


def test_runs_that_crowd_a_link_teach_how_much_of_their_traffic_it_carries() -> None:
    known = np.log([[400.0, p, 1.0, 90.0] for p in (1.0, 2.0, 16.0, 16.0, 16.0)])
    crowded = np.log([1.0, 1.0, 2.0, 2.0, 2.0])
    levers = np.stack([np.full(5, 0.3), np.full(5, 0.7), 0.7 * crowded], axis=1)
    process = TransferProcess(known, levers, -0.5 * 0.7 * crowded)
    lever = np.array([[0.3, 0.7, 0.7 * np.log(4.0)]])
    mean, _ = process.predict(np.log([[400.0, 32.0, 1.0, 90.0]]), lever)
    assert mean[0] == pytest.approx(-0.5 * 0.7 * np.log(4.0), rel=0.35)
