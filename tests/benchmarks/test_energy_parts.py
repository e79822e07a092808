"""Policies that split what is missing to the oracle of the stream: the truth as a model, and futures that are drawn."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.energy_parts import ByDistribution, TrueModel
from benchmarks.energy_stream import CLOCKS, MEGAHERTZ, Cluster, at_all_clocks, came, clocked, held
from benchmarks.placement.grid import APPLICATIONS, Site, sites
from benchmarks.placement.stream import Job
from benchmarks.testbed.loading import grid_loading
from benchmarks.testbed.timeline import lowest
from metasched.predictors.abilities import expect_watts
from metasched.records import Settings


@pytest.fixture(scope="module")
def site() -> Site:
    return sites(3, grid_loading)[1]


@pytest.mark.parametrize("name", sorted(APPLICATIONS))
def test_the_true_model_is_the_truth_where_loads_stay(site: Site, name: str) -> None:
    now, nodes = 5000.0, (1, 4, 9, 12)
    still = held(site, site.measured(now))
    job = Job(0, name, 1.3 * APPLICATIONS[name].middle, now, 1.0)
    cpu, link = (min(float(every[node].at(now)) for node in nodes) for every in (still.cpu, still.link))
    for place in (0, len(CLOCKS) - 1):
        outcome = came(still, job, nodes, place, now)
        model = TrueModel(name, site.speed).under(Settings(frequency=MEGAHERTZ[place]))
        asked = np.array([job.problem_size]), np.array([4.0]), np.array([cpu]), np.array([link])
        time, watts = model.expect_many(*asked), expect_watts(model, *asked)
        assert watts is not None
        assert time[0] == pytest.approx(outcome.end - now, rel=1e-9)
        assert time[0] * watts[0] == pytest.approx(outcome.joules, rel=1e-9)


@pytest.mark.parametrize("name", sorted(APPLICATIONS))
@pytest.mark.parametrize("factor", [0.5, 1.3, 3.0])
def test_a_job_ends_at_each_clock_when_its_site_says(site: Site, name: str, factor: float) -> None:
    now, nodes = 5000.0, (1, 4, 9, 12)
    job = Job(0, name, factor * APPLICATIONS[name].middle, now, 1.05)
    times, _ = at_all_clocks(site, job, nodes, now)
    ends = [site.finish(clocked(name, clock), job.problem_size, nodes, now, job.noise) for clock in CLOCKS]
    np.testing.assert_allclose(now + times, ends, rtol=1e-12)


@pytest.mark.parametrize("factor", [0.3, 1.0, 4.0])
def test_a_job_ends_when_its_work_is_done(site: Site, factor: float) -> None:
    start, nodes, application = 5000.0, (1, 4, 9, 12), APPLICATIONS["cg"]
    n = factor * application.middle
    end = site.finish(application, n, nodes, start, 1.05)
    # A fine sum of the rate over all loads tells how much was done until then.
    moments = np.arange(start, end, 0.1) + 0.05
    cpu, link = (lowest([every[node] for node in nodes]).at(moments) for every in (site.cpu, site.link))
    rate = 1.0 / (1.05 * application.time(n, len(nodes), cpu * site.speed, link))
    assert 0.1 * rate.sum() == pytest.approx(1.0, abs=1e-3)


def test_futures_begin_with_the_loads_of_now_and_part_later(site: Site) -> None:
    policy, now = ByDistribution(5, 0.05), 20_000.0
    drawn = policy.futures(site, range(site.size), now, 3600.0)
    at_once = np.array([[float(each.cpu[node].at(now + 1e-6)) for node in range(site.size)] for each in drawn])
    later = np.array([[float(each.cpu[node].at(now + 3000.0)) for node in range(site.size)] for each in drawn])
    measured = np.array([float(site.cpu[node].at(now)) for node in range(site.size)])
    assert np.median(np.abs(np.median(at_once, axis=0) - measured)) < 0.03
    assert later.std(axis=0).mean() > 3.0 * at_once.std(axis=0).mean()


def test_the_choice_by_futures_is_on_free_nodes(site: Site) -> None:
    free = {0, 2, 5, 7, 11}
    job = Job(0, "md", APPLICATIONS["md"].middle, 9000.0, 1.0)
    found = ByDistribution(5, 0.05)(job, Cluster(site, set(free)), 9000.0, 2)
    assert found is not None
    assert len(set(found.nodes)) == 2
    assert set(found.nodes) <= free
