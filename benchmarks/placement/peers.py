"""The searches that the exact one is judged against: greedy, simulated annealing, a genetic algorithm, Box Elimination.

All four know the model through the same two tables, its computation and communication by number of processors, and
the network through one incidence matrix, so that a set's time costs a few vector operations. Box Elimination is built
from how its idea is described, not from its authors' program: candidate schedules are points of a box spanned by the
number of processors, the available CPU and the available bandwidth; the model gives each point a time. A point is
tried, and whatever follows from the outcome is cut away: if no such nodes exist, neither do they for more processors,
more CPU and more bandwidth; if they exist, no point with a longer time is needed any more. Points are tried best
first, on at most ``LEVELS`` levels of CPU and of bandwidth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.placement.instances import KnownModel
from metasched.placement.clusters.state import ClusterState
from metasched.placement.clusters.switch_tree import Topology

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

#: Annealing: steps, first and last temperature as a part of the greedy time.
STEPS, HOT, COLD = 4000, 0.2, 1e-4
#: How often it starts again from a random set below one switch.
RESTART = 0.02
#: Genetic algorithm: individuals, generations, elite, probability of changing a node (times n).
POPULATION, GENERATIONS, ELITE, CHANGES = 100, 200, 6, 2.0
#: Box Elimination: levels of CPU and of bandwidth.
LEVELS = 48


@dataclass(frozen=True)
class Problem:
    """An instance as the peers see it.

    Parameters
    ----------
    cluster, model, problem_size : the instance.
    below : array of shape (n, s), 1 where a node is below a switch.
    uplink : array of shape (s,), widths above the switches (Mbit/s).
    """

    cluster: ClusterState
    model: KnownModel
    problem_size: float
    below: Floats
    uplink: Floats

    @classmethod
    def of(cls, cluster: ClusterState, model: KnownModel, problem_size: float) -> Problem:
        """Tabulate an instance on a tree of switches."""
        network = cluster.network
        assert isinstance(network, Topology)
        switch, node, _ = network.domains(cluster.available_bandwidth)
        below = np.zeros((network.nodes, len(network.switches)))
        below[node, switch] = 1.0
        return cls(cluster, model, problem_size, below, network.uplink)

    def times(self, taken: Flags) -> Floats:
        """Predicted time of each set: shape (k, n) to shape (k,); infinite for the empty set."""
        size = taken.sum(axis=1)
        beneath = taken @ self.below
        cpu = np.where(taken, self.cluster.available_cpu, np.inf).min(axis=1)
        link = np.where(taken, self.cluster.available_bandwidth, np.inf).min(axis=1)
        crossed = (beneath > 0) & (beneath < size[:, None])  # an uplink is used when only some nodes are below it
        bandwidth = np.minimum(link, np.where(crossed, self.uplink, np.inf).min(axis=1))
        empty = size == 0
        time = self.model.predict_many(
            self.problem_size, np.maximum(size, 1), np.where(empty, 1.0, cpu), np.where(empty, 1.0, bandwidth)
        ).execution_time
        return np.where(empty, np.inf, time)


Search = Callable[[Problem, np.random.Generator], float]


def greedy(problem: Problem, random: np.random.Generator) -> float:
    """Best CPU first: the best of the n sets that take the k nodes with the most CPU."""
    return float(problem.times(_by_cpu(problem)).min())


def _by_cpu(problem: Problem) -> Flags:
    order = np.argsort(-problem.cluster.available_cpu, kind="stable")
    rank = np.empty(order.size, dtype=np.int64)
    rank[order] = np.arange(order.size)
    return rank[None, :] <= np.arange(order.size)[:, None]


def annealing(problem: Problem, random: np.random.Generator) -> float:
    """Simulated annealing from the greedy set: add, drop or exchange a node; geometric cooling."""
    start = _by_cpu(problem)
    times = problem.times(start)
    taken = start[int(times.argmin())].copy()
    time = best = float(times.min())
    cooling = (COLD / HOT) ** (1.0 / STEPS)
    temperature = HOT * best
    for _ in range(STEPS):
        moved = _below_one(problem, random, 1)[0] if random.random() < RESTART else taken.copy()
        kind = random.random()
        inside, outside = np.flatnonzero(taken), np.flatnonzero(~taken)
        if kind < 2 / 3 and outside.size:
            moved[random.choice(outside)] = True
        if kind > 1 / 3 and inside.size > 1:
            moved[random.choice(inside)] = False
        offered = float(problem.times(moved[None, :])[0])
        if offered <= time or random.random() < np.exp((time - offered) / temperature):
            taken, time = moved, offered
            best = min(best, time)
        temperature *= cooling
    return best


def genetic(problem: Problem, random: np.random.Generator) -> float:
    """Genetic algorithm: tournaments of two, crossover of whole leaf switches or of nodes, few changes, an elite."""
    nodes = problem.cluster.available_cpu.size
    start = _by_cpu(problem)
    best = start[np.argsort(problem.times(start))[: POPULATION // 4]]
    population = np.concatenate([best, _below_one(problem, random, POPULATION)])[:POPULATION]
    network = problem.cluster.network
    assert isinstance(network, Topology)
    times = problem.times(population)
    for _ in range(GENERATIONS):
        order = np.argsort(times)
        pairs = random.integers(len(population), size=(2, 2, POPULATION - ELITE))
        mother, father = population[np.where(times[pairs[:, 0]] < times[pairs[:, 1]], pairs[:, 0], pairs[:, 1])]
        by_switch = (random.random((POPULATION - ELITE, len(network.switches))) < 0.5)[:, network.leaf]
        by_node = random.random(mother.shape) < 0.5
        mask = np.where(random.random((POPULATION - ELITE, 1)) < 0.5, by_switch, by_node)
        children = np.where(mask, mother, father) ^ (random.random(mother.shape) < CHANGES / nodes)
        population = np.concatenate([population[order[:ELITE]], children])
        times = problem.times(population)
    return float(times.min())


def _below_one(problem: Problem, random: np.random.Generator, count: int) -> Flags:
    """Random sets of nodes that lie below one switch each, shape (count, n)."""
    switch = random.integers(problem.below.shape[1], size=count)
    return (random.random((count, problem.below.shape[0])) < random.random((count, 1))) & (problem.below.T[switch] > 0)


def box_elimination(problem: Problem, random: np.random.Generator) -> float:
    """Cut away parts of the box (processors, CPU, bandwidth) that a tried point shows to be impossible or needless."""
    cluster = problem.cluster
    network = cluster.network
    assert isinstance(network, Topology)
    switch, node, width = network.domains(cluster.available_bandwidth)
    cpus, widths = _levels(cluster.available_cpu), _levels(width)
    count = np.arange(1, cluster.available_cpu.size + 1)
    time = problem.model.predict_many(
        problem.problem_size, *(axis.ravel() for axis in np.meshgrid(count, cpus, widths, indexing="ij"))
    ).execution_time
    box = time.reshape(count.size, cpus.size, widths.size)
    while True:
        p, c, b = (int(each) for each in np.unravel_index(int(box.argmin()), box.shape))
        fit = (cluster.available_cpu[node] >= cpus[c]) & (width >= widths[b])
        most = int(np.bincount(switch[fit], minlength=1).max()) if fit.any() else 0
        if most > p:  # p is the index of p + 1 processors
            return float(box[p, c, b])
        box[most:, c:, b:] = np.inf


def _levels(values: Floats) -> Floats:
    distinct = np.unique(values)
    if distinct.size <= LEVELS:
        return distinct
    return distinct[np.linspace(0, distinct.size - 1, LEVELS).round().astype(np.int64)]


PEERS: dict[str, Search] = {
    "greedy, best CPU first": greedy,
    "simulated annealing": annealing,
    "genetic algorithm": genetic,
    "Box Elimination": box_elimination,
}
