"""What a finished job was: a run to learn from, and the outcome of the placement that was advised for it."""

from __future__ import annotations

import logging
import math
from contextlib import suppress
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from metasched.advised_placements import Outcome
from metasched.jobs import DEVICES, UNCOUNTED, UNKNOWN_DEVICES, Devices, EndedJob, Fate, Mark, check_times
from metasched.placement.clusters.own_load import without_load
from metasched.placement.loads.staleness import LEAST_BANDWIDTH, LEAST_CPU
from metasched.predictors.abilities import energy_predictor, understood
from metasched.records import SETTING_COLUMNS, WITHOUT, InputError, Prediction, Run, Settings
from metasched.service.state.live_clusters import LiveClusters
from metasched.service.state.models import Models
from metasched.store.database.run_records import FURTHER, RecordedRun
from metasched.store.database.store import Store

_log = logging.getLogger(__name__)

#: The cell of a run that tells what was done of it before its job was moved.
DONE = "done"
#: The cell of a run that no model learns, whatever its scheduler says of it after a restart.
UNLEARNED = "unlearned"
#: How far before a run's start the load it began with may have been measured (s).
REACH = 300.0


@dataclass(frozen=True, slots=True)
class Concluded:
    """The run, and with the uid of its placement, where it has one, the outcome to note beside it."""

    record: RecordedRun
    placement: str | None
    outcome: Outcome | None


def conclude(job: EndedJob, mark: Mark, board: LiveClusters, models: Models, store: Store) -> Concluded:
    """What is learned from a job that has ended, whose mark says what it is a run of.

    Raises
    ------
    InputError
        When the record of the job is impossible.
    """
    check_times(job)
    partition = board.view.find(job.scheduler, job.partition)
    platform = partition.platform if partition is not None else job.scheduler
    # The scheduler's own count goes before what a comment says.
    processors = job.processors or mark.processors or max(1, len(job.nodes))
    counted = mark.processors == processors or (job.processors is not None and job.kind not in UNCOUNTED)
    layout = {name: str(value) for name in (*SETTING_COLUMNS, *FURTHER) if (value := getattr(job, name))}
    settings, known = with_devices(mark.settings, job.devices, f"{job.job} of {job.scheduler}")
    own = 0.0
    if partition is not None and job.nodes:
        own = partition.load_of(processors * (job.threads or settings.threads) / len(job.nodes))
    names = board.view.names.of(job.scheduler, job.nodes)
    cpu, bandwidth = observed(names, job.start, job.end, store, own)
    extra = settings.cells | layout | {"job": job.job, "scheduler": job.scheduler, "partition": job.partition}
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
        extra=MappingProxyType(
            extra
            | ({"placement": mark.placement} if mark.placement else {})
            | ({DONE: f"{mark.done:g}"} if mark.done else {})
        ),
    )
    predicted, joules = _predicted(run, models)
    # What a moved job did after its move is a part of a run, of which the model knows nothing.
    known = known and counted and not mark.done
    if not known:
        run = _marked(run)
    return Concluded(
        RecordedRun(run, job.exit_status, learnable=job.exit_status == 0 and known, uid=job.uid),
        mark.placement,
        Outcome(
            job=job.job,
            scheduler=job.scheduler,
            platform=platform,
            partition=job.partition,
            nodes=job.nodes,
            processors=processors,
            start=job.start,
            execution_time=run.execution_time,
            exit_status=job.exit_status,
            available_cpu=None if math.isnan(cpu) else cpu,
            available_bandwidth=None if math.isnan(bandwidth) else bandwidth,
            predicted=predicted,
            energy=job.energy,
            predicted_energy=joules,
            frequency=run.settings.frequency,
        ),
    )


def unlearned(concluded: Concluded) -> Concluded:
    """A run that is kept but teaches nothing, neither now nor after a restart; its placement stays without outcome."""
    record = concluded.record
    return Concluded(replace(record, run=_marked(record.run), learnable=False), None, None)


def _marked(run: Run) -> Run:
    return replace(run, extra=MappingProxyType({**run.extra, UNLEARNED: "yes"}))


def with_devices(settings: Settings, devices: Devices | None, job: str) -> tuple[Settings, bool]:
    """The settings of a run with the devices that its scheduler reports, and whether it is known which it had.

    The scheduler's word goes before that of a comment, which counts where the scheduler does not know.

    Parameters
    ----------
    settings : as the job's comment states them.
    devices : as its scheduler reports them, see :data:`metasched.jobs.Devices`.
    job : its name in the log.

    Examples
    --------
    >>> stated = Settings.of(parameters={"gpu": "v100", "steps": 5})
    >>> with_devices(stated, (("gpu", "a100"), ("gpus", 2.0)), "7 of c")[0].parameters
    (('gpu', 'a100'), ('gpus', 2.0), ('steps', 5.0))
    """
    stated = dict(settings.parameters)
    if devices is None or devices == UNKNOWN_DEVICES:
        return settings, devices is None or "gpu" in stated
    found = dict(devices)
    wrong = [name for name in DEVICES if name in stated and stated[name] != found.get(name, WITHOUT.get(name))]
    if wrong:
        _log.warning(
            "job %s: its comment states %s, its scheduler %s, which counts", job,
            ", ".join(f"{name}={stated[name]}" for name in wrong),
            ", ".join(f"{name}={found.get(name, WITHOUT.get(name, 0))}" for name in wrong),
        )  # fmt: skip
    kept = {name: value for name, value in stated.items() if name not in DEVICES}
    return replace(settings, parameters=tuple(sorted((kept | found).items()))), True


def as_reported(record: RecordedRun, fate: Fate) -> RecordedRun:
    """A stored run that may be learned, with what its scheduler reports of it afterwards.

    Parameters
    ----------
    record : of a job that its epilog reported before the daemon was started again.
    fate : of the job.
    """
    run = record.run
    job = f"{run.extra['job']} of {run.extra['scheduler']}"
    settings, known = with_devices(run.settings, fate.devices, job)
    settings = replace(settings, threads=fate.threads or settings.threads)
    kept = {name: cell for name, cell in run.extra.items() if name not in run.settings.cells}
    run = replace(run, processors=fate.processes or run.processors, extra=MappingProxyType(kept | settings.cells))
    return replace(record, run=run, learnable=known)


def observed(nodes: tuple[str, ...], start: float, end: float, store: Store, own: float = 0.0) -> tuple[float, float]:
    """The smallest, over the nodes, of their available CPU and bandwidth averaged over [start, end] (CPU, Mbit/s).

    A sample holds until the next. Both are NaN where fewer than half of the nodes have a sample: not measured.
    A placement is chosen by what nodes have to spare without the job, so its own load is no load.

    Parameters
    ----------
    nodes : names of the job's nodes, as their loads are stored.
    start, end : of the run (s since 1970).
    store : with the nodes' loads.
    own : processes of the job on each node, by the processors of a node.
    """
    loads = store.loads.of(nodes, since=start - REACH, until=end)
    if 2 * len(loads.nodes) < len(set(nodes)) or not loads.nodes:
        return math.nan, math.nan
    cpu, bandwidth = [], []
    for first, last in zip(loads.offsets[:-1], loads.offsets[1:], strict=True):
        at = np.clip(loads.time[first:last], start, end)
        # What was measured last before the start holds from the start on, and the first sample until its own time.
        at[0] = start
        weight = np.diff(np.append(at, end))
        others = without_load(loads.available_cpu[first:last], own * (loads.time[first:last] > start))
        cpu.append(float(np.average(others, weights=weight)))
        bandwidth.append(float(np.average(loads.available_bandwidth[first:last], weights=weight)))
    return max(min(cpu), LEAST_CPU), max(min(bandwidth), LEAST_BANDWIDTH)


def _predicted(run: Run, models: Models) -> tuple[Prediction | None, float | None]:
    """What the model would have said of time and energy (J), before it learns the run, had it known the loads to come.

    None without a model, and where the loads that came were not measured: the error would be that of a guess. Of a
    parameter that the model has not met yet it knows nothing, and says what it would say without it.
    """
    predictor = models.predictor(run.application, run.cluster, run.user)
    if predictor is None or not run.measured:
        return None, None
    settings, _ = understood(run.settings, [predictor])
    request = replace(run.request, settings=settings)
    with suppress(InputError):
        predicted, energy = predictor.predict(request), energy_predictor(predictor)
        return predicted, None if energy is None else energy.predict(request).execution_time
    return None, None
