"""Jobs that run for hours while the loads change for hours: ``python -m benchmarks.moving [design]``.

Three clusters under loads that hold for hours at a time, a stream of long jobs on four processors each, and every ten
minutes a look at each job that runs. Four rules, which differ in nothing else: the ranker places every job, and the
same jobs with the same noise come at the same times.

- never: a job ends where it began;
- metasched: :func:`metasched.placement.moving.elsewhere.advise_running` with learned models and forecasts;
- GridWay: a job moves where the CPU of one of its nodes falls below 50 %, to the place that ranks best;
- oracle: a job moves where that pays by at least a tenth, by the true model and the averages of the loads to come.

A move takes the job's processors at the new place at once; it works there after checkpoint, transfer and restart. A
move is regretted where the job, left alone from there on, would have been done sooner at its old place: that is
computed from the loads that really came.

Seeds: 1 to 4 for design (``design``), 101 to 106 judged.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.placement.grid import APPLICATIONS, HORIZON, NOISE, TICK, Application, Site, Truth
from benchmarks.placement.stream import Job
from benchmarks.testbed.clusters import ClusterModel
from benchmarks.testbed.timeline import Series, lowest
from metasched.placement.clusters.constraints import Constraints
from metasched.placement.clusters.state import ClusterState
from metasched.placement.loads.counted import Forecast, Loads
from metasched.placement.loads.forecast import places_of, with_forecast
from metasched.placement.moving.decision import Costs
from metasched.placement.moving.elsewhere import Mover, advise_running
from metasched.placement.ranking.query import InfeasibleError, Question
from metasched.placement.ranking.ranker import rank
from metasched.predictors.contract import Predictor
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.records import Placement, Run
from metasched.service.state.load_forecasts import LADDER, ROWS, STEP, nearest_horizon
from monitors.forecasters.sets import Sets, forecast_sets

DESIGN, JUDGED = range(1, 5), range(101, 107)
#: Jobs, seconds between two of them, processors of each, and how many times the steps of the testbed's applications.
JOBS, INTERVAL, PROCESSORS, LONGER = 40, 900.0, 4, 20.0
#: How long a load holds (median, s, and spread of the logarithm), how likely a node is busy, and what is left of it.
DWELL, BUSY, LEFT = (2.0 * 3600.0, 0.8), 0.35, (0.15, 0.6)
#: Seconds between two looks at a job, to write a checkpoint, until the job works again, and its state (Mbit).
LOOK, CHECKPOINT, RESTART, STATE = 600.0, 30.0, 60.0, 16_000.0
#: GridWay's threshold of available CPU, and what the oracle wants a move to save of what is left.
THRESHOLD, WORTH = 0.5, 0.1
LONG = {
    name: replace(each, work=LONGER * each.work, volume=LONGER * each.volume, messages=LONGER * each.messages)
    for name, each in APPLICATIONS.items()
}


@dataclass
class Working:
    """A job that runs: where, since when it works there, what was done before, and when it will be done.

    ``thought`` is what the rule that moved it last took to be done, which is all that a rule may know.
    """

    job: Job
    site: int
    nodes: tuple[int, ...]
    since: float
    done: float
    end: float
    moved_at: float | None = None
    thought: float = 0.0


@dataclass
class Grid:
    """The clusters with the nodes that are free, and the jobs that run and wait."""

    sites: Sequence[Site]
    free: list[set[int]]
    running: list[Working] = field(default_factory=list)
    waiting: list[Job] = field(default_factory=list)
    moves: int = 0
    regretted: int = 0

    def states(self, now: float, besides: Working | None = None) -> list[ClusterState]:
        """The clusters as measured; a node has no processor while a job has it, but for a job's own."""
        found = []
        for number, site in enumerate(self.sites):
            mine = set(besides.nodes) if besides is not None and besides.site == number else set()
            taken = [int(node in self.free[number] or node in mine) for node in range(site.size)]
            found.append(replace(_measured(site, now), processors=np.array(taken)))
        return found


#: Where a job should move to, cluster and nodes; None to stay.
Rule = Callable[[Grid, Working, float], "tuple[int, tuple[int, ...]] | None"]


def _lasting(model: ClusterModel, seed: int) -> Site:
    """A cluster whose loads hold for hours."""
    cpu, link = [], []
    for node in range(model.node_count):
        rng = np.random.default_rng([seed, node])
        times, values = [0.0], [_level(rng)]
        end = float(rng.uniform() * rng.lognormal(np.log(DWELL[0]), DWELL[1]))
        while end < HORIZON:
            times.append(end)
            values.append(_level(rng))
            end += float(rng.lognormal(np.log(DWELL[0]), DWELL[1]))
        grid = np.arange(0.0, HORIZON, 300.0)
        moments = np.union1d(np.array(times), grid)
        jitter = Series(grid, rng.normal(0.0, 0.02, grid.size))
        levels = Series(np.array(times), np.array(values)).at(moments) + jitter.at(moments)
        cpu.append(Series(moments, np.clip(levels, 0.05, 1.0)))
        width = model.bandwidth * np.clip(0.8 + rng.normal(0.0, 0.08, grid.size), 0.3, 1.0)
        link.append(Series(grid, width))
    return Site(model, tuple(cpu), tuple(link))


def _level(rng: np.random.Generator) -> float:
    return float(rng.uniform(*LEFT)) if rng.random() < BUSY else float(rng.uniform(0.9, 1.0))


def grid_of(seed: int) -> tuple[Site, ...]:
    """Three clusters: large and slow with a slow network, middling, small and fast."""
    models = (
        ClusterModel("large", 24, 1, 100.0, speed=0.8e9, cache=1e6, balance=0.3),
        ClusterModel("middle", 16, 1, 1000.0, speed=1.0e9, cache=1e6, balance=0.3),
        ClusterModel("small", 8, 1, 1000.0, speed=1.4e9, cache=1e6, balance=0.3),
    )
    return tuple(_lasting(model, 10 * seed + index) for index, model in enumerate(models))


def stream(seed: int) -> list[Job]:
    """Long jobs, at random times."""
    random = np.random.default_rng([seed, 7])
    arrivals, names = 7200.0 + np.cumsum(random.exponential(INTERVAL, JOBS)), list(LONG)
    return [
        Job(
            number,
            (name := names[int(random.integers(len(names)))]),
            float(round(LONG[name].middle * 2.0 ** random.uniform(-0.5, 0.5))),
            float(arrival),
            float(random.lognormal(0.0, NOISE)),
        )
        for number, arrival in enumerate(arrivals)
    ]


def trained(sites: Sequence[Site], seed: int) -> dict[str, dict[str, Predictor]]:
    """A robust predictor of each application on each cluster, from twenty runs."""
    random = np.random.default_rng([seed, 11])
    found: dict[str, dict[str, Predictor]] = {}
    for name, application in LONG.items():
        found[name] = {}
        for site in sites:
            runs: list[Run] = []
            for part in (0.7, 0.85, 1.0, 1.2, 1.4):
                for processors in (1, 2, 4, 8):
                    nodes = random.choice(site.size, processors, replace=False).tolist()
                    start, n = float(random.uniform(0, 60_000)), round(part * application.middle)
                    noise = float(random.lognormal(0, NOISE))
                    runs.append(site.run(name, n, nodes, start, site.finish(application, n, nodes, start, noise)))
            found[name][site.name] = RobustPredictor(name, site.name).fit(runs)
    return found


def true_models(sites: Sequence[Site]) -> dict[str, dict[str, Predictor]]:
    """The models that only the oracle knows."""
    return {name: {site.name: Truth(each, site.speed) for site in sites} for name, each in LONG.items()}


def _progress(site: Site, job: Job, nodes: Sequence[int], since: float, done: float) -> tuple[Series, np.ndarray]:
    """Seconds that the whole job would take at each moment from a start on, and what is done at each of these."""
    application: Application = LONG[job.application]
    cpu, link = lowest([site.cpu[node] for node in nodes]), lowest([site.link[node] for node in nodes])
    inside = np.union1d(cpu.times, link.times)
    moments = np.append(since, inside[inside > since])
    time = job.noise * application.time(job.problem_size, len(nodes), cpu.at(moments) * site.speed, link.at(moments))
    return Series(moments, time), np.concatenate(([done], done + np.cumsum(np.diff(moments) / time[:-1])))


def finish(site: Site, job: Job, nodes: Sequence[int], since: float, done: float) -> float:
    """When a job that works from a time on is done (s)."""
    time, parts = _progress(site, job, nodes, since, done)
    last = int(np.searchsorted(parts, 1.0, side="right")) - 1
    return float(time.times[last] + (1.0 - parts[last]) * time.values[last])


def done_at(site: Site, job: Job, nodes: Sequence[int], since: float, done: float, now: float) -> float:
    """The fraction that is done at a time."""
    if now <= since:
        return done
    time, parts = _progress(site, job, nodes, since, done)
    last = int(np.searchsorted(time.times, now, side="right")) - 1
    return float(parts[last] + (now - time.times[last]) / time.values[last])


def cost_of(grid: Grid, working: Working, target: int) -> Costs:
    """What a move costs: the state crosses the slower of the two clusters' links."""
    width = min(grid.sites[working.site].model.bandwidth, grid.sites[target].model.bandwidth)
    return Costs(CHECKPOINT, 0.0 if target == working.site else STATE / width, RESTART)


#: Forecasts and measurements that were made, by the cluster, the time and the horizon; those of one stream.
_FORECASTS: dict[tuple[int, float, float], Sets] = {}
_MEASURED: dict[tuple[int, float], ClusterState] = {}


def _measured(site: Site, now: float) -> ClusterState:
    key = (id(site), now // TICK)
    if key not in _MEASURED:
        _MEASURED[key] = site.measured(now)
    return _MEASURED[key]


def _forecast(site: Site, now: float, horizon: float) -> Sets:
    """The forecast that the daemon makes of a cluster: over a horizon of its ladder, from the last two hours."""
    key = (id(site), now, horizon)
    if key not in _FORECASTS:
        end, cpu, link = site.recorded
        kept = (end <= now) & (end > now - STEP * ROWS)
        _FORECASTS[key] = forecast_sets(end[kept], cpu[kept], link[kept], now, horizon)
    return _FORECASTS[key]


def outlook(site: Site, now: float) -> Forecast:
    """Forecasts as the daemon makes them."""

    def over(state: ClusterState, seconds: float) -> ClusterState:
        places = places_of(state.nodes, site.nodes)
        return with_forecast(state, _forecast(site, now, LADDER[nearest_horizon(seconds)]), places)

    return over


def to_come(site: Site, now: float) -> Forecast:
    """The averages that really come."""

    def over(state: ClusterState, seconds: float) -> ClusterState:
        future = site.expected(now, now + max(seconds, 1.0))
        return replace(state, available_cpu=future.available_cpu, available_bandwidth=future.available_bandwidth)

    return over


def _expected_loads(grid: Grid, now: float, kind: Callable[[Site, float], Forecast]) -> Loads:
    made = {site.name: kind(site, now) for site in grid.sites}
    return Loads(lambda state, seconds: made[state.name](state, seconds), now=now)


def place(
    grid: Grid,
    job: Job,
    models: dict[str, dict[str, Predictor]],
    now: float,
    kind: Callable[[Site, float], Forecast],
    besides: Working | None = None,
) -> Placement | None:
    """The place that ranks best among free nodes; None where too few are free."""
    question = Question(
        job.problem_size,
        Constraints(processors=(PROCESSORS,), least_efficiency=0),
        top=1,
        scope="top",
        loads=_expected_loads(grid, now, kind),
    )
    try:
        return rank(grid.states(now, besides), models[job.application], question).placements[0]
    except InfeasibleError:
        return None


def _at(grid: Grid, placement: Placement) -> tuple[int, tuple[int, ...]]:
    number = next(n for n, site in enumerate(grid.sites) if site.name == placement.resource_set.cluster)
    return number, tuple(grid.sites[number].nodes.index(name) for name in placement.resource_set.nodes)


def metasched_rule(models: dict[str, dict[str, Predictor]], kind: Callable[[Site, float], Forecast] = outlook) -> Rule:
    """The decision that the daemon and the command line make."""

    def rule(grid: Grid, working: Working, now: float) -> tuple[int, tuple[int, ...]] | None:
        site, job = grid.sites[working.site], working.job
        met = site.expected(working.since, now)
        mover = Mover(
            job.problem_size, site.name, tuple(site.nodes[node] for node in working.nodes),
            (1,) * PROCESSORS, now - working.since, working.thought,
            None if working.moved_at is None else now - working.moved_at,
            float(met.available_cpu[list(working.nodes)].min()),
            float(met.available_bandwidth[list(working.nodes)].min()),
        )  # fmt: skip
        names = {each.name: number for number, each in enumerate(grid.sites)}
        found = advise_running(
            mover, grid.states(now), models[job.application],
            lambda name: cost_of(grid, working, names[name]), loads=_expected_loads(grid, now, kind),
        )  # fmt: skip
        if not found.decision.move or found.placement is None:
            return None
        working.thought = found.decision.done
        return _at(grid, found.placement)

    return rule


def gridway_rule(models: dict[str, dict[str, Predictor]]) -> Rule:
    """GridWay's: move where the CPU falls below a threshold."""

    def rule(grid: Grid, working: Working, now: float) -> tuple[int, tuple[int, ...]] | None:
        cpu = grid.sites[working.site].measured(now).available_cpu[list(working.nodes)].min()
        if cpu >= THRESHOLD:
            return None
        found = place(grid, working.job, models, now, outlook, working)
        if found is None or (set(_at(grid, found)[1]) == set(working.nodes) and _at(grid, found)[0] == working.site):
            return None
        return _at(grid, found)

    return rule


def oracle_rule(models: dict[str, dict[str, Predictor]]) -> Rule:
    """Move where it pays, as only who knows the future can say."""

    def rule(grid: Grid, working: Working, now: float) -> tuple[int, tuple[int, ...]] | None:
        found = place(grid, working.job, models, now, to_come, working)
        if found is None:
            return None
        target, nodes = _at(grid, found)
        site, job = grid.sites[working.site], working.job
        done = done_at(site, job, working.nodes, working.since, working.done, now)
        after = finish(grid.sites[target], job, nodes, now + cost_of(grid, working, target).total, done)
        return (target, nodes) if after < working.end - WORTH * (working.end - now) else None

    return rule


def never(grid: Grid, working: Working, now: float) -> None:
    """Stay."""


def simulate(
    jobs: Sequence[Job], sites: Sequence[Site], models: dict[str, dict[str, Predictor]], rule: Rule
) -> tuple[np.ndarray, Grid]:
    """Completion of each job (wait plus run, s), and the grid with its counts of moves."""
    grid = Grid(sites, [set(range(site.size)) for site in sites])
    completion = np.full(len(jobs), np.nan)
    coming, now = list(jobs), jobs[0].arrival
    look = now + LOOK
    while coming or grid.running or grid.waiting:
        ends = min((each.end for each in grid.running), default=np.inf)
        now = min(coming[0].arrival if coming else np.inf, ends, look)
        for working in [each for each in grid.running if each.end <= now]:
            grid.running.remove(working)
            grid.free[working.site] |= set(working.nodes)
            completion[working.job.number] = working.end - working.job.arrival
        while coming and coming[0].arrival <= now:
            grid.waiting.append(coming.pop(0))
        while grid.waiting and (found := place(grid, grid.waiting[0], models, now, outlook)) is not None:
            job, (number, nodes) = grid.waiting.pop(0), _at(grid, found)
            grid.free[number] -= set(nodes)
            grid.running.append(Working(job, number, nodes, now, 0.0, finish(sites[number], job, nodes, now, 0.0)))
        if now >= look:
            look += LOOK
            for working in list(grid.running):
                if now > working.since:
                    _look(grid, working, rule, now)
    return completion, grid


def _look(grid: Grid, working: Working, rule: Rule, now: float) -> None:
    chosen = rule(grid, working, now)
    if chosen is None:
        return
    target, nodes = chosen
    job, since = working.job, now + cost_of(grid, working, target).total
    done = done_at(grid.sites[working.site], job, working.nodes, working.since, working.done, now)
    end = finish(grid.sites[target], job, nodes, since, done)
    grid.moves += 1
    grid.regretted += end > working.end
    grid.free[working.site] |= set(working.nodes)
    grid.free[target] -= set(nodes)
    working.site, working.nodes, working.since, working.done, working.end = target, nodes, since, done, end
    working.moved_at = now


def main(console: Console, seeds: Sequence[int]) -> None:
    """Print the mean completion under each rule, and the moves that were regretted."""
    completions: dict[str, list[np.ndarray]] = {}
    counts: dict[str, list[tuple[int, int]]] = {}
    for seed in seeds:
        _FORECASTS.clear()
        _MEASURED.clear()
        sites, jobs = grid_of(seed), stream(seed)
        models, truth = trained(sites, seed), true_models(sites)
        rules: dict[str, Rule] = {
            "never": never, "GridWay": gridway_rule(models), "metasched": metasched_rule(models),
            "oracle": oracle_rule(truth),
        }  # fmt: skip
        for name, rule in rules.items():
            done, grid = simulate(jobs, sites, models, rule)
            completions.setdefault(name, []).append(done)
            counts.setdefault(name, []).append((grid.moves, grid.regretted))
    base = np.concatenate(completions["never"]).mean()
    table = Table(title=f"{len(seeds)} streams of {JOBS} jobs, seeds {seeds[0]} to {seeds[-1]}")
    for heading in ("rule", "mean completion s", "against never", "moves", "regretted"):
        table.add_column(heading, justify="left" if heading == "rule" else "right")
    for name, found in completions.items():
        mean = np.concatenate(found).mean()
        moves, regretted = np.array(counts[name]).sum(axis=0)
        share = f"{regretted} ({regretted / moves:.1%})" if moves else "0"
        table.add_row(name, f"{mean:.0f}", f"{mean / base - 1:+.1%}", str(moves), share)
    console.print(table)


if __name__ == "__main__":
    main(Console(width=120), DESIGN if sys.argv[1:] == ["design"] else JUDGED)
