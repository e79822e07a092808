"""The completion of a job in each of some partitions: the wait there, plus the predicted execution time."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from metasched.client.connection import DeniedError
from metasched.placement.clusters.queue_wait import QueueWait
from metasched.records import DEFAULT_SETTINGS, InputError, Settings

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
    ask: Ask,
    application: str,
    problem_size: float,
    processors: int,
    waits: Mapping[tuple[str, str], QueueWait],
    settings: Settings = DEFAULT_SETTINGS,
    note: Callable[[str], None] = lambda line: None,
) -> list[Estimate]:
    """The completion of a job in each partition for which the daemon has a model, the earliest first.

    Parameters
    ----------
    ask : asks the daemon; what it raises goes through.
    application, problem_size, processors : of the job; each process on as many processors as it has threads.
    waits : the wait in each partition, by cluster and partition.
    settings : layout, parameters and clock of the job.
    note : called with a line where the job's parameters cannot count.

    Raises
    ------
    ValueError : when a time that the daemon answers is none.

    Notes
    -----
    Where the job could start now the prediction is for the nodes that it would be placed on. Where it has to wait
    it is unknown which nodes will be free, so it is what the daemon answers a grid of sites in that case.
    """
    job: dict[str, Any] = {"application": application, "problem_size": problem_size, "processors": [processors]}
    if settings != DEFAULT_SETTINGS:
        job |= settings.as_dict()
    found, waiting = [], dict[tuple[str, str], float]()
    for place, wait in waits.items():
        seconds = float(wait.at(processors * settings.threads))
        if not seconds:
            cluster, name = place
            here = {"scheduler": cluster, "partitions": [name], "trial": True}
            answer = ask("POST", "/v1/placements", job | here)
            if answer["placed"]:
                time = _seconds(answer["placement"]["execution_time"])
                found.append(Estimate(cluster, name, seconds, time, str(answer["nodes"])))
                continue
        waiting[place] = seconds
    times = _later(ask, job, note) if waiting else {}
    found += [Estimate(*place, waiting[place], times[place]) for place in waiting if place in times]
    return sorted(found, key=lambda each: each.completion)


def _later(ask: Ask, job: Mapping[str, Any], note: Callable[[str], None]) -> dict[tuple[str, str], float]:
    """The execution time (s) of a job that has to wait, by cluster and partition; empty where there is no model.

    Parameters that are refused do not count.
    """
    try:
        answer = ask("POST", "/v1/rankings", {**job, "later": True, "top": 1})
    except DeniedError:
        raise
    except InputError as error:
        if not job.get("parameters"):
            return {}
        found = _later(ask, {**job, "parameters": {}}, note)
        if found:
            note(f"the job's parameters do not count: {error}")
        return found
    places = {name: (each["scheduler"], each["partition"]) for name, each in answer["clusters"].items()}
    return {places[each["cluster"]]: _seconds(each["execution_time"]) for each in answer["later"]}


def _seconds(value: Any) -> float:
    """A time as it was answered."""
    if type(value) not in (int, float) or not 0.0 < value < math.inf:
        raise ValueError(f"{value!r:.40} is not a time, expected a number of seconds")
    return float(value)
