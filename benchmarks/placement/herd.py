"""A herd: 100 submissions within one metric interval, with and without the shadows of those placed before."""

from __future__ import annotations

from collections import Counter

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.placement.instances import random_cluster, random_model
from metasched.placement.clusters.constraints import Constraints
from metasched.placement.clusters.state import ClusterState
from metasched.placement.loads.recent_placements import RecentPlacement, with_recent_placements
from metasched.placement.ranking.query import Question
from metasched.placement.ranking.ranker import rank
from metasched.predictors.contract import Predictor

SUBMISSIONS, MOST_PROCESSORS, NODES, SEED = 100, 4, 256, 2008


def place(measured: ClusterState, model: Predictor, *, shadows: bool) -> list[RecentPlacement]:
    """Place all submissions by the same measurement, half a second apart."""
    placed: list[RecentPlacement] = []
    for number in range(SUBMISSIONS):
        now = 0.5 * number
        state = with_recent_placements(measured, placed, now, settling=60.0) if shadows else measured
        best = rank(
            [state],
            model,
            Question(2000.0, Constraints(max_processors=MOST_PROCESSORS, least_efficiency=0), top=1, scope="top"),
        ).placements[0]
        nodes = best.resource_set.nodes
        placed.append(RecentPlacement("c", nodes, (1,) * len(nodes), now, best.prediction.execution_time))
    return placed


def main(console: Console) -> None:
    """Print how many jobs met on a node, and what their processes were left with."""
    random = np.random.default_rng(SEED)
    measured = random_cluster(random, NODES)
    model = random_model(random, 2000.0, turning=4.0, bandwidth=300.0)
    table = Table(
        title=f"{SUBMISSIONS} jobs of up to {MOST_PROCESSORS} processors within one metric interval, {NODES} nodes"
    )
    for heading in ("", "nodes used", "most jobs on a node", "least CPU left to a process", "processors a job"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, shadows in (("with shadows", True), ("without", False)):
        placed = place(measured, model, shadows=shadows)
        met = Counter(node for job in placed for node in job.nodes)
        share = {
            node: 1.0 / (1.0 / cpu + met[node] - 1)
            for node, cpu in zip(measured.nodes, measured.available_cpu, strict=True)
            if met[node]
        }
        sizes = np.array([len(job.nodes) for job in placed])
        table.add_row(name, str(len(met)), str(max(met.values())), f"{min(share.values()):.3f}", f"{sizes.mean():.1f}")
    console.print(table)


if __name__ == "__main__":
    main(Console(width=120))
