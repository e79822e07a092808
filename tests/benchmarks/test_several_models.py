"""One model and several, with and without the run that was farthest from its prediction."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.several_models import compared, mean_ppe, outcomes
from tests.predictors.made import runs


def test_the_same_run_is_left_out_for_one_model_and_for_several() -> None:
    training, rest = runs(30), runs(6, seed=1)
    wild = replace(rest[1], execution_time=50.0 * rest[1].execution_time)
    others = [rest[0], *rest[2:]]
    farthest, figures = compared(training, [rest[0], wild, *rest[2:]])
    assert farthest.run is wild
    one = outcomes(training, [rest[0], wild, *rest[2:]], "single")
    assert figures[0] == pytest.approx(mean_ppe(one))
    assert figures[2] == pytest.approx(mean_ppe([outcome for outcome in one if outcome.run is not wild]))
    assert figures[3] == pytest.approx(mean_ppe(outcomes(training, others)))
    assert figures[2] < figures[0]
