"""The newest load of every node, in memory, and the partitions as placements see them.

Agents write here with every batch; once a second the periodic work lays the loads over what the schedulers last said
of their nodes and puts the result up as one immutable value. A placement reads that value and waits for nobody.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from metasched.placement.clusters.partition import Partition
from metasched.placement.clusters.running_jobs import RunningJob, StartedJob, later
from metasched.placement.clusters.state import ClusterState
from metasched.placement.loads.staleness import LEAST_BANDWIDTH, LEAST_CPU
from metasched.records import Load


def runner_of(partition: Partition) -> str:
    """Who runs the jobs where a partition is: its scheduler, else the cluster itself."""
    return partition.scheduler or f"cluster {partition.state.name}"


@dataclass(frozen=True, slots=True)
class View:
    """All that a placement uses: the partitions with the newest loads, and when they were put up (s).

    ``running`` holds the jobs that each scheduler runs, by its name, and those of a cluster without one; see
    :func:`runner_of`.
    """

    made_at: float
    partitions: tuple[Partition, ...] = ()
    running: Mapping[str, tuple[RunningJob | StartedJob, ...]] = field(default_factory=dict)

    def running_on(self, partition: Partition) -> tuple[RunningJob | StartedJob, ...]:
        """The jobs that run where a partition is; some of them perhaps on other nodes."""
        return self.running.get(runner_of(partition), ())

    def ages(self) -> dict[tuple[str, str], float]:
        """How old the newest load of each node is (s), by who runs it and its name; partitions may share nodes."""
        return {
            (runner_of(each), node): age
            for each in self.partitions
            for node, age in zip(each.state.nodes, each.state.age.tolist(), strict=True)
        }

    def named(self, state: str) -> Partition | None:
        """The partition whose cluster state has this name."""
        return next((each for each in self.partitions if each.state.name == state), None)

    def find(self, scheduler: str, name: str) -> Partition | None:
        """The partition that a scheduler calls by this name."""
        return next((each for each in self.partitions if (each.scheduler, each.name) == (scheduler, name)), None)


class LiveClusters:
    """Loads and partitions as they are now.

    Attributes
    ----------
    view : what placements use.
    nodes : names of all nodes of all partitions.

    Examples
    --------
    >>> clusters = LiveClusters()
    >>> clusters.put("east", [Partition.of(ClusterState.make("east", ["e1", "e2"]))])
    >>> clusters.note([Load(100.0, "e2", 0.25, 80.0)])
    >>> view = clusters.refresh(now=101.0)
    >>> view.partitions[0].state.available_cpu.tolist(), view.partitions[0].state.age.tolist()
    ([1.0, 0.25], [0.0, 1.0])
    """

    def __init__(self) -> None:
        self._latest: dict[str, Load] = {}
        self._sources: dict[str, tuple[Partition, ...]] = {}
        self._seen_at: dict[str, float] = {}
        self.nodes: frozenset[str] = frozenset()
        self._running: dict[str, tuple[float, tuple[RunningJob | StartedJob, ...]]] = {}
        self.view = View(0.0)

    def put(self, source: str, partitions: Sequence[Partition], now: float | None = None) -> None:
        """Replace the partitions of one source by what it says now."""
        self._sources = self._sources | {source: tuple(partitions)}
        self.nodes = frozenset(node for own in self._sources.values() for each in own for node in each.state.nodes)
        self._seen_at = self._seen_at | {source: time.time() if now is None else now}

    def put_running(self, source: str, jobs: Sequence[RunningJob | StartedJob], now: float) -> None:
        """Replace the jobs that a source runs by those that it tells of now."""
        self._running = self._running | {source: (now, tuple(jobs))}

    def note(self, loads: Iterable[Load]) -> None:
        """Take loads; of each node the newest counts."""
        for load in loads:
            known = self._latest.get(load.node)
            if known is None or known.time <= load.time:
                self._latest[load.node] = load

    def newest(self, node: str) -> float:
        """Time of the newest load of a node (s), minus infinity where there is none."""
        load = self._latest.get(node)
        return -math.inf if load is None else load.time

    def refresh(self, now: float) -> View:
        """Put up the view of this moment."""
        partitions = tuple(
            replace(each, state=self._with_loads(each.state, now)) for own in self._sources.values() for each in own
        )
        running = {
            source: tuple(left for job in jobs if (left := later(job, max(now - known_at, 0.0))) is not None)
            for source, (known_at, jobs) in self._running.items()
        }
        self.view = View(now, partitions, running)
        return self.view

    @property
    def seen_at(self) -> Mapping[str, float]:
        """When each source was last heard (s)."""
        return self._seen_at

    @property
    def latest(self) -> Mapping[str, Load]:
        """The newest load of each node."""
        return self._latest

    def _with_loads(self, state: ClusterState, now: float) -> ClusterState:
        found = [self._latest.get(node) for node in state.nodes]
        known = np.array([load is not None for load in found])
        if not known.any():
            return state
        rows = np.array(
            [(load.time, load.available_cpu, load.available_bandwidth) if load else (now, 1.0, 1.0) for load in found]
        )
        return replace(
            state,
            age=np.where(known, np.maximum(now - rows[:, 0], 0.0), state.age),
            available_cpu=np.where(known, np.maximum(rows[:, 1], LEAST_CPU), state.available_cpu),
            available_bandwidth=np.where(known, np.maximum(rows[:, 2], LEAST_BANDWIDTH), state.available_bandwidth),
        )
