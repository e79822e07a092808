"""The simulated grid of sites: no job is lost when a site fails, and who knows more does no worse on the whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.placement.grid import APPLICATIONS, Truth
from benchmarks.sites import workload
from benchmarks.sites.policies import POLICIES, Shipped
from benchmarks.sites.simulator import Grid
from benchmarks.sites.workload import LONGER, SITES, Jobs, grid_jobs
from metasched.predictors.contract import Predictor


@pytest.fixture(scope="module")
def jobs() -> Iterator[Jobs]:
    """A short stream whose models are the truth: the search for formulas takes too long here."""

    def true_models() -> dict[tuple[str, str], Predictor]:
        longer = {
            name: replace(each, work=LONGER * each.work, volume=LONGER * each.volume, messages=LONGER * each.messages)
            for name, each in APPLICATIONS.items()
        }
        return {(site.name, name): Truth(each, site.speed) for site in SITES for name, each in longer.items()}

    patched = pytest.MonkeyPatch()
    patched.setattr(workload, "models", true_models)
    yield grid_jobs(1, 120)
    patched.undo()


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
