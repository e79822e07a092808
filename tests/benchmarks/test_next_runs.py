"""Runs bought by plan, at random and evenly: the same seconds for each."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.next_runs import CHOICES, SPENT, spend
from metasched.predictors.judging.groups import Group, groups
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.records import Run
from tests.predictors.made import runs


@pytest.mark.parametrize("which", CHOICES)
def test_more_seconds_buy_at_least_as_many_runs_and_none_twice(which: str) -> None:
    training = [replace(run, phase="train") for run in runs(16)]
    every = [*training, *(replace(run, phase="predict") for run in runs(6, seed=1))]
    (group,) = groups(every, 5, 1)
    answer = spend(group, every, CHOICES[which], seed=1)
    bought = [count for count, _, _ in answer]
    assert len(answer) == len(SPENT)
    assert bought == sorted(bought)
    assert 0 < bought[-1] <= len(training) - 5


@pytest.mark.parametrize("which", CHOICES)
def test_a_choice_is_made_among_runs_that_fit_into_the_seconds_left_by_what_is_predicted(which: str) -> None:
    training = [replace(run, phase="train") for run in runs(16)]
    every = [*training, *(replace(run, phase="predict") for run in runs(6, seed=1))]
    (group,) = groups(every, 5, 1)
    offered: list[int] = []

    def choose(
        model: RobustPredictor, group: Group, known: list[Run], pool: list[Run], left: float, rng: np.random.Generator
    ) -> Run | None:
        assert pool
        assert all(model.predict(run.request).execution_time <= left for run in pool)
        offered.append(len(training) - len(known) - len(pool))
        return CHOICES[which](model, group, known, pool, left, rng)

    spend(group, every, choose, seed=1)
    assert max(offered) > 0
