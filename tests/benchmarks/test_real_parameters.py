"""Real jobs with parameters: runs of one configuration are all learned, or all predicted."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.real_parameters import split
from metasched.records import PARAMETER, Run


def test_no_configuration_is_both_learned_and_predicted() -> None:
    one = Run("sort", "m4", 1000.0, 2, 1.0, 1000.0, 10.0, extra={f"{PARAMETER}length": "20"})
    made = [replace(one, processors=count) for count in (2, 4, 6, 8)]
    made += [replace(run, extra={f"{PARAMETER}length": "40"}) for run in made]
    runs = [replace(run, execution_time=time) for time in (9.0, 10.0, 11.0) for run in made]
    for seed in (1, 2, 3):
        learned, asked = split(runs, 9, seed, "configurations")
        assert [len(part) for part in (*learned, *asked)] == [3] * len(made)
        assert len(learned) == 3
        assert not {run.request for part in learned for run in part} & {run.request for part in asked for run in part}


def test_single_runs_are_drawn_as_many_as_are_asked_for() -> None:
    runs = [Run("sort", "m4", 1000.0, 2, 1.0, 1000.0, float(time)) for time in range(1, 21)]
    learned, asked = split(runs, 15, 1, "runs")
    assert [len(part) for part in learned] == [1] * 15
    assert sorted(run.execution_time for (run,) in (*learned, *asked)) == [run.execution_time for run in runs]
