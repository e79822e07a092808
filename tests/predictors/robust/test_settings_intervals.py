"""Intervals hold as often with layouts and parameters to learn as without them."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.testbed.catalogue import DESIGN
from metasched.predictors.judging.conditions import observed
from metasched.predictors.judging.evaluation import evaluate
from metasched.predictors.judging.groups import groups
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.store.files.campaigns import read_campaign
from tests.predictors.laid_out import laid_out, without_settings

CAMPAIGNS = sorted(path.parent for path in (DESIGN.folder / "layouts").glob("*/runs.csv"))


@pytest.mark.parametrize("count", [12, 20])
def test_intervals_of_few_runs_with_layouts_hold(count: int) -> None:
    held = [
        evaluate(
            lambda _: RobustPredictor(), groups(read_campaign(folder).runs, count, seed), observed, learning=False
        ).summary()["interval_coverage"]
        for folder in CAMPAIGNS
        for seed in (1, 2, 3, 4)
    ]
    assert len(held) == 12
    assert 0.87 <= np.mean(held) <= 0.95


def test_only_settings_leave_the_scales_open() -> None:
    runs = laid_out(12)
    model = RobustPredictor().fit(without_settings(runs)).state.model
    assert model.process.scales == model.scales
    model = RobustPredictor().fit(runs).state.model
    assert model.process.scales.noise > 1.05 * model.scales.noise
