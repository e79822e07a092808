"""The nouns of the house, all immutable: a run, a load, a node, a cluster, a resource set, a prediction, a placement.

Every record checks itself when it is made, so that whatever holds a record holds a sound one. A record that cannot be
made raises :class:`InputError`, one line that names the field, the value, and what was expected. Times are seconds,
bandwidths Mbit/s, available CPU is the fraction of one processor that a new process would get.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any


def _nothing() -> Mapping[str, str]:
    return MappingProxyType({})


class InputError(ValueError):
    """Input that a user can mend: the message is one line saying what, where, and what was expected.

    Parameters
    ----------
    message : what was expected, for example ``"execution_time is -1.0, expected a number above 0"``.
    where : file, row, column or option it was found in; put in front of the message.
    """

    def __init__(self, message: str, *, where: str = "") -> None:
        super().__init__(f"{where}: {message}" if where else message)


def _finite_above(name: str, value: float, bound: float = 0.0) -> None:
    if not math.isfinite(value) or value <= bound:
        raise InputError(f"{name} is {value}, expected a finite number above {bound:g}")


def _fraction(name: str, value: float) -> None:
    if not 0.0 < value <= 1.0:
        raise InputError(f"{name} is {value}, expected a fraction in (0, 1]")


def _count(name: str, value: int) -> None:
    if isinstance(value, bool) or value != int(value) or value < 1:
        raise InputError(f"{name} is {value}, expected a whole number of at least 1")


@dataclass(frozen=True, slots=True)
class Run:
    """One finished execution of an application: what it was asked, what it found, how long it took.

    Parameters
    ----------
    application, cluster : names.
    problem_size : N, above 0.
    processors : P, a whole number of at least 1.
    min_avg_avail_cpu : smallest over the processors of the available CPU averaged over the run, in (0, 1].
    min_avg_avail_bw : smallest over the links of the available bandwidth averaged over the run (Mbit/s); the
        node's own link when P = 1.
    execution_time : seconds, above 0.
    start_time : seconds, or None where it was not recorded.
    nodes : names of the nodes it ran on, empty where not recorded.
    phase : ``"train"``, ``"predict"`` or None; the part of a campaign it belongs to.
    extra : further columns of the record, kept as they were.

    Examples
    --------
    >>> Run("cg", "c8", 1400, 4, 0.8, 93.5, 12.25).execution_time
    12.25
    >>> Run("cg", "c8", 1400, 4, 1.8, 93.5, 12.25)
    Traceback (most recent call last):
    metasched.records.InputError: min_avg_avail_cpu is 1.8, expected a fraction in (0, 1]
    """

    application: str
    cluster: str
    problem_size: float
    processors: int
    min_avg_avail_cpu: float
    min_avg_avail_bw: float
    execution_time: float
    start_time: float | None = None
    nodes: tuple[str, ...] = ()
    phase: str | None = None
    extra: Mapping[str, str] = field(default_factory=_nothing, compare=False)

    def __post_init__(self) -> None:
        _finite_above("problem_size", self.problem_size)
        _count("processors", self.processors)
        _fraction("min_avg_avail_cpu", self.min_avg_avail_cpu)
        _finite_above("min_avg_avail_bw", self.min_avg_avail_bw)
        _finite_above("execution_time", self.execution_time)
        if self.start_time is not None and not math.isfinite(self.start_time):
            raise InputError(f"start_time is {self.start_time}, expected a finite number of seconds")
        if self.phase not in (None, "train", "predict"):
            raise InputError(f"phase is {self.phase!r}, expected train or predict")


@dataclass(frozen=True, slots=True)
class Load:
    """What one node had to spare at one moment.

    Examples
    --------
    >>> Load(0.0, "n0", 0.75, 88.0).available_cpu
    0.75
    """

    time: float
    node: str
    available_cpu: float
    available_bandwidth: float

    def __post_init__(self) -> None:
        if not math.isfinite(self.time):
            raise InputError(f"time is {self.time}, expected a finite number of seconds")
        if not self.node:
            raise InputError("node is empty, expected a name")
        if not 0.0 <= self.available_cpu <= 1.0:
            raise InputError(f"available_cpu is {self.available_cpu}, expected a fraction in [0, 1]")
        if not math.isfinite(self.available_bandwidth) or self.available_bandwidth < 0:
            raise InputError(
                f"available_bandwidth is {self.available_bandwidth}, expected a number of Mbit/s of at least 0"
            )


@dataclass(frozen=True, slots=True)
class Node:
    """A node as the ranker sees it: what it is, and what it has to spare now.

    Parameters
    ----------
    name : the node's name, unique in its cluster.
    processors : processors that a job may use there.
    available_cpu : share of one processor that a new process would get, in (0, 1].
    available_bandwidth : what its link has to spare (Mbit/s).
    speed : speed relative to the cluster's reference node; 1 where all are alike.
    memory : megabytes, or None where unknown.
    features : words that constraints may ask for.

    Examples
    --------
    >>> Node("n0", processors=2, available_cpu=0.9, available_bandwidth=940.0).speed
    1.0
    """

    name: str
    processors: int = 1
    available_cpu: float = 1.0
    available_bandwidth: float = 1000.0
    speed: float = 1.0
    memory: float | None = None
    features: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if not self.name:
            raise InputError("node name is empty, expected a name")
        _count(f"processors of node {self.name}", self.processors)
        _fraction(f"available_cpu of node {self.name}", self.available_cpu)
        _finite_above(f"available_bandwidth of node {self.name}", self.available_bandwidth)
        _finite_above(f"speed of node {self.name}", self.speed)
        if self.memory is not None:
            _finite_above(f"memory of node {self.name}", self.memory)


@dataclass(frozen=True, slots=True)
class Cluster:
    """A named set of nodes that a job may be placed on.

    Examples
    --------
    >>> Cluster("c2", (Node("n0"), Node("n1", processors=2))).processors
    3
    """

    name: str
    nodes: tuple[Node, ...]

    def __post_init__(self) -> None:
        if not self.name:
            raise InputError("cluster name is empty, expected a name")
        seen: set[str] = set()
        for node in self.nodes:
            if node.name in seen:
                raise InputError(f"node {node.name} of cluster {self.name} stands there twice")
            seen.add(node.name)

    @property
    def processors(self) -> int:
        """How many processors all its nodes have together."""
        return sum(node.processors for node in self.nodes)


@dataclass(frozen=True, slots=True)
class ResourceSet:
    """Nodes of one cluster that a job could take, and the two minima that its prediction needs.

    Parameters
    ----------
    cluster : name of the cluster.
    nodes : names of the nodes, in the order they would be filled.
    processors : P, how many processors the job takes on them.
    available_cpu : smallest available CPU over the processors taken.
    available_bandwidth : smallest available bandwidth over the links used (Mbit/s).
    """

    cluster: str
    nodes: tuple[str, ...]
    processors: int
    available_cpu: float
    available_bandwidth: float


@dataclass(frozen=True, slots=True)
class Interval:
    """A prediction interval: the outcome lies in [low, high] with probability ``level``."""

    low: float
    high: float
    level: float

    def as_dict(self) -> dict[str, float]:
        """The interval as the JSON contract spells it."""
        return {"low": self.low, "high": self.high, "level": self.level}


@dataclass(frozen=True, slots=True)
class Request:
    """What a prediction is asked for: problem size, processors, and the two minima to expect.

    Examples
    --------
    >>> Request(1400, 4, 0.8, 93.5).processors
    4
    """

    problem_size: float
    processors: int
    available_cpu: float
    available_bandwidth: float

    def __post_init__(self) -> None:
        _finite_above("problem_size", self.problem_size)
        _count("processors", self.processors)
        _fraction("available_cpu", self.available_cpu)
        _finite_above("available_bandwidth", self.available_bandwidth)


@dataclass(frozen=True, slots=True)
class Prediction:
    """A predicted execution time with its interval, and where it came from.

    Parameters
    ----------
    execution_time : seconds.
    interval : prediction interval, seconds.
    model : the formula, or the name of the method, that gave the answer.
    warnings : what the user should know, for example a size far outside what was learned.
    """

    execution_time: float
    interval: Interval
    model: str
    warnings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The prediction as the JSON contract spells it."""
        return {
            "execution_time": self.execution_time,
            "interval": self.interval.as_dict(),
            "model": self.model,
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True, slots=True)
class Placement:
    """A resource set with what is predicted for a job there.

    Parameters
    ----------
    resource_set : where the job would run.
    prediction : how long it would take there.
    queue_wait : expected wait before it starts, seconds.
    slowdown : factor by which contention with jobs already there stretches the run, at least 1.
    reason : one sentence that says why it stands where it stands in the ranking.
    """

    resource_set: ResourceSet
    prediction: Prediction
    queue_wait: float = 0.0
    slowdown: float = 1.0
    reason: str = ""

    @property
    def completion(self) -> float:
        """Expected completion: queue wait plus execution time under contention (s)."""
        return self.queue_wait + self.slowdown * self.prediction.execution_time

    def as_dict(self) -> dict[str, Any]:
        """The placement as the JSON contract spells it."""
        chosen = self.resource_set
        return {
            "cluster": chosen.cluster,
            "nodes": list(chosen.nodes),
            "processors": chosen.processors,
            "available_cpu": chosen.available_cpu,
            "available_bandwidth": chosen.available_bandwidth,
            **self.prediction.as_dict(),
            "queue_wait": self.queue_wait,
            "slowdown": self.slowdown,
            "completion": self.completion,
            "reason": self.reason,
        }
