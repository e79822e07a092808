"""Looks for the best other place of a job that runs, with the ranker, and decides by :mod:`.decision`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from metasched.arrays import Floats, Ints
from metasched.placement.clusters.constraints import Constraints
from metasched.placement.clusters.own_load import own_load, without_load
from metasched.placement.clusters.queue_wait import QueueWait
from metasched.placement.clusters.running_jobs import BOUNDLESS, LEAST_WIDTH
from metasched.placement.clusters.state import ClusterState, places
from metasched.placement.loads.counted import Forecast, Loads, counted
from metasched.placement.moving.decision import Costs, Decision, Outlook, decide, done_until
from metasched.placement.ranking.contention import ALONE, Contention
from metasched.placement.ranking.query import InfeasibleError, Question
from metasched.placement.ranking.ranker import rank
from metasched.predictors.contract import Predictor
from metasched.predictors.load_doubt import predict_one
from metasched.records import DEFAULT_SETTINGS, InputError, Placement, Settings

#: Level of the intervals that doubts are read from.
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Mover:
    """A job that runs and might move.

    Parameters
    ----------
    problem_size : N.
    cluster : name of the cluster that it runs on.
    nodes : names of its nodes.
    processors : that it takes on each of them.
    elapsed : since it last started (s).
    done : the fraction of it that was done before that.
    moved_ago : how long ago it moved last (s); None where it never did.
    met_cpu, met_bandwidth : the least average of its processors and links since it started (fraction, Mbit/s); None
        where they were not measured: then those of now count.
    overlapping : names of further clusters that hold the same nodes.
    dedicated : whether its processors are its own.
    settings : how its processes are laid out, here and elsewhere, and what its predictors are asked besides.
    """

    problem_size: float
    cluster: str
    nodes: tuple[str, ...]
    processors: tuple[int, ...]
    elapsed: float
    done: float = 0.0
    moved_ago: float | None = None
    met_cpu: float | None = None
    met_bandwidth: float | None = None
    overlapping: frozenset[str] = frozenset()
    dedicated: bool = True
    settings: Settings = DEFAULT_SETTINGS

    @property
    def processes(self) -> int:
        """Those on all of its nodes together, each with its threads; one on each node at least."""
        return sum(max(each // self.settings.threads, 1) for each in self.processors)

    def __post_init__(self) -> None:
        if not self.nodes or len(set(self.nodes)) < len(self.nodes) or len(self.nodes) != len(self.processors):
            raise InputError("nodes and processors of the job do not fit, expected one number for each of its nodes")
        if not 0 <= self.elapsed < math.inf:
            raise InputError(f"elapsed is {self.elapsed:g}, expected a number of seconds of at least 0")
        if not 0 <= self.done < 1:
            raise InputError(f"done is {self.done:g}, expected a fraction in [0, 1)")


@dataclass(frozen=True, slots=True)
class RunningAdvice:
    """What a job that runs is advised.

    Parameters
    ----------
    decision : whether it should move.
    available_cpu, available_bandwidth : what it is expected to have where it is (fraction, Mbit/s).
    placement : the best other place, for the whole job; None where there is none.
    warnings : what the user should know.
    """

    decision: Decision
    available_cpu: float
    available_bandwidth: float
    placement: Placement | None
    warnings: tuple[str, ...]


def advise_running(
    job: Mover,
    clusters: Sequence[ClusterState],
    predictors: Mapping[str, Predictor],
    costs: Callable[[str], Costs],
    *,
    loads: Loads | None = None,
    constraints: Constraints | None = None,
    contention: Contention | None = None,
) -> RunningAdvice:
    """Whether a job should move, and where.

    It may have as many processes anywhere, laid out as they are, also on its own nodes: what it holds would be free.

    Parameters
    ----------
    job : the job.
    clusters : where it may run, its own among them.
    predictors : of its application on each of them, by name.
    costs : of a move to a cluster, by name.
    loads : what is known of them besides what was measured last.
    constraints : on other places.
    contention : with the other jobs that run.

    Raises
    ------
    InputError : when its cluster, its nodes or its model are not known.
    """
    home = _Home.of(job, clusters, predictors)
    held = [each for each in clusters if each.name in (job.cluster, *job.overlapping)]
    loads = _without_own(loads or Loads(), held, job)
    processors, predictor = job.processes, home.predictor
    states = [
        home.state if each.name == job.cluster else vacated(each, job) if each.name in job.overlapping else each
        for each in clusters
        if each.name in predictors
    ]
    now = home.loads(counted(home.state, loads, None)[0])
    met = home.time(now[0] if job.met_cpu is None else job.met_cpu, job.met_bandwidth or now[1])
    done = done_until(job.done, job.elapsed, met)
    left = 1.0 - done
    expected, warnings = counted(home.state, loads, left * home.time(*now))
    cpu, bandwidth = home.loads(expected)
    here = _outlook(predictor, job.problem_size, processors, (cpu, bandwidth))
    asked = (constraints or Constraints()).model_copy(
        update={"processors": (processors,), "min_processors": 1, "max_processors": None, "least_efficiency": 0.0}
    )
    question = Question(
        job.problem_size,
        asked,
        contention=contention or ALONE,
        top=1,
        scope="top",
        level=LEVEL,
        loads=_of_the_rest(loads, left),
        settings=(job.settings,) if job.settings.laid_out else (),
    )
    # The ranker looks for the least wait + T: what is left of T counts, so waits and costs grow by the inverse.
    moved = [_with_wait(each, (costs(each.name).total + each.queue_wait.seconds) / left) for each in states]
    try:
        ranking = rank(moved, predictors, question)
    except InfeasibleError as error:
        found = decide(done, here, None, Costs(), moved_ago=job.moved_ago)
        return RunningAdvice(found, cpu, bandwidth, None, (*warnings, str(error)))
    best = ranking.placements[0]
    chosen = best.resource_set
    if chosen.cluster in (job.cluster, *job.overlapping) and chosen.same_place(job.nodes, processors):
        found = replace(decide(done, here, None, Costs()), why="it is already at the best place")
        return RunningAdvice(found, cpu, bandwidth, None, (*warnings, *ranking.warnings))
    cost = costs(chosen.cluster)
    wait = max(best.queue_wait * left - cost.total, 0.0)
    there = _outlook(
        predictors[chosen.cluster], job.problem_size, processors,
        (chosen.available_cpu, chosen.available_bandwidth), slowdown=best.slowdown, wait=wait,
    )  # fmt: skip
    same = predictors[chosen.cluster] is predictor
    found = decide(done, here, there, cost, moved_ago=job.moved_ago, same_model=same)
    placement = replace(best, queue_wait=wait)
    return RunningAdvice(found, cpu, bandwidth, placement, (*warnings, *ranking.warnings))


@dataclass(frozen=True, slots=True)
class _Home:
    """The place of a job: the cluster without it, the numbers of its nodes there, and its model."""

    job: Mover
    state: ClusterState
    nodes: Ints
    predictor: Predictor

    @classmethod
    def of(cls, job: Mover, clusters: Sequence[ClusterState], predictors: Mapping[str, Predictor]) -> _Home:
        """Find it.

        Raises
        ------
        InputError : when its cluster, its nodes or its model are not known.
        """
        state = next((each for each in clusters if each.name == job.cluster), None)
        if state is None or job.cluster not in predictors:
            raise InputError(f"cluster {job.cluster} of the job is not known, or has no model of its application")
        missing = sorted(set(job.nodes) - set(state.nodes))
        if missing:
            raise InputError(f"node {missing[0]} of the job is not in cluster {job.cluster}")
        nodes = np.array([state.nodes.index(name) for name in job.nodes])
        return cls(job, vacated(state, job), nodes, predictors[job.cluster])

    def loads(self, state: ClusterState) -> tuple[float, float]:
        """The available CPU and bandwidth (Mbit/s) that it would have there with some loads."""
        chosen = state.laid_out(self.job.settings).resource_set(self.nodes, self.job.processes)
        return chosen.available_cpu, float(np.clip(chosen.available_bandwidth, LEAST_WIDTH, BOUNDLESS))

    def time(self, cpu: float, bandwidth: float) -> float:
        """The expected time of all of it there (s)."""
        processes = self.job.processes
        found = float(np.ravel(self.predictor.expect_many(self.job.problem_size, processes, cpu, bandwidth))[0])
        if not 0 < found < math.inf:
            raise InputError(f"the model is not defined for {processes} processors on {self.job.cluster}")
        return found


def vacated(cluster: ClusterState, job: Mover) -> ClusterState:
    """The cluster as it would be without a job: its processors free, and its nodes without its load.

    With ``a`` of a processor for a new process 1/a processes compete for it, see
    :func:`metasched.placement.loads.recent_placements.with_recent_placements`.

    >>> busy = ClusterState.make("c", ["n0", "n1"], processors=[0, 2], available_cpu=[0.25, 1.0], jobs=1)
    >>> job = Mover(1000.0, "c", ("n0", "n1"), (2, 2), elapsed=600.0)
    >>> without = vacated(busy, job)
    >>> without.processors.tolist(), without.available_cpu.round(3).tolist(), without.jobs.tolist()
    ([2, 4], [0.333, 1.0], [0, 0])
    """
    number = places(cluster.nodes)
    processors, jobs = cluster.processors.copy(), cluster.jobs.copy()
    for name, count in zip(job.nodes, job.processors, strict=True):
        index = number.get(name)
        if index is None:
            continue
        processors[index] += count if job.dedicated else 0
        jobs[index] = max(jobs[index] - 1, 0)
    cpu = _less(cluster.available_cpu, _own_load(cluster, job))
    return replace(cluster, processors=processors, jobs=jobs, available_cpu=cpu)


def _own_load(cluster: ClusterState, job: Mover) -> dict[int, float]:
    return own_load(cluster, job.nodes, job.processors, job.elapsed, dedicated=job.dedicated)


def _less(cpu: Floats, load: Mapping[int, float]) -> Floats:
    """The available CPU of nodes without some load, by number."""
    found = cpu.copy()
    for index, crowd in load.items():
        found[index] = without_load(cpu[index], crowd)
    return found


def _without_own(loads: Loads, clusters: Sequence[ClusterState], job: Mover) -> Loads:
    """The loads without that of a job, which forecasts hold as far as measurements show it."""
    forecast = loads.forecast
    if forecast is None:
        return loads
    own = {each.name: {each.nodes[index]: more for index, more in _own_load(each, job).items()} for each in clusters}

    def over(cluster: ClusterState, horizon: float, forecast: Forecast = forecast) -> ClusterState:
        later, number = forecast(cluster, horizon), places(cluster.nodes)
        load = {number[name]: more for name, more in own.get(cluster.name, {}).items() if name in number}
        # Of a node without a forecast the measurement stays, of which the job's load was taken already.
        kept = later.available_cpu == cluster.available_cpu
        return replace(later, available_cpu=np.where(kept, later.available_cpu, _less(later.available_cpu, load)))

    return replace(loads, forecast=over)


def _of_the_rest(loads: Loads, left: float) -> Loads:
    """The loads over the part of a run that is left, where the ranker asks for the whole run."""
    forecast = loads.forecast
    if forecast is None:
        return loads

    def over(cluster: ClusterState, horizon: float, forecast: Forecast = forecast) -> ClusterState:
        return forecast(cluster, left * horizon)

    return replace(loads, forecast=over)


def _with_wait(cluster: ClusterState, seconds: np.ndarray) -> ClusterState:
    return replace(cluster, queue_wait=QueueWait(cluster.queue_wait.processors, seconds))


def _outlook(
    predictor: Predictor,
    problem_size: float,
    processors: int,
    loads: tuple[float, float],
    *,
    slowdown: float = 1.0,
    wait: float = 0.0,
) -> Outlook:
    """The whole job at a place, with what its model may be wrong by."""
    found = predict_one(predictor, problem_size, processors, *loads, LEVEL, None)
    time, interval = found.execution_time, found.interval
    return Outlook(slowdown * time, (interval.low / time, interval.high / time), wait)
