from __future__ import annotations

import numpy as np
import pytest

from metasched.predictors.porting.transfer import (
    BANDWIDTH_SPREAD,
    CPU_SPREAD,
    TransferProcess,
    TransferScales,
)


def points(count: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    return np.log(
        np.stack(
            [
                rng.uniform(100, 900, count),
                rng.choice([1, 2, 4, 8], count),
                rng.uniform(0.3, 1.0, count),
                rng.uniform(30, 90, count),
            ],
            axis=1,
        )
    ), rng.uniform(0.3, 1.0, count)


def covariance(x, s, y, t, scales: TransferScales) -> float:
    """The kernel as the docstring tells it, for one pair."""
    r = np.sqrt(5 * np.sum(((x - y) / scales.lengths) ** 2))
    return (
        CPU_SPREAD**2 * s * t
        + BANDWIDTH_SPREAD**2 * (1 - s) * (1 - t)
        + scales.scaling**2 * min(x[1], y[1])
        + scales.bend**2 * (1 + r + r * r / 3) * np.exp(-r)
    )


def test_predictions_are_the_conditional_normal_distribution() -> None:
    scales = TransferScales(0.1, (1.0, 2.0, 0.5, 3.0), 0.2, 0.05)
    (known, share), (new, new_share) = points(12), points(5, seed=1)
    error = np.random.default_rng(2).normal(0, 0.2, 12)
    mean, spread = TransferProcess(known, share, error, scales).predict(new, new_share)

    def matrix(a, s, b, t):
        return np.array(
            [[covariance(x, u, y, v, scales) for y, v in zip(b, t, strict=True)] for x, u in zip(a, s, strict=True)]
        )

    inverse = np.linalg.inv(matrix(known, share, known, share) + scales.noise**2 * np.eye(12))
    across = matrix(new, new_share, known, share)
    own = matrix(new, new_share, new, new_share) + scales.noise**2 * np.eye(5)
    assert mean == pytest.approx(across @ inverse @ error)
    assert spread == pytest.approx(np.sqrt(np.diag(own - across @ inverse @ across.T)))


def test_leaving_one_out_is_what_a_process_without_that_run_predicts() -> None:
    known, share = points(15)
    error = np.random.default_rng(2).normal(0, 0.2, 15)
    left_out, spread = TransferProcess(known, share, error).leave_one_out()
    others = np.arange(15) != 4
    mean, expected = TransferProcess(known[others], share[others], error[others]).predict(known[4:5], share[4:5])
    assert left_out[4] == pytest.approx(error[4] - mean[0])
    assert spread[4] == pytest.approx(expected[0])


def test_runs_that_are_off_by_a_scale_factor_teach_it_for_everywhere() -> None:
    known, share = points(30)
    mean, spread = TransferProcess(known, share, 0.2 * (1.0 - share), optimise=True).predict(
        np.log([[5e4, 1.0, 1.0, 90.0]]), np.array([0.2])
    )
    assert mean[0] == pytest.approx(0.16, abs=0.02)
    assert spread[0] < 0.15


def test_the_more_processors_the_less_sure() -> None:
    known = np.log([[400.0, 1.0, 1.0, 90.0], [300.0, 2.0, 1.0, 90.0]])
    new = np.log([[200.0, p, 1.0, 90.0] for p in (2.0, 4.0, 8.0, 16.0, 32.0)])
    _, spread = TransferProcess(known, np.ones(2), np.zeros(2)).predict(new, np.ones(5))
    assert np.all(np.diff(spread) > 0)


def test_scales_found_are_more_probable_than_those_started_from() -> None:
    known, share = points(40)
    error = 0.3 * np.sin(2.0 * known[:, 0]) + np.random.default_rng(2).normal(0, 0.01, 40)
    found = TransferProcess(known, share, error, optimise=True)
    assert found.scales.bend > TransferScales().bend
    assert found.scales.noise < TransferScales().noise
    new, new_share = points(200, seed=5)
    mean, _ = found.predict(new, new_share)
    truth = 0.3 * np.sin(2.0 * new[:, 0])
    plain, _ = TransferProcess(known, share, error).predict(new, new_share)
    assert np.mean((mean - truth) ** 2) < np.mean((plain - truth) ** 2)
