"""The power of a cluster without the job to be placed: of running jobs and of idle nodes.

The nodes of a cluster draw power whether a job is placed on them or not, and whether one may be or not. What was
learned of a job's power holds the idle power of the processors that it takes (:mod:`metasched.energy_share`), and the
powers of jobs that share a node add up. By the hardware's formula only the power of a whole node is known, from all its
busy processors together. Besides counts the idle power of processors that no job has. What an idle node draws is
``idle_power`` of the cluster's hardware, 0 where that does not tell it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from metasched.arrays import Floats, Ints
from metasched.blocks.power import idle_power, knows_power, of_node
from metasched.placement.clusters.running_jobs import RunningJob
from metasched.placement.clusters.state import ClusterState

#: Correlation that the errors of two jobs' powers are taken to have: models of several applications err for reasons of
#: their own, and nodes get loads of their own, but a bias of forecasts or of a meter is common to all.
COMMON = 0.1


@dataclass(frozen=True, slots=True)
class Draw:
    """The power of a cluster without a job.

    Parameters
    ----------
    running : expected power of the jobs that run (W), with the idle power of their processors.
    idle : of a node that does nothing (W).
    unused : nodes that are switched on and have no job, drained ones too, with the parts of others that none has.
    per_node : processors that a node has at most.
    doubts, squares : sums of the margins up to the upper limits of these jobs (W), and of their squares.
    whole : whether the power of a job to be placed is that of whole nodes, as by the hardware's formula.

    Examples
    --------
    >>> draw = Draw(running=300.0, idle=50.0, unused=4.0, per_node=2)
    >>> draw.alone, draw.most(np.array([1, 2, 3, 8]), np.full(4, 90.0), np.zeros(4)).tolist()
    (500.0, [565.0, 540.0, 515.0, 390.0])
    """

    running: float
    idle: float
    unused: float
    per_node: int
    doubts: float = 0.0
    squares: float = 0.0
    whole: bool = False

    @property
    def at_most(self) -> float:
        """The upper limit of the power of the jobs that run (W)."""
        return self.running + float(together(self.doubts, self.squares))

    @property
    def alone(self) -> float:
        """The upper limit of the power of the cluster without the job (W)."""
        return self.at_most + self.idle * self.unused

    def most(self, processors: Ints, watts: Floats, doubt: Floats) -> Floats:
        """The upper limit of its power with a job on the fewest idle nodes with enough processors (W), shape (n,).

        Parameters
        ----------
        processors : of the job.
        watts, doubt : its expected power, and the margin up to the upper limit (W).
        """
        nodes = np.asarray(processors) / self.per_node
        if self.whole:
            nodes = np.ceil(nodes)
        expected = self.running + watts + self.idle * np.maximum(self.unused - nodes, 0)
        return np.asarray(expected + together(self.doubts + doubt, self.squares + doubt**2))


def together(doubts: ArrayLike, squares: ArrayLike) -> Floats:
    """The margin between the expected power of several jobs together and its upper limit (W).

    The errors of any two jobs are assumed to have the correlation :data:`COMMON`. With margins d of the jobs, that of
    all is sqrt((1 - COMMON) sum(d^2) + COMMON sum(d)^2).

    Parameters
    ----------
    doubts, squares : sums of the margins (W), and of their squares (W^2).

    Examples
    --------
    >>> round(float(together(7.0, 25.0)), 2)
    5.23
    """
    return np.sqrt((1.0 - COMMON) * np.asarray(squares) + COMMON * np.square(doubts))


def draw_of(cluster: ClusterState, jobs: Sequence[RunningJob]) -> Draw:
    """The power of a cluster without a job to be placed there.

    Jobs of which no power was learned count by the hardware's formula, with the processors that all of them have on a
    node, or as idle where it has none. A node on which jobs run that are not known counts as if they had all of it.

    Parameters
    ----------
    cluster : its state.
    jobs : that run there, or were placed there just now.

    Examples
    --------
    >>> from metasched.placement.clusters.running_jobs import RunningJob
    >>> cluster = ClusterState.make("c", ["n0", "n1", "n2"], jobs=[1, 0, 0])
    >>> draw_of(cluster, [RunningJob(("n0",), (1,), 10.0, 0.0, power=90.0)])
    Draw(running=90.0, idle=0.0, unused=2.0, per_node=1, doubts=0.0, squares=0.0, whole=False)
    """
    hardware, place = cluster.hardware, {name: index for index, name in enumerate(cluster.nodes)}
    idle = idle_power(hardware)
    learned, by_formula, exclusive = np.zeros((3, len(cluster.nodes)), dtype=np.int64)
    running, doubts, squares = 0.0, 0.0, 0.0
    for job in jobs:
        for name, count in zip(job.nodes, job.processors, strict=True):
            if name in place:
                (by_formula if job.power is None else learned)[place[name]] += count
                exclusive[place[name]] += count * job.dedicated
        if job.power is not None:
            part = sum(name in place for name in job.nodes) / len(job.nodes)
            running += part * job.power
            doubts += part * job.power_doubt
            squares += (part * job.power_doubt) ** 2
    room = np.maximum(cluster.processors + exclusive, np.maximum(learned + by_formula, 1))
    per_node = int(room.max(initial=1))
    not_known = cluster.powered & (cluster.jobs > 0) & (learned + by_formula == 0)
    # A state has the free processors of a node, not those of jobs that are not known.
    whole = max(per_node, int((hardware.get("cores") if hardware is not None else None) or 1))
    room, by_formula = np.where(not_known, whole, (room, by_formula))
    busy = np.flatnonzero(by_formula)
    watts = np.full(busy.size, idle)
    if hardware is not None and knows_power(hardware, whole):
        watts = np.maximum(watts, of_node(hardware, by_formula[busy]))
    free = 1.0 - (learned + by_formula) / room
    running += float(np.sum(watts - idle * (1.0 - by_formula[busy] / room[busy])))
    unused = float(free[cluster.powered | (free < 1.0)].sum())
    return Draw(running, idle, unused, per_node, doubts, squares)
