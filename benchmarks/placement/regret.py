"""Regret and time of each search on 200 random instances of 16 to 512 nodes."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.placement.instances import random_cluster, random_model
from benchmarks.placement.peers import PEERS, Problem
from metasched.placement.clusters.constraints import Constraints
from metasched.placement.ranking.query import Question
from metasched.placement.ranking.ranker import rank

INSTANCES, FEWEST, MOST = 200, 16, 512
OURS = "exact search (full ranking)"

Floats = NDArray[np.float64]


def measure(instances: int = INSTANCES, seed: int = 2008) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Predicted times found (s) and processor times spent (s) by each search: arrays of shape (instances,)."""
    random = np.random.default_rng(seed)
    names = [OURS, *PEERS]
    found = {name: np.empty(instances) for name in names}
    spent = {name: np.empty(instances) for name in names}
    for index in track(range(instances), console=Console(stderr=True), transient=True):
        nodes = round(FEWEST * (MOST / FEWEST) ** random.random())
        cluster = random_cluster(random, nodes)
        problem_size = 2000.0
        model = random_model(random, problem_size, turning=random.uniform(2, nodes), bandwidth=300.0)
        problem = Problem.of(cluster, model, problem_size)
        start = time.process_time()
        best = rank(
            [cluster], model, Question(problem_size, Constraints(least_efficiency=0), scope="top", top=10)
        ).placements[0]
        spent[OURS][index] = time.process_time() - start
        found[OURS][index] = best.completion
        for name, search in PEERS.items():
            start = time.process_time()
            found[name][index] = search(problem, random)
            spent[name][index] = time.process_time() - start
    return found, spent


def main(console: Console, instances: int = INSTANCES) -> None:
    """Print regrets against the best that any search found, and times."""
    found, spent = measure(instances)
    least = np.min(list(found.values()), axis=0)
    table = Table(title=f"{instances} instances of {FEWEST} to {MOST} nodes; regret = time found / least found - 1")
    for heading in ("search", "mean regret", "worst", "instances without", "median ms", "times ours"):
        table.add_column(heading, justify="left" if heading == "search" else "right")
    for name, times in found.items():
        regret = times / least - 1.0
        table.add_row(
            name,
            f"{regret.mean():.2%}",
            f"{regret.max():.1%}",
            f"{np.count_nonzero(regret <= 1e-9)} of {instances}",
            f"{1e3 * np.median(spent[name]):.2f}",
            f"{np.median(spent[name] / spent[OURS]):.1f}",
        )
    console.print(table)


if __name__ == "__main__":
    main(Console(width=120))
