"""Causes of what a stream misses: models of which each part is another's, and policies asked at the same moments."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from metered_runs import made

from benchmarks.energy_causes import NO_DOUBT, Mixed, Watched, undoubting
from benchmarks.energy_stream import MEGAHERTZ, Choice, Cluster, Policy, simulate
from benchmarks.placement.grid import Site, sites
from benchmarks.placement.stream import Job, jobs
from benchmarks.testbed.loading import LOADINGS
from metasched.placement.ranking import slowdown
from metasched.predictors.abilities import clock_spread, energy_predictor, expect_watts, most_watts, under
from metasched.predictors.energy.predictor import MeteredPredictor
from metasched.records import Settings


@pytest.fixture(scope="module")
def site() -> Site:
    return sites(3, LOADINGS["grid"])[1]


def test_a_mixed_model_has_the_times_of_one_and_the_powers_of_another() -> None:
    one = MeteredPredictor().fit(made(30, seed=1))
    other = MeteredPredictor().fit([replace(run, execution_time=3.0 * run.execution_time) for run in made(30, seed=2)])
    asked = np.array([500.0, 1500.0]), np.array([2.0, 8.0]), np.array([0.6, 0.9]), np.array([90.0, 90.0])
    found, times, powers = (under(each, Settings(frequency=1500.0)) for each in (Mixed(one, other), one, other))
    # One by predictions, the other without their intervals, which round differently.
    np.testing.assert_allclose(found.expect_many(*asked), times.expect_many(*asked), rtol=1e-14)
    np.testing.assert_array_equal(clock_spread(found, 2000.0, *asked), clock_spread(times, 2000.0, *asked))
    for watts in (expect_watts, most_watts):
        np.testing.assert_array_equal(watts(found, *asked), watts(powers, *asked))  # type: ignore[arg-type]
    energy, power = energy_predictor(found), expect_watts(powers, *asked)
    assert energy is not None
    assert power is not None
    np.testing.assert_allclose(energy.expect_many(*asked), power * times.expect_many(*asked))


class Fixed(Policy):
    """Always the first free nodes at one clock; notes the limit's level of doubt."""

    def __init__(self, clock: int) -> None:
        super().__init__({})
        self._clock, self.levels = clock, list[float]()

    def __call__(self, job: Job, cluster: Cluster, now: float, processors: int) -> Choice | None:
        self.levels.append(slowdown.LEVEL)
        return Choice(tuple(sorted(cluster.free)[:processors]), self._clock, 1.0)


def test_other_policies_are_asked_at_the_moments_of_the_one_that_places(site: Site) -> None:
    stream = jobs(8, 3, 100.0)
    own, other = Fixed(len(MEGAHERTZ) - 1), Fixed(0)
    watched = Watched(own, {"slow": undoubting(other)})
    simulate(stream, site, watched, 3)
    assert set(own.levels) == {slowdown.LEVEL}
    assert set(other.levels) == {NO_DOUBT}
    fast, slow = (np.array(watched.outcomes[name]) for name in ("as shipped", "slow"))
    assert len(fast) == len(slow) == len(stream)
    assert np.all(slow[:, 0] > fast[:, 0])


def test_a_policy_without_a_choice_is_named(site: Site) -> None:
    cluster = Cluster(site, set(range(site.size)))
    watched = Watched(Fixed(0), {"idle": lambda *_: None})
    with pytest.raises(RuntimeError, match="idle has no choice for job 0"):
        watched(jobs(1, 3, 100.0)[0], cluster, 5000.0, 2)
