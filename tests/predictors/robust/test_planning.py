"""Plans: what they promise of intervals is what the model says, and more seconds never promise less."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metasched.predictors.memory.window import measured
from metasched.predictors.robust.model import Model
from metasched.predictors.robust.planning import plan
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.records import Request
from tests.predictors.laid_out import laid_out
from tests.predictors.made import runs


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 1000), st.integers(1, 40))
def test_the_covariance_holds_the_spreads_of_predictions_and_no_more_certainty_than_there_can_be(
    seed: int, count: int
) -> None:
    model, rng = Model.fit(measured(runs(count, seed=seed))), np.random.default_rng(seed)
    where = (
        np.exp(rng.uniform(3, 10, 20)),
        rng.integers(1, 64, 20) * 1.0,
        rng.uniform(0.2, 1, 20),
        rng.uniform(5, 90, 20),
    )
    covariance, noise = model.covariance(*where)
    assert np.sqrt(np.diag(covariance) + noise) == pytest.approx(model.predict(*where)[1], rel=1e-6)
    assert np.linalg.eigvalsh(covariance).min() > -1e-8


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 1000), st.floats(1.0, 1000.0))
def test_a_plan_keeps_its_budget_and_more_seconds_never_promise_less(seed: int, budget: float) -> None:
    model = Model.fit(measured(runs(6, seed=seed)))
    asked = [Request(n, p, 1.0, 90.0) for n in (1000, 4000) for p in (4, 16)]
    possible = [Request(n, p, 1.0, 90.0) for n in (300, 1000, 4000) for p in (1, 2, 8, 16)]
    less, more = (plan(model, asked, possible, seconds) for seconds in (budget, 4 * budget))
    assert less.seconds.sum() <= budget * (1 + 1e-9)
    assert (less.after <= less.before * (1 + 1e-9)).all()
    assert (more.after**2).sum() <= (less.after**2).sum() * 1.02


def test_a_plan_runs_where_little_is_known() -> None:
    model = Model.fit(measured(runs(12, counts=(1,))))
    asked = [Request(2000, 16, 1.0, 90.0)]
    possible = [Request(n, p, 1.0, 90.0) for n in (500, 2000) for p in (1, 2, 4, 8)]
    found = plan(model, asked, possible, budget=5 * float(model.predict_one(2000, 8, 1.0, 90.0)[0]))
    assert found.runs[0].processors > 1
    assert found.after[0] < 0.8 * found.before[0]


def test_what_a_plan_says_of_intervals_now_holds_what_is_not_stated_too() -> None:
    predictor, asked = RobustPredictor("cg", "c8").fit(laid_out(30)), Request(700, 8, 0.9, 90.0)
    found = predictor.plan([asked], [replace(asked, processors=p) for p in (1, 2, 4)], budget=1e4)
    interval = predictor.predict(asked).interval
    assert predictor.state.model.unstated > 0.0
    assert predictor.widths(found.before, 0.9)[0] == pytest.approx(interval.high / interval.low)
    assert found.after[0] ** 2 > predictor.state.model.unstated


def test_a_plan_minds_layouts() -> None:
    answer = laid_out(20)
    model = Model.fit(measured(answer), settings=[run.settings for run in answer]).under(answer[0].settings)
    where = np.array([500.0, 900.0]), np.array([8.0, 16.0]), np.array([0.9, 0.5]), np.array([90.0, 40.0])
    covariance, noise = model.covariance(*where)
    assert np.sqrt(np.diag(covariance) + noise) == pytest.approx(model.predict(*where)[1], rel=1e-6)
