"""Makes campaigns of co-scheduled jobs: pairs that share processors, links or nothing, each timed alone and together.

Both jobs of a pair start at the same moment in one simulation, each with an MPI_COMM_WORLD of its own; each is also run
by itself from that moment on, under the same loads. The recorded loads leave out what one job takes from the other.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.testbed import plan
from benchmarks.testbed.applications import APPLICATIONS
from benchmarks.testbed.campaign import TIME_ERROR, Made, check_order, conditions, measured
from benchmarks.testbed.clusters import ClusterModel, node_of
from benchmarks.testbed.loading import Loading
from benchmarks.testbed.monitoring import watch, write_loads
from benchmarks.testbed.simulator import Job, Progress, silent, simulate_all
from metasched.records import InputError, Run
from metasched.store.files.runs import write_runs
from metasched.store.files.whole_files import write_text_atomically

#: What two jobs have in common: the same processors of some nodes, other processors of the same nodes and so only
#: their links, or no node at all.
SHARING = ("nodes", "links", "nothing")
PAIRS = 90
COUNTS = (2, 4, 6)
KERNELS = tuple(name for name in APPLICATIONS if name != "twophase")


@dataclass(frozen=True)
class Scenario:
    """What decides a co-scheduled campaign, down to the last byte."""

    cluster: ClusterModel
    loading: str
    generator: Loading
    seed: int
    pairs: int = PAIRS

    @property
    def name(self) -> str:
        """Name of the campaign's folder."""
        return f"coscheduled-{self.cluster.name}-{self.loading}"


def draw_pair(cluster: ClusterModel, sharing: str, rng: np.random.Generator) -> tuple[Job, Job]:
    """Draw two jobs whose nodes overlap in the way that ``sharing`` says."""
    first, second = (int(count) for count in rng.choice([c for c in COUNTS if 2 * c <= cluster.node_count], 2))
    common = 0 if sharing == "nothing" else int(rng.integers(1, min(first, second) + 1))
    order = rng.permutation(cluster.node_count)
    rounds = cluster.processors[: cluster.node_count], cluster.processors[cluster.node_count :]
    places = (
        tuple(rounds[0][node] for node in order[:first]),
        tuple(rounds[sharing == "links"][node] for node in order[first - common : first - common + second]),
    )
    jobs = []
    for processors in places:
        application = APPLICATIONS[str(rng.choice(KERNELS))]
        size = np.exp(rng.uniform(np.log(application.smallest), np.log(application.largest)))
        jobs.append(Job(application.name, round(float(size)), 0.0, processors))
    return jobs[0], jobs[1]


def make(scenario: Scenario, workers: int = 1, progress: Progress = silent) -> Made:
    """Simulate a co-scheduled campaign: two runs for each pair, kinds of sharing in turn."""
    cluster = scenario.cluster
    kinds = [sharing for sharing in SHARING if sharing != "links" or cluster.processors_per_node > 1]
    if cluster.node_count < 2 * min(COUNTS):
        raise InputError(f"cluster {cluster.name} has {cluster.node_count} nodes, expected {2 * min(COUNTS)} or more")
    root = np.random.SeedSequence([scenario.seed, *scenario.name.encode()])
    for_plan, for_starts, for_sensors, for_times = (np.random.default_rng(child) for child in root.spawn(4))
    load_seed = int(root.generate_state(1)[0])
    shared = [kinds[index % len(kinds)] for index in range(scenario.pairs)]
    pairs = [draw_pair(cluster, sharing, for_plan) for sharing in shared]

    idle = simulate_all(cluster, None, [(job,) for pair in pairs for job in pair], workers, progress)
    works = np.array([outcome.execution_time for (outcome,) in idle]).reshape(-1, 2).sum(axis=1)
    slots = [
        plan.Slot(first.processors + second.processors, float(work))
        for (first, second), work in zip(pairs, works, strict=True)
    ]
    timeline, moments = plan.schedule(cluster, scenario.generator, load_seed, slots, for_starts)
    pairs = [
        (replace(first, start_time=moment), replace(second, start_time=moment))
        for (first, second), moment in zip(pairs, moments, strict=True)
    ]
    alone = [
        out for (out,) in simulate_all(cluster, timeline, [(job,) for pair in pairs for job in pair], workers, progress)
    ]
    together = simulate_all(cluster, timeline, pairs, workers, progress)
    ends = [max(outcome.end_time for outcome in outcomes) for outcomes in together]
    check_order(ends, moments)

    samples = watch(cluster, timeline, max(*ends, *(outcome.end_time for outcome in alone)), for_sensors)
    noise = np.exp(for_times.normal(0.0, TIME_ERROR, (len(pairs), 2, 2)))
    runs: list[Run] = []
    for index, pair in enumerate(pairs):
        for member, job in enumerate(pair):
            by_itself = alone[2 * index + member].execution_time * noise[index, member, 1]
            extra = {
                "pair": str(index),
                "sharing": shared[index],
                "shared_nodes": str(common_nodes(pair)),
                "alone_time": f"{by_itself:.4f}",
            }
            run = measured(job, cluster, together[index][member], samples, float(noise[index, member, 0]))
            runs.append(replace(run, extra=extra))
    return Made(tuple(runs), (), samples)


def common_nodes(pair: Sequence[Job]) -> int:
    """How many nodes both jobs of a pair use."""
    first, second = ({node_of(name) for name in job.processors} for job in pair)
    return len(first & second)


def write(scenario: Scenario, made: Made, folder: Path) -> None:
    """Write the campaign folder: runs.csv (a row for each job of a pair), loads.csv.gz, campaign.json."""
    folder.mkdir(parents=True, exist_ok=True)
    write_runs(folder / "runs.csv", made.runs)
    write_loads(made.samples, folder / "loads.csv.gz")
    facts = {
        "cluster": scenario.cluster.name,
        "loading": scenario.loading,
        "seed": scenario.seed,
        "pairs": scenario.pairs,
        **conditions(scenario.cluster),
    }
    write_text_atomically(folder / "campaign.json", json.dumps(facts, indent=2) + "\n")
