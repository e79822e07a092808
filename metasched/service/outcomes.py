"""What a finished job was: a run to learn from, and the outcome of the placement that was advised for it."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from metasched.placement.freshness import LEAST_BANDWIDTH, LEAST_CPU
from metasched.placement.partition import Partition
from metasched.records import InputError, Request, Run
from metasched.service.board import Board
from metasched.service.models import Models
from metasched.store.database import RecordedRun, Store
from metasched.store.jobs import EndedJob, Mark, check_times

#: How far before a run's start the load it began with may have been measured (s).
REACH = 300.0


@dataclass(frozen=True, slots=True)
class Concluded:
    """The run, and with the uid of its placement, where it has one, the outcome to note beside it."""

    record: RecordedRun
    placement: str | None
    outcome: dict[str, Any]


def conclude(job: EndedJob, mark: Mark, board: Board, models: Models, store: Store) -> Concluded:
    """What is learned from a job that has ended, whose mark says what it is a run of.

    Raises
    ------
    InputError
        When what is told of the job cannot be.
    """
    check_times(job)
    partition = board.view.find(job.scheduler, job.partition)
    platform = partition.platform if partition is not None else job.scheduler
    processors = mark.processors or job.processors or max(1, len(job.nodes))
    cpu, bandwidth = observed(job.nodes, job.start, job.end, partition, store)
    told = {"job": job.job, "scheduler": job.scheduler, "partition": job.partition}
    run = Run(
        mark.application,
        platform,
        mark.problem_size,
        processors,
        cpu,
        bandwidth,
        job.end - job.start,
        job.start,
        job.nodes,
        extra=MappingProxyType(told | ({"placement": mark.placement} if mark.placement else {})),
    )
    return Concluded(
        RecordedRun(run, job.exit_status, learnable=job.exit_status == 0, uid=job.uid),
        mark.placement,
        {
            "job": job.job,
            "scheduler": job.scheduler,
            "platform": platform,
            "partition": job.partition,
            "nodes": list(job.nodes),
            "processors": processors,
            "start": job.start,
            "execution_time": run.execution_time,
            "exit_status": job.exit_status,
            "available_cpu": cpu,
            "available_bandwidth": bandwidth,
            "predicted": _predicted(run, models),
        },
    )


def observed(
    nodes: tuple[str, ...], start: float, end: float, partition: Partition | None, store: Store
) -> tuple[float, float]:
    """The smallest, over the nodes, of their available CPU and bandwidth averaged over [start, end].

    A sample holds until the next. A node without any counts with what is described of it.
    """
    cpu, bandwidth = [], []
    for node in nodes:
        loads = store.loads(node=node, since=start - REACH, until=end)
        if len(loads):
            at = np.clip(loads.time, start, end)
            # What was measured last before the start holds from the start on, and the first sample until its own time.
            at[0] = start
            weight = np.diff(np.append(at, end))
            cpu.append(float(np.average(loads.available_cpu, weights=weight)))
            bandwidth.append(float(np.average(loads.available_bandwidth, weights=weight)))
        elif partition is not None and node in partition.state.nodes:
            index = partition.state.nodes.index(node)
            cpu.append(float(partition.state.available_cpu[index]))
            bandwidth.append(float(partition.state.available_bandwidth[index]))
    return max(min(cpu, default=1.0), LEAST_CPU), max(min(bandwidth, default=1000.0), LEAST_BANDWIDTH)


def _predicted(run: Run, models: Models) -> dict[str, Any] | None:
    """What the model would have said, before it learns the run, had it known the loads that were to come."""
    predictor = models.predictor(run.application, run.cluster)
    if predictor is None:
        return None
    request = Request(run.problem_size, run.processors, run.min_avg_avail_cpu, run.min_avg_avail_bw)
    try:
        return predictor.predict(request).as_dict()
    except InputError:
        return None
