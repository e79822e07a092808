"""Runs that are far off are found one by one, however they spoil what the others say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from metasched.predictors.gaussian_process import ResidualProcess, Scales
from metasched.predictors.memory.window import measured
from metasched.predictors.robust.far_off import FAR_OFF, far_off
from metasched.predictors.robust.model import Model
from tests.predictors.laid_out import laid_out
from tests.predictors.made import runs


@pytest.mark.parametrize(("wild", "most"), [([], 6), ([3], 6), ([3, 17], 6), ([3, 17, 29], 6), ([3, 17, 29], 2)])
def test_runs_that_are_far_off_are_found_also_where_they_hide_each_other(wild: list[int], most: int) -> None:
    rng = np.random.default_rng(5)
    points = np.log(np.stack([rng.uniform(100.0, 900.0, 30), rng.choice([1.0, 2.0, 4.0, 8.0], 30)], axis=1))
    error = rng.normal(0.0, 0.03, 30)
    error[wild] += 3.0
    basis = np.column_stack([np.ones(30), points[:, 1]])
    process = ResidualProcess(points, basis, np.array([10.0, 0.5]), error, Scales(0.05, (2.0, 2.0), 0.03, 0.03))
    found = far_off(process, FAR_OFF, most)
    assert len(found) == min(len(wild), most)
    assert set(found) <= set(wild)


@pytest.mark.parametrize("factor", [1 / 3, 3.0, 100.0])
@pytest.mark.parametrize(("count", "most"), [(12, 1.9), (20, 1.6), (40, 1.3)])
def test_one_wild_run_does_not_widen_the_intervals_of_all_others(count: int, most: float, factor: float) -> None:
    rng = np.random.default_rng(1)
    within = np.exp(rng.uniform(np.log(200.0), np.log(4000.0), 60)), rng.choice([1.0, 2.0, 4.0, 8.0], 60)
    loads, widened = (rng.uniform(0.3, 1.0, 60), rng.uniform(20.0, 95.0, 60)), []
    for seed in range(8):
        usual, which = runs(count, seed=seed), int(rng.integers(count))
        one = replace(usual[which], execution_time=factor * usual[which].execution_time)
        fits = (Model.fit(measured(each)) for each in (usual, [*usual[:which], one, *usual[which + 1 :]]))
        without, with_it = (model.predict(*within, *loads)[1] for model in fits)
        widened.append(float(np.median(with_it / without)))
    assert np.median(widened) < most
    assert max(widened) < 2.0 * most


@pytest.mark.parametrize("seed", [2, 4, 7])
def test_effects_of_settings_other_than_expected_are_no_outliers(seed: int) -> None:
    known = laid_out(80, seed)
    model = Model.fit(measured(known), settings=[run.settings for run in known])
    assert model.weights.min() > 0.05
