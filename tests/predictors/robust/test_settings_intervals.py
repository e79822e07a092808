"""Intervals hold as often with layouts and parameters to learn as without them, and where priors do not suit."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.other_laws import Law
from benchmarks.testbed.catalogue import DESIGN
from metasched.predictors.judging.conditions import observed
from metasched.predictors.judging.evaluation import evaluate
from metasched.predictors.judging.groups import groups
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.store.files.campaigns import read_campaign
from tests.predictors.laid_out import laid_out
from tests.predictors.made import runs

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


def test_only_without_settings_does_agreement_make_deviations_smaller_than_those_of_the_priors() -> None:
    model = RobustPredictor().fit(runs(12)).state.model
    assert (model.process.spreads < model.formula.spreads).all()
    model = RobustPredictor().fit(laid_out(12)).state.model
    np.testing.assert_array_equal(model.process.spreads, model.formula.spreads)
    assert model.process.scales.noise > 1.05 * model.scales.noise


def test_intervals_of_few_runs_of_programs_unlike_the_priors_hold() -> None:
    held = []
    for seed in range(20100, 20132):
        rng = np.random.default_rng(seed)
        campaign = Law.drawn(rng).campaign(rng)
        found = evaluate(lambda _: RobustPredictor(), groups(campaign, 8, seed), observed, learning=False)
        held.append(found.summary()["interval_coverage"])
    assert np.mean(held) > 0.82
