"""Running jobs: as their scheduler or a description reports them, and with their remaining work.

What a job has left follows from its application's model: the time that it should take there, less the time for which it
has run, shared out over computation and communication as the model's two terms are.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from metasched.arrays import Floats, Ints
from metasched.placement.clusters.energy import power_in_doubt
from metasched.placement.clusters.own_load import own_load, without_load
from metasched.placement.clusters.state import ClusterState
from metasched.predictors.abilities import clocks_of, computing_share, energy_predictor, under, understood
from metasched.predictors.contract import Predictor
from metasched.records import DEFAULT_SETTINGS, Settings

#: Bandwidths (Mbit/s) that a link is taken to have at most and at least.
BOUNDLESS, LEAST_WIDTH = 1e9, 1e-6
#: Remaining time of a job that has run for longer than predicted, as a share of the predicted time.
OVERDUE = 0.1


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A running job, with its remaining work.

    Parameters
    ----------
    nodes : names of its nodes.
    processors : processes on each of them.
    computation, communication : seconds left of each, were it alone.
    dedicated : whether its processors are its own, so that the state does not count them among those free.
    running_for : seconds since it started; loads measured since then show it.
    power : its expected mean power (W); None if none was learned.
    power_doubt : margin between this power and its upper limit (W).
    """

    nodes: tuple[str, ...]
    processors: tuple[int, ...]
    computation: float
    communication: float
    dedicated: bool = False
    running_for: float = 0.0
    power: float | None = None
    power_doubt: float = 0.0


@dataclass(frozen=True, slots=True)
class StartedJob:
    """A running job, as its scheduler reports it.

    Parameters
    ----------
    nodes, processors, running_for, dedicated : see :class:`RunningJob`.
    application : name, empty where the job tells none.
    problem_size : N.
    number, partition, user : as its scheduler calls them; empty where it has none. ``user_number`` is the user's.
    comment : of the job, where it has a mark.
    restarted : whether it has been started before.
    time_limit : of the job (s); None where it has none.
    devices : what it has besides processors, as parameters of its run.
    settings : of its run, as its mark and its scheduler tell them.
    power, power_doubt : that its placement was given, see :class:`RunningJob`; None where its model is to tell.
    """

    nodes: tuple[str, ...]
    processors: tuple[int, ...]
    running_for: float
    application: str = ""
    problem_size: float = 1.0
    dedicated: bool = True
    number: str = ""
    partition: str = ""
    user: str = ""
    user_number: str = ""
    comment: str = ""
    restarted: bool = False
    time_limit: float | None = None
    devices: tuple[tuple[str, float | str], ...] = ()
    settings: Settings = DEFAULT_SETTINGS
    power: float | None = None
    power_doubt: float = 0.0

    @property
    def laid_out(self) -> Settings:
        """The settings of its run with its devices, and with as many processes on a node as it has there at most."""
        known = self.settings
        per_node = max(max(self.processors) // known.threads, 1)
        return Settings.of(per_node, known.threads, dict(known.parameters) | dict(self.devices), known.frequency)

    @property
    def processes(self) -> int:
        """On all of its nodes; each has as many processors as threads."""
        return max(sum(self.processors) // self.settings.threads, 1)

    @property
    def alike(self) -> tuple[object, ...]:
        """What jobs have in common that a model is asked about at once."""
        return self.application, self.laid_out


def later(job: RunningJob | StartedJob, seconds: float) -> RunningJob | StartedJob | None:
    """The job after some more seconds; None if no work would be left.

    Of a job known by its application only its model can say what is left.

    >>> job = RunningJob(("n0",), (1,), 30.0, 10.0)
    >>> later(job, 20.0).computation, later(job, 40.0)
    (15.0, None)
    """
    if isinstance(job, StartedJob):
        return replace(job, running_for=job.running_for + seconds)
    whole = job.computation + job.communication
    if seconds >= whole:
        return None
    part = (whole - seconds) / whole
    return replace(
        job,
        computation=part * job.computation,
        communication=part * job.communication,
        running_for=job.running_for + seconds,
    )


def terms_left(
    jobs: Sequence[RunningJob | StartedJob],
    cluster: ClusterState,
    model: Callable[[str], Predictor | None],
    *,
    sure: bool = True,
) -> tuple[tuple[RunningJob, ...], tuple[str, ...]]:
    """The remaining work of jobs on a cluster by their models, and a warning about those without a model.

    Parameters
    ----------
    jobs : those without any node in the cluster are passed over; those that tell what they have left keep that.
    cluster : its state.
    model : gives the predictor of an application on this cluster, None where there is none.
    sure : whether they are known to run still; else those that should be over by their models are passed over.

    Examples
    --------
    >>> from metasched.predictors.analytic.spmd.predictor import SpmdPredictor
    >>> job = StartedJob(("n0",), (1,), 30.0, "cg", 1000.0)
    >>> terms_left([job], ClusterState.make("east", ["n0"]), lambda name: None)
    ((), ('1 job on east is assumed to share nothing, since it has no model: cg',))
    """
    if not jobs:
        return (), ()
    number = {name: index for index, name in enumerate(cluster.nodes)}
    here = [job for job in jobs if any(name in number for name in job.nodes)]
    found = [job for job in here if isinstance(job, RunningJob)]
    started: defaultdict[tuple[object, ...], list[StartedJob]] = defaultdict(list)
    for job in here:
        if isinstance(job, StartedJob):
            started[job.alike].append(job)
    unknown: Counter[str] = Counter()
    for _, mine in sorted(started.items(), key=lambda each: str(each[0])):
        application = mine[0].application
        predictor = model(application) if application else None
        times = None if predictor is None else _terms(mine, cluster, number, predictor)
        if times is None:
            unknown[application or "no application is named"] += len(mine)
            continue
        for job, whole, computing, watts, doubt in zip(mine, *times, strict=True):
            if not sure and job.running_for >= whole:
                continue
            left = max(whole - job.running_for, OVERDUE * whole)
            found.append(
                RunningJob(
                    job.nodes,
                    job.processors,
                    left * computing / whole,
                    left * (1.0 - computing / whole),
                    job.dedicated,
                    job.running_for,
                    (watts or None) if job.power is None else job.power,
                    doubt if job.power is None else job.power_doubt,
                )
            )
    if not unknown:
        return tuple(found), ()
    count = unknown.total()
    one, many = (
        "1 job on {} is assumed to share nothing, since it has",
        "{} jobs on {} are assumed to share nothing, since they have",
    )
    who = one.format(cluster.name) if count == 1 else many.format(count, cluster.name)
    return tuple(found), (f"{who} no model: {', '.join(sorted(unknown))}",)


def _terms(
    jobs: Sequence[StartedJob], cluster: ClusterState, number: dict[str, int], predictor: Predictor
) -> tuple[Floats, Floats, Floats, Floats] | None:
    """Whole time (s), computation (s), power and its doubt (W, 0 where unknown) of jobs alike; None without a time."""
    nodes = [np.array([number[name] for name in job.nodes if name in number]) for job in jobs]
    size = np.array([job.problem_size for job in jobs])
    processes = np.array([job.processes for job in jobs])
    cpu = np.array([_left_to(job, cluster, each) for job, each in zip(jobs, nodes, strict=True)])
    width = cluster.available_bandwidth
    bandwidth = np.clip([cluster.network.bandwidth(width, each) for each in nodes], LEAST_WIDTH, BOUNDLESS)
    try:
        predictor = _of_job(predictor, jobs[0])
        whole = predictor.expect_many(size, processes, cpu, bandwidth)
        share = computing_share(predictor, size, processes, cpu, bandwidth)
        watts, doubt = power_in_doubt(cluster.laid_out(jobs[0].laid_out), predictor, size, processes, cpu, bandwidth)
    except ValueError:
        return None
    if not (np.all(np.isfinite(whole)) and np.all(whole > 0) and not np.any(np.isnan(share))):
        return None
    known = np.isfinite(watts) & np.isfinite(doubt) & (energy_predictor(predictor) is not None)
    return whole, whole * share, np.where(known, watts, 0.0), np.where(known, doubt, 0.0)


def _left_to(job: StartedJob, measured: ClusterState, nodes: Ints) -> float:
    """The least CPU that others leave to a job on its nodes; what is measured holds its own processes as well."""
    cpu = measured.available_cpu[nodes]
    own = own_load(measured, job.nodes, job.processors, job.running_for, dedicated=job.dedicated)
    if own:
        load = np.array([own.get(node, 0.0) for node in nodes.tolist()])
        cpu = np.where(load > 0.0, without_load(cpu, load), cpu)
    return float((measured.speed[nodes] * cpu).min())


def _of_job(predictor: Predictor, job: StartedJob) -> Predictor:
    """The predictor for the settings of a job, but for parameters that no run had.

    Raises
    ------
    InputError : when no run had its devices.
    """
    settings = job.laid_out if clocks_of(predictor) else replace(job.laid_out, frequency=None)
    known, _ = understood(settings, [predictor])
    return under(predictor, replace(known, parameters=tuple(sorted({*known.parameters, *job.devices}))))
