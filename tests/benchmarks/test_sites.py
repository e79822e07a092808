"""The simulated grid of sites: no job is lost when a site fails, and who knows more does no worse on the whole."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.sites import recorded_runs
from benchmarks.sites.policies import POLICIES, Shipped
from benchmarks.sites.recorded_runs import APPLICATIONS, PLATFORMS, PROCESSORS, REPEATED, TRAINED, record_site, sizes
from benchmarks.sites.simulator import Grid
from benchmarks.sites.workload import SITES, TIMES, Jobs, grid_jobs
from benchmarks.testbed.simulator import available, silent


@pytest.fixture(scope="module")
def jobs() -> Jobs:
    """A short stream."""
    return grid_jobs(1, 120)


@pytest.mark.parametrize("name", POLICIES)
def test_no_job_is_lost_when_a_site_fails(name: str, jobs: Jobs) -> None:
    grid = Grid(1, jobs)
    completion = grid.run(POLICIES[name](1))
    assert np.isfinite(completion).all()
    least = (jobs.time + 8000.0 * jobs.data / jobs.width).min(axis=0)
    assert (completion >= least - 1e-6).all()
    assert sum(len(place.ended) for place in grid.places) == 120


def test_the_same_stream_gives_the_same_result(jobs: Jobs) -> None:
    assert (Grid(1, jobs).run(Shipped(1)) == Grid(1, jobs).run(Shipped(1))).all()


def test_metasched_is_better_than_chance_and_no_better_than_it_could_be(jobs: Jobs) -> None:
    found = {name: float(Grid(1, jobs).run(POLICIES[name](1)).mean()) for name in ("random", "metasched")}
    assert found["metasched"] < found["random"]


@pytest.mark.parametrize("application", APPLICATIONS)
@pytest.mark.parametrize("site", PLATFORMS)
def test_every_run_that_a_job_may_be_is_recorded_and_none_is_learned(site: str, application: str) -> None:
    found = recorded_runs.recorded_runs()[site, application]
    asked, learned = sizes(APPLICATIONS[application])
    assert set(found.times) == {(size, count) for size in asked for count in PROCESSORS}
    repeated = 1 if PLATFORMS[site].loading == "dedicated" else REPEATED
    assert {len(times) for times in found.times.values()} == {repeated}
    trained = [(run.problem_size, run.processors) for run in found.training]
    assert sorted(trained) == sorted((size, count) for size in learned for count in TRAINED)
    assert not {size for size, _ in found.times} & {size for size, _ in trained}


def test_a_job_takes_recorded_times_and_nothing_between_them(jobs: Jobs) -> None:
    apart = []
    for place, site in enumerate(SITES):
        for job, application in enumerate(jobs.application):
            kind = (round(jobs.problem_size[job]), int(jobs.processors[job]))
            times = recorded_runs.recorded_runs()[site.name, application].times[kind]
            sums = [site.boot + k * times[0] + (TIMES - k) * times[-1] for k in range(TIMES + 1)]
            apart.append(np.abs(np.array(sums) / jobs.time[place, job] - 1.0).min())
    assert max(apart) < 1e-9


@pytest.mark.skipif(not available(), reason="SimGrid is not installed")
@pytest.mark.parametrize(("site", "application"), [("slurm-b", "cg"), ("cloud", "is")])
def test_simulating_again_gives_the_recorded_runs(site: str, application: str) -> None:
    again = record_site(site, APPLICATIONS[application], silent, 2)
    recorded = recorded_runs.recorded_runs()[site, application].training[:2]
    assert [run.execution_time for run in again] == pytest.approx([run.execution_time for run in recorded], rel=1e-4)
    assert [run.min_avg_avail_cpu for run in again] == [run.min_avg_avail_cpu for run in recorded]
