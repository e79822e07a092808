"""Simulates the questions and records the truth: ``python -m benchmarks.contention.ground_truth``; needs SimGrid.

Every job is timed alone and together with the others. Its computation and communication terms come from four runs
alone, with processors and links at full and at half speed, by relative least squares: T = A / cpu + B / bandwidth, the
two terms that a model fitted to its history would have. Where an application marks its phases, the same fit to what
each process marked as its own tells the processes apart, as per-process models do (Eq. 4 of the paper on modelling).
"""

from __future__ import annotations

import argparse
import csv
import os
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.optimize import nnls

from benchmarks.contention.questions import Question, draw
from benchmarks.testbed.clusters import CLUSTERS, ClusterModel, write_platform
from benchmarks.testbed.simulator import Group, Job, Outcome, driver, simulate_group

TRUTH = Path(__file__).with_name("truth.csv")
COLUMNS = (
    "question",
    "placement",
    "sharing",
    "cluster",
    "role",
    "application",
    "problem_size",
    "processors",
    "start_time",
    "computation",
    "communication",
    "alone_time",
    "together_time",
)
CPU = np.array([1.0, 0.5, 1.0, 0.5])
BANDWIDTH = np.array([1.0, 1.0, 0.5, 0.5])
CLUSTERS_ASKED = ("woodcrest", "amd")


@dataclass(frozen=True)
class Terms:
    """A job alone: computation of each process, or one number for all; communication; execution time (s)."""

    computation: tuple[float, ...]
    communication: float
    alone_time: float


class Simulator:
    """Runs groups of jobs on idle clusters, several groups at a time."""

    def __init__(self, folder: Path, workers: int) -> None:
        self.program = driver()
        self.folder, self.workers = folder, workers
        self.platforms: dict[tuple[str, float, float], Path] = {}

    def platform(self, cluster: ClusterModel, cpu: float, bandwidth: float) -> Path:
        """Platform file of a cluster at the given shares of its speeds."""
        key = cluster.name, cpu, bandwidth
        if key not in self.platforms:
            folder = self.folder / f"{cluster.name}-{cpu}-{bandwidth}"
            folder.mkdir()
            slowed = replace(cluster, speed=cluster.speed * cpu, bandwidth=cluster.bandwidth * bandwidth)
            self.platforms[key] = write_platform(slowed, None, folder)
        return self.platforms[key]

    def run(self, tasks: Sequence[tuple[Path, Group]]) -> list[list[Outcome]]:
        """Outcomes of the jobs of each group on its platform."""
        with ThreadPoolExecutor(self.workers) as pool:
            return list(pool.map(lambda task: simulate_group(self.program, *task), tasks))


def terms_of(simulator: Simulator, cluster: ClusterModel, jobs: Sequence[Job]) -> list[Terms]:
    """Time jobs alone at full and half speeds and fit the two terms of each."""
    tasks = [
        (simulator.platform(cluster, cpu, bandwidth), (replace(job, start_time=0.0),))
        for job in jobs
        for cpu, bandwidth in zip(CPU.tolist(), BANDWIDTH.tolist(), strict=True)
    ]
    outcomes = [outcome for (outcome,) in simulator.run(tasks)]
    return [_fit(outcomes[first : first + CPU.size]) for first in range(0, len(outcomes), CPU.size)]


def _fit(outcomes: Sequence[Outcome]) -> Terms:
    times = np.array([outcome.execution_time for outcome in outcomes])
    computation, communication = two_terms(times)
    own: dict[int, np.ndarray] = {}
    for index, outcome in enumerate(outcomes):
        for mark in outcome.phases:
            own.setdefault(mark.process, np.zeros(CPU.size))[index] += mark.end - mark.begin
    each = [two_terms(own[process])[0] for process in sorted(own)]
    return Terms(tuple(each) or (computation,), communication, float(times[0]))


def two_terms(times: np.ndarray) -> tuple[float, float]:
    """A and B of T = A / cpu + B / bandwidth, neither negative, from times at :data:`CPU` and :data:`BANDWIDTH`."""
    columns = np.stack([1 / CPU, 1 / BANDWIDTH], axis=1)
    computation, communication = nnls(columns / times[:, None], np.ones(times.size))[0]
    return float(computation), float(communication)


def answer(simulator: Simulator, question: Question, rng: np.random.Generator) -> list[dict[str, object]]:
    """Simulate a question; one row for each job of each placement."""
    cluster = question.cluster
    jobs = [*question.running, *question.candidates()[:1]]
    alone = terms_of(simulator, cluster, jobs)
    start = float(np.round(rng.uniform(0.0, 0.5) * min(terms.alone_time for terms in alone[:-1]), 3))
    platform = simulator.platform(cluster, 1.0, 1.0)
    groups = [(*question.running, replace(job, start_time=start)) for job in question.candidates()]
    rows: list[dict[str, object]] = []
    outcomes = simulator.run([(platform, group) for group in groups])
    for (sharing, _), group, ends in zip(question.placements, groups, outcomes, strict=True):
        for job, terms, end in zip(group, alone, ends, strict=True):
            rows.append(
                {
                    "sharing": sharing,
                    "cluster": cluster.name,
                    "role": "candidate" if job is group[-1] else "running",
                    "application": job.application,
                    "problem_size": job.problem_size,
                    "processors": " ".join(job.processors),
                    "start_time": f"{job.start_time:.3f}",
                    "computation": " ".join(f"{seconds:.5f}" for seconds in terms.computation),
                    "communication": f"{terms.communication:.5f}",
                    "alone_time": f"{terms.alone_time:.5f}",
                    "together_time": f"{end.execution_time:.5f}",
                }
            )
    return rows


def main() -> None:
    """Draw the questions, simulate them and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=40, help="how many (default 40)")
    parser.add_argument("--seed", type=int, default=5, help="seed of the questions (default 5)")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="simulations at a time")
    parser.add_argument("-o", "--output", type=Path, default=TRUTH, help="file to write")
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        simulator = Simulator(Path(folder), options.workers)
        for number in range(options.questions):
            cluster = CLUSTERS[CLUSTERS_ASKED[number % len(CLUSTERS_ASKED)]]
            question = draw(cluster, 1 + number // len(CLUSTERS_ASKED) % 2, rng)
            answers = answer(simulator, question, rng)
            jobs = len(question.running) + 1
            rows += [{"question": number, "placement": index // jobs} | row for index, row in enumerate(answers)]
            print(f"question {number + 1} of {options.questions}: {len(question.placements)} placements", flush=True)
    with options.output.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
