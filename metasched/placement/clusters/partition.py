"""A partition: a cluster state, with its names in the scheduler."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from metasched.placement.clusters.memory_limits import MemoryLimits
from metasched.placement.clusters.state import ClusterState


@dataclass(frozen=True, slots=True)
class JobLimits:
    """The limits of one job; None if there is no limit.

    Parameters
    ----------
    processors, nodes : how many at most; no processors where the job is not admitted.
    time : how long it may run (s).
    fewest_nodes : how many nodes it must have.
    """

    processors: int | None = None
    nodes: int | None = None
    time: float | None = None
    fewest_nodes: int = 1

    def admit(self, nodes: int) -> bool:
        """Whether a job may have so many nodes."""
        return self.fewest_nodes <= nodes and (self.nodes is None or nodes <= self.nodes)


@dataclass(frozen=True, slots=True)
class Holder:
    """The owner of a job, to whom limits apply; each field is empty if unknown.

    Parameters
    ----------
    qos : name of its quality of service.
    user, account : that it is run and billed by.
    """

    qos: str = ""
    user: str = ""
    account: str = ""


def no_limits(holder: Holder) -> JobLimits:
    """The limits of jobs without any limit."""
    return JobLimits()


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition to which jobs can be submitted.

    Parameters
    ----------
    state : its nodes; the state's name is unique among all partitions of all schedulers.
    platform : what models are kept by: runs on partitions of one platform are learned from together.
    scheduler : the cluster's name for its scheduler, empty where there is none.
    name : the partition's name for its scheduler.
    time_limit : the longest that a job may run there (s), None where there is no limit.
    releases : whether a pending job that is bound to nodes can be released to run on others.
    default_time : what a job may run that names no limit (s), None where there is no limit.
    total : processors of its nodes that are up, whether free or not; None where only the free ones are known.
    limits : what a job of somebody may have.
    memory, memory_per_processor : what a job that names none gets of each node, or for each processor (megabytes);
        None where it gets none of its own.
    counts_memory : whether the scheduler gives each job memory of its own.
    memory_limits : the memory that a job may request there.
    """

    state: ClusterState
    platform: str
    scheduler: str = ""
    name: str = ""
    time_limit: float | None = None
    releases: bool = False
    default_time: float | None = None
    total: int | None = None
    limits: Callable[[Holder], JobLimits] = no_limits
    memory: float | None = None
    memory_per_processor: float | None = None
    counts_memory: bool = False
    memory_limits: MemoryLimits = field(default_factory=MemoryLimits)

    @classmethod
    def of(cls, state: ClusterState) -> Partition:
        """A described cluster without a scheduler, its own platform."""
        return cls(state, state.name)

    @property
    def processors_per_node(self) -> float:
        """Processors of a node that is up, on average; the free ones where only these are known."""
        return (self.total or int(self.state.processors.sum())) / max(int(self.state.up.sum()), 1)

    def longest(self, holder: Holder) -> float:
        """The longest that a job of somebody may run there (s), infinite without a limit."""
        limits = self.time_limit, self.limits(holder).time
        return min((limit for limit in limits if limit is not None), default=math.inf)

    def load_of(self, processes: float) -> float:
        """So many processes on a node by its processors; 0 where it is not known how many there are."""
        return 0.0 if self.total is None else processes / self.processors_per_node
