"""System models: nested networks, nodes with a device and slots for labels, and the times of blocks on them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from metasched.arrays import Floats, Ints
from metasched.blocks.entry import Block, Entry
from metasched.blocks.formulas import answer
from metasched.blocks.power import idle_power
from metasched.records import InputError

#: Most processes, and most nodes of a kind.
MOST = 2_000_000


@dataclass(frozen=True)
class Network:
    """A network: its name, the entry with its formulas or bandwidth, and its parent network."""

    name: str
    entry: Entry
    within: str = ""


@dataclass(frozen=True)
class Nodes:
    """A set of identical nodes.

    Parameters
    ----------
    name, count : what they are called, how many there are.
    network : that they are attached to.
    device : what computes: a cluster's entry with Table 1's formulas, or a processor or accelerator.
    slots : how many processes of each label a node takes.
    bus : what processes of one node communicate over; the network where there is none.
    disk : read and written; the device's own formulas where there is none.
    failure_rate : of a node (1/s); the device's lambda where there is none.
    """

    name: str
    count: int
    network: str
    device: Entry
    slots: Mapping[str, int]
    bus: Entry | None = None
    disk: Entry | None = None
    failure_rate: float | None = None

    @property
    def rate(self) -> float | None:
        """Failure rate of a node (1/s); None if unknown."""
        return self.device.get("lambda") if self.failure_rate is None else self.failure_rate

    def power(self, active: Ints) -> Floats:
        """Power of a node (W) with ``active`` active processes, shape (k,); nan where the device tells none."""
        distinct, which = np.unique(active, return_inverse=True)
        return np.array([self._power(int(each)) for each in distinct])[which].reshape(active.shape)

    def _power(self, active: int) -> float:
        if "PW_low" in self.device.values or Block.power in self.device.blocks:
            return answer(self.device, Block.power, threads=active).value
        tdp = self.device.get("tdp")
        idle = idle_power(self.device)
        return math.nan if tdp is None else idle + (tdp - idle) * min(active / max(sum(self.slots.values()), 1), 1.0)


@dataclass(frozen=True)
class System:
    """A system model.

    Parameters
    ----------
    name : for titles.
    networks, nodes : what there is.
    processes : the default number of processes of each label.
    waiting : whether a process that waits draws power as one that computes (it polls), or none.
    """

    name: str
    networks: tuple[Network, ...]
    nodes: tuple[Nodes, ...]
    processes: Mapping[str, int] = field(default_factory=dict)
    waiting: bool = True

    def __post_init__(self) -> None:
        """Refuse networks and nodes without a parent, and cycles of networks."""
        if len(self.by_name) < len(self.networks):
            raise InputError("two networks have the same name")
        for network in self.networks:
            seen, at = {network.name}, network
            while at.within:
                if at.within not in self.by_name:
                    raise InputError(f"network {at.name} is within network {at.within}, which does not exist")
                at = self.by_name[at.within]
                if at.name in seen:
                    raise InputError(f"network {network.name} is within itself")
                seen.add(at.name)
        for each in self.nodes:
            if each.network not in self.by_name:
                raise InputError(f"node {each.name} is on network {each.network}, which does not exist")
        if (count := sum(each.count for each in self.nodes)) > MOST:
            raise InputError(f"has {count} nodes, expected at most {MOST}")

    @cached_property
    def by_name(self) -> dict[str, Network]:
        """The networks of the system by their names."""
        return {network.name: network for network in self.networks}

    def above(self, network: str) -> list[str]:
        """A network and its parents, outwards."""
        found = [network]
        while self.by_name[found[-1]].within:
            found.append(self.by_name[found[-1]].within)
        return found

    def slots(self, label: str) -> int:
        """The number of slots for a label on all nodes."""
        return sum(nodes.count * nodes.slots.get(label, 0) for nodes in self.nodes)


class Placement:
    """Processes on slots: the mapper fills one node after another, in the order of the system model.

    Parameters
    ----------
    system : where.
    counts : processes of each label.

    Attributes
    ----------
    node : for each label an array of shape (n,), the node of each process.
    kind : array of shape (m,), which of the system's kinds a node is of.
    loads : array of shape (m,), processes of each node.

    Raises
    ------
    InputError : when a label has more processes than slots.
    """

    def __init__(self, system: System, counts: Mapping[str, int]) -> None:
        self.system, self.counts = system, dict(counts)
        self.kind: Ints = np.repeat(np.arange(len(system.nodes)), [nodes.count for nodes in system.nodes])
        first = np.concatenate([[0], np.cumsum([nodes.count for nodes in system.nodes])])
        self.node: dict[str, Ints] = {}
        for label, count in counts.items():
            room = system.slots(label)
            if not 1 <= count <= room:
                raise InputError(f"{count} processes of {label} are asked for, expected from 1 to its {room} slots")
            taken, left = [], count
            for place, nodes in enumerate(system.nodes):
                slots = nodes.slots.get(label, 0)
                here = min(left, slots * nodes.count)
                if here:
                    taken.append(first[place] + np.arange(here) // slots)
                    left -= here
            self.node[label] = np.concatenate(taken)
        self.loads: Ints = np.bincount(np.concatenate([*self.node.values()]), minlength=self.kind.size)
        self._times: dict[tuple[object, ...], float] = {}
        #: Seconds of an operation, of all processes of a label and of some.
        self._seconds: dict[str, Floats] = {}
        self._rates: dict[tuple[str, range], Floats | float] = {}

    def nodes_of(self, label: str, ranks: range) -> Ints:
        """The nodes of some processes of a label."""
        return self.node[label][ranks.start : ranks.stop : ranks.step]

    def compute(self, label: str, ranks: range, operations: Floats | float) -> Floats | float:
        """Seconds that computation takes, for each process or for all alike."""
        if (label, ranks) not in self._rates:
            if label not in self._seconds:
                nodes = self.node[label]
                loads = self.loads[nodes]
                most = int(loads.max()) + 1
                alike, which = np.unique(self.kind[nodes] * most + loads, return_inverse=True)
                self._seconds[label] = np.array([self._per_operation(*divmod(each, most)) for each in alike.tolist()])[
                    which
                ]
            self._rates[label, ranks] = _same(self._seconds[label][ranks.start : ranks.stop : ranks.step])
        return self._rates[label, ranks] * operations

    def _per_operation(self, kind: int, load: int) -> float:
        nodes = self.system.nodes[kind]
        device = nodes.device
        if "T_min" in device.values or Block.compute in device.blocks:
            return answer(device, Block.compute, instructions=1.0, threads=load).value
        if (speed := device.get("speed")) is not None:
            return max(load / (device.get("cores") or 1.0), 1.0) / speed
        peak = device.get("peak_double") or device.get("peak_single")
        if peak is None:
            raise InputError(f"{device.name} has no T_min, speed or peak_double, which compute needs")
        return max(load, sum(nodes.slots.values()), device.get("cores") or 1.0) / peak

    def disk(self, label: str, ranks: range, block: Block, size: Floats | float) -> Floats | float:
        """Seconds that reading or writing takes, from the bytes: for all ranks alike, or an array of shape (ranks,)."""
        kinds = self.kind[self.nodes_of(label, ranks)]
        found = np.zeros(len(ranks))
        sizes = np.broadcast_to(size, found.shape)
        for kind, each in np.unique(np.column_stack([kinds, sizes]), axis=0).tolist():
            nodes = self.system.nodes[int(kind)]
            found[(kinds == kind) & (sizes == each)] = self._answer(nodes.disk or nodes.device, block, each, 1)
        return _same(found)

    def message(self, here: Ints, there: Ints, size: Floats | float) -> Floats | float:
        """Seconds that a message takes from nodes to nodes; arrays of shape (n,).

        Parameters
        ----------
        here, there : numbers of the nodes that send and receive, each of shape (n,).
        size : bytes, of all messages or of each.
        """
        crossed = np.where(
            here == there, -1 - self.kind[here], self.kind[here] * len(self.system.nodes) + self.kind[there]
        )
        found = np.zeros(crossed.shape)
        for way in np.unique(crossed).tolist():
            chosen = crossed == way
            entry = self._crossed(way)
            if isinstance(size, np.ndarray):
                for each in np.unique(size[chosen]).tolist():
                    found[chosen & (size == each)] = self._answer(entry, Block.p2p, each, 2)
            else:
                found[chosen] = self._answer(entry, Block.p2p, size, 2)
        return _same(found)

    def _crossed(self, way: int) -> Entry:
        """The entry of the lowest level that two nodes have in common."""
        nodes = self.system.nodes
        if way < 0:
            kind = nodes[-1 - way]
            return kind.bus or self.system.by_name[kind.network].entry
        one, other = (self.system.above(nodes[each].network) for each in divmod(way, len(nodes)))
        common = next((name for name in one if name in other), None)
        if common is None:
            raise InputError(f"no network connects {one[0]} and {other[0]}")
        return self.system.by_name[common].entry

    def collective(self, block: Block, labels: Sequence[str], size: float) -> float:
        """Seconds that a collective operation takes: in nodes, then in each network among all that take part there.

        In a network these are its own nodes and the networks right below it, each when it is done within. Data between
        two processes cross the lowest level that both are in.

        Parameters
        ----------
        block : the operation.
        labels : whose processes take part.
        size : bytes; of a scatter or gather those of all processes together, of an all-to-all from each to each.

        Raises
        ------
        InputError : when no network connects them.
        """
        nodes = np.concatenate([self.node[label] for label in labels])
        distinct, per_node = np.unique(nodes, return_counts=True)
        kinds = self.kind[distinct]
        # Networks to come: the processes of each member that takes part, and seconds until the last is done within.
        remaining: dict[str, tuple[Ints, float]] = {}

        def join(network: str, members: Ints, seconds: float) -> None:
            others, last = remaining.get(network, (members[:0], 0.0))
            remaining[network] = np.concatenate([others, members]), max(last, seconds)

        def across(entry: Entry, members: Ints) -> float:
            if members.size < 2:
                return 0.0
            return self._answer(entry, block, _carried(block, size, members, nodes.size), members.size)

        for kind in np.unique(kinds).tolist():
            of_kind = per_node[kinds == kind]
            within = across(self._crossed(-1 - kind), np.ones(of_kind.max(), dtype=int))
            join(self.system.nodes[kind].network, of_kind, within)
        while True:
            # The deepest comes first, so that all networks within it are done.
            name = max(remaining, key=lambda each: len(self.system.above(each)))
            members, seconds = remaining.pop(name)
            network = self.system.by_name[name]
            seconds += across(network.entry, members)
            if not remaining:
                return seconds
            if not network.within:
                raise InputError(f"no network connects {', '.join((name, *remaining))}")
            join(network.within, members.sum(keepdims=True), seconds)

    def crossing(self, network: str, block: Block, size: float) -> float:
        """Seconds that a block takes between two nodes of a network."""
        return self._answer(self.system.by_name[network].entry, block, size, 2)

    def _answer(self, entry: Entry, block: Block, size: float, nodes: int) -> float:
        # By identity: several entries may have the same name.
        key = (id(entry), block, size, nodes)
        if key not in self._times:
            self._times[key] = self._ask(entry, block, size, nodes)
        return self._times[key]

    def _ask(self, entry: Entry, block: Block, size: float, nodes: int) -> float:
        bandwidth = entry.get("bandwidth")
        if f"T_{block}" in entry.values or block in entry.blocks or bandwidth is None:
            return answer(entry, block, data_size=size, nodes=nodes).value
        # Of a link or a bus often the bandwidth is all that is known: trees of messages, as MPI libraries send them.
        latency, rounds = entry.get("latency") or 0.0, math.ceil(math.log2(max(nodes, 1)))
        if block in (Block.p2p, Block.read, Block.write):
            return latency + size / bandwidth
        if block == Block.bcast:
            return rounds * (latency + size / bandwidth)
        if block == Block.barrier:
            return rounds * latency
        if block == Block.alltoall:
            return (nodes - 1) * (latency + size / bandwidth)
        return rounds * latency + size * (nodes - 1) / nodes / bandwidth


class Slowed(Placement):
    """A placement whose computation and data transfer are slowed by factors; latencies and disks are unchanged."""

    def __init__(self, system: System, counts: Mapping[str, int], computing: float, sending: float) -> None:
        super().__init__(system, counts)
        self.computing, self.sending = computing, sending

    def _per_operation(self, kind: int, load: int) -> float:
        return self.computing * super()._per_operation(kind, load)

    def _ask(self, entry: Entry, block: Block, size: float, nodes: int) -> float:
        whole = super()._ask(entry, block, size, nodes)
        if self.sending == 1.0 or block in (Block.read, Block.write):
            return whole
        empty = super()._ask(entry, block, 0.0, nodes)
        return empty + self.sending * (whole - empty)


def _carried(block: Block, size: float, members: Ints, processes: int) -> float:
    """Bytes of a collective operation among members of so many processes each, of all the processes that take part."""
    here = int(members.sum())
    if block in (Block.scatter, Block.gather):
        return size * (here / processes)
    if block == Block.alltoall:
        # From the member that sends most, to each of the others on average.
        return size * (int((members * (here - members)).max()) / (members.size - 1))
    return size


def _same(values: Floats) -> Floats | float:
    return float(values[0]) if np.all(values == values[0]) else values
