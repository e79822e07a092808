"""What is expected of the scales of a process is larger than what is most probable, the more so the fewer the runs."""

from __future__ import annotations

import numpy as np
import pytest

from metasched.arrays import Floats
from metasched.predictors.expected_scales import expected_scales
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
