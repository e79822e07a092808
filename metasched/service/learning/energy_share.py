"""What jobs on a node took of what it drew: idle power by processors, the rest by the processor time of each.

At every moment the power of a node is that of the node doing nothing, and what its jobs draw besides. The first is
shared out by the processors that jobs have been given; what free processors draw is nobody's. The second is shared by
processor time, in proportion to how much of it each job takes a second; where that is not known a job is taken to keep
all its processors busy. What is shared out and what is nobody's add up to what was measured.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from metasched.blocks.entry import Entry
from monitors.sources.power_history import Drawn


@dataclass(frozen=True, slots=True)
class Occupant:
    """A job on a node: from when to when (s), its processors there, and the processor time that it took there (s).

    ``processor_time`` is None where nobody tells.
    """

    start: float
    end: float
    processors: float
    processor_time: float | None = None

    @property
    def busy(self) -> float:
        """Processors that it kept busy on average."""
        if self.processor_time is None or self.end <= self.start:
            return self.processors
        return self.processor_time / (self.end - self.start)


def as_node(drawn: Drawn, hardware: Entry | None) -> Drawn:
    """What the node drew, where only its packages were measured and its hardware tells the line between the two.

    Examples
    --------
    >>> import numpy as np
    >>> from metasched.blocks.entry import Entry, Kind, Quantity
    >>> line = {"node_offset": Quantity(60.0, "W", "measured"), "node_factor": Quantity(1.2, "1", "measured")}
    >>> packages = Drawn("package", np.array([0.0, 10.0]), np.array([87.0]))
    >>> found = as_node(packages, Entry("n", Kind.cluster, "", line))
    >>> found.covers, found.watts.round(1).tolist()
    ('node', [164.4])
    """
    factor = None if hardware is None else hardware.get("node_factor")
    if hardware is None or factor is None or drawn.covers == "node":
        return drawn
    return Drawn("node", drawn.edges, (hardware.get("node_offset") or 0.0) + factor * drawn.watts)


def shares(
    drawn: Drawn, jobs: Sequence[Occupant], processors: float, idle_watts: float, start: float, end: float
) -> tuple[list[float], float]:
    """Joules that each job took of what a node drew from one time to another (s), and those that are nobody's.

    Parameters
    ----------
    drawn : by the node.
    jobs : on it.
    processors : of the node; more are assumed where jobs have more at a time.
    idle_watts : what the node draws doing nothing.

    Examples
    --------
    >>> import numpy as np
    >>> drawn = Drawn("node", np.array([0.0, 10.0]), np.array([100.0]))
    >>> shares(drawn, [Occupant(0.0, 10.0, 2), Occupant(0.0, 5.0, 1, processor_time=2.5)], 4, 40.0, 0.0, 10.0)
    ([740.0, 110.0], 150.0)
    """
    edges = sorted({start, end, *(min(max(at, start), end) for job in jobs for at in (job.start, job.end))})
    taken, nobodys = [0.0] * len(jobs), 0.0
    for here, there in itertools.pairwise(edges):
        joules = drawn.joules(here, there)
        idle = min(idle_watts * (there - here), joules)
        present = [place for place, job in enumerate(jobs) if job.start <= here and there <= job.end]
        room = max(processors, sum(jobs[place].processors for place in present))
        busy = sum(jobs[place].busy for place in present)
        left = joules
        for place in present:
            share = idle * jobs[place].processors / room if room else 0.0
            if busy:
                share += (joules - idle) * jobs[place].busy / busy
            taken[place] += share
            left -= share
        nobodys += left
    return taken, nobodys
