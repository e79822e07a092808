"""What jobs on a node took of what it drew: idle power by processors, the rest by the processor time of each.

At every moment the power w of a node is W, that of the node doing nothing, and what its jobs draw besides. The first is
shared out by the processors that jobs have been given; what free processors draw is nobody's. The second is shared by
processor time, in proportion to how much of it each job takes a second; where that is not known a job is taken to keep
all its processors busy. Job i with p_i of P processors, b_i of which it keeps busy, takes

    W p_i / P + (w - W) b_i / (b_1 + b_2 + ...)

of the power while it runs. What is shared out and what is nobody's add up to what was measured.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from metasched.blocks.entry import Entry
from metasched.blocks.power import idle_power
from monitors.sources.power_history import Drawn


@dataclass(frozen=True, slots=True)
class Occupant:
    """A job on a node: from when to when (s), its processors there, and the processor time that it took there (s).

    ``processor_time`` is None if unknown.
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


#: Measurements of one node that are brought together at most.
MOST_TOGETHER = 100


@dataclass(frozen=True, slots=True)
class Measured:
    """What a node took in all (J) between two times (s)."""

    start: float
    end: float
    joules: float


def steadiest(covers: str, measured: Sequence[Measured], least: float = 0.0) -> Drawn:
    """The power of a node that varies least among those that explain what it took over times that overlap.

    Each of the jobs that share a node may tell what the node took while it ran; what it drew at a moment follows from
    all of them together, as nearly as the squares of their differences are small.

    Parameters
    ----------
    covers : what the meter sees.
    measured : at least one, each over some time; of more than :data:`MOST_TOGETHER` the longest count.
    least : what the node draws at least (W), as far as the measurements allow it.

    Examples
    --------
    >>> drawn = steadiest("node", [Measured(0.0, 10.0, 1000.0), Measured(5.0, 15.0, 2000.0)])
    >>> drawn.edges.tolist(), drawn.watts.round().tolist(), round(drawn.joules(5.0, 15.0))
    ([0.0, 5.0, 10.0, 15.0], [50.0, 150.0, 250.0], 2000)
    """
    measured = sorted(measured, key=lambda each: each.start - each.end)[:MOST_TOGETHER]
    edges = np.unique([at for each in measured for at in (each.start, each.end)])
    length = np.diff(edges)
    held = np.array([(each.start <= edges[:-1]) & (edges[1:] <= each.end) for each in measured])
    span = held @ length
    mean = np.array([each.joules for each in measured]) / span
    usual = float(np.average(mean, weights=span))
    # Departures from the mean power count so little beside the measurements that only what these leave open is decided.
    little = 1e-6 * np.sqrt(length / length.sum())
    rows = np.vstack([held * length / span[:, None], np.diag(little)])
    found = scipy.optimize.lsq_linear(
        rows, np.concatenate([mean, little * usual]), (min(least, mean.min()) - 1e-9, np.inf)
    )
    return Drawn(covers, edges, np.asarray(found.x))


@dataclass(frozen=True, slots=True)
class Coverage:
    """What measured power is of: of the node, also where packages were measured whose line to the node is known.

    Parameters
    ----------
    covers : what the power is of after :meth:`drawn` and :meth:`joules`.
    idle_watts : what that draws doing nothing; 0 where unknown.
    offset, factor : of the line from what was measured (W).

    Examples
    --------
    >>> import numpy as np
    >>> from metasched.blocks.entry import Entry, Kind, Quantity
    >>> values = {"node_offset": Quantity(60.0, "W", "measured"), "node_factor": Quantity(1.2, "1", "measured"),
    ...           "idle_power": Quantity(100.0, "W", "measured")}
    >>> found = Coverage.of("package", Entry("n", Kind.cluster, "", values))
    >>> found.covers, found.idle_watts, found.joules(870.0, 10.0)
    ('node', 100.0, 1644.0)
    >>> found.drawn(Drawn("package", np.array([0.0, 10.0]), np.array([87.0]))).watts.round(1).tolist()
    [164.4]
    """

    covers: str
    idle_watts: float = 0.0
    offset: float = 0.0
    factor: float = 1.0

    @classmethod
    def of(cls, covers: str, hardware: Entry | None) -> Coverage:
        """The coverage of a meter of nodes; what packages draw idle no hardware tells.

        Parameters
        ----------
        covers : what was measured; empty where nothing was.
        hardware : of the nodes, None where it is not known.
        """
        idle = idle_power(hardware)
        if covers == "node":
            return cls(covers, idle)
        factor = None if hardware is None else hardware.get("node_factor")
        if hardware is None or factor is None or not covers:
            return cls(covers)
        return cls("node", idle, hardware.get("node_offset") or 0.0, factor)

    def drawn(self, measured: Drawn) -> Drawn:
        """What was drawn, from what was measured."""
        return Drawn(self.covers, measured.edges, self.offset + self.factor * measured.watts)

    def joules(self, measured: float, seconds: float) -> float:
        """What one node took (J) in some seconds, from what was measured of it (J)."""
        return self.offset * seconds + self.factor * measured


def share_of_run(
    joules: float, seconds: float, own: Occupant, busy: float, processors: int, idle_watts: float, covers: str
) -> float:
    """Joules that a run took of what its host drew meanwhile.

    Parameters
    ----------
    joules, covers : what the host's meter counted, and of what.
    seconds : how long the run took.
    own : the run, from 0 on.
    busy : processor time that all processors of the host worked meanwhile (s), the run's among it.
    processors : of the host.
    idle_watts : what it draws doing nothing; where 0, all is shared by processor time.

    Examples
    --------
    >>> share_of_run(1000.0, 10.0, Occupant(0.0, 10.0, 2, 12.0), 16.0, 8, 40.0, "node")
    550.0
    """
    # How many processors others have been given is not known; what they draw idle is not the run's in any case.
    others = Occupant(0.0, seconds, 0, max(busy - (own.processor_time or 0.0), 0.0))
    drawn = Drawn(covers, np.array([0.0, seconds]), np.array([joules / seconds]))
    return shares(drawn, [own, others], processors, idle_watts, 0.0, seconds)[0][0]


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
