from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metasched.predictors.phases.profile import WorkProfile
from metasched.records import PhaseMark
from tests.predictors.phases.two_phases import campaign


def marks(run, phase: str):
    return [mark for mark in run.marks if mark.phase == phase]


@settings(max_examples=20, deadline=None)
@given(
    slope=st.floats(-1.8, 1.8),
    level=st.floats(0.1, 100.0),
    counts=st.lists(st.sampled_from([2, 4, 8, 6]), min_size=8, max_size=12),
)
def test_a_linear_density_is_found_whatever_the_level_of_each_run_and_its_cpus(slope, level, counts) -> None:
    rng = np.random.default_rng(1)
    density = lambda u: 1.0 + slope * (u - 0.5)  # noqa: E731
    runs = []
    for count in [8, *counts]:
        cpu = rng.uniform(0.3, 1.0, count)
        work = level * rng.uniform(0.5, 2.0) * density((np.arange(count) + 0.5) / count)
        runs.append([PhaseMark("p", k, float(cpu[k]), 90.0, float(work[k] / cpu[k])) for k in range(count)])
    share = WorkProfile.of(runs).share(np.arange(8), 8)
    assert share == pytest.approx(density((np.arange(8) + 0.5) / 8), rel=0.05)


def test_shares_of_an_even_division_average_to_1() -> None:
    profile = WorkProfile.of([marks(run, "b") for run in campaign(20, 500, 5000)])
    for count in (1, 2, 8, 16):
        assert profile.share(np.arange(count), count).mean() == pytest.approx(1.0)


def test_phases_that_wait_are_told_from_phases_that_do_not() -> None:
    runs = campaign(20, 500, 5000)
    for phase, alone in (("a", False), ("b", True)):
        each = [marks(run, phase) for run in runs]
        assert WorkProfile.of(each).explains(each) is alone


def test_runs_on_one_processor_say_nothing_of_the_profile() -> None:
    runs = [marks(run, "b") for run in campaign(5, 500, 5000, counts=(1,))]
    assert WorkProfile.of(runs).share(np.arange(4), 4).tolist() == [1.0] * 4


def test_effective_cpu_stays_a_fraction() -> None:
    profile = WorkProfile(np.array([0.1, 1.9]))
    assert np.all(profile.effective_cpu(np.ones(8), np.arange(8), 8) <= 1.0)


@pytest.mark.parametrize("processes", range(1, 65))
def test_free_processors_are_whole_ones_to_work_that_is_shared_evenly(processes: int) -> None:
    effective = WorkProfile.even().effective_cpu(np.ones(processes), np.arange(processes), processes)
    assert effective.max() <= 1.0
    assert effective == pytest.approx(np.ones(processes))
