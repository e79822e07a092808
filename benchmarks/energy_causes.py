"""What each choice of the shipped stream misses: other knowledge and other rules, asked at the same moments.

Two policies that place a whole stream soon have other queues, so that a part of what they save is chance. Here the
stream of ``benchmarks.energy_stream`` is placed by what is shipped. At each start the others say what they would do
with the same free nodes, and what would truly come of that is compared: with the choice of the policy min-time, in
joules, and with the fastest there truly was, in time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from unittest import mock

import numpy as np
from rich.table import Table

from benchmarks.energy_parts import ByDistribution, TrueModel
from benchmarks.energy_stream import (
    ALLOWED,
    BEYOND,
    COUNT,
    INTERVAL,
    LEAST_ENERGY,
    Choice,
    Cluster,
    Oracle,
    Policy,
    Shipped,
    came,
    learned,
    simulate,
)
from benchmarks.placement.grid import APPLICATIONS
from benchmarks.placement.grid import sites as sites_of
from benchmarks.placement.stream import Job, jobs
from benchmarks.testbed.loading import LOADINGS
from metasched.arrays import Floats
from metasched.placement.ranking import slowdown
from metasched.placement.ranking.objective import Objective
from metasched.predictors.abilities import clock_spread, expect_watts, most_watts, under
from metasched.predictors.columns import ByColumns, Columns
from metasched.predictors.contract import Predictions, Predictor
from metasched.records import Settings

#: A level of doubt in the limit of slowdowns at which nothing is kept for it.
NO_DOUBT = 1e-9
SHIPPED, ORACLE = "as shipped", "oracle"
#: Chooses for a job on a cluster at a moment (s), on so many processors.
Chooser = Callable[[Job, Cluster, float, int], Choice | None]


@dataclass(frozen=True)
class Mixed(ByColumns):
    """The times of one model and the powers of another, with the contract of a predictor."""

    times: Predictor
    powers: Predictor
    name: str = "mixed"

    def under(self, settings: Settings) -> Mixed:
        """Both at another clock."""
        return Mixed(under(self.times, settings), under(self.powers, settings))

    def _predicted(self, columns: Columns, level: float) -> Predictions:
        return self.times.predict_many(*columns, level)

    def clock_spread(self, beside: float | None, n: Floats, p: Floats, cpu: Floats, bw: Floats) -> Floats:
        """The doubt of the times about the effect of the clock."""
        return clock_spread(self.times, beside, n, p, cpu, bw)

    def energy_predictor(self) -> MixedEnergy:
        """What tells its joules."""
        return MixedEnergy(self)


@dataclass(frozen=True)
class MixedEnergy(ByColumns):
    """The joules of a :class:`Mixed`."""

    model: Mixed
    name: str = "energy"

    def under(self, settings: Settings) -> MixedEnergy:
        """Both at another clock."""
        return MixedEnergy(self.model.under(settings))

    def _predicted(self, columns: Columns, level: float) -> Predictions:
        found, watts = self.model.predict_many(*columns, level), self.expect_watts(*columns)
        return Predictions(watts * found.execution_time, watts * found.low, watts * found.high, level)

    def expect_watts(self, n: Floats, p: Floats, cpu: Floats, bw: Floats) -> Floats:
        """The expected mean powers (W)."""
        watts = expect_watts(self.model.powers, n, p, cpu, bw)
        assert watts is not None
        return watts

    def most_watts(self, n: Floats, p: Floats, cpu: Floats, bw: Floats, level: float) -> Floats:
        """The upper ends of the intervals of mean powers (W)."""
        watts = most_watts(self.model.powers, n, p, cpu, bw, level)
        assert watts is not None
        return watts


class Watched(Policy):
    """Places by one policy, and notes what would come of the choices of others at the same moments.

    Parameters
    ----------
    own : the policy that places.
    others : by name.

    Attributes
    ----------
    outcomes : for each policy the time (s) and the joules of each job.
    """

    def __init__(self, own: Policy, others: Mapping[str, Chooser]) -> None:
        super().__init__(own.models)
        self._own, self._others = own, others
        self.outcomes: dict[str, list[tuple[float, float]]] = {name: [] for name in (SHIPPED, *others)}

    def __call__(self, job: Job, cluster: Cluster, now: float, processors: int) -> Choice | None:
        """The choice of its own policy."""
        chosen = self._own(job, cluster, now, processors)
        for name, other in {SHIPPED: lambda *_: chosen, **self._others}.items():
            choice = other(job, cluster, now, processors)
            if choice is None:
                raise RuntimeError(f"{name} has no choice for job {job.number}")
            found = came(cluster.site, job, choice.nodes, choice.clock, now)
            self.outcomes[name].append((found.end - now, found.joules))
        return chosen


def undoubting(policy: Policy) -> Chooser:
    """A policy that keeps nothing for doubt where it limits slowdowns."""

    def chosen(job: Job, cluster: Cluster, now: float, processors: int) -> Choice | None:
        with mock.patch.object(slowdown, "LEVEL", NO_DOUBT):
            return policy(job, cluster, now, processors)

    return chosen


def outcomes(seed: int, count: int = COUNT) -> dict[str, np.ndarray]:
    """Times (s) and joules of each job of a stream under grid loads by the choice of each policy, shape (count, 2)."""
    site, stream = sites_of(seed, LOADINGS["grid"])[1], jobs(COUNT, seed, INTERVAL)[:count]
    models = learned(seed, "grid")
    truth = {name: TrueModel(name, site.speed) for name in APPLICATIONS}

    def limited(known: Mapping[str, Predictor], *, foreseeing: bool = False) -> Policy:
        return Shipped(known, LEAST_ENERGY, ALLOWED, foreseeing=foreseeing)

    times = {name: Mixed(truth[name], models[name]) for name in APPLICATIONS}
    powers = {name: Mixed(models[name], truth[name]) for name in APPLICATIONS}
    own = limited(models)
    watched = Watched(
        own,
        {
            "min-time": Shipped(models, Objective()),
            "fastest": Oracle(),
            "times known": limited(times),
            "powers known": limited(powers),
            "no doubt in the limit": undoubting(limited(models)),
            "times and powers known": limited(truth),
            "the same, no doubt": undoubting(limited(truth)),
            "the same, oracle's rule": Oracle(ALLOWED, forecasting=True),
            "the same, distribution of the loads": ByDistribution(seed, ALLOWED),
            "loads known": limited(models, foreseeing=True),
            "loads and times known": limited(times, foreseeing=True),
            "loads and powers known": limited(powers, foreseeing=True),
            "all known": limited(truth, foreseeing=True),
            ORACLE: Oracle(ALLOWED),
        },
    )
    simulate(stream, site, watched, seed)
    return {name: np.array(found) for name, found in watched.outcomes.items()}


def causes_of(seeds: Sequence[int], count: int = COUNT) -> Table:
    """What each policy saves against min-time at the same moments, for each seed and its first jobs.

    Parameters
    ----------
    seeds : of streams.
    count : jobs of each.
    """
    table = Table(title=f"{count} jobs under grid loads, placed as shipped: what others would have chosen")
    for heading in ("seed", "choice", "saved", "share", f"slower by more than {BEYOND:.0%}", "than the fastest"):
        table.add_column(heading, justify="left" if heading == "choice" else "right")
    for seed in seeds:
        found = outcomes(seed, count)
        plain, fastest = found.pop("min-time"), found.pop("fastest")
        most = plain[:, 1].sum() - found[ORACLE][:, 1].sum()
        for name, (seconds, joules) in ((name, each.T) for name, each in found.items()):
            saved = plain[:, 1].sum() - joules.sum()
            late = [f"{(seconds > (1.0 + BEYOND) * each[:, 0]).mean():.1%}" for each in (plain, fastest)]
            table.add_row(str(seed), name, f"{saved / plain[:, 1].sum():.1%}", f"{saved / most:.0%}", *late)
    return table
