"""What keeps the ranker from the oracle of ``benchmarks.energy_stream``: forecasts of loads, decision rule, models.

Each policy knows the applications by the truth or by learned models, and the loads to come as they will be, by their
true distribution given what was seen until now, or by the daemon's forecasts. It decides by the plain rule of the
oracle, or as the ranker does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from rich.table import Table

from benchmarks.energy_stream import (
    ALLOWED,
    BEYOND,
    CLOCKS,
    COUNT,
    INTERVAL,
    LEAST_ENERGY,
    MEGAHERTZ,
    MEMORY,
    POLLS,
    PROCESSOR,
    Choice,
    Cluster,
    Oracle,
    Policy,
    Shipped,
    at_all_clocks,
    came,
    cap_of,
    clocked,
    held,
    learned,
    simulate,
)
from benchmarks.placement.grid import APPLICATIONS, Floats, Site, sites
from benchmarks.placement.stream import Job, jobs
from benchmarks.testbed.loading import GRID_CPU_DWELL, GRID_NETWORK, GRID_NETWORK_DWELL, LOADINGS, grid_cpu_level
from benchmarks.testbed.metered import STALLED
from benchmarks.testbed.timeline import Series
from metasched.placement.clusters.power_draw import together
from metasched.placement.ranking.objective import Objective
from metasched.predictors.columns import ByColumns, Columns
from metasched.predictors.contract import Predictions, Predictor
from metasched.records import Run, Settings

#: Futures drawn for each decision, and the normal quantile of the margin kept under a cap.
FUTURES, MARGIN = 24, 1.28
#: Changes of a load beyond its jitter, relative to the largest value; and steps that are searched for the last one.
JUMP, LOOKED_BACK = 0.045, 200
#: Draws a level of loads.
Level = Callable[[np.random.Generator], float]
#: Makes a policy for the slowdown that is allowed, or for a cap (W).
Maker = Callable[[float | None, float | None], Policy]


@dataclass(frozen=True)
class TrueModel(ByColumns):
    """Time and energy of an application as they are under loads that stay, with the contract of a predictor."""

    application: str
    speed: float
    clock: float = 1.0
    name: str = "truth"

    def fit(self, runs: Iterable[Run]) -> TrueModel:
        """Nothing is left to learn."""
        return self

    def learn(self, run: Run) -> None:
        """Nothing is left to learn."""

    def under(self, settings: Settings) -> TrueModel:
        """The truth at another clock."""
        megahertz = settings.frequency
        return self if megahertz is None else replace(self, clock=CLOCKS[MEGAHERTZ.index(megahertz)])

    def _predicted(self, columns: Columns, level: float) -> Predictions:
        n, p, cpu, bandwidth = columns
        time = clocked(self.application, self.clock).time(n, p, cpu * self.speed, bandwidth)
        return Predictions(time, time, time, level)

    def energy_predictor(self) -> TrueEnergy:
        """What tells its joules."""
        return TrueEnergy(self)


@dataclass(frozen=True)
class TrueEnergy(ByColumns):
    """The joules of a :class:`TrueModel`; its power is known without doubt."""

    model: TrueModel
    name: str = "energy"

    def fit(self, runs: Iterable[Run]) -> TrueEnergy:
        """Nothing is left to learn."""
        return self

    def learn(self, run: Run) -> None:
        """Nothing is left to learn."""

    def under(self, settings: Settings) -> TrueEnergy:
        """The truth at another clock."""
        return TrueEnergy(self.model.under(settings))

    def _predicted(self, columns: Columns, level: float) -> Predictions:
        n, p, cpu, _ = columns
        of = self.model
        time = of.expect_many(*columns)
        plain, memory = APPLICATIONS[of.application], MEMORY[of.application]
        idle, full = PROCESSOR.watts(of.clock)
        work = replace(plain, volume=0.0, messages=0.0).time(n, p, of.speed, 1.0)
        busy = work * ((1.0 - memory) / of.clock + STALLED * memory)
        if of.application in POLLS:
            busy = busy + np.maximum(cpu * time - work * ((1.0 - memory) / of.clock + memory), 0.0)
        joules = p * (idle * time + (full - idle) * busy)
        return Predictions(joules, joules, joules, level)


class ByDistribution(Policy):
    """The truth about applications, and futures drawn from the true distribution of grid loads given those until now.

    Least expected energy of the choices that are within the slowdown of the fastest on the mean; or the fastest whose
    power is below a cap with a margin.
    """

    def __init__(self, seed: int, max_slowdown: float | None = None, cap: float | None = None) -> None:
        super().__init__({})
        self._rng = np.random.default_rng([seed, 13])
        self._max_slowdown, self._cap = max_slowdown, cap

    def __call__(self, job: Job, cluster: Cluster, now: float, processors: int) -> Choice | None:
        """The best of the clocks on the nodes with most to spare on the mean of the futures."""
        site, free = cluster.site, sorted(cluster.free)
        length = came(held(site, site.measured(now)), job, free[:processors], 0, now).end - now
        futures = self.futures(site, free, now, 3.0 * length)
        slow, narrow = (
            np.mean([[1.0 / float(series[node].mean(now, now + length)) for node in free] for series in every], axis=0)
            for every in ([each.cpu for each in futures], [each.link for each in futures])
        )
        sets = {tuple(free[index] for index in np.argsort(of)[:processors].tolist()) for of in (slow, narrow)}
        time, joules, choices = list[Floats](), list[Floats](), list[Choice]()
        for nodes in sorted(sets):
            outcomes = np.array([at_all_clocks(each, job, nodes, now) for each in futures])
            for place in range(len(CLOCKS)):
                own = outcomes[:, :, place]
                time.append(own[:, 0])
                joules.append(own[:, 1])
                watts = own[:, 1] / own[:, 0]
                choices.append(Choice(nodes, place, float(watts.mean()), MARGIN * float(watts.std())))
        mean = np.mean(time, axis=1)
        allowed = np.ones(len(choices), dtype=bool)
        if self._cap is not None:
            idle = PROCESSOR.watts(CLOCKS[-1])[0]
            others = list(cluster.running.values())
            besides = sum(each.watts for each in others) + idle * (len(free) - processors)
            own = [[each.doubt for each in (*others, choice)] for choice in choices]
            margin = np.array([together(sum(each), float(np.sum(np.square(each)))) for each in own])
            allowed = np.array([each.watts for each in choices]) + besides + margin <= self._cap
            if not allowed.any():
                return None
        fastest = int(np.argmin(np.where(allowed, mean, np.inf)))
        if self._max_slowdown is None:
            return choices[fastest]
        allowed &= mean <= (1.0 + self._max_slowdown) * mean[fastest]
        best = int(np.argmin(np.where(allowed, np.mean(joules, axis=1), np.inf)))
        return self.compared(job, site, now, choices[best], choices[fastest])

    def futures(self, site: Site, nodes: Sequence[int], now: float, length: float) -> list[Site]:
        """The site with possible futures of some nodes."""
        cpu, link = ([[each] * FUTURES for each in every] for every in (site.cpu, site.link))
        for node in nodes:
            cpu[node] = self._drawn(site.cpu[node], now, length, GRID_CPU_DWELL, grid_cpu_level)
            link[node] = self._drawn(site.link[node], now, length, GRID_NETWORK_DWELL, _width(site.model.bandwidth))
        pairs = zip(zip(*cpu, strict=True), zip(*link, strict=True), strict=True)
        return [replace(site, cpu=own, link=width) for own, width in pairs]

    def _drawn(
        self, series: Series, now: float, length: float, dwell: tuple[float, float], level: Level
    ) -> list[Series]:
        """The level that holds now for what may be left of it, and others after it: as many as there are futures."""
        until = int(np.searchsorted(series.times, now, side="right"))
        since = max(0, until - LOOKED_BACK)
        recent = series.values[since:until]
        jumps = np.flatnonzero(np.abs(np.diff(recent)) > JUMP * recent.max())
        first = int(jumps[-1]) + 1 if jumps.size else 0
        elapsed = max(now - float(series.times[since + first]), 1e-9)
        # The dwell of this level is log-normal, given that it has lasted until now.
        passed = float(scipy.special.ndtr(np.log(elapsed / dwell[0]) / dwell[1]))
        whole = np.minimum(passed + (1.0 - passed) * self._rng.uniform(size=FUTURES), 1.0 - 1e-12)
        left = np.maximum(dwell[0] * np.exp(dwell[1] * scipy.special.ndtri(whole)) - elapsed, 0.0)
        here, found = float(recent[first:].mean()), []
        for change in (now + left).tolist():
            times, values = [0.0], [here]
            while change < now + length:
                times.append(change)
                values.append(level(self._rng))
                change += float(self._rng.lognormal(np.log(dwell[0]), dwell[1]))
            found.append(Series(np.array(times), np.array(values)))
        return found


def _width(bandwidth: float) -> Level:
    return lambda rng: bandwidth * float(rng.uniform(*GRID_NETWORK))


#: Headings of the rows of :func:`rows`.
HEADINGS = (
    "seed",
    "applications",
    "loads to come",
    "rule",
    "saved",
    "share",
    "job by job",
    "share",
    "mean slowdown",
    f"beyond {BEYOND:.0%}",
    "under the cap s",
    "above it",
)


def parts_of(seeds: Sequence[int]) -> Table:
    """What each policy saves and how it fares under the cap, under grid loads, for each seed."""
    table = Table(title=f"{COUNT} jobs under grid loads: what is known, and what is reached with it")
    for heading in HEADINGS:
        table.add_column(heading, justify="right")
    for seed in seeds:
        for row in rows(seed):
            table.add_row(*row)
    return table


def rows(seed: int) -> Iterator[tuple[str, ...]]:
    """The rows of one stream, the oracle's first: shares are of what it saves."""
    site, stream = sites(seed, LOADINGS["grid"])[1], jobs(COUNT, seed, INTERVAL)
    cap = cap_of(site)
    plain = simulate(stream, site, Shipped(learned(seed, "grid"), Objective()), seed)
    most: tuple[float, float] | None = None
    for words, made in policies(seed, site).items():
        within = made(ALLOWED, None)
        totals = simulate(stream, site, within, seed)
        saved = 1.0 - totals.joules / plain.joules, within.saved_job_by_job
        most = most or saved
        shares = [text for own, of in zip(saved, most, strict=True) for text in (f"{own:.1%}", f"{own / of:.0%}")]
        under, slow = simulate(stream, site, made(None, cap), seed), np.array(within.slowdowns)
        beyond, above = (slow > BEYOND).mean(), under.above(cap, site.size)
        yield (
            str(seed), *words, *shares, f"{slow.mean():.1%}", f"{beyond:.1%}", f"{under.completion:.0f}", f"{above:.2%}"
        )  # fmt: skip


def policies(seed: int, site: Site) -> dict[tuple[str, str, str], Maker]:
    """Makers of policies from the slowdown that is allowed, or the cap, by what they know and how they decide."""

    def truth() -> dict[str, TrueModel]:
        return {name: TrueModel(name, site.speed) for name in APPLICATIONS}

    def ranker(models: Callable[[], Mapping[str, Predictor]], *, foreseeing: bool) -> Maker:
        def made(max_slowdown: float | None, cap: float | None) -> Policy:
            objective = Objective() if max_slowdown is None else LEAST_ENERGY
            return Shipped(models(), objective, max_slowdown, cap, foreseeing=foreseeing)

        return made

    def of_runs() -> Mapping[str, Predictor]:
        return learned(seed, "grid")

    return {
        ("true", "true", "oracle's"): Oracle,
        ("true", "distribution", "expectation"): lambda *asked: ByDistribution(seed, *asked),
        ("true", "forecast", "oracle's"): lambda *asked: Oracle(*asked, forecasting=True),
        ("true", "true", "ranker's"): ranker(truth, foreseeing=True),
        ("true", "forecast", "ranker's"): ranker(truth, foreseeing=False),
        ("learned", "true", "ranker's"): ranker(of_runs, foreseeing=True),
        ("learned", "forecast", "ranker's"): ranker(of_runs, foreseeing=False),
    }
