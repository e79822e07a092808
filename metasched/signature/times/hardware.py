"""The machine that an application runs on, for times by blocks: entries of the hardware database, and their use."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from metasched.blocks.entry import Entry, Kind, Quantity
from metasched.signature.traces.phases import Machine
from metasched.simulation.system import Network, Nodes, Placement, Slowed, System

#: Bytes of messages whose times tell the bandwidth of a link.
LONG = (2.0**20, 2.0**21)
LABEL = "process"


@dataclass(frozen=True)
class Hardware:
    """Where an application runs.

    Parameters
    ----------
    device, network : their entries.
    per_node : processes on each node.
    computing, sending : how many times as long an instruction and a byte take as the entries say.
    """

    device: Entry
    network: Entry
    per_node: int = 1
    computing: float = 1.0
    sending: float = 1.0

    def placement(self, count: int) -> Placement:
        """The placement of ``count`` processes on the nodes that they need."""
        nodes = Nodes("node", -(-count // self.per_node), "network", self.device, {LABEL: self.per_node})
        system = System(self.device.name, (Network("network", self.network),), (nodes,))
        return Slowed(system, {LABEL: count}, self.computing, self.sending)

    @property
    def bandwidth(self) -> float:
        """The bandwidth of a link (Mbit/s), from the time of long messages."""
        placement = replace(self, per_node=1, sending=1.0).placement(2)
        here, there = np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64)
        shorter, longer = (float(np.max(placement.message(here, there, size))) for size in LONG)
        return 8e-6 * (LONG[1] - LONG[0]) / max(longer - shorter, 1e-30)


def assumed() -> Hardware:
    """The nominal machine (``Machine``) that times are computed for if the real one is unknown."""
    machine = Machine()
    values = {
        "speed": Quantity(machine.speed, "flop/s", "assumed"),
        "bandwidth": Quantity(machine.bandwidth, "B/s", "assumed"),
        "latency": Quantity(machine.latency, "s", "assumed"),
    }
    entry = Entry("assumed", Kind.cluster, "an assumed machine", values)
    return Hardware(entry, entry)
