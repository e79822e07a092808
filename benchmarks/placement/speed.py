"""Speed at scale: the full ranking of 10,000 and of 100,000 nodes, with every number of processors from 1 to 1,024."""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Iterator, Sequence

import numpy as np
from rich.console import Console
from rich.table import Table

from metasched.placement.clusters.constraints import Constraints
from metasched.placement.clusters.state import ClusterState
from metasched.placement.clusters.switch_tree import Topology
from metasched.placement.ranking.layouts import layouts
from metasched.placement.ranking.query import Question
from metasched.placement.ranking.ranker import rank
from metasched.predictors.contract import Predictor
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.records import DEFAULT_SETTINGS, Run

#: Nodes, racks and the limit on the full ranking (s).
SCALES = ((10_000, 50, 0.050), (100_000, 500, 1.0))
#: Processes a node among which a ranking of the first scale chooses, processors of its nodes, and the limit on it (s).
PER_NODE, CORES, LAID_OUT_LIMIT = (1, 2, 4), 4, 0.100
#: Megabytes that a whole process may hold.
MOST_MEMORY = 500.0
REPEATS = 5


def cluster(random: np.random.Generator, nodes: int, racks: int, *, alike: bool, processors: int = 1) -> ClusterState:
    """A loaded cluster of racks under one switch; node links alike, or each with its own bandwidth to spare."""
    parent = np.append(np.full(racks, racks), -1)
    uplink = np.append(random.uniform(100.0, 10_000.0, racks), np.inf)
    tree = Topology(tuple(f"s{index}" for index in range(racks + 1)), parent, uplink, np.arange(nodes) * racks // nodes)
    link = np.full(nodes, 1000.0) if alike else random.uniform(50.0, 1000.0, nodes)
    names = [f"n{index}" for index in range(nodes)]
    cpu = random.uniform(0.1, 1.0, nodes)
    return ClusterState.make(
        "big", names, processors=processors, available_cpu=cpu, available_bandwidth=link, network=tree
    )


def learned(random: np.random.Generator, per_node: Sequence[int] = ()) -> Predictor:
    """The default predictor, that has really learned, from runs of N^2/(cpu P) and N log P/bw with 5 % noise.

    With processes per node both terms grow with the root of these, drawn at random for each run.
    """
    conditions = [
        (n, p, random.uniform(0.3, 1.0), random.uniform(50.0, 1000.0))
        for n in np.linspace(1000, 8000, 10)
        for p in (1, 2, 4, 8, 16, 32)
    ]
    runs = []
    for n, p, c, b in conditions:
        k = int(random.choice([count for count in per_node if count <= p])) if per_node else 1
        seconds = (2e-4 * n**2 / (c * p) + 4.0 * n * np.log2(p) / b) * k**0.5 * random.lognormal(0, 0.05)
        extra = {"processes_per_node": str(k)} if per_node else {}
        runs.append(Run("app", "big", n, p, c, b, seconds, extra=extra))
    return RobustPredictor("app", "big").fit(runs)


def rows() -> Iterator[tuple[str, str, int, int, float, float]]:
    """Scale, scope, sets compared, predictions made, median time (s) and its limit (s)."""
    random = np.random.default_rng(2008)
    predictor = learned(random)
    wanted = Constraints(max_processors=1024)
    for nodes, racks, limit in SCALES:
        for alike in (True, False):
            state = cluster(random, nodes, racks, alike=alike)
            for scope in ("top", "processors", "all"):
                times = []
                for repeat in range(REPEATS + 1):  # each of another problem size, the first to warm up
                    question = Question(5000.0 + repeat, wanted, scope=scope, top=10)  # type: ignore[arg-type]
                    start = time.process_time()
                    ranking = rank([state], predictor, question)
                    times.append(time.process_time() - start)
                links = "links alike" if alike else "links differ"
                yield (
                    f"{nodes:,} nodes, {links}",
                    scope,
                    ranking.compared,
                    ranking.evaluations,
                    statistics.median(times[1:]),
                    limit,
                )
    yield laid_out(random, wanted)


def laid_out(random: np.random.Generator, wanted: Constraints) -> tuple[str, str, int, int, float, float]:
    """The same where processes per node are chosen, too."""
    nodes, racks, _ = SCALES[0]
    state, predictor = cluster(random, nodes, racks, alike=False, processors=CORES), learned(random, PER_NODE)
    times = []
    for repeat in range(REPEATS + 1):
        start = time.process_time()
        chosen = layouts([state], predictor, DEFAULT_SETTINGS)
        ranking = rank([state], predictor, Question(5000.0 + repeat, wanted, settings=chosen))
        times.append(time.process_time() - start)
    what = f"{nodes:,} nodes of {CORES}, links differ, {len(chosen)} layouts"
    return what, "processors", ranking.compared, ranking.evaluations, statistics.median(times[1:]), LAID_OUT_LIMIT


def main(console: Console) -> None:
    """Print the table and the process's peak memory."""
    table = Table(title="full ranking, every P from 1 to 1,024, robust predictor; processor time on one core")
    for heading in ("cluster", "exact for", "sets", "predictions", "median ms", "limit ms", "part of limit"):
        table.add_column(heading, justify="left" if heading in ("cluster", "exact for") else "right")
    for name, scope, compared, evaluations, seconds, limit in rows():
        table.add_row(
            name,
            {"top": "10 best", "processors": "10 best, each P", "all": "each switch and P"}[scope],
            f"{compared:,}",
            f"{evaluations:,}",
            f"{1e3 * seconds:.1f}",
            f"{1e3 * limit:.0f}",
            f"{seconds / limit:.2f}",
        )
    console.print(table)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
    console.print(f"peak memory of the process: {peak:.0f} MB (limit {MOST_MEMORY:.0f} MB)")


if __name__ == "__main__":
    main(Console(width=140))
