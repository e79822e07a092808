"""The policies of the stream: ours, an oracle, and those that grids and schedulers have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from benchmarks.placement.grid import APPLICATIONS, Site, Truth
from benchmarks.placement.stream import Choice, Job, Queue
from metasched.placement.clusters.constraints import Constraints
from metasched.placement.clusters.queue_wait import QueueWait, earliest_start
from metasched.placement.clusters.state import ClusterState
from metasched.placement.loads.counted import Forecast, Loads
from metasched.placement.ranking.objective import EARLIEST
from metasched.placement.ranking.query import Question
from metasched.placement.ranking.ranker import rank
from metasched.predictors.contract import Predictor
from metasched.records import Placement, Run

#: What GridWay gives the last run, against its history.
LAST = 0.5


class Ranked:
    """The ranker, as the daemon asks it: expected completion over all clusters, nodes and numbers of processors.

    Parameters
    ----------
    predictors : for each application, the predictor of each cluster.
    forecast : gives the loads to expect on a site from now on; those last measured where None.
    remaining : how long a running job still takes, as far as the policy can know (s).
    """

    def __init__(
        self,
        predictors: Mapping[str, Mapping[str, Predictor]],
        forecast: Callable[[Site, float], Forecast] | None = None,
        *,
        knows_ends: bool = False,
    ) -> None:
        self.predictors = predictors
        self.forecast = forecast
        self.knows_ends = knows_ends

    def choose(self, job: Job, queues: Sequence[Queue], now: float) -> Choice:
        """The best of starting at once on free nodes and of waiting for more, on every cluster."""
        states: list[ClusterState] = []
        sources: list[int] = []
        for number, queue in enumerate(queues):
            measured = queue.site.measured(now)
            if queue.free and not queue.waiting:
                states.append(replace(measured.select(sorted(queue.free)), name=f"{measured.name}, at once"))
                sources.append(number)
            if queue.running:
                wait = self._wait(queue, now)
                states.append(replace(measured, name=f"{measured.name}, later", queue_wait=wait))
                sources.append(number)
        best = self._best(job, states, [queues[number] for number in sources], now, Constraints())
        chosen = best.resource_set
        source = next(number for state, number in zip(states, sources, strict=True) if state.name == chosen.cluster)
        site = queues[source].site
        at_once = chosen.cluster.endswith("at once")
        nodes = tuple(site.nodes.index(name) for name in chosen.nodes) if at_once else ()
        return Choice(source, chosen.processors, nodes, best.prediction.execution_time)

    def pick(self, job: Job, queue: Queue, processors: int, now: float) -> tuple[int, ...]:
        """The best free nodes for the number of processors chosen before."""
        state = queue.site.measured(now).select(sorted(queue.free))
        best = self._best(job, [state], [queue], now, Constraints(processors=(processors,)))
        return tuple(queue.site.nodes.index(name) for name in best.resource_set.nodes)

    def ended(self, job: Job, run: Run, wait: float) -> None:
        """Learn from the run."""
        self.predictors[run.application][run.cluster].learn(run)

    def _best(
        self,
        job: Job,
        states: Sequence[ClusterState],
        queues: Sequence[Queue],
        now: float,
        constraints: Constraints,
    ) -> Placement:
        known = self.predictors[job.application]
        predictors = {state.name: known[queue.site.name] for state, queue in zip(states, queues, strict=True)}
        forecasts: dict[str, Forecast] = {}
        if self.forecast is not None:
            forecasts = {
                state.name: self.forecast(queue.site, now) for state, queue in zip(states, queues, strict=True)
            }
        question = Question(
            job.problem_size,
            constraints,
            EARLIEST,
            top=1,
            scope="top",
            loads=Loads((lambda state, seconds: forecasts[state.name](state, seconds)) if forecasts else None),
        )
        return rank(states, predictors, question).placements[0]

    def _wait(self, queue: Queue, now: float) -> QueueWait:
        """When so many nodes are free; where so many are free already, when the next job ends."""
        running = [(len(job.nodes), self._remaining(job.start, job.end, job.thought, now)) for job in queue.running]
        queued = [(choice.processors, choice.thought) for _, choice in queue.waiting]
        wait = earliest_start(len(queue.free), running, queued)
        soonest = min(remaining for _, remaining in running)
        return QueueWait(wait.processors, np.maximum(wait.seconds, soonest))

    def _remaining(self, start: float, end: float, thought: float, now: float) -> float:
        if self.knows_ends:
            return end - now
        return max(start + thought - now, 0.1 * thought)


def oracle(grid: Sequence[Site]) -> Ranked:
    """The ranker with the true model, the true ends of running jobs, and the averages of the loads to come."""
    truth = {
        name: {site.name: Truth(application, site.speed) for site in grid} for name, application in APPLICATIONS.items()
    }

    def forecast(site: Site, now: float) -> Forecast:
        def expected(state: ClusterState, seconds: float) -> ClusterState:
            future = site.expected(now, now + seconds).select([site.nodes.index(name) for name in state.nodes])
            return replace(state, available_cpu=future.available_cpu, available_bandwidth=future.available_bandwidth)

        return expected

    return Ranked(truth, forecast, knows_ends=True)


class Requested:
    """What the other policies share: the user asks for a number of processors, and nodes are taken as they come.

    Parameters
    ----------
    processors : what users ask for; less where a cluster has fewer nodes.
    by_load : take the least loaded free nodes instead of the first.
    """

    def __init__(self, processors: int, *, by_load: bool = False) -> None:
        self.processors = processors
        self.by_load = by_load

    def choose(self, job: Job, queues: Sequence[Queue], now: float) -> Choice:
        """The cluster by the policy's own rule."""
        number = min(range(len(queues)), key=lambda index: (self.rule(job, queues[index], now), index))
        return Choice(number, self._processors(queues[number]))

    def rule(self, job: Job, queue: Queue, now: float) -> float:
        """The smaller the better."""
        raise NotImplementedError

    def pick(self, job: Job, queue: Queue, processors: int, now: float) -> tuple[int, ...]:
        """Free nodes, the first or the least loaded."""
        free = sorted(queue.free)
        if self.by_load:
            cpu = queue.site.measured(now).available_cpu
            free.sort(key=lambda node: -cpu[node])
        return tuple(free[:processors])

    def ended(self, job: Job, run: Run, wait: float) -> None:
        """Nothing is learned."""

    def _processors(self, queue: Queue) -> int:
        return min(self.processors, queue.site.size)


class Random(Requested):
    """Any cluster."""

    def __init__(self, processors: int) -> None:
        super().__init__(processors)
        self.random = np.random.default_rng(1)

    def rule(self, job: Job, queue: Queue, now: float) -> float:
        """A random number."""
        return float(self.random.random())


class LeastLoaded(Requested):
    """The cluster with the most CPU to spare for each processor asked for, counting jobs that run and wait."""

    def __init__(self, processors: int) -> None:
        super().__init__(processors, by_load=True)

    def rule(self, job: Job, queue: Queue, now: float) -> float:
        """Load by node: taken or asked for, plus what others use of the free ones."""
        cpu = queue.site.measured(now).available_cpu
        taken = queue.site.size - len(queue.free) + sum(choice.processors for _, choice in queue.waiting)
        return (taken + float(sum(1.0 - cpu[node] for node in queue.free))) / queue.site.size


class EarliestStart(Requested):
    """The cluster where the job would start first, as ``sbatch -M`` does; of several the first named."""

    def rule(self, job: Job, queue: Queue, now: float) -> float:
        """The wait, with running jobs thought to end when they really do: better than any time limit."""
        running = [(len(each.nodes), each.end - now) for each in queue.running]
        queued = [(choice.processors, 300.0) for _, choice in queue.waiting]
        return float(earliest_start(len(queue.free), running, queued).at(self._processors(queue)))


class History(Requested):
    """GridWay's rule: T = (1 - w) T_history + w T_last for each application and cluster, waits included."""

    def __init__(self, processors: int) -> None:
        super().__init__(processors, by_load=True)
        self.times: dict[tuple[str, str], list[float]] = {}

    def rule(self, job: Job, queue: Queue, now: float) -> float:
        """The time expected; a cluster never tried comes first."""
        times = self.times.get((job.application, queue.site.name))
        return 0.0 if not times else (1.0 - LAST) * float(np.mean(times)) + LAST * times[-1]

    def ended(self, job: Job, run: Run, wait: float) -> None:
        """Remember how long it took, with its wait."""
        self.times.setdefault((run.application, run.cluster), []).append(wait + run.execution_time)


#: The others, and the class that makes them.
REQUESTED: dict[str, type[Requested]] = {
    "random": Random,
    "least loaded": LeastLoaded,
    "earliest start (Slurm -M)": EarliestStart,
    "history (GridWay)": History,
}
