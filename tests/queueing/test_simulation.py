"""The exact solvers against discrete-event simulation with Ciw, on networks drawn at random."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from metasched.queueing.network import JobClass, Network, Station
from metasched.queueing.solver import solve

ciw = pytest.importorskip("ciw")

REPLICATIONS, HORIZON, WARM_UP = 8, 2500.0, 200.0
#: Student's t for 7 degrees of freedom at a level of 99.9 %.
QUANTILE = 5.408


def _simulate(network: Network, seed: int) -> np.ndarray:
    """Cycles a second of each class; the think time is the first node. First come first served, all classes alike."""
    nodes = len(network.stations) + 1
    never = math.inf
    arrivals, batches, services, routes = {}, {}, {}, {}
    for index, job_class in enumerate(network.classes):
        means = [job_class.think_time, *network.demands[:, index].tolist()]
        once, one = ciw.dists.Sequential([1e-9, never]), ciw.dists.Deterministic(1)
        arrivals[job_class.name] = [once, *[None] * (nodes - 1)]
        batches[job_class.name] = [ciw.dists.Deterministic(job_class.population), *[one] * (nodes - 1)]
        services[job_class.name] = [ciw.dists.Exponential(1 / mean) for mean in means]
        routes[job_class.name] = [[float(to == (at + 1) % nodes) for to in range(nodes)] for at in range(nodes)]
    described = ciw.create_network(
        arrival_distributions=arrivals,
        batching_distributions=batches,
        service_distributions=services,
        number_of_servers=[never, *(never if entry.kind == "delay" else entry.servers for entry in network.stations)],
        routing=routes,
    )
    ciw.seed(seed)
    simulation = ciw.Simulation(described)
    simulation.simulate_until_max_time(HORIZON)
    visits = [record for record in simulation.get_all_records() if record.node == 1 and record.exit_date > WARM_UP]
    counts = [sum(visit.customer_class == entry.name for visit in visits) for entry in network.classes]
    return np.array(counts) / (HORIZON - WARM_UP)


@pytest.mark.slow
@pytest.mark.parametrize("classes", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_simulated_throughput_agrees_with_the_exact_one(seed: int, classes: int) -> None:
    generator = np.random.default_rng([seed, classes])
    stations = []
    for index, kind in enumerate(generator.choice([0, 1, 1, 2, 4], generator.integers(2, 5))):
        service = (float(generator.uniform(0.1, 1.5)),) * classes
        queue = Station(f"s{index}", service, (1.0,) * classes, servers=max(int(kind), 1))
        stations.append(replace(queue, kind="delay") if kind == 0 else queue)
    jobs = [
        JobClass(f"c{index}", int(generator.integers(3, 10)), float(generator.uniform(0.5, 4.0)))
        for index in range(classes)
    ]
    network = Network("drawn", tuple(stations), tuple(jobs))
    found = np.array([_simulate(network, 100 * seed + run) for run in range(REPLICATIONS)])
    half_width = QUANTILE * found.std(axis=0, ddof=1) / math.sqrt(REPLICATIONS)
    assert np.all(np.abs(found.mean(axis=0) - solve(network).throughput) <= half_width)
    assert np.all(half_width <= 0.08 * found.mean(axis=0))
