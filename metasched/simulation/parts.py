"""The components of a simulated run time: computation, latencies and data transfer."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from metasched.arrays import Floats
from metasched.blocks.entry import Block
from metasched.simulation.application import Application
from metasched.simulation.engine import STEPS, Simulation
from metasched.simulation.system import Placement, Slowed, System

#: Bytes of messages whose times tell the bandwidth of a link.
LONG = (2.0**20, 2.0**21)


def parts(
    system: System,
    application: Application,
    processes: Mapping[str, int],
    variables: Mapping[str, float] | None = None,
    steps: int = STEPS,
) -> Floats:
    """Computation, latencies and bytes of a run (s), array of shape (3,), which add up to its time.

    The time is homogeneous in the three, so each part is what it adds when it takes twice as long: waiting for the
    computation of others is computation.

    Parameters
    ----------
    system : that it runs on.
    application : the program.
    processes : how many there are of each label.
    variables : values of the program's variables.
    steps : most instructions to run.

    Raises
    ------
    InputError : as :func:`metasched.simulation.outcome.simulate`.
    """

    def time(computing: float, sending: float) -> float:
        ended = Simulation(application, Slowed(system, processes, computing, sending), variables, steps).run()
        return max(float(np.max(group.clock)) for group in ended)

    once = time(1.0, 1.0)
    work, sent = (max(time(*slower) - once, 0.0) for slower in ((2.0, 1.0), (1.0, 2.0)))
    # Another process may end last than the one whose time is split into parts.
    over = max((work + sent) / max(once, 1e-300), 1.0)
    work, sent = work / over, sent / over
    return np.array([work, max(once - work - sent, 0.0), sent])


def bandwidth(system: System, label: str) -> float:
    """The bandwidth of a label's slowest links (Mbit/s), from the time of long messages."""
    placement = Placement(system, {label: 1})
    found = []
    for network in {nodes.network for nodes in system.nodes if nodes.slots.get(label)}:
        shorter, longer = (placement.crossing(network, Block.p2p, size) for size in LONG)
        found.append(8e-6 * (LONG[1] - LONG[0]) / max(longer - shorter, 1e-30))
    return min(found)
