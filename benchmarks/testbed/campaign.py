"""Makes a campaign: draws the plan, simulates every run, adds what measurement adds, writes the folder.

All randomness comes from the seed, each purpose from a stream of its own, and every run is simulated by itself; so the
folder is the same to the byte whatever the number of workers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.testbed import plan
from benchmarks.testbed.applications import ApplicationModel
from benchmarks.testbed.clusters import ClusterModel
from benchmarks.testbed.loading import Loading
from benchmarks.testbed.monitoring import SENSOR_ERROR, Samples, watch, write_loads
from benchmarks.testbed.phases import ProcessPhase, measure_phases, write_phases
from benchmarks.testbed.simulator import Job, Outcome, Progress, SimulationError, silent, simulate_all
from benchmarks.testbed.timeline import Floats, Timeline
from metasched.records import Run, Settings
from metasched.store.files.runs import write_runs
from metasched.store.files.whole_files import write_text_atomically

TIME_ERROR = 0.015  # standard deviation of a measured execution time, relative

Draw = Callable[[ApplicationModel, ClusterModel, np.random.Generator], list[plan.Request]]


@dataclass(frozen=True)
class Scenario:
    """What decides a campaign, down to the last byte."""

    application: ApplicationModel
    cluster: ClusterModel
    loading: str
    generator: Loading
    seed: int
    predictions: int = plan.PREDICTIONS

    @property
    def name(self) -> str:
        """Name of the campaign's folder."""
        return f"{self.application.name}-{self.cluster.name}-{self.loading}"


@dataclass(frozen=True)
class Made:
    """A campaign as it was measured: runs, phases of processes where the application marks them, samples of loads."""

    runs: tuple[Run, ...]
    phases: tuple[ProcessPhase, ...]
    samples: Samples


@dataclass(frozen=True)
class Drawn:
    """What the seed of a campaign decides before anything has run.

    Parameters
    ----------
    requests, jobs : the runs that are wanted, in order, and the same as jobs that start at 0 s.
    load_seed : decides the loads.
    for_starts, for_sensors, for_times : streams of random numbers, one for each purpose.
    """

    requests: tuple[plan.Request, ...]
    jobs: tuple[Job, ...]
    load_seed: int
    for_starts: np.random.Generator
    for_sensors: np.random.Generator
    for_times: np.random.Generator

    def schedule(self, scenario: Scenario, dedicated: Sequence[float]) -> tuple[Timeline, list[float]]:
        """Loads and start times (s), given the times on the idle cluster (s)."""
        slots = [plan.Slot(job.processors, work) for job, work in zip(self.jobs, dedicated, strict=True)]
        return plan.schedule(scenario.cluster, scenario.generator, self.load_seed, slots, self.for_starts)

    def time_errors(self) -> Floats:
        """Measured over true execution time of each run."""
        return np.exp(self.for_times.normal(0.0, TIME_ERROR, len(self.jobs)))


def draw_runs(scenario: Scenario, draw: Draw | None = None) -> Drawn:
    """Draw the runs of a campaign; by default training runs, then predictions."""
    application, cluster = scenario.application, scenario.cluster
    root = np.random.SeedSequence([scenario.seed, *scenario.name.encode()])
    for_plan, *others = (np.random.default_rng(child) for child in root.spawn(4))
    requests = (
        draw(application, cluster, for_plan)
        if draw
        else plan.requests(application, cluster, for_plan, scenario.predictions)
    )
    jobs = (Job(application.name, request.problem_size, 0.0, request.processors) for request in requests)
    return Drawn(tuple(requests), tuple(jobs), int(root.generate_state(1)[0]), *others)


def make(scenario: Scenario, workers: int = 1, progress: Progress = silent, draw: Draw | None = None) -> Made:
    """Simulate a campaign.

    Parameters
    ----------
    scenario : what to make.
    workers : simulations at a time; does not change the outcome.
    progress : shows how far it is.
    draw : what runs are wanted; by default training runs, then predictions.
    """
    cluster = scenario.cluster
    drawn = draw_runs(scenario, draw)
    jobs = drawn.jobs
    idle = simulate_all(cluster, None, [(job,) for job in jobs], workers, progress)
    dedicated = [outcome.execution_time for (outcome,) in idle]
    timeline, moments = drawn.schedule(scenario, dedicated)
    groups = [(replace(job, start_time=moment),) for job, moment in zip(jobs, moments, strict=True)]
    outcomes = [outcome for (outcome,) in simulate_all(cluster, timeline, groups, workers, progress)]
    check_order([outcome.end_time for outcome in outcomes], moments)

    samples = watch(cluster, timeline, outcomes[-1].end_time, drawn.for_sensors)
    noise = drawn.time_errors()
    runs: list[Run] = []
    phases: list[ProcessPhase] = []
    for index, (request, outcome) in enumerate(zip(drawn.requests, outcomes, strict=True)):
        run = measured(jobs[index], cluster, outcome, samples, float(noise[index]))
        fields = {"dedicated_time": f"{dedicated[index]:.4f}", **Settings.of(request.processes_per_node).cells}
        runs.append(replace(run, phase=request.phase, extra=fields))
        phases += measure_phases(index, jobs[index].processors, outcome, samples, float(noise[index]))
    return Made(tuple(runs), tuple(phases), samples)


def check_order(ends: Sequence[float], moments: Sequence[float]) -> None:
    """Make sure that each run ended before the next one started."""
    for end, following in zip(ends, moments[1:], strict=False):
        if end >= following:
            raise SimulationError(f"the run before {following} s outgrew its slot and ended at {end} s")


def measured(job: Job, cluster: ClusterModel, outcome: Outcome, samples: Samples, noise: float) -> Run:
    """A run as it is recorded: times with their error, loads as the monitors saw them, both rounded."""
    cpu, bandwidth = samples.minima(job.processors, outcome.start_time, outcome.end_time)
    return Run(
        job.application,
        cluster.name,
        job.problem_size,
        len(job.processors),
        round(cpu, 4),
        round(bandwidth, 3),
        round(outcome.execution_time * noise, 4),
        start_time=round(outcome.start_time, 3),
        nodes=job.processors,
    )


def write(scenario: Scenario, made: Made, folder: Path) -> None:
    """Write the campaign folder: runs.csv, loads.csv.gz, campaign.json, and phases.csv where phases were marked."""
    folder.mkdir(parents=True, exist_ok=True)
    write_runs(folder / "runs.csv", made.runs)
    write_loads(made.samples, folder / "loads.csv.gz")
    if made.phases:
        write_phases(folder / "phases.csv", made.phases)
    facts = {
        "application": scenario.application.name,
        "cluster": scenario.cluster.name,
        "loading": scenario.loading,
        "seed": scenario.seed,
        "predictions": scenario.predictions,
        "training_sizes": [scenario.application.smallest, scenario.application.largest],
        **conditions(scenario.cluster),
    }
    write_text_atomically(folder / "campaign.json", json.dumps(facts, indent=2) + "\n")


def conditions(cluster: ClusterModel) -> dict[str, object]:
    """How runs and loads of a cluster are measured."""
    return {
        "sample_period": cluster.sample_period,
        "time_error": TIME_ERROR,
        "sensor_error": SENSOR_ERROR,
        "simulator": "SimGrid/SMPI 3.32",
    }
