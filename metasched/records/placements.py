"""Nodes that a job could take, and what is predicted for it there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from metasched.records.predictions import Interval, Prediction
from metasched.records.settings import Settings

#: A cluster by name, processes per node (None where they make no difference), threads of each process, and the clock of
#: the processors (MHz; None for their own).
Place = tuple[str, int | None, int, float | None]


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
    processes_per_node : the most processes on one of its nodes that the prediction counts with; None where that makes
        no difference.
    threads : of each process.
    frequency : the clock that its processors shall have (MHz); None for their own.
    """

    cluster: str
    nodes: tuple[str, ...]
    processors: int
    available_cpu: float
    available_bandwidth: float
    processes_per_node: int | None = None
    threads: int = 1
    frequency: float | None = None

    @property
    def place(self) -> Place:
        """The cluster, and how processes are laid out on its nodes: what its model is asked by."""
        return self.cluster, self.processes_per_node, self.threads, self.frequency

    @property
    def layout(self) -> dict[str, float]:
        """The layout and the clock as JSON contracts spell them; nothing where they make no difference."""
        clock = {} if self.frequency is None else {"frequency": self.frequency}
        if self.processes_per_node is None:
            return clock if self.threads == 1 else {"threads": self.threads, **clock}
        per_node = min(self.processes_per_node, self.processors)
        return {"processes_per_node": per_node, "threads": self.threads, **clock}

    def settings(self, asked: Settings) -> Settings:
        """The settings that it was predicted for: those asked for, with its own layout and clock.

        >>> packed = ResourceSet("c", ("n",), 4, 1.0, 90.0, processes_per_node=4)
        >>> packed.settings(Settings.of(parameters={"steps": 9})).text
        'processes_per_node 4, steps 9'
        """
        own = Settings(self.processes_per_node, self.threads)
        return replace(
            asked,
            processes_per_node=self.processes_per_node or asked.processes_per_node,
            threads=self.threads if own.laid_out else asked.threads,
            frequency=self.frequency or asked.frequency,
        )

    def same_place(self, nodes: Iterable[str], processors: int) -> bool:
        """Whether a job that had these nodes and as many processors ran here."""
        return set(self.nodes) == set(nodes) and self.processors == processors


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
    energy : of the run (J); None if unknown.
    success : probability that none of its nodes fails meanwhile; None if unknown.
    power_limit : the most that is expected, and a cap for the job itself (W): its mean power is larger one time in ten;
        None if unknown.
    power_doubt : margin between the expected power and this limit (W); None if no power was learned.
    success_interval : of the probability, where it is learned from records of failures.
    """

    resource_set: ResourceSet
    prediction: Prediction
    queue_wait: float = 0.0
    slowdown: float = 1.0
    reason: str = ""
    energy: float | None = None
    success: float | None = None
    power_limit: float | None = None
    power_doubt: float | None = field(default=None, compare=False)
    success_interval: Interval | None = None

    @property
    def power(self) -> float | None:
        """Mean power of the run (W); None where its energy is not known."""
        return None if self.energy is None else self.energy / (self.slowdown * self.prediction.execution_time)

    @property
    def power_middle(self) -> float | None:
        """Learned power, expected with the median of the loads to come (W); None if none was learned."""
        return None if self.power_limit is None or self.power_doubt is None else self.power_limit - self.power_doubt

    @property
    def completion(self) -> float:
        """Expected completion: queue wait plus execution time under contention (s)."""
        return self.queue_wait + self.slowdown * self.prediction.execution_time

    def as_dict(self) -> dict[str, Any]:
        """The placement as the JSON contract spells it; energy, power and success where they are known."""
        chosen = self.resource_set
        known = {name: getattr(self, name) for name in ("energy", "power", "power_limit", "success")}
        known["success_interval"] = None if self.success_interval is None else self.success_interval.as_dict()
        return {
            "cluster": chosen.cluster,
            "nodes": list(chosen.nodes),
            "processors": chosen.processors,
            **chosen.layout,
            "available_cpu": chosen.available_cpu,
            "available_bandwidth": chosen.available_bandwidth,
            **self.prediction.as_dict(),
            "queue_wait": self.queue_wait,
            "slowdown": self.slowdown,
            "completion": self.completion,
            "reason": self.reason,
        } | {name: value for name, value in known.items() if value is not None}
