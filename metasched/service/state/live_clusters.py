"""The newest load of every node, in memory, and the partitions as placements see them.

Agents write here with every batch; once a second the periodic work lays the loads over what the schedulers last said
of their nodes and puts the result up as one immutable value. A placement reads that value and waits for nobody.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from metasched.placement.clusters.partition import Partition
from metasched.placement.clusters.running_jobs import RunningJob, StartedJob, later
from metasched.placement.clusters.state import ClusterState
from metasched.placement.loads.staleness import LEAST_BANDWIDTH, LEAST_CPU, STALE_AFTER, stale
from metasched.records import Load
from metasched.service.state.load_names import LoadNames


def runner_of(partition: Partition) -> str:
    """Who runs the jobs where a partition is: its scheduler, else the cluster itself."""
    return partition.scheduler or f"cluster {partition.state.name}"


@dataclass(frozen=True, slots=True)
class View:
    """All that a placement uses: the partitions with the newest loads, and when they were put up (s).

    ``running`` holds the jobs that each scheduler runs, by its name, and those of a cluster without one; see
    :func:`runner_of`. ``names`` are those under which loads of nodes are reported.
    """

    made_at: float
    partitions: tuple[Partition, ...] = ()
    running: Mapping[str, tuple[RunningJob | StartedJob, ...]] = field(default_factory=dict)
    names: LoadNames = field(default_factory=LoadNames)

    def running_on(self, partition: Partition) -> tuple[RunningJob | StartedJob, ...]:
        """The jobs that run where a partition is; some of them perhaps on other nodes."""
        return self.running.get(runner_of(partition), ())

    def started(self, scheduler: str = "") -> list[StartedJob]:
        """The jobs that a scheduler runs, or all schedulers, as they report them."""
        found = [jobs for runner, jobs in self.running.items() if scheduler in ("", runner)]
        return [each for jobs in found for each in jobs if isinstance(each, StartedJob)]

    def ages(self) -> dict[tuple[str, str], float]:
        """How old the newest load of each node is (s), by who runs it and its name; partitions may share nodes."""
        return {
            (runner_of(each), node): age
            for each in self.partitions
            for node, age in zip(each.state.nodes, each.state.age.tolist(), strict=True)
        }

    def silent(self) -> int:
        """How many nodes that are up have stale loads; nodes that were never heard are not among them."""
        return len({
            (runner_of(each), node)
            for each in self.partitions
            for node, old in zip(each.state.nodes, stale(each.state, STALE_AFTER).tolist(), strict=True) if old
        })  # fmt: skip

    def load_names(self) -> dict[str, tuple[str, ...]]:
        """The names under which the loads of the nodes of each cluster are reported, by the name of its state."""
        return {each.state.name: self.names.of(each.scheduler, each.state.nodes) for each in self.partitions}

    def named(self, state: str) -> Partition | None:
        """The partition whose cluster state has this name."""
        return next((each for each in self.partitions if each.state.name == state), None)

    def find(self, scheduler: str, name: str) -> Partition | None:
        """The partition that a scheduler calls by this name."""
        return next((each for each in self.partitions if (each.scheduler, each.name) == (scheduler, name)), None)


class LiveClusters:
    """Loads and partitions as they are now.

    Parameters
    ----------
    names : the prefixes and shared names of the configuration.

    Attributes
    ----------
    view : what placements use.
    names : under which loads of the nodes of all partitions are reported.
    nodes : these names.

    Examples
    --------
    >>> clusters = LiveClusters()
    >>> clusters.put("east", [Partition.of(ClusterState.make("east", ["e1", "e2"]))], 0.0)
    >>> clusters.note([Load(100.0, "e2", 0.25, 80.0)])
    >>> view = clusters.refresh(now=101.0)
    >>> view.partitions[0].state.available_cpu.tolist(), view.partitions[0].state.age.tolist()
    ([1.0, 0.25], [nan, 1.0])
    """

    def __init__(self, names: LoadNames | None = None) -> None:
        self._latest: dict[str, Load] = {}
        #: The newest time, CPU and bandwidth of each node in columns, and its row there.
        self._columns, self._row = np.full((16, 3), np.nan), dict[str, int]()
        self._rows: dict[str, tuple[LoadNames, tuple[str, ...], NDArray[np.intp]]] = {}
        self._noting, self._putting = Lock(), Lock()
        self._sources: dict[str, tuple[Partition, ...]] = {}
        self._seen_at: dict[str, float] = {}
        self.names = names or LoadNames()
        self.nodes: frozenset[str] = frozenset()
        self._running: dict[str, tuple[float, tuple[RunningJob | StartedJob, ...]]] = {}
        self.view = View(0.0)

    def put(self, source: str, partitions: Sequence[Partition], now: float) -> None:
        """Replace the partitions of one source by what it says now (s)."""
        nodes = frozenset(node for each in partitions for node in each.state.nodes)
        with self._putting:
            self._sources = self._sources | {source: tuple(partitions)}
            self.names = self.names.having(source, nodes)
            self.nodes = self.names.known
            self._seen_at = self._seen_at | {source: now}

    def expect(self, source: str, nodes: Iterable[str]) -> None:
        """Count nodes as those of a source until it has answered."""
        with self._putting:
            if source not in self._seen_at:
                self.names = self.names.having(source, nodes)
                self.nodes = self.names.known

    def put_running(self, source: str, jobs: Sequence[RunningJob | StartedJob], now: float) -> None:
        """Replace the jobs that a source runs by those that it tells of now."""
        self._running = self._running | {source: (now, tuple(jobs))}

    def note(self, loads: Iterable[Load], until: float = math.inf) -> None:
        """Take loads; of each node the newest counts, as long as it is of a time that may be.

        Parameters
        ----------
        loads : of any nodes.
        until : the latest time that may be (s); before a clock was set back there were later ones.
        """
        newest: dict[str, Load] = {}
        for load in loads:
            known = newest.get(load.node) or self._latest.get(load.node)
            if known is None or known.time <= load.time or known.time > until:
                newest[load.node] = load
        with self._noting:
            for node, load in newest.items():
                self._latest[node] = load
                row = self._row_of(node)
                self._columns[row] = load.time, load.available_cpu, load.available_bandwidth

    def newest(self, node: str) -> float:
        """Time of the newest load of a node (s), minus infinity where there is none."""
        load = self._latest.get(node)
        return -math.inf if load is None else load.time

    def refresh(self, now: float, prepare: Callable[[View], object] = lambda view: None) -> View:
        """Put up the view of this moment.

        Parameters
        ----------
        now : seconds.
        prepare : called with the view before it is put up, so that no question has to wait for what it needs.
        """
        names = self.names
        partitions = tuple(
            replace(each, state=self._with_loads(each, names, now)) for own in self._sources.values() for each in own
        )
        running = {
            source: tuple(left for job in jobs if (left := later(job, max(now - known_at, 0.0))) is not None)
            for source, (known_at, jobs) in self._running.items()
        }
        view = View(now, partitions, running, names)
        prepare(view)
        self.view = view
        return view

    @property
    def seen_at(self) -> Mapping[str, float]:
        """When each source was last heard (s)."""
        return self._seen_at

    @property
    def latest(self) -> Mapping[str, Load]:
        """The newest load of each node."""
        return self._latest

    def newest_loads(self) -> Iterator[Load]:
        """The newest load of each node; they are copied when the first is asked for."""
        yield from tuple(self._latest.values())

    def _with_loads(self, partition: Partition, names: LoadNames, now: float) -> ClusterState:
        state, rows = partition.state, self._rows_of(partition, names)
        time, cpu, bandwidth = self._columns.take(rows, axis=0).T
        known = ~np.isnan(time)
        return replace(
            state,
            age=np.maximum(now - time, 0.0),
            available_cpu=np.where(known, np.maximum(cpu, LEAST_CPU), state.available_cpu),
            available_bandwidth=np.where(known, np.maximum(bandwidth, LEAST_BANDWIDTH), state.available_bandwidth),
        )

    def _rows_of(self, partition: Partition, names: LoadNames) -> NDArray[np.intp]:
        """The rows of the nodes of a cluster, which hardly ever change."""
        state = partition.state
        known, nodes, rows = self._rows.get(state.name, (None, (), None))
        if rows is None or known is not names or nodes != state.nodes:
            with self._noting:
                rows = np.array(
                    [self._row_of(name) for name in names.of(partition.scheduler, state.nodes)], dtype=np.intp
                )
            self._rows[state.name] = names, state.nodes, rows
        return rows

    def _row_of(self, node: str) -> int:
        row = self._row.setdefault(node, len(self._row))
        if row >= len(self._columns):
            self._columns = np.concatenate([self._columns, np.full_like(self._columns, np.nan)])
        return row
