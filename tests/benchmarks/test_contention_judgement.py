"""The judgement of the contention model on the recorded co-scheduled runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import benchmarks.contention
from benchmarks.contention.judge import ANSWERS, CoRun, judge, read

RUNS = read(Path(benchmarks.contention.__file__).with_name("truth.csv"))


def test_the_model_keeps_its_targets_and_both_simpler_answers_are_worse() -> None:
    verdicts = {name: judge(RUNS, answer) for name, answer in ANSWERS.items()}
    model = verdicts["queueing network"]
    assert model.errors.mean() <= 0.10
    assert model.pairs > 100
    assert model.wrong == 0
    for name in ("no contention", "equal shares"):
        assert verdicts[name].errors.mean() > 2 * model.errors.mean()


def test_the_recorded_runs_hold_two_and_three_jobs_and_every_kind_of_sharing() -> None:
    assert {run.alone_time.size for run in RUNS} == {2, 3}
    assert {run.sharing for run in RUNS} >= {"nodes", "links", "both", "nothing"}


def test_jobs_that_share_nothing_are_recorded_undisturbed() -> None:
    pairs = [run for run in RUNS if run.sharing == "nothing" and run.alone_time.size == 2]
    assert len(pairs) > 10
    together, alone = (
        np.concatenate([getattr(run, name) for run in pairs]) for name in ("together_time", "alone_time")
    )
    np.testing.assert_allclose(together, alone, rtol=1e-3)


def test_the_verdict_counts_a_pair_in_the_wrong_order() -> None:
    first = next(run for run in RUNS if run.alone_time.size == 2)
    slow = replace(first, together_time=first.alone_time * 2)
    fast = replace(first, together_time=first.alone_time)

    def the_wrong_way_round(run: CoRun) -> np.ndarray:
        return 3 - run.slowdown

    verdict = judge([slow, fast], the_wrong_way_round)
    assert (verdict.pairs, verdict.wrong) == (1, 1)
    assert verdict.errors == pytest.approx([0.5, 0.5, 1.0, 1.0])
