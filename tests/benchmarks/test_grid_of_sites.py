"""The grid of clusters: every job runs once, copies do not linger, and known run times beat chance."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.replay.grid import BASE, KNOWN, POLICIES, SEVERAL, Grid, Run, Site, closed, grid_of
from benchmarks.replay.made_log import made_log
from metasched.history.job_log import JobLog
from metasched.history.replay import Policy, replay
from metasched.history.run_times.simple import Requests

DAY = 86_400.0


@pytest.fixture(scope="module")
def grid() -> Grid:
    logs = [made_log(250, seed=seed, processors=size, load=0.8) for seed, size in ((1, 64), (2, 32))]
    return grid_of(logs, [64, 32], [1.0, 0.5], 0.0, 4 * DAY)


@pytest.mark.parametrize("age", [0.0, 60.0])
@pytest.mark.parametrize("policy", POLICIES)
def test_every_job_runs_once_under_every_policy(grid: Grid, policy: str, age: float) -> None:
    run = Run(grid, policy, age)
    done = run.run()
    assert np.isfinite(done.wait).all()
    assert (done.wait >= 0).all()
    assert [site.free for site in run.sites] == list(grid.processors)
    assert not any(site.waiting or site.started for site in run.sites)


def test_a_grid_of_one_cluster_is_that_cluster() -> None:
    log = made_log(300, seed=3)
    alone = replay(log, 64, Policy.easy, Requests(log))
    grid = grid_of([log], [64], [1.0], 0.0, 1e12)
    for policy in (BASE, SEVERAL, KNOWN):
        assert Run(grid, policy, 0.0).run().wait.tolist() == alone.wait.tolist()


def test_known_run_times_beat_chance(grid: Grid) -> None:
    outcomes = {policy: Run(grid, policy, 0.0).run() for policy in ("random", BASE, KNOWN)}
    assert outcomes[KNOWN].response.mean() < outcomes["random"].response.mean()
    assert closed(outcomes, KNOWN, lambda done: float(done.response.mean())) in ("100%", "-")


def test_a_withdrawn_job_leaves_no_trace() -> None:
    site = Site(4)
    for job, width in enumerate([4, 3, 1]):
        site.submit(job, width, 100.0, job, job)
    assert site.schedule(0.0) == [0]
    assert site.wanted() == 400.0
    site.withdraw(1)
    site.end(0)
    assert site.schedule(100.0) == [2]
    assert site.free == 3
    assert site.idle(3)


def test_bursts_move_a_hundred_of_a_thousand_jobs_together() -> None:
    count = 1500
    ones = np.ones(count)
    log = JobLog(np.arange(count, dtype=float), ones, ones.astype(np.int64), ones)
    submit = grid_of([log], [4], [1.0], 0.0, 1e9, bursts=True).log.submit_time
    assert (submit[:100] == 0.0).all()
    assert (submit[1000:1100] == 1000.0).all()
    assert submit[100:1000].tolist() == list(range(100, 1000))
