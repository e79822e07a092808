"""Predictions judged with observed loads: those of the run, and what is expected where they were not measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from metasched.predictors.energy.predictor import MeteredPredictor
from metasched.predictors.judging.conditions import observed
from metasched.predictors.judging.evaluation import evaluate
from metasched.predictors.judging.groups import Group
from metasched.predictors.judging.peers import RidgeQuadratic
from metasched.predictors.load_doubt import predict_expected
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.records import Run
from tests.predictors.made import runs

MEASURED = runs(41, seed=1)
BARE = replace(MEASURED[0], min_avg_avail_cpu=math.nan, min_avg_avail_bw=math.nan)


def partly(every: Sequence[Run], seed: int = 0) -> list[Run]:
    """The runs, a third of them without CPU, and a third without bandwidth."""
    without = np.random.default_rng(seed).random((len(every), 2)) < 1 / 3
    return [
        replace(
            run,
            min_avg_avail_cpu=math.nan if cpu else run.min_avg_avail_cpu,
            min_avg_avail_bw=math.nan if bandwidth else run.min_avg_avail_bw,
        )
        for run, (cpu, bandwidth) in zip(every, without, strict=True)
    ]


def test_loads_that_were_measured_are_certain() -> None:
    expected = observed(MEASURED[0], RobustPredictor().fit(MEASURED), 0.9)
    assert (expected.request, expected.doubt) == (MEASURED[0].request, None)


@pytest.mark.parametrize("kind", [RobustPredictor, MeteredPredictor])
def test_loads_that_were_not_are_as_uncertain_as_those_of_the_runs_differ(
    kind: type[RobustPredictor | MeteredPredictor],
) -> None:
    predictor = kind().fit(MEASURED)
    expected = observed(BARE, predictor, 0.9)
    assert expected.request.available_cpu == pytest.approx(np.median([run.min_avg_avail_cpu for run in MEASURED]))
    assert expected.request.available_bandwidth == pytest.approx(np.median([run.min_avg_avail_bw for run in MEASURED]))
    narrow = observed(BARE, predictor, 0.5).doubt
    assert expected.doubt is not None
    assert narrow is not None
    for wide, less in ((expected.doubt.cpu, narrow.cpu), (expected.doubt.bandwidth, narrow.bandwidth)):
        assert wide[0] < less[0] < 1.0 < less[1] <= wide[1]
    assert expected.doubt.cpu[1] * expected.request.available_cpu == pytest.approx(1.0)


def test_one_load_that_was_not_measured_leaves_the_other_certain() -> None:
    run = replace(MEASURED[0], min_avg_avail_cpu=math.nan)
    expected = observed(run, RobustPredictor().fit(MEASURED), 0.9)
    assert expected.request.available_bandwidth == run.min_avg_avail_bw
    assert expected.doubt is not None
    assert expected.doubt.bandwidth.tolist() == [1.0, 1.0]


def test_loads_that_no_run_measured_are_part_of_the_scatter() -> None:
    bare = [replace(run, min_avg_avail_cpu=math.nan, min_avg_avail_bw=math.nan) for run in MEASURED]
    predictor = RobustPredictor().fit(bare)
    expected = observed(BARE, predictor, 0.9)
    assert expected.request == BARE.request
    assert predict_expected(predictor, expected, 0.9).interval == predictor.predict(BARE.request).interval


def test_what_learns_idle_loads_is_asked_with_them() -> None:
    expected = observed(BARE, RidgeQuadratic().fit(MEASURED), 0.9)
    assert (expected.request, expected.doubt) == (BARE.request, None)


def test_the_power_of_runs_is_learned_with_the_loads_that_it_is_predicted_with() -> None:
    def metered(run: Run) -> Run:
        watts = 20.0 * run.processors * (0.2 + run.request.available_cpu)
        return replace(run, extra={"energy": str(watts * run.execution_time)})

    learned = [metered(run) for run in MEASURED]
    unmeasured = [replace(run, min_avg_avail_cpu=math.nan) for run in learned[20:]]
    for rest, error in ((learned[20:], 9.0), (unmeasured, 14.0)):
        found = evaluate(
            lambda _: MeteredPredictor(),
            [Group("made", "c8", tuple(learned[:20] + unmeasured), tuple(rest))],
            observed,
            learning=False,
            quantity="energy",
        ).summary()
        assert found["interval_coverage"] >= 0.8
        assert found["ppe_mean"] < error


@pytest.mark.parametrize("count", [10, 20])
def test_intervals_hold_runs_whose_loads_were_not_all_measured(count: int) -> None:
    held, error = [], []
    for seed in range(4):
        every = partly(runs(count + 40, seed=seed), seed)
        group = Group("made", "c8", tuple(every[:count]), tuple(every[count:]))
        found = evaluate(lambda _: RobustPredictor(), [group], observed, learning=False).summary()
        held.append(found["interval_coverage"])
        error.append(found["ppe_mean"])
    assert np.mean(held) >= 0.8
    assert np.mean(error) < 16.0
