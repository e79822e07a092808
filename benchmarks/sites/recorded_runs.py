"""What SimGrid says of the seven applications at the four sites: ``python -m benchmarks.sites record``.

Each site's processors and links are those of one of the testbed's clusters, sixteen nodes of one processor, which is
the most that a job asks for. Every run is simulated alone, message by message, from a moment drawn at random in the
loads of its site, on nodes drawn at random, and recorded as the testbed does, with its errors of times and loads. The
sites' models learn the training runs; jobs of the stream take the times of the others, and nothing is interpolated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.testbed import plan
from benchmarks.testbed.applications import ApplicationModel
from benchmarks.testbed.campaign import TIME_ERROR, measured
from benchmarks.testbed.clusters import CLUSTERS, ClusterModel
from benchmarks.testbed.loading import LOADINGS
from benchmarks.testbed.monitoring import watch
from benchmarks.testbed.simulator import Job, Progress, simulate_all
from metasched.records import Run
from metasched.store.files.runs import read_runs, write_runs

FILE = Path(__file__).with_name("runs.csv")
#: Decides nodes, loads, starts and errors of all recorded runs.
SEED = 31
#: Processors of the jobs, and of the runs that models learn.
PROCESSORS, TRAINED = (4, 8, 16), (2, 4, 8, 16)
#: Problem sizes of the jobs of an application, in equal ratios; models learn the sizes halfway between.
SIZES = 5
#: Runs of each size and number of processors where loads make them differ.
REPEATED = 2
#: Runs start within so many seconds, after monitors have watched for some; loads are drawn for long enough to end.
STARTS, LOADS = (600.0, 90_000.0), 100_000.0
WORKERS = 2
#: Smallest and largest N of the jobs: some ten seconds to some minutes.
APPLICATIONS = {
    application.name: application
    for application in (
        ApplicationModel("eigen", "order of the matrix", 2_000, 4_000),
        ApplicationModel("fft", "points", 12_000_000, 48_000_000),
        ApplicationModel("cg", "unknowns", 14_000, 36_000),
        ApplicationModel("md", "particles", 12_000, 30_000),
        ApplicationModel("poisson", "points along a side", 9_000, 24_000),
        ApplicationModel("is", "keys", 40_000_000, 160_000_000),
        ApplicationModel("ssor", "points along a side", 10_000, 26_000),
    )
}


@dataclass(frozen=True)
class Platform:
    """The nodes of a site: the testbed's cluster that they are of, and the loads of other work on them."""

    cluster: str
    loading: str


PLATFORMS = {
    "slurm-a": Platform("amd", "dedicated"),
    "slurm-b": Platform("woodcrest", "dedicated"),
    "gridengine": Platform("intel", "grid"),
    "cloud": Platform("ibm", "random"),
}


def sizes(application: ApplicationModel) -> tuple[list[int], list[int]]:
    """Problem sizes of the jobs, and those that models learn, both increasing.

    Examples
    --------
    >>> sizes(ApplicationModel("cg", "unknowns", 100, 1600))
    ([100, 200, 400, 800, 1600], [141, 283, 566, 1131])
    """
    every = np.geomspace(application.smallest, application.largest, 2 * SIZES - 1)
    return [round(size) for size in every[::2]], [round(size) for size in every[1::2]]


def requests(application: ApplicationModel, cluster: ClusterModel, rng: np.random.Generator) -> list[plan.Request]:
    """The runs of an application at a site: those that models learn first, the others in an order drawn at random."""
    asked, learned = sizes(application)
    times = 1 if PLATFORMS[cluster.name].loading == "dedicated" else REPEATED
    train = [plan.Request("train", size, plan.place(cluster, count, rng)) for size in learned for count in TRAINED]
    kinds = [(size, count) for size in asked for count in PROCESSORS] * times
    order = rng.permutation(len(kinds))
    return train + [plan.Request("predict", kinds[k][0], plan.place(cluster, kinds[k][1], rng)) for k in order]


def cluster_of(site: str) -> ClusterModel:
    """The nodes of a site that a job may get."""
    return replace(CLUSTERS[PLATFORMS[site].cluster], name=site, node_count=max(PROCESSORS), processors_per_node=1)


def record_site(site: str, application: ApplicationModel, progress: Progress, count: int | None = None) -> list[Run]:
    """Simulate the runs of an application at a site.

    Parameters
    ----------
    site, application : which and where.
    progress : shows how far it is.
    count : how many of the first runs; None for all.
    """
    cluster = cluster_of(site)
    root = np.random.SeedSequence([SEED, *f"{site} {application.name}".encode()])
    for_plan, for_starts, for_sensors, for_times = (np.random.default_rng(child) for child in root.spawn(4))
    wanted = requests(application, cluster, for_plan)
    starts = np.round(for_starts.uniform(*STARTS, len(wanted)), 3)
    jobs = [
        Job(application.name, each.problem_size, float(start), each.processors)
        for each, start in zip(wanted, starts, strict=True)
    ][:count]
    timeline = LOADINGS[PLATFORMS[site].loading](cluster, int(root.generate_state(1)[0]), LOADS)
    outcomes = [found for (found,) in simulate_all(cluster, timeline, [(job,) for job in jobs], WORKERS, progress)]
    samples = watch(cluster, timeline, LOADS, for_sensors)
    errors = np.exp(for_times.normal(0.0, TIME_ERROR, len(wanted)))
    return [
        # Which of the equal nodes a run had matters no longer.
        replace(measured(job, cluster, outcome, samples, float(error)), phase=request.phase, nodes=())
        for job, outcome, error, request in zip(jobs, outcomes, errors, wanted, strict=False)
    ]


def record(progress: Progress, path: Path = FILE) -> None:
    """Simulate all runs and write them: some ten minutes of two cores.

    Parameters
    ----------
    progress : shows how far it is.
    path : of the file; it has what is recorded so far.
    """
    runs: list[Run] = []
    for application in APPLICATIONS.values():
        for site in PLATFORMS:
            runs += record_site(site, application, progress)
            write_runs(path, runs)


@dataclass(frozen=True)
class RecordedRuns:
    """Runs of one application at one site.

    Parameters
    ----------
    training : that the site's model learns.
    times : execution times (s) by problem size and processors.
    """

    training: tuple[Run, ...]
    times: Mapping[tuple[int, int], Sequence[float]]

    def loads(self, processors: int) -> tuple[float, float]:
        """The average loads of earlier runs on so many processors, which a site expects of the next: CPU, Mbit/s."""
        alike = [run for run in self.training if run.processors == processors]
        cpu, bandwidth = np.mean([(run.min_avg_avail_cpu, run.min_avg_avail_bw) for run in alike], axis=0)
        return float(cpu), float(bandwidth)


@cache
def recorded_runs() -> dict[tuple[str, str], RecordedRuns]:
    """All recorded runs by site and application."""
    found: dict[tuple[str, str], RecordedRuns] = {}
    runs = read_runs(FILE)
    for key in dict.fromkeys((run.cluster, run.application) for run in runs):
        own = [run for run in runs if (run.cluster, run.application) == key]
        times: dict[tuple[int, int], list[float]] = {}
        for run in own:
            if run.phase == "predict":
                times.setdefault((round(run.problem_size), run.processors), []).append(run.execution_time)
        found[key] = RecordedRuns(tuple(run for run in own if run.phase == "train"), times)
    return found
