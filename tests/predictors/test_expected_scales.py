"""What is expected of the scales of a process is larger than what is most probable, the more so the fewer the runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from metasched.arrays import Floats
from metasched.predictors.expected_scales import as_expected, expected_scales
from metasched.predictors.gaussian_process import Kinship, ResidualProcess, ScalePrior, Scales, form_covariance

SCALES = Scales(0.06, (2.0, 2.0), 0.05, 0.03, 0.5)
PRIOR = ScalePrior(SCALES, fixed_alone=False)


def process(runs: int, parameters: int, scales: Scales = SCALES, kinship: Kinship | None = None) -> ResidualProcess:
    """On runs drawn at random whose error is 0, with a formula of so many parameters."""
    rng = np.random.default_rng(runs)
    points = np.log(np.stack([rng.uniform(100.0, 1000.0, runs), rng.choice([1.0, 2.0, 4.0, 8.0], runs)], axis=1))
    basis = rng.normal(size=(runs, parameters))
    return ResidualProcess(points, basis, np.ones(parameters), np.zeros(runs), scales, kinship=kinship)


def test_with_noise_alone_it_is_what_the_normal_distribution_says() -> None:
    scales = Scales(1e-9, (2.0, 2.0), 1e-9, 0.03)
    for runs in (1, 5, 50):
        # The logarithm of a deviation estimated from k normal errors has the precision 2 k.
        found = expected_scales(process(runs, 0, scales), ScalePrior(scales))
        assert found.noise == pytest.approx(0.03 * np.exp(1.0 / (2.0 * runs + 0.7**-2)))
        assert found.alone == scales.alone


def test_more_parameters_and_fewer_runs_leave_more_open() -> None:
    found = {(runs, count): expected_scales(process(runs, count), PRIOR) for runs in (10, 40) for count in (2, 6)}
    for name in ("noise", "bend", "scaling"):
        few, many = ([getattr(found[runs, count], name) for count in (2, 6)] for runs in (10, 40))
        assert getattr(SCALES, name) < many[0] < many[1] < few[1]
        assert many[0] < few[0] < few[1] <= getattr(SCALES, name) * np.exp(0.7**2)
    assert found[10, 2].lengths == SCALES.lengths


def test_the_information_is_the_mean_curvature_of_the_likelihood() -> None:
    known = process(12, 3)
    covariance = np.linalg.inv(known.inverse)

    def given(logs: Floats) -> Floats:
        bend, scaling, noise, alone = np.exp(logs)
        scales = Scales(bend, (2.0, 2.0), scaling, noise, alone)
        own = np.diag(scales.noise_on(np.exp(known.points[:, 1])) ** 2)
        return form_covariance(scales, known.points, known.points) + known.basis @ known.basis.T + own

    def divergence(logs: Floats) -> float:
        """Of the distribution under other scales from that under the known ones; its curvature is the information."""
        other = given(logs)
        return float(0.5 * (np.trace(np.linalg.solve(other, covariance)) + np.linalg.slogdet(other)[1]))

    middle, step = np.log([SCALES.bend, SCALES.scaling, SCALES.noise, SCALES.alone]), 1e-3 * np.eye(4)
    np.testing.assert_allclose(given(middle), covariance, rtol=1e-6)
    information = np.array(
        [
            [
                sum(s * t * divergence(middle + s * one + t * other) for s in (1, -1) for t in (1, -1)) / 4e-6
                for one in step
            ]
            for other in step
        ]
    )
    spread = np.linalg.inv(information + np.eye(4) / 0.7**2)
    found = expected_scales(known, PRIOR)
    assert found.bend == pytest.approx(SCALES.bend * np.exp(spread[0, 0]), rel=1e-4)
    assert found.scaling == pytest.approx(SCALES.scaling * np.exp(spread[1, 1]), rel=1e-4)
    assert found.noise == pytest.approx(SCALES.noise * np.exp(spread[2, 2]), rel=1e-4)
    on_one = np.exp(spread[2, 2] + 2.0 * spread[2, 3] + spread[3, 3])
    assert found.noise * found.alone == pytest.approx(SCALES.noise * SCALES.alone * on_one, rel=1e-4)


def test_runs_elsewhere_tell_of_the_scales_too() -> None:
    here, elsewhere = np.zeros(30, dtype=np.intp), np.repeat([0, 1], [5, 25])
    apart = np.full(2, 0.1)
    alone = expected_scales(process(5, 2), PRIOR)
    both = expected_scales(process(30, 2, kinship=Kinship(elsewhere, apart)), PRIOR)
    every = expected_scales(process(30, 2), PRIOR)
    assert every.noise < both.noise < alone.noise
    assert expected_scales(process(30, 2, kinship=Kinship(here, apart)), PRIOR) == every


@pytest.mark.parametrize("several", [False, True])
def test_all_deviations_have_one_factor_and_the_means_stay(several: bool) -> None:
    kinship = Kinship(np.repeat([0, 1], [5, 15]), np.full(2, 0.1), shared=0.03) if several else None
    bare, rng = process(20, 2, kinship=kinship), np.random.default_rng(1)
    known = ResidualProcess(
        bare.points,
        bare.basis,
        bare.spreads,
        rng.normal(0.0, 0.1, 20),
        SCALES,
        noise=rng.uniform(1.0, 9.0, 20),
        extra=rng.uniform(0.0, 0.01, 20),
        moved=False,
        kinship=kinship,
    )
    found = as_expected(known, replace(PRIOR, spread=1e-4), np.zeros(20), least=9.0)
    (mean, spread), (wider_mean, wider) = (each.predict(bare.points, bare.basis) for each in (known, found))
    np.testing.assert_allclose(wider_mean, mean, rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(wider, 3.0 * spread, rtol=1e-5)


@pytest.mark.parametrize("misfit", [0.0, 4.0, 11.0, 200.0])
def test_the_factor_is_that_of_the_misfit_and_of_one_run_before(misfit: float) -> None:
    known = process(12, 3)
    off = np.random.default_rng(2).normal(size=12)
    error = off * np.sqrt(misfit / (off @ known.inverse @ off))
    found = as_expected(known, PRIOR, error)
    np.testing.assert_allclose(found.spreads**2, (1.0 + misfit) / 12.0)
    assert found.scales.noise == pytest.approx(expected_scales(known, PRIOR).noise * np.sqrt((1.0 + misfit) / 12.0))


@pytest.mark.parametrize("places", [[3], [3, 7], [1, 3, 4, 7, 10]])
def test_outliers_are_no_misfit_of_the_others(places: list[int]) -> None:
    known, wild = process(12, 3), np.isin(np.arange(12), places)
    error, noise = np.random.default_rng(4).normal(0.0, 0.05, 12), np.where(wild, 30.0, 1.0)
    error[wild] += 3.0
    all_runs, others = (
        ResidualProcess(known.points[to], known.basis[to], known.spreads, error[to], SCALES, noise=noise[to])
        for to in (np.full(12, True), ~wild)
    )
    found = as_expected(all_runs, PRIOR, error).spreads
    np.testing.assert_allclose(found, as_expected(others, PRIOR, error[~wild]).spreads, rtol=1e-3)


@pytest.mark.parametrize("count", [1, 12])
def test_where_all_runs_are_outliers_the_priors_stay_as_they_are(count: int) -> None:
    known, error = process(count, 3), np.full(count, 2.0)
    wild = ResidualProcess(known.points, known.basis, known.spreads, error, SCALES, noise=np.full(count, 1e4))
    np.testing.assert_allclose(as_expected(wild, PRIOR, error).spreads, known.spreads)
