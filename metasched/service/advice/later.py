"""The completion of a job in partitions where it has to wait, by which a grid compares its sites."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from metasched.placement.clusters.constraints import Constraints
from metasched.placement.clusters.partition import Partition
from metasched.placement.clusters.state import ClusterState
from metasched.placement.loads.counted import Loads, expected
from metasched.placement.ranking.preparation import LEAST_HORIZON, at_its_own_horizon
from metasched.predictors.abilities import all_under, under, with_usual_threads
from metasched.predictors.contract import Predictor
from metasched.predictors.load_doubt import predict_one
from metasched.records import InputError, Prediction
from metasched.service.advice.advisor import Placer, usable_for
from metasched.service.schemas import RankIn
from metasched.service.state.lent_models import WithLent
from metasched.service.state.live_clusters import LiveClusters, View
from metasched.service.state.models import Models
from metasched.service.state.queues import Queues

#: Numbers of processors that are tried in each partition.
COUNTS = 8


def later(
    asked: RankIn, view: View, models: Models | WithLent, placer: Placer, queues: Queues, now: float
) -> list[dict[str, Any]]:
    """The number of processors with the earliest completion in each partition, after the jobs there.

    It is unknown which nodes will be free then, so the run is predicted for what the partition's nodes are expected to
    have to spare on average until its end, with forecasts and stale measurements as in rankings. Jobs that were placed
    just now are in the queue already.

    Parameters
    ----------
    asked : the question.
    view : partitions and loads.
    models : predictors.
    placer : knows the loads to come, and what applications demand.
    queues : of the schedulers.
    now : the time (s).

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
    known, understood, _ = all_under(models.on(asked.application, usable), asked.settings)
    loads = replace(placer.loads(now, forecast=asked.forecast), stale_after=asked.stale_after)
    found = []
    for each in usable:
        predictor = known.get(each.state.name)
        if predictor is None or not each.state.up.any():
            continue
        settings = understood if "threads" in asked.model_fields_set else with_usual_threads(understood, predictor)
        job = asked.model_copy(update={"threads": settings.threads})
        counts = _counts(constraints, each, settings.threads)
        best = _earliest(job, each, under(predictor, settings), counts, loads, queues)
        found += [] if best is None else [best]
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


def _earliest(
    asked: RankIn, partition: Partition, predictor: Predictor, counts: Iterable[int], loads: Loads, queues: Queues
) -> dict[str, Any] | None:
    """The number of processes with the earliest completion; None if the job cannot run with any."""

    def completion(option: dict[str, Any] | None) -> float:
        return LEAST_HORIZON if option is None else float(option["wait"] + option["execution_time"])

    def best(horizon: float | None) -> dict[str, Any] | None:
        state, _ = expected(partition.state, loads, horizon)
        options = (_wait(asked, partition, state, predictor, processors, queues) for processors in counts)
        return min((option for option in options if option is not None), key=completion, default=None)

    return at_its_own_horizon(loads, best, completion)


def _wait(
    asked: RankIn, partition: Partition, state: ClusterState, predictor: Predictor, processors: int, queues: Queues
) -> dict[str, Any] | None:
    """The wait and the run with some processes, each with its threads; None if the job cannot run."""
    cpu, bandwidth = (float(np.mean(values[state.up])) for values in (state.effective_cpu, state.available_bandwidth))
    try:
        doubt = state.doubt(processors, asked.level)
        prediction = predict_one(predictor, asked.problem_size, processors, cpu, bandwidth, asked.level, doubt)
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


def _limit(partition: Partition, prediction: Prediction) -> float:
    """The time limit that the job would have (s): one that it will hardly exceed, within the partition's limit."""
    wanted = prediction.interval.high
    if partition.time_limit is None:
        return wanted
    if prediction.execution_time > partition.time_limit:
        raise InputError("the job would be ended by the partition's time limit")
    return min(wanted, partition.time_limit)
