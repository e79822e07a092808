"""Random clusters, and models of Eq. (1) with known coefficients, drawn so that neither term decides alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from candidate_functions.terms import evaluate, positions
from metasched.placement.clusters.state import ClusterState
from metasched.placement.clusters.switch_tree import Topology
from metasched.predictors.columns import ByColumns, Columns
from metasched.predictors.contract import Predictions
from metasched.records import Run

Floats = NDArray[np.float64]

#: Kernels as they occur: what computes, what is sent, how both scale.
KERNELS = (
    ("n^3", "n^2", "bw", "p", "p^1/2"),
    ("n^2", "n^3/2", "bw", "p", "log"),
    ("n^2_log^1", "n^3/2", "bw", "p", "1/log"),
    ("n^3/2", "n^1", "log", "p", "1/p^1/2"),
    ("n^1_log^1", "n^1", "bw", "p", "1/p"),
)


@dataclass(frozen=True)
class KnownModel(ByColumns):
    """One model of Eq. (1) with the contract of a predictor; its intervals are 20 % wide to either side."""

    combination: NDArray[np.int16]
    coefficients: tuple[float, float]
    name: str = "known"

    def _predicted(self, columns: Columns, level: float) -> Predictions:
        time = evaluate(self.combination, self.coefficients, *columns)
        return Predictions(time, time / 1.2, time * 1.2, level)

    def fit(self, runs: Iterable[Run]) -> KnownModel:
        """Nothing is left to learn."""
        return self

    def learn(self, run: Run) -> None:
        """Nothing: what is known need not be learned."""


def random_model(random: np.random.Generator, problem_size: float, turning: float, bandwidth: float) -> KnownModel:
    """A model whose communication overtakes its computation near ``turning`` processors at some bandwidth (Mbit/s)."""
    combination = positions(KERNELS[int(random.integers(len(KERNELS)))])
    at = (np.array([problem_size]), np.array([turning]), np.array([0.8]), np.array([bandwidth]))
    computation = float(evaluate(combination, (1.0, 0.0), *at)[0])
    communication = float(evaluate(combination, (0.0, 1.0), *at)[0])
    seconds = float(random.uniform(20.0, 200.0))
    return KnownModel(combination, (seconds / computation, seconds / communication))


def random_tree(random: np.random.Generator, nodes: int, racks: int) -> tuple[Topology, Floats]:
    """Racks under a few aggregating switches under one, with loaded uplinks; and the nodes' links (Mbit/s)."""
    groups = max(1, racks // 4)
    top = racks + groups
    parent = np.concatenate([racks + random.integers(groups, size=racks), np.full(groups, top), [-1]])
    uplink = np.append(np.exp(random.uniform(np.log(50.0), np.log(4000.0), racks + groups)), np.inf)
    leaf = np.sort(random.integers(racks, size=nodes))
    link = random.choice([100.0, 1000.0], size=nodes, p=[0.3, 0.7]) * random.uniform(0.3, 1.0, nodes)
    names = tuple(f"s{index}" for index in range(top + 1))
    return Topology(names, parent, uplink, leaf), link


def random_cluster(random: np.random.Generator, nodes: int) -> ClusterState:
    """A cluster in use: some nodes idle, others loaded by any amount."""
    tree, link = random_tree(random, nodes, max(2, nodes // 16))
    cpu = np.where(random.random(nodes) < 0.3, 1.0, random.uniform(0.1, 1.0, nodes))
    names = [f"n{index}" for index in range(nodes)]
    return ClusterState.make("c", names, available_cpu=cpu, available_bandwidth=link, network=tree)
