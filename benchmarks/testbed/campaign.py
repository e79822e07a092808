"""Makes a campaign: draws the plan, simulates every run, adds what measurement adds, writes the folder.

All randomness comes from the seed, each purpose from a stream of its own, and every run is simulated by itself; so the
folder is the same to the byte whatever the number of workers.
"""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.testbed import plan
from benchmarks.testbed.applications import ApplicationModel
from benchmarks.testbed.clusters import ClusterModel, node_of, write_platform
from benchmarks.testbed.loading import Loading
from benchmarks.testbed.monitoring import SENSOR_ERROR, Samples, watch, write_loads
from benchmarks.testbed.simulator import Job, Outcome, SimulationError, driver, simulate
from benchmarks.testbed.timeline import Timeline

TIME_ERROR = 0.015  # standard deviation of a measured execution time, relative
RETRIES = 5
RETRY_LATER = 0.1  # seconds
RUN_COLUMNS = [
    "phase", "application", "cluster", "start_time", "nodes", "problem_size", "processors", "min_avg_avail_cpu",
    "min_avg_avail_bw", "execution_time", "dedicated_time",
]  # fmt: skip
PHASE_COLUMNS = ["run", "phase", "process", "node", "avg_avail_cpu", "avg_avail_bw", "execution_time"]

Draw = Callable[[ApplicationModel, ClusterModel, np.random.Generator], list[plan.Request]]
Group = tuple[Job, ...]
Outcomes = Iterable[list[Outcome]]
Progress = Callable[[Outcomes, int], Outcomes]


def silent(items: Outcomes, total: int) -> Outcomes:
    """A progress display that shows nothing."""
    return items


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
class Campaign:
    """All that a campaign's files say, before measurement errors are put on the times."""

    wanted: list[plan.Request]
    dedicated: list[float]
    outcomes: list[Outcome]
    samples: Samples
    noise: np.ndarray


def simulate_group(program: Path, platform: Path, group: Group) -> list[Outcome]:
    """Run jobs together; where the simulator reports its false deadlock, start all of them a little later."""
    for attempt in range(RETRIES):
        later = [replace(job, start_time=job.start_time + RETRY_LATER * attempt) for job in group]
        try:
            return simulate(program, platform, later)
        except SimulationError:
            if attempt == RETRIES - 1:
                raise
    raise AssertionError("unreachable")


def simulate_all(
    cluster: ClusterModel, timeline: Timeline | None, groups: Sequence[Group], workers: int, progress: Progress
) -> list[list[Outcome]]:
    """Run groups of jobs on the cluster under its loads, each group in a simulation of its own, several at a time."""
    program = driver()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(workers) as pool:
        platform = write_platform(cluster, timeline, Path(folder))
        found = pool.map(lambda group: simulate_group(program, platform, group), groups)
        return list(progress(found, len(groups)))


def check_order(outcomes: Sequence[Outcome], moments: Sequence[float]) -> None:
    """Make sure that each run ended before the next one started."""
    for outcome, following in zip(outcomes, moments[1:], strict=False):
        if outcome.end_time >= following:
            raise SimulationError(f"the run that started at {outcome.start_time} outgrew its slot")


def make(scenario: Scenario, workers: int = 1, progress: Progress = silent, draw: Draw | None = None) -> Campaign:
    """Simulate a campaign.

    Parameters
    ----------
    scenario : what to make.
    workers : simulations at a time; does not change the outcome.
    progress : shows how far it is.
    draw : what runs are wanted; by default training runs, then predictions.
    """
    cluster, application = scenario.cluster, scenario.application
    root = np.random.SeedSequence([scenario.seed, *scenario.name.encode()])
    for_plan, for_starts, for_sensors, for_times = (np.random.default_rng(child) for child in root.spawn(4))
    load_seed = int(root.generate_state(1)[0])
    wanted = (
        draw(application, cluster, for_plan)
        if draw
        else plan.requests(application, cluster, for_plan, scenario.predictions)
    )
    jobs = [Job(application.name, request.problem_size, 0.0, request.processors) for request in wanted]
    idle = simulate_all(cluster, None, [(job,) for job in jobs], workers, progress)
    dedicated = [outcome.execution_time for (outcome,) in idle]
    slots = [plan.Slot(job.processors, work) for job, work in zip(jobs, dedicated, strict=True)]
    timeline, moments = plan.schedule(cluster, scenario.generator, load_seed, slots, for_starts)
    groups = [(replace(job, start_time=moment),) for job, moment in zip(jobs, moments, strict=True)]
    outcomes = [outcome for (outcome,) in simulate_all(cluster, timeline, groups, workers, progress)]
    check_order(outcomes, moments)
    samples = watch(cluster, timeline, outcomes[-1].end_time, for_sensors)
    noise = np.exp(for_times.normal(0.0, TIME_ERROR, len(outcomes)))
    return Campaign(wanted, dedicated, outcomes, samples, noise)


def _table(columns: list[str], rows: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


def run_rows(scenario: Scenario, campaign: Campaign) -> Iterable[list[object]]:
    """Rows of runs.csv."""
    each = zip(campaign.wanted, campaign.dedicated, campaign.outcomes, campaign.noise, strict=True)
    for request, dedicated, outcome, noise in each:
        cpu, bandwidth = campaign.samples.minima(request.processors, outcome.start_time, outcome.end_time)
        yield [
            request.phase, scenario.application.name, scenario.cluster.name, f"{outcome.start_time:.3f}",
            " ".join(request.processors), request.problem_size, len(request.processors), f"{cpu:.4f}",
            f"{bandwidth:.3f}", f"{outcome.execution_time * noise:.4f}", f"{dedicated:.4f}",
        ]  # fmt: skip


def phase_rows(campaign: Campaign) -> Iterable[list[object]]:
    """Rows of phases.csv: what each process of each run did in each phase; empty where nothing was marked."""
    samples = campaign.samples
    for index, (request, outcome, noise) in enumerate(
        zip(campaign.wanted, campaign.outcomes, campaign.noise, strict=True)
    ):
        for mark in outcome.phases:
            name = request.processors[mark.process]
            yield [
                index, mark.phase, mark.process, name,
                f"{samples.average(samples.cpu[name], mark.begin, mark.end):.4f}",
                f"{samples.average(samples.bandwidth[node_of(name)], mark.begin, mark.end):.3f}",
                f"{(mark.end - mark.begin) * noise:.4f}",
            ]  # fmt: skip


def write_runs(scenario: Scenario, campaign: Campaign, path: Path) -> None:
    """Write runs.csv, under whatever name."""
    path.write_text(_table(RUN_COLUMNS, run_rows(scenario, campaign)), encoding="utf-8")


def write(scenario: Scenario, campaign: Campaign, folder: Path) -> None:
    """Write the campaign folder: runs.csv, loads.csv.gz, campaign.json, and phases.csv where phases were marked."""
    folder.mkdir(parents=True, exist_ok=True)
    write_runs(scenario, campaign, folder / "runs.csv")
    write_loads(campaign.samples, folder / "loads.csv.gz", 2 if scenario.cluster.bandwidth <= 100.0 else 1)
    phases = list(phase_rows(campaign))
    if phases:
        (folder / "phases.csv").write_text(_table(PHASE_COLUMNS, phases), encoding="utf-8")
    facts = {
        "application": scenario.application.name,
        "cluster": scenario.cluster.name,
        "loading": scenario.loading,
        "seed": scenario.seed,
        "predictions": scenario.predictions,
        "training_sizes": [scenario.application.smallest, scenario.application.largest],
        "sample_period": scenario.cluster.sample_period,
        "time_error": TIME_ERROR,
        "sensor_error": SENSOR_ERROR,
        "simulator": "SimGrid/SMPI 3.32",
    }
    (folder / "campaign.json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
