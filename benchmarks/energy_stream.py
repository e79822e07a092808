"""A stream of jobs on a cluster with ten clocks: least energy within a slowdown, and a cap of power, beside oracles.

The cluster is the middle one of ``benchmarks.placement.grid``, dedicated or under grid loads, its processors those of
the testbed's ``amd`` (``benchmarks.testbed.metered``): leakage with V^3, V^2 f while they work, less while they wait
for memory; in half of the applications processes poll while they wait for messages. Models learn from 60 runs of each
application at two of the clocks, on other loads, and from each job that ends. Each job says how many processors it
takes; chosen are its nodes and its clock. The oracle knows the loads to come, and the time and the joules of every
choice. Beside it stands one that knows the time and the joules under any loads, but of the loads to come only what the
daemon's forecasts tell: what it saves is what could be saved with perfect models.
"""

from __future__ import annotations

import heapq
import itertools
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from rich.table import Table

from benchmarks.placement.grid import APPLICATIONS, HORIZON, NEAR, Application, Floats, Site, sites
from benchmarks.placement.stream import Job, jobs
from benchmarks.testbed.loading import LOADINGS
from benchmarks.testbed.metered import METER_ERROR, PROCESSORS, STALLED
from benchmarks.testbed.timeline import Series, lowest
from metasched.blocks.entry import Entry, Kind, Quantity
from metasched.placement.clusters.constraints import Constraints
from metasched.placement.clusters.running_jobs import RunningJob
from metasched.placement.clusters.state import ClusterState
from metasched.placement.loads.counted import Forecast, Loads
from metasched.placement.ranking.objective import Objective
from metasched.placement.ranking.query import InfeasibleError, Question
from metasched.placement.ranking.ranker import rank
from metasched.predictors.contract import Predictor
from metasched.predictors.energy.predictor import MeteredPredictor
from metasched.records import Placement, Run, Settings

#: Jobs, mean seconds between two of them, and seeds that design and judge. Every 80 s, as first tried, is more than the
#: cluster does under the cap, whoever places them; 4159 was seen with that. The first of a kind is run by default.
COUNT, INTERVAL = 500, 100.0
DESIGNED, JUDGED = (1, 2, 3), (4160,)
#: The slowdown that is allowed, and the one that one job in twenty may exceed.
ALLOWED, BEYOND = 0.05, 0.07
#: The cap, between what the cluster draws idle (0) and with all processors at work (1).
CAP = 0.55
#: Share of the computation at the highest clock that is the memory's; applications whose waiting processes poll.
MEMORY = {"eigen": 0.15, "fft": 0.4, "cg": 0.6, "md": 0.05, "poisson": 0.55, "is": 0.3, "ssor": 0.5}
POLLS = frozenset({"cg", "poisson", "is"})
PROCESSOR = PROCESSORS["amd"]
#: Clocks relative to the highest; training runs have two of them.
CLOCKS = (0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)
LEARNED = (3, 9)
MEGAHERTZ = tuple(clock * PROCESSOR.megahertz for clock in CLOCKS)
LEAST_ENERGY = Objective(time=0.0, energy=1.0)


@dataclass(frozen=True)
class Choice:
    """Nodes and clock (place in :data:`CLOCKS`) of a job, its expected power, and what it is more at most (W)."""

    nodes: tuple[int, ...]
    clock: int
    watts: float
    doubt: float = 0.0


@dataclass(frozen=True)
class Came:
    """What a choice comes to: its end (s) and its joules."""

    end: float
    joules: float


@dataclass
class Cluster:
    """The cluster at one moment: free nodes, and the jobs that run with what they were thought to draw."""

    site: Site
    free: set[int]
    running: dict[int, Choice] = field(default_factory=dict)


class Policy(ABC):
    """Chooses nodes and clock of jobs.

    Parameters
    ----------
    models : of each application, which learn the jobs that end.
    """

    def __init__(self, models: Mapping[str, Predictor]) -> None:
        self.models = models
        #: Slowdown of each job, and its joules, against what it thought the fastest choice at the same moment.
        self.slowdowns: list[float] = []
        self.joules: list[tuple[float, float]] = []

    @property
    def saved_job_by_job(self) -> float:
        """What was saved against the fastest choices at the same moments: the streams of two policies soon differ."""
        fastest, taken = np.sum(self.joules, axis=0)
        return float(1.0 - taken / fastest)

    def compared(self, job: Job, site: Site, now: float, taken: Choice, fastest: Choice) -> Choice:
        """The choice that is taken, after what comes of it was noted beside what would have come of the fastest."""
        own, fast = (came(site, job, each.nodes, each.clock, now) for each in (taken, fastest))
        self.slowdowns.append((own.end - now) / (fast.end - now) - 1.0)
        self.joules.append((fast.joules, own.joules))
        return taken

    @abstractmethod
    def __call__(self, job: Job, cluster: Cluster, now: float, processors: int) -> Choice | None:
        """The choice for a job that could start now on a number of processors; None lets it wait."""


def cap_of(site: Site) -> float:
    """The cap of the cluster (W)."""
    idle, full = PROCESSOR.watts(1.0)
    return site.size * (idle + CAP * (full - idle))


def clocked(name: str, clock: float) -> Application:
    """An application at a clock relative to the highest."""
    plain = APPLICATIONS[name]
    return replace(plain, work=plain.work * ((1.0 - MEMORY[name]) / clock + MEMORY[name]))


def came(site: Site, job: Job, nodes: Sequence[int], place: int, now: float) -> Came:
    """What really comes of a job on some nodes at a clock."""
    times, joules = at_all_clocks(site, job, nodes, now)
    return Came(now + float(times[place]), float(joules[place]))


def at_all_clocks(site: Site, job: Job, nodes: Sequence[int], now: float) -> tuple[Floats, Floats]:
    """Times (s) and joules of a job on some nodes at each of :data:`CLOCKS`."""
    plain, memory, clocks = APPLICATIONS[job.application], MEMORY[job.application], np.array(CLOCKS)
    scale = (1.0 - memory) / clocks + memory
    span = NEAR
    while (seconds := _seconds(site, job, nodes, (now, now + span), scale)).max() > span:
        span *= 8.0
    work = job.noise * replace(plain, volume=0.0, messages=0.0).time(job.problem_size, len(nodes), site.speed, 1.0)
    busy = work * ((1.0 - memory) / clocks + STALLED * memory)
    if job.application in POLLS:
        own = np.min([site.cpu[node].mean(now, now + seconds) for node in nodes], axis=0)
        busy = busy + np.maximum(np.clip(own, 0.01, 1.0) * seconds - work * scale, 0.0)
    idle, full = np.array([PROCESSOR.watts(clock) for clock in CLOCKS]).T
    return seconds, len(nodes) * (idle * seconds + (full - idle) * busy)


def _seconds(site: Site, job: Job, nodes: Sequence[int], span: tuple[float, float], scale: Floats) -> Floats:
    """Times (s) with computations that take so many times as long, right if they are within the span (s)."""
    plain = APPLICATIONS[job.application]
    cpu, link = (lowest([every[node].between(*span) for node in nodes]) for every in (site.cpu, site.link))
    inside = np.union1d(cpu.times, link.times)
    moments = np.append(span[0], inside[inside > span[0]])
    asked = job.problem_size, len(nodes), cpu.at(moments) * site.speed, link.at(moments)
    computing = replace(plain, volume=0.0, messages=0.0).time(*asked)
    time = job.noise * (scale[:, None] * computing + replace(plain, work=0.0).time(*asked))
    done = np.cumsum(np.diff(moments) / time[:, :-1], axis=1)
    done = np.concatenate([np.zeros((len(scale), 1)), done], axis=1)
    last = np.sum(done <= 1.0, axis=1) - 1
    each = np.arange(len(scale))
    return np.asarray(moments[last] + (1.0 - done[each, last]) * time[each, last] - span[0])


def run_of(site: Site, job: Job, nodes: Sequence[int], place: int, start: float, outcome: Came, error: float) -> Run:
    """The run as it is recorded."""
    seen = site.run(job.application, job.problem_size, nodes, start, outcome.end)
    extra = {
        "energy": repr(outcome.joules * error), "energy_covers": "node", "frequency": repr(MEGAHERTZ[place]),
    }  # fmt: skip
    return replace(seen, extra=extra)


def learned(seed: int, loading: str) -> dict[str, MeteredPredictor]:
    """Models of all applications from 60 runs each, on loads of their own."""
    rng = np.random.default_rng([seed, 7])
    site = sites(seed + 1000, LOADINGS[loading])[1]
    counts, found = (1,) * 20 + (2,) * 20 + (4,) * 10 + (8,) * 10, {}
    for name, application in APPLICATIONS.items():
        runs = []
        for count in counts:
            size = float(round(application.middle * 2.0 ** rng.uniform(-1, 1)))
            start = float(rng.uniform(3600.0, HORIZON / 2))
            job = Job(0, name, size, start, float(np.exp(rng.normal(0.0, 0.03))))
            nodes = tuple(rng.choice(site.size, count, replace=False).tolist())
            place = int(rng.choice(LEARNED))
            error = float(np.exp(rng.normal(0.0, METER_ERROR)))
            runs.append(run_of(site, job, nodes, place, start, came(site, job, nodes, place, start), error))
        found[name] = MeteredPredictor(name, site.name).fit(runs)
    return found


class Shipped(Policy):
    """The shipped ranker and models.

    Parameters
    ----------
    models : of each application; they learn the jobs that end.
    objective : of the choice.
    max_slowdown, cap : as ``rank`` takes them.
    foreseeing : whether the averages of the loads to come are known instead of forecast.
    """

    def __init__(
        self,
        models: Mapping[str, Predictor],
        objective: Objective,
        max_slowdown: float | None = None,
        cap: float | None = None,
        *,
        foreseeing: bool = False,
    ) -> None:
        super().__init__(models)
        self._objective, self._foreseeing = objective, foreseeing
        self._max_slowdown, self._cap = max_slowdown, cap
        #: Joules of each job by the best clock on the nodes that it was given.
        self._best_clocks: list[float] = []

    @property
    def share_on_its_nodes(self) -> float:
        """What was saved against the fastest choices, of what the best clocks would have saved on the same nodes."""
        fastest, taken = np.sum(self.joules, axis=0)
        return float((fastest - taken) / (fastest - sum(self._best_clocks)))

    def __call__(self, job: Job, cluster: Cluster, now: float, processors: int) -> Choice | None:
        """The best placement."""
        try:
            if self._max_slowdown is None:
                return _choice(cluster.site, self._best(job, cluster, now, processors, self._objective))
            # What slowdowns are measured against.
            fastest = self._best(job, cluster, now, processors, Objective())
            best = self._best(job, cluster, now, processors, self._objective, self._max_slowdown)
        except InfeasibleError:
            return None
        taken, least = (_choice(cluster.site, each) for each in (best, fastest))
        fast = came(cluster.site, job, least.nodes, least.clock, now)
        times, joules = at_all_clocks(cluster.site, job, taken.nodes, now)
        within = joules[times <= (1.0 + self._max_slowdown) * (fast.end - now)].tolist()
        self._best_clocks.append(min(within, default=fast.joules))
        return self.compared(job, cluster.site, now, taken, least)

    def _best(
        self,
        job: Job,
        cluster: Cluster,
        now: float,
        processors: int,
        objective: Objective,
        max_slowdown: float | None = None,
    ) -> Placement:
        site = cluster.site
        taken = np.array([node not in cluster.free for node in range(site.size)])
        idle = Quantity(PROCESSOR.watts(CLOCKS[-1])[0], "W", "given")
        state = replace(
            site.measured(now),
            processors=np.where(taken, 0, 1),
            jobs=taken.astype(np.int64),
            hardware=Entry("amd", Kind.cluster, "", {"idle_power": idle}),
        )
        running = [
            RunningJob(tuple(site.nodes[node] for node in each.nodes), (1,) * len(each.nodes), 1.0, 0.0,
                       power=each.watts, power_doubt=each.doubt)
            for each in cluster.running.values()
        ]  # fmt: skip
        question = Question(
            job.problem_size,
            Constraints(processors=(processors,), least_efficiency=0),
            objective,
            top=1,
            scope="top",
            curve=False,
            settings=tuple(Settings(frequency=each) for each in MEGAHERTZ),
            max_slowdown=max_slowdown,
            power_cap=self._cap,
            loads=Loads(_to_come(site, now) if self._foreseeing else site.outlook(now)),
            running={state.name: running},
        )
        return rank([state], self.models[job.application], question).placements[0]


def _choice(site: Site, best: Placement) -> Choice:
    chosen = best.resource_set
    nodes = tuple(site.nodes.index(name) for name in chosen.nodes)
    return Choice(nodes, MEGAHERTZ.index(chosen.frequency or 0.0), best.power_middle or 0.0, best.power_doubt or 0.0)


def _to_come(site: Site, now: float) -> Forecast:
    """A forecast that is always right."""

    def foreseen(state: ClusterState, horizon: float) -> ClusterState:
        later = site.expected(now, now + horizon)
        return replace(state, available_cpu=later.available_cpu, available_bandwidth=later.available_bandwidth)

    return foreseen


def held(site: Site, state: ClusterState) -> Site:
    """The site if its loads stayed as a state of it tells."""
    cpu, link = (
        tuple(Series(np.zeros(1), np.array([each])) for each in every)
        for every in (state.available_cpu, state.available_bandwidth)
    )
    return replace(site, cpu=cpu, link=link)


class Oracle(Policy):
    """Knows what comes of each choice: least energy within the slowdown of the fastest, or the fastest under a cap.

    Its rule is plain: nothing is kept for what could come otherwise than it knows.

    Parameters
    ----------
    max_slowdown, cap : as ``rank`` takes them; the fastest choice where both are None.
    forecasting : whether it knows what would come of each choice if the loads to come were as they are forecast.
    """

    def __init__(
        self,
        max_slowdown: float | None = None,
        cap: float | None = None,
        *,
        forecasting: bool = False,
    ) -> None:
        super().__init__({})
        self._max_slowdown, self._cap, self._forecasting = max_slowdown, cap, forecasting

    def _foreseen(self, job: Job, site: Site, some: Sequence[int], now: float) -> Site:
        """The site with the loads that the oracle counts with, given some nodes that the job could have."""
        if not self._forecasting:
            return site
        measured = site.measured(now)
        length = came(held(site, measured), job, some, len(CLOCKS) - 1, now).end - now
        return held(site, site.outlook(now)(measured, length))

    def __call__(self, job: Job, cluster: Cluster, now: float, processors: int) -> Choice | None:
        """The best of the clocks on the nodes with most to spare until the job would end."""
        free = sorted(cluster.free)
        site = self._foreseen(job, cluster.site, free[:processors], now)
        found: list[tuple[float, float, Choice]] = []
        length = came(site, job, free[:processors], len(CLOCKS) - 1, now).end - now
        spare, width = (
            np.array([float(each[node].mean(now, now + length)) for node in free]) for each in (site.cpu, site.link)
        )
        for order in (np.argsort(-spare), np.argsort(-width)):
            nodes = tuple(free[index] for index in order[:processors].tolist())
            outcomes = zip(*(each.tolist() for each in at_all_clocks(site, job, nodes, now)), strict=True)
            for place, (time, joules) in enumerate(outcomes):
                found.append((time, joules, Choice(nodes, place, joules / time)))
        if self._cap is not None:
            idle = PROCESSOR.watts(CLOCKS[-1])[0]
            besides = sum(each.watts for each in cluster.running.values()) + idle * (len(free) - processors)
            found = [each for each in found if each[2].watts + besides <= self._cap]
            return min(found, key=lambda each: each[0])[2] if found else None
        fastest = min(found, key=lambda each: each[0])
        if self._max_slowdown is None:
            return fastest[2]
        within = [each for each in found if each[0] <= (1.0 + self._max_slowdown) * fastest[0]]
        best = min(within, key=lambda each: each[1])
        return self.compared(job, cluster.site, now, best[2], fastest[2])


@dataclass(frozen=True)
class Totals:
    """A stream's end: joules of all jobs, mean completion (s), and (start, end, watts above idle nodes) of each job."""

    joules: float
    completion: float
    draws: tuple[tuple[float, float, float], ...]

    def above(self, cap: float, size: int) -> float:
        """Share of the time from the first start to the last end at which true power is above a cap (W)."""
        idle = PROCESSOR.watts(CLOCKS[-1])[0]
        changes: list[tuple[float, float]] = []
        for start, end, watts in self.draws:
            changes += [(start, watts), (end, -watts)]
        changes.sort()
        power, over = idle * size, 0.0
        for (now, change), (then, _) in itertools.pairwise(changes):
            power += change
            over += (then - now) * (power > cap)
        return over / (changes[-1][0] - changes[0][0])


def simulate(stream: Sequence[Job], site: Site, policy: Policy, seed: int) -> Totals:
    """Jobs in the order in which they come; the first that waits is asked about again when a job ends."""
    rng = np.random.default_rng([seed, 11])
    wanted = [int(each) for each in rng.choice((1, 2, 4, 8), len(stream))]
    errors = np.exp(rng.normal(0.0, METER_ERROR, len(stream)))
    cluster, waiting = Cluster(site, set(range(site.size))), list[Job]()
    ends: list[tuple[float, int, float, Choice, Came, Job]] = []
    joules, completion, draws = 0.0, [], []

    def start_what_can(now: float) -> None:
        while waiting and wanted[waiting[0].number] <= len(cluster.free):
            job = waiting[0]
            choice = policy(job, cluster, now, wanted[job.number])
            if choice is None:
                return
            waiting.pop(0)
            outcome = came(site, job, choice.nodes, choice.clock, now)
            cluster.free -= set(choice.nodes)
            cluster.running[job.number] = choice
            heapq.heappush(ends, (outcome.end, job.number, now, choice, outcome, job))

    def end_one() -> None:
        nonlocal joules
        now, number, start, choice, outcome, job = heapq.heappop(ends)
        cluster.free |= set(choice.nodes)
        del cluster.running[number]
        joules += outcome.joules
        completion.append(now - job.arrival)
        idle = PROCESSOR.watts(CLOCKS[-1])[0]
        draws.append((start, now, outcome.joules / (now - start) - idle * len(choice.nodes)))
        if policy.models:
            run = run_of(site, job, choice.nodes, choice.clock, start, outcome, float(errors[number]))
            policy.models[job.application].learn(run)
        start_what_can(now)

    for job in stream:
        while ends and ends[0][0] <= job.arrival:
            end_one()
        waiting.append(job)
        start_what_can(job.arrival)
    while ends:
        end_one()
    if waiting:
        raise RuntimeError(f"{len(waiting)} jobs never started: the cap lets none of them run alone")
    return Totals(joules, float(np.mean(completion)), tuple(draws))


def stream_tables(seeds: Sequence[int], only: str = "") -> tuple[Table, Table]:
    """Both questions for each seed, under loads whose name holds ``only``."""
    saving = Table(title=f"{COUNT} jobs, min-energy within {ALLOWED:.0%}: joules saved against min-time, and slowdowns")
    for heading in (
        "seed",
        "loads",
        "saved",
        "oracle saves",
        "share",
        "oracle by forecasts saves",
        "share of that",
        "job by job",
        "share of oracle's",
        "on its nodes",
        "mean slowdown",
        f"beyond {BEYOND:.0%}",
    ):
        saving.add_column(heading, justify="right")
    capped = Table(title=f"{COUNT} jobs under a cap of power: mean completion, and time above the cap")
    for heading in (
        "seed",
        "loads",
        "cap W",
        "completion s",
        "oracle's s",
        "longer",
        "above the cap",
        "oracle above",
        "by forecasts s",
        "above",
    ):
        capped.add_column(heading, justify="right")
    for seed, loading in itertools.product(seeds, ("dedicated", "grid")):
        if only not in loading:
            continue
        site, stream = sites(seed, LOADINGS[loading])[1], jobs(COUNT, seed, INTERVAL)
        plain = simulate(stream, site, Shipped(learned(seed, loading), Objective()), seed)
        ours = Shipped(learned(seed, loading), LEAST_ENERGY, ALLOWED)
        oracles = Oracle(ALLOWED), Oracle(ALLOWED, forecasting=True)
        totals = [simulate(stream, site, each, seed) for each in (ours, *oracles)]
        saved, most, by_forecasts = (1.0 - each.joules / plain.joules for each in totals)
        slow = np.array(ours.slowdowns)
        saving.add_row(
            str(seed), loading, f"{saved:.1%}", f"{most:.1%}", f"{saved / most:.0%}",
            f"{by_forecasts:.1%}", f"{saved / by_forecasts:.0%}",
            f"{ours.saved_job_by_job:.1%}", f"{ours.saved_job_by_job / oracles[0].saved_job_by_job:.0%}",
            f"{ours.share_on_its_nodes:.0%}", f"{slow.mean():.1%}", f"{(slow > BEYOND).mean():.1%}",
        )  # fmt: skip
        cap = cap_of(site)
        shipped = Shipped(learned(seed, loading), Objective(), cap=cap)
        oracles = Oracle(cap=cap), Oracle(cap=cap, forecasting=True)
        under, known, foreseen = (simulate(stream, site, each, seed) for each in (shipped, *oracles))
        capped.add_row(
            str(seed), loading, f"{cap:.0f}", f"{under.completion:.0f}", f"{known.completion:.0f}",
            f"{under.completion / known.completion - 1.0:.1%}", f"{under.above(cap, site.size):.2%}",
            f"{known.above(cap, site.size):.2%}", f"{foreseen.completion:.0f}", f"{foreseen.above(cap, site.size):.2%}",
        )  # fmt: skip
    return saving, capped
