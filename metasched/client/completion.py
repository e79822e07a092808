"""The completion of a job in each of some partitions: the wait there, plus the predicted execution time."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from metasched.client.connection import DeniedError
from metasched.placement.clusters.queue_wait import QueueWait
from metasched.records import InputError

#: Asks the daemon: method, path, document.
Ask = Callable[[str, str, Any], Any]


@dataclass(frozen=True, slots=True)
class Estimate:
    """The predicted completion of a job (s from now).

    Parameters
    ----------
    cluster, partition : where.
    wait : until it starts.
    execution_time : as predicted.
    nodes : where it would run if it starts now, empty where it would wait.
    """

    cluster: str
    partition: str
    wait: float
    execution_time: float
    nodes: str = ""

    @property
    def completion(self) -> float:
        """Wait in the queue and execution time together (s)."""
        return self.wait + self.execution_time


def estimates(
    ask: Ask, application: str, problem_size: float, processors: int, waits: Mapping[tuple[str, str], QueueWait]
) -> list[Estimate]:
    """The completion of a job in each partition for which the daemon has a model, the earliest first.

    Parameters
    ----------
    ask : asks the daemon; what it raises goes through.
    application, problem_size, processors : of the job.
    waits : the wait in each partition, by cluster and partition.

    Raises
    ------
    ValueError : when a time that the daemon answers is none.

    Notes
    -----
    Where the job could start now the prediction is for the nodes that it would be placed on. Where it has to wait
    it is unknown which nodes will be free, so it is for what the partition's nodes have to spare on average now.
    """
    known = {(each["scheduler"], each["partition"]): each for each in ask("GET", "/v1/clusters", None)}
    found = []
    for (cluster, name), wait in waits.items():
        partition = known.get((cluster, name))
        up = [node for node in partition["nodes"] if node["up"]] if partition else []
        if partition is None or not up:
            continue
        seconds = float(wait.at(processors))
        placed = None
        if not seconds:
            question = {"application": application, "problem_size": problem_size, "scheduler": cluster,
                        "partitions": [name], "processors": [processors], "trial": True}  # fmt: skip
            answer = ask("POST", "/v1/placements", question)
            placed = answer["placement"] if answer["placed"] else None
        if placed is not None:
            found.append(Estimate(cluster, name, seconds, _seconds(placed["execution_time"]), str(answer["nodes"])))
            continue
        cpu, bandwidth = (
            float(np.mean([node[kind] for node in up])) for kind in ("available_cpu", "available_bandwidth")
        )
        question = {"application": application, "cluster": partition["platform"], "problem_size": problem_size,
                    "processors": processors, "available_cpu": cpu, "available_bandwidth": bandwidth}  # fmt: skip
        try:
            predicted = ask("POST", "/v1/predictions", question)
        except DeniedError:
            raise
        except InputError:
            continue  # no model there
        found.append(Estimate(cluster, name, seconds, _seconds(predicted["execution_time"])))
    return sorted(found, key=lambda each: each.completion)


def _seconds(value: Any) -> float:
    """A time as it was answered."""
    if type(value) not in (int, float) or not 0.0 < value < math.inf:
        raise ValueError(f"{value!r:.40} is not a time, expected a number of seconds")
    return float(value)
