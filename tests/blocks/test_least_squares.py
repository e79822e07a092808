"""Weighted least squares and the quality of fits, beside the curve fitting and the statistics of scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy

from metasched.blocks.calibration.least_squares import LEAST, fitted
from metasched.blocks.calibration.measurements import Measurements, Quality


@pytest.mark.parametrize("unknown", [1, 2, 3])
def test_coefficients_and_their_uncertainties_are_those_of_curve_fitting(unknown: int) -> None:
    draw = np.random.default_rng(unknown)
    columns = np.column_stack([10.0**k * draw.uniform(1.0, 2.0, 20) for k in range(unknown)])
    value = columns @ draw.uniform(1.0, 3.0, unknown) * np.exp(draw.normal(0.0, 0.1, 20))
    weights = 1.0 / value
    line = fitted(columns, value, weights)
    assert line is not None

    def curve(_: np.ndarray, *factors: float) -> np.ndarray:
        return columns @ np.array(factors)

    best, covariance = scipy.optimize.curve_fit(curve, np.zeros(20), value, p0=np.ones(unknown), sigma=value)
    assert line.coefficients.tolist() == pytest.approx(best.tolist(), rel=1e-6)
    assert line.uncertainties.tolist() == pytest.approx(np.sqrt(np.diag(covariance)).tolist(), rel=1e-4)
    assert line.squares == pytest.approx(float(np.sum(((columns @ best - value) / value) ** 2)))


def test_what_is_not_determined_is_not_fitted() -> None:
    ones, rising = np.ones(3), np.array([1.0, 2.0, 3.0])
    assert fitted(np.column_stack([ones, 2.0 * ones]), rising, ones) is None
    assert fitted(np.column_stack([ones, 0.0 * ones]), rising, ones) is None
    assert fitted(np.ones((1, 2)), np.ones(1), np.ones(1)) is None
    # As many as unknown: without anything left over, and no uncertainty.
    line = fitted(np.array([[1.0, 1.0], [1.0, 3.0]]), np.array([5.0, 9.0]), np.ones(2))
    assert line is not None
    assert (line.coefficients.tolist(), line.uncertainties.tolist()) == (
        pytest.approx([3.0, 2.0]), pytest.approx([0.0, 0.0], abs=1e-9),
    )  # fmt: skip
    exact = fitted(np.ones((4, 1)), np.full(4, 2.0), np.ones(4))
    assert exact is not None
    assert exact.squares == 4 * LEAST


@pytest.mark.parametrize("apart", [1e-3, 1e-6, 1e-8, 3e-10, 1e-12])
def test_columns_that_are_nearly_alike_are_fitted_with_their_doubt_or_not_at_all(apart: float) -> None:
    step = np.arange(6.0)
    columns, value = np.column_stack([np.ones(6), 1.0 + apart * step]), 2.0 + 0.1 * np.cos(step)
    line = fitted(columns, value, np.ones(6))
    assert (line is None) == (apart < 1e-10)
    if line is not None:
        expected = scipy.stats.linregress(step, value)
        assert line.coefficients[1] == pytest.approx(expected.slope / apart, rel=1e-5)
        assert line.uncertainties[1] == pytest.approx(expected.stderr / apart, rel=1e-5)


def test_quality_is_what_statistics_say() -> None:
    draw = np.random.default_rng(5)
    value = draw.uniform(1.0, 9.0, 12)
    said = value * draw.uniform(0.8, 1.3, 12)
    found = Quality.of(value, said)
    assert found.r_squared == pytest.approx(scipy.stats.pearsonr(value, said).statistic ** 2)
    assert found.mean_percentage_error == pytest.approx(
        100.0 * sum(abs(one - other) / other for one, other in zip(said, value, strict=True)) / 12
    )
    assert found.root_mean_squared_error == pytest.approx(math.dist(value, said) / math.sqrt(12))
    assert Quality.of(value, np.full(12, 3.0)).r_squared == 0.0


def test_repetitions_of_a_point_are_one_measurement_their_median() -> None:
    columns = np.array([
        (5.0, 8.0, 2.0, 1.0), (1.0, 8.0, 2.0, 1.0), (2.0, 8.0, 2.0, 1.0), (9.0, 8.0, 4.0, 1.0), (3.0, 4.0, 2.0, 1.0),
        (7.0, 8.0, 2.0, 2.0), (8.0, 8.0, 2.0, 2.0),
    ]).T  # fmt: skip
    measured = Measurements(*columns)
    found = measured.medians()
    rows = np.column_stack([found.value, found.data_size, found.nodes, found.threads]).tolist()
    assert rows == [[3.0, 4.0, 2.0, 1.0], [2.0, 8.0, 2.0, 1.0], [7.5, 8.0, 2.0, 2.0], [9.0, 8.0, 4.0, 1.0]]
    assert (len(measured), len(found), measured.weights[0]) == (7, 4, 0.2)
    part = measured.part(measured.threads == 2.0)
    assert (part.value.tolist(), part.data_size.tolist(), part.nodes.tolist(), part.threads.tolist()) == (
        [7.0, 8.0], [8.0, 8.0], [2.0, 2.0], [2.0, 2.0],
    )  # fmt: skip
