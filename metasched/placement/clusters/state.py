"""The state of a cluster for the search: one array for each property of its nodes, and the network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from metasched.arrays import Flags, Floats, Ints
from metasched.blocks.entry import Entry
from metasched.blocks.failures import FailureRate
from metasched.placement.clusters.found_once import found_once
from metasched.placement.clusters.network import Network
from metasched.placement.clusters.queue_wait import QueueWait
from metasched.placement.clusters.switch_tree import Topology
from metasched.predictors.load_doubt import LoadDoubt
from metasched.records import InputError, Place, ResourceSet, Settings
from monitors.forecasters.sets import LEVEL

#: The arrays of a state that have one entry for each node.
COLUMNS = ("processors", "available_cpu", "available_bandwidth", "speed", "memory", "jobs", "up", "powered", "age")


@dataclass(frozen=True, slots=True, eq=False)
class SetMinima:
    """Minima of sets of nodes relative to the smallest forecast of their nodes.

    Nodes are taken the best first, each with all of its processors; so the number of these tells that of the nodes.

    Parameters
    ----------
    cpu, bandwidth : arrays of shape (k,), for 1, 2, ... nodes; the last holds for more: the part of the least
        expectation that the least average of the set should be.
    cpu_ends, bandwidth_ends : arrays of shape (2, k): between which parts of that it comes out, at the level
        :data:`monitors.forecasters.sets.LEVEL`; None where nothing is known of it.
    cpu_middle, bandwidth_middle : arrays of shape (k,): the parts of that above which it comes out as often as below;
        1 where None.
    processors : array of shape (n,), those that may be used of each node, the best first; one of each where None.
    nodes : array of shape (n,), numbers of these nodes in their cluster; None where they are not known.

    Examples
    --------
    >>> ends = np.array([[0.5, 0.5], [1.5, 1.5]])
    >>> minima = SetMinima(np.array([1.0, 0.9]), np.array([1.0, 0.8]), ends, ends)
    >>> minima.at(np.array([1, 2, 64]))[0].tolist()
    [1.0, 0.9, 0.9]
    >>> minima.doubt(2, 0.9).cpu.tolist(), minima.doubt(2, 0.5).cpu.round(2).tolist()
    ([0.5, 1.5], [0.75, 1.18])
    """

    cpu: Floats
    bandwidth: Floats
    cpu_ends: Floats | None = None
    bandwidth_ends: Floats | None = None
    cpu_middle: Floats | None = None
    bandwidth_middle: Floats | None = None
    processors: Ints | None = None
    nodes: Ints | None = None
    #: For 1, 2, ... processors the place of their nodes in the arrays above; the last holds for more.
    _places: Ints = field(init=False, repr=False)

    def __post_init__(self) -> None:
        most = self.cpu.size
        each = np.ones(most, np.int64) if self.processors is None else self.processors[self.processors > 0][:most]
        object.__setattr__(self, "_places", np.repeat(np.arange(each.size), each) if each.size else np.zeros(1, int))

    def laid_out(self, settings: Settings, per_node: int | Ints | None) -> SetMinima:
        """The same for jobs with a layout, see :meth:`ClusterState.laid_out`."""
        each = np.ones(self.cpu.size, np.int64) if self.processors is None else self.processors
        if isinstance(per_node, np.ndarray):
            per_node = int(per_node.max(initial=0)) if self.nodes is None else per_node[self.nodes]
        return replace(self, processors=_slots(each, settings, per_node))

    def offered(self, processors: Ints) -> SetMinima:
        """The same where so many processors of each node of the cluster may be used, shape (n,); 0 of some."""
        return self if self.nodes is None else replace(self, processors=processors[self.nodes])

    def select(self, nodes: Ints, size: int) -> SetMinima:
        """The same for a cluster with some of its ``size`` nodes only, by their numbers, in the order given."""
        if self.nodes is None or self.processors is None:
            return self
        number = np.full(size, -1)
        number[nodes] = np.arange(nodes.size)
        kept = np.flatnonzero(number[self.nodes] >= 0)
        return replace(self, nodes=number[self.nodes[kept]], processors=self.processors[kept])

    def at(self, processors: Ints) -> tuple[Floats, Floats]:
        """The parts of CPU and of bandwidth for ``processors`` processors, each of their shape (k,)."""
        place = self._place(processors)
        return self.cpu[place], self.bandwidth[place]

    def doubt(self, processors: ArrayLike, level: float) -> LoadDoubt | None:
        """The interval of the minima of sets of P processors; None if unknown."""
        return _doubt_of_one(self, processors, level) if isinstance(processors, int) else self._doubt(processors, level)

    def _doubt(self, processors: ArrayLike, level: float) -> LoadDoubt | None:
        if self.cpu_ends is None or self.bandwidth_ends is None:
            return None
        place = self._place(processors)
        middles = (None if each is None else each[place] for each in (self.cpu_middle, self.bandwidth_middle))
        return LoadDoubt(self.cpu_ends[:, place], self.bandwidth_ends[:, place], *middles).carried(LEVEL, level)

    def _place(self, processors: ArrayLike) -> Ints:
        return np.asarray(self._places[np.minimum(np.asarray(processors), self._places.size) - 1])


#: Placements ask again for the same numbers of processors, which the same forecasts are for.
_doubt_of_one = lru_cache(maxsize=100)(SetMinima._doubt)


@dataclass(frozen=True, slots=True)
class ClusterState:
    """The nodes of one cluster and their available resources. Created by :meth:`make` or :meth:`of`.

    Parameters
    ----------
    name : the cluster's name.
    nodes : names of the nodes, n of them.
    processors : array of shape (n,), processors that a job may use there now, 0 where none is free.
    available_cpu : array of shape (n,), share of one processor that a new process would get, in (0, 1].
    available_bandwidth : array of shape (n,), what the node's own link has to spare (Mbit/s).
    speed : array of shape (n,), relative to the node that the model was learned on.
    memory : array of shape (n,), megabytes that a job may use there now, NaN where unknown.
    jobs : array of shape (n,), jobs that already run there.
    up : array of shape (n,), False where the node is down, drained or reserved.
    powered : array of shape (n,), False where the node is switched off, so that it draws nothing.
    age : array of shape (n,), how old the measurements are (s), NaN for loads that are described and not measured.
    features : for each node the words that constraints may ask for.
    network : what lies between the nodes.
    queue_wait : how long a job would wait before it starts.
    hardware : of its nodes, whose power formula holds where no energy was learned, and whose nodes fail as it says.
    minima : forecasts of the least average of sets of nodes, if there are any; the least of their nodes if None.
    processes_per_node, threads, frequency : how a job would be laid out, and the clock (MHz) that its processors would
        have, None for their own; see :meth:`laid_out`.
    turn : array of shape (n,), different numbers: of equal nodes the one with the least is taken first; their own order
        where None.
    failures : how often one of its nodes fails, by records of failures; as the hardware says where None.
    """

    name: str
    nodes: tuple[str, ...]
    processors: Ints
    available_cpu: Floats
    available_bandwidth: Floats
    speed: Floats
    memory: Floats
    jobs: Ints
    up: Flags
    powered: Flags
    age: Floats
    features: tuple[frozenset[str], ...]
    network: Network
    queue_wait: QueueWait
    hardware: Entry | None = None
    minima: SetMinima | None = None
    processes_per_node: int | None = None
    threads: int = 1
    frequency: float | None = None
    turn: Ints | None = None
    failures: FailureRate | None = None

    @classmethod
    def make(
        cls,
        name: str,
        nodes: Sequence[str],
        *,
        processors: ArrayLike = 1,
        available_cpu: ArrayLike = 1.0,
        available_bandwidth: ArrayLike = 1000.0,
        speed: ArrayLike = 1.0,
        memory: ArrayLike = np.nan,
        jobs: ArrayLike = 0,
        up: ArrayLike = True,
        powered: ArrayLike = True,
        age: ArrayLike = 0.0,
        features: Sequence[frozenset[str]] | None = None,
        network: Network | None = None,
        queue_wait: QueueWait | None = None,
        hardware: Entry | None = None,
    ) -> ClusterState:
        """A state with the columns of the class, each given for every node or once for all; on one switch by default.

        >>> ClusterState.make("c2", ["n0", "n1"], available_cpu=[1.0, 0.5], speed=2.0).effective_cpu.tolist()
        [2.0, 1.0]
        """
        size = len(nodes)

        def column(values: ArrayLike, dtype: type[Any]) -> NDArray[Any]:
            given: NDArray[Any] = np.asarray(values, dtype=dtype)
            if given.shape not in ((), (size,)):
                raise InputError(f"a column of cluster {name} has shape {given.shape}, expected ({size},)")
            return np.array(np.broadcast_to(given, (size,)))

        network = network or Topology.star(name, size)
        if network.nodes != size or (features is not None and len(features) != size):
            raise InputError(f"network and features of cluster {name} must cover its {size} nodes")
        return cls(
            name=name,
            nodes=tuple(nodes),
            processors=column(processors, np.int64),
            available_cpu=column(available_cpu, np.float64),
            available_bandwidth=column(available_bandwidth, np.float64),
            speed=column(speed, np.float64),
            memory=column(memory, np.float64),
            jobs=column(jobs, np.int64),
            up=column(up, np.bool_),
            powered=column(powered, np.bool_),
            age=column(age, np.float64),
            features=(frozenset(),) * size if features is None else tuple(features),
            network=network,
            queue_wait=queue_wait or QueueWait.always(0.0),
            hardware=hardware,
        )

    @property
    def effective_cpu(self) -> Floats:
        """Available CPU in units of the reference node's processor, shape (n,)."""
        return self.available_cpu * self.speed

    def resource_set(self, nodes: Ints, processors: int) -> ResourceSet:
        """The record of some nodes, by their numbers, with the expected minima of the set.

        Parameters
        ----------
        nodes : their numbers, shape (k,).
        processors : that the set takes in all.
        """
        cpu, bandwidth = (np.ones(1),) * 2 if self.minima is None else self.minima.at(np.array([processors]))
        return ResourceSet(
            cluster=self.name,
            nodes=tuple(self.nodes[index] for index in nodes.tolist()),
            processors=processors,
            available_cpu=float(cpu[0] * self.effective_cpu[nodes].min()),
            available_bandwidth=float(bandwidth[0]) * self.network.bandwidth(self.available_bandwidth, nodes),
            processes_per_node=self.processes_per_node,
            threads=self.threads,
            frequency=self.frequency,
        )

    @property
    def per_node(self) -> int:
        """The most processors that a job may take on one node, those of its threads too; at least 1."""
        return max(int(self.processors.max(initial=1)), 1) * self.threads

    @property
    def place(self) -> Place:
        """The cluster, the layout on its nodes and their clock, as resource sets name them."""
        return self.name, self.processes_per_node, self.threads, self.frequency

    def laid_out(self, settings: Settings, per_node: int | Ints | None = None) -> ClusterState:
        """The cluster for a job with the layout of some settings: its processors are then slots for processes.

        Parameters
        ----------
        settings : at most ``processes_per_node`` processes on a node, each taking ``threads`` processors.
        per_node : most processors that the job may take on one node, or of each, shape (n,).

        Examples
        --------
        >>> ClusterState.make("c", ["n0", "n1"], processors=[4, 16]).laid_out(Settings(4, 2)).processors.tolist()
        [2, 4]
        """
        return replace(
            self,
            processors=_slots(self.processors, settings, per_node),
            minima=None if self.minima is None else self.minima.laid_out(settings, per_node),
            processes_per_node=settings.processes_per_node,
            threads=settings.threads,
            frequency=settings.frequency,
        )

    def doubt(self, processors: ArrayLike, level: float) -> LoadDoubt | None:
        """The interval of the loads of sets of P processors; None if unknown.

        Parameters
        ----------
        processors : of each set, shape (n,).
        level : probability that the loads lie between the ends, in (0, 1).
        """
        return None if self.minima is None else self.minima.doubt(processors, level)

    def select(self, nodes: ArrayLike) -> ClusterState:
        """The cluster with some of its nodes only, by their numbers, in the order given."""
        kept = np.asarray(nodes, dtype=np.int64)
        numbers = kept.tolist()
        return replace(
            self,
            nodes=tuple(map(self.nodes.__getitem__, numbers)),
            features=tuple(map(self.features.__getitem__, numbers)),
            network=self.network.select(kept),
            turn=None if self.turn is None else self.turn[kept],
            minima=None if self.minima is None else self.minima.select(kept, len(self.nodes)),
            **{name: getattr(self, name)[kept] for name in COLUMNS},
        )


def _slots(processors: Ints, settings: Settings, per_node: int | Ints | None) -> Ints:
    """How many processes with a layout there is room for on nodes, with at most some processors on each; shape (n,)."""
    slots = (processors if per_node is None else np.minimum(processors, per_node)) // settings.threads
    return slots if settings.processes_per_node is None else np.minimum(slots, settings.processes_per_node)


@found_once
def places(nodes: tuple[str, ...]) -> Mapping[str, int]:
    """The number of each node of a cluster, which hardly ever change."""
    return {node: number for number, node in enumerate(nodes)}


@found_once
def nodes_with(features: tuple[frozenset[str], ...]) -> Mapping[str, int]:
    """How many nodes of a cluster have each feature, which hardly ever change.

    >>> nodes_with((frozenset({"gpu", "new"}), frozenset({"new"})))["new"]
    2
    """
    return Counter(chain.from_iterable(features))
