"""Runs bought by plan, at random and evenly: the same seconds for each."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.next_runs import CHOICES, SPENT, spend
from metasched.predictors.judging.groups import groups
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
