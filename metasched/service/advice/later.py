"""The completion of a job in partitions where it has to wait, by which a grid compares its sites."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from metasched.placement.clusters.constraints import Constraints
from metasched.placement.clusters.partition import Partition
from metasched.placement.loads.staleness import LEAST_BANDWIDTH, LEAST_CPU
from metasched.predictors.contract import Predictor
from metasched.records import InputError, Prediction, Request, Settings
from metasched.service.advice.advisor import Placer, usable_for
from metasched.service.schemas import RankIn
from metasched.service.state.lent_models import WithLent
from metasched.service.state.live_clusters import LiveClusters, View
from metasched.service.state.models import Models
from metasched.service.state.queues import Queues

#: Numbers of processors that are tried in each partition.
COUNTS = 8


def later(asked: RankIn, view: View, models: Models | WithLent, placer: Placer, queues: Queues) -> list[dict[str, Any]]:
    """The number of processors with the earliest completion in each partition, after the jobs there.

    It is unknown which nodes will be free then, so the run is predicted for what the partition's nodes have to spare
    on average now.

    Parameters
    ----------
    asked : the question.
    view : partitions and loads.
    models : predictors.
    placer : knows what applications demand.
    queues : of the schedulers.

    Raises
    ------
    InputError
        When the question contradicts itself.
    """
    constraints = placer.constraints(asked)
    usable = [
        each
        for each in usable_for(view, asked)
        if each.scheduler and (not asked.clusters or each.state.name in asked.clusters)
    ]
    known = models.on(asked.application, usable, asked.settings)
    found = []
    for each in usable:
        predictor = known.get(each.state.name)
        if predictor is None or not each.state.up.any():
            continue
        options = [
            _wait(asked, each, predictor, processors, queues)
            for processors in _counts(constraints, each, asked.threads)
        ]
        sound = [option for option in options if option is not None]
        if sound:
            found.append(min(sound, key=lambda option: option["wait"] + option["execution_time"]))
    return found


def described(live: LiveClusters, now: float) -> dict[str, dict[str, Any]]:
    """The processors of each cluster, and the age of its scheduler's report (s).

    Parameters
    ----------
    live : the partitions.
    now : the time (s).
    """
    seen = live.seen_at
    found = {}
    for each in live.view.partitions:
        free = int(each.state.processors[each.state.up].sum())
        age = max(now - seen[each.scheduler], 0.0) if each.scheduler in seen else None
        found[each.state.name] = {
            "scheduler": each.scheduler, "partition": each.name, "free": free,
            "processors": free if each.total is None else max(each.total, free), "age": age,
        }  # fmt: skip
    return found


def _counts(constraints: Constraints, partition: Partition, threads: int) -> list[int]:
    """The numbers of processes to try, each with some threads: the requested ones, else powers of two.

    Of many requested ones those are tried that are spread evenly over them.
    """
    free = int(partition.state.processors[partition.state.up].sum())
    most = min(constraints.max_processors or 1 << 20, max(partition.total or free, free) // threads)
    least = constraints.min_processors
    if constraints.processors:
        able = sorted(count for count in constraints.processors if least <= count <= most)
        spread = np.linspace(0, len(able) - 1, min(len(able), COUNTS)).round().astype(int)
        return [able[place] for place in spread]
    doubled = [least << power for power in range(21) if least << power <= most]
    return doubled[-COUNTS:]


def _wait(
    asked: RankIn, partition: Partition, predictor: Predictor, processors: int, queues: Queues
) -> dict[str, Any] | None:
    """The wait and the run with some processes, each with its threads; None if the job cannot run."""
    state = partition.state
    cpu, bandwidth = (float(np.mean(values[state.up])) for values in (state.available_cpu, state.available_bandwidth))
    try:
        prediction = predictor.predict(_request(asked, processors, cpu, bandwidth, asked.settings), asked.level)
        if not math.isfinite(prediction.interval.high):
            return None
        limit = _limit(partition, prediction)
        taken = processors * asked.threads
        wait = queues.one_more(partition.name, taken, limit, partition.scheduler)
    except InputError:
        return None
    return {
        "cluster": state.name, "processors": processors, "wait": wait["wait"], "low": wait["low"],
        "high": wait["high"], "execution_time": prediction.execution_time,
        "execution_low": max(prediction.interval.low, 0.0), "execution_high": prediction.interval.high,
    }  # fmt: skip


def _request(asked: RankIn, processors: int, cpu: float, bandwidth: float, settings: Settings) -> Request:
    return Request(
        asked.problem_size, processors, min(max(cpu, LEAST_CPU), 1.0), max(bandwidth, LEAST_BANDWIDTH), settings
    )


def _limit(partition: Partition, prediction: Prediction) -> float:
    """The time limit that the job would have (s): one that it will hardly exceed, within the partition's limit."""
    wanted = prediction.interval.high
    if partition.time_limit is None:
        return wanted
    if prediction.execution_time > partition.time_limit:
        raise InputError("the job would be ended by the partition's time limit")
    return min(wanted, partition.time_limit)
