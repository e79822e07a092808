"""The four sites, their own jobs, and the grid's jobs: what is true of them, and what each site's models predict."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from benchmarks.sites.recorded_runs import APPLICATIONS, PROCESSORS, SIZES, recorded_runs, sizes
from metasched.predictors.contract import Predictor
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.records import Request

Floats = NDArray[np.float64]
#: Jobs of the grid, mean seconds between two arrivals, how likely one is a burst, and of how many jobs within 10 s.
JOBS, INTERVAL, BURSTS, BURST = 1000, 110.0, 0.04, (5, 20)
#: By how much users ask for more time than the slowest site needs.
REQUESTED = (1.3, 3.0)
#: How many times a job runs its program, one after the other.
TIMES = 10
#: Share of the jobs without data, and the largest data of the others (GB).
DATALESS, LARGEST = 0.3, 50.0
#: Spread (log) of the bandwidth from one transfer to the next, and of what a site expects of its own users' jobs.
VARYING, EXPECTED = 0.15, 0.5
#: How long a failure lasts (s), and after which part of the jobs it begins.
FAILURE, FAILS_AFTER = 3600.0, 0.4


@dataclass(frozen=True)
class SiteModel:
    """A site.

    Parameters
    ----------
    name : of the site.
    processors : how many, each a node of its own.
    wide : to bring data there (Mbit/s).
    backfills : whether jobs may start before the first in line; Slurm does so, Grid Engine without reservations not.
    own : share of its processors that its own users' jobs take.
    boot : seconds until a server works (s).
    clock : what its clock is off by (s).
    """

    name: str
    processors: int
    wide: float
    backfills: bool = True
    own: float = 0.0
    boot: float = 0.0
    clock: float = 0.0


SITES = (
    SiteModel("slurm-a", 64, 2000.0, own=0.35, clock=7200.0),
    SiteModel("slurm-b", 48, 600.0, own=0.40, clock=-86_400.0),
    SiteModel("gridengine", 96, 900.0, backfills=False, own=0.30),
    SiteModel("cloud", 64, 300.0, boot=90.0, clock=12.0),
)


@dataclass(frozen=True)
class Jobs:
    """Jobs by number; arrays of shape (jobs,), or (sites, jobs) where what is true differs from site to site.

    Parameters
    ----------
    arrival, processors, limit : when each comes (s), what it asks for, and for how long (s).
    application, problem_size : what each runs; applications are empty for jobs of a site's own users.
    time, expected, low, high : seconds that it takes, and that each site expects, with the ends of the interval.
    data : GB.
    width : bandwidth that its transfer meets (Mbit/s).
    """

    arrival: Floats
    processors: NDArray[np.int64]
    limit: Floats
    application: tuple[str, ...]
    problem_size: Floats
    time: Floats
    expected: Floats
    low: Floats
    high: Floats
    data: Floats
    width: Floats


def grid_jobs(seed: int, count: int = JOBS) -> Jobs:
    """The stream of the grid.

    Parameters
    ----------
    seed : of all that is drawn.
    count : how many jobs.
    """
    random = np.random.default_rng([seed, 1])
    arrival: list[float] = []
    now = 3600.0
    while len(arrival) < count:
        now += float(random.exponential(INTERVAL))
        size = int(random.integers(*BURST)) if random.random() < BURSTS else 1
        arrival += sorted(now + random.uniform(0.0, 10.0, size)) if size > 1 else [now]
    arrival = sorted(arrival[:count])
    names = tuple(str(name) for name in random.choice(list(APPLICATIONS), count))
    processors = random.choice(PROCESSORS, count)
    chosen = random.integers(SIZES, size=count)
    n = [sizes(APPLICATIONS[name])[0][which] for name, which in zip(names, chosen, strict=True)]
    time = np.empty((len(SITES), count))
    expected, low, high = (np.empty_like(time) for _ in range(3))
    for place, site in enumerate(SITES):
        for job, kind in enumerate(zip(names, n, processors.tolist(), strict=True)):
            name, *key = kind
            recorded = recorded_runs()[site.name, name].times[key[0], key[1]]
            time[place, job] = site.boot + random.choice(recorded, TIMES).sum()
            expected[place, job], low[place, job], high[place, job] = (
                site.boot + TIMES * seconds for seconds in expected_time(site.name, *kind)
            )
    data = np.where(random.random(count) < DATALESS, 0.0, random.uniform(0.0, LARGEST, count))
    width = np.array([[site.wide] for site in SITES]) * random.lognormal(0.0, VARYING, (len(SITES), count))
    limit = time.max(axis=0) * random.uniform(*REQUESTED, count)
    return Jobs(
        np.array(arrival), processors, limit, names, np.array(n, dtype=float), time, expected, low, high, data, width
    )


def own_jobs(seed: int, place: int, until: float) -> Jobs:
    """The jobs of a site's own users until a time (s).

    Parameters
    ----------
    seed : of all that is drawn.
    place : of the site.
    until : seconds.
    """
    random, site = np.random.default_rng([seed, 2, place]), SITES[place]
    middle, mean_width = 1500.0, 5.0
    mean = mean_width * middle * np.exp(0.5)
    count = int(until * site.own * site.processors / mean)
    arrival = np.sort(random.uniform(0.0, until, count))
    time = middle * random.lognormal(0.0, 1.0, count)
    processors = random.choice((1, 2, 4, 8, 10), count)
    limit, expected = time * random.uniform(1.2, 5.0, count), time * random.lognormal(0.0, EXPECTED, count)
    none = np.zeros(count)
    true, known = (np.tile(each, (len(SITES), 1)) for each in (time, np.minimum(expected, limit)))
    return Jobs(arrival, processors, limit, ("",) * count, none, true, known, known, known, none, none)


@cache
def model(site: str, application: str) -> Predictor:
    """A site's model of an application, from sixteen runs there."""
    return RobustPredictor(application, site).fit(recorded_runs()[site, application].training)


@cache
def expected_time(site: str, application: str, n: int, processors: int) -> tuple[float, float, float]:
    """What a site expects of a run on nodes with the loads that its earlier runs met: time, and its interval (s)."""
    loads = recorded_runs()[site, application].loads(processors)
    found = model(site, application).predict(Request(n, processors, *loads))
    return found.execution_time, found.interval.low, found.interval.high
