"""Loads: the paper's random loading and a generator of grid-like loading, both endless and repeatable.

Every generator draws in the order of time from streams of its own, so that asking for a longer horizon never changes
what comes before it. An available CPU is what a new process gets beside its competitors: all that they leave, and never
less than its fair share among them; the same holds for flows on a link.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.testbed.clusters import ClusterModel
from benchmarks.testbed.timeline import Floats, Series, Timeline

#: Random loading: mean seconds between two draws of a set, shares taken, and seconds that a load stays.
EPOCH = 120.0
CPU_SET, PAIR_SET = 0.10, 0.05  # mean number of processors in a set, of pairs, as a share of all processors, nodes
CPU_SHARE = (0.1, 0.9)
NETWORK_SHARE = (0.1, 0.7)
STAY = (180.0, 1800.0)

#: Grid loading: how likely a processor is idle, holds a partial load, or a competitor that wants all of it.
GRID_STATES = (0.55, 0.25, 0.20)
GRID_CPU_DWELL = (1500.0, 1.0)  # median (s) and spread (of the logarithm) of the time between two changes of level
GRID_NETWORK = (0.45, 0.98)
GRID_NETWORK_DWELL = (600.0, 0.8)
OTHER_TRAFFIC = (0.80, 0.98)  # what other users' jobs leave of the network of a cluster with dedicated processors
JITTER_STEP, JITTER_SIZE, JITTER_MEMORY = 30.0, 0.015, 0.7
FLOOR = 0.05

#: For each place its loads: start and end (s), and the share that each takes.
Loads = list[list[tuple[float, float, float]]]


def _streams(seed: int, name: str, count: int) -> list[np.random.Generator]:
    root = np.random.SeedSequence([seed, *name.encode()])
    return [np.random.default_rng(child) for child in root.spawn(count)]


def _available(loads: list[tuple[float, float, float]]) -> Series:
    """What loads (start, end, share) leave to a new process: all that is free, but at least a fair share."""
    if not loads:
        return Series(np.zeros(1), np.ones(1))
    start, end, share = np.array(loads).T
    moments = np.concatenate((start, end))
    order = np.argsort(moments, kind="stable")
    times = np.concatenate(([0.0], moments[order]))
    demand = np.concatenate(([0.0], np.cumsum(np.concatenate((share, -share))[order])))
    rivals = np.concatenate(([0.0], np.cumsum(np.concatenate((np.ones_like(share), -np.ones_like(share)))[order])))
    last = np.append(times[1:] > times[:-1], True)  # of several changes at one moment only the last one counts
    # without rivals nothing is taken, whatever the rounding of sums that went up and down
    free = np.where(rivals > 0, np.maximum(1.0 - demand, 1.0 / (1.0 + rivals)), 1.0)
    return Series(times[last], free[last])


def _random_sets(
    rng: np.random.Generator,
    choose: Callable[[np.random.Generator], list[list[int]]],
    share: tuple[float, float],
    places: int,
    horizon: float,
) -> Loads:
    loads: Loads = [[] for _ in range(places)]
    time = 0.0
    while time < horizon:
        for group in choose(rng):
            amount = rng.uniform(*share)
            stay = float(np.exp(rng.uniform(*np.log(STAY))))
            for place in group:
                loads[place].append((time, time + stay, amount))
        time += rng.exponential(EPOCH)
    return loads


def random_loads(cluster: ClusterModel, seed: int, horizon: float) -> tuple[Loads, Loads]:
    """The loads of each processor and of each node's link: (start, end, share)."""
    processors, nodes = cluster.processors, cluster.nodes

    def some_processors(rng: np.random.Generator) -> list[list[int]]:
        size = rng.binomial(len(processors), CPU_SET)
        return [[int(one)] for one in rng.choice(len(processors), size, replace=False)]

    def some_pairs(rng: np.random.Generator) -> list[list[int]]:
        count = rng.binomial(len(nodes), PAIR_SET)
        return [[int(one) for one in rng.choice(len(nodes), 2, replace=False)] for _ in range(count)]

    for_cpu, for_network = _streams(seed, "random", 2)
    cpu = _random_sets(for_cpu, some_processors, CPU_SHARE, len(processors), horizon)
    return cpu, _random_sets(for_network, some_pairs, NETWORK_SHARE, len(nodes), horizon)


def random_loading(cluster: ClusterModel, seed: int, horizon: float) -> Timeline:
    """Section 4.1: sets of processors, and source-destination pairs, drawn at random for random loads and durations."""
    processors, nodes = cluster.processors, cluster.nodes
    cpu, network = ([_available(one) for one in loads] for loads in random_loads(cluster, seed, horizon))
    return Timeline(
        dict(zip(processors, cpu, strict=True)),
        {node: Series(one.times, one.values * cluster.bandwidth) for node, one in zip(nodes, network, strict=True)},
        horizon,
    )


def _plateaus(
    rng: np.random.Generator, level: Callable[[np.random.Generator], float], dwell: tuple[float, float], horizon: float
) -> Series:
    """Levels that hold for log-normal times, under a small autoregressive jitter."""
    times, levels = [0.0], [level(rng)]
    # The first dwell is cut at a random point: the observer arrives in the middle of it.
    end = rng.uniform() * float(rng.lognormal(np.log(dwell[0]), dwell[1]))
    while end < horizon:
        times.append(end)
        levels.append(level(rng))
        end += float(rng.lognormal(np.log(dwell[0]), dwell[1]))
    plateau = Series(np.array(times), np.array(levels))
    jitter_rng = rng.spawn(1)[0]
    grid: Floats = np.arange(0.0, horizon, JITTER_STEP)
    shocks = jitter_rng.normal(0.0, JITTER_SIZE * np.sqrt(1.0 - JITTER_MEMORY**2), len(grid))
    jitter = np.empty_like(shocks)
    state = 0.0
    for index, shock in enumerate(shocks):
        state = JITTER_MEMORY * state + shock
        jitter[index] = state
    moments = np.union1d(grid, plateau.times)
    values = plateau.at(moments) + Series(grid, jitter).at(moments)
    return Series(moments, np.clip(values, FLOOR, 1.0))


def grid_cpu_level(rng: np.random.Generator) -> float:
    """A level of the CPU that is available under grid loads."""
    state = rng.choice(3, p=GRID_STATES)
    low, high = ((0.94, 1.0), (0.6, 0.92), (0.42, 0.55))[state]
    return float(rng.uniform(low, high))


def _grid_network(cluster: ClusterModel, seed: int, horizon: float, free: tuple[float, float]) -> dict[str, Series]:
    found = {}
    for node, rng in zip(cluster.nodes, _streams(seed, "grid network", cluster.node_count), strict=True):
        one = _plateaus(rng, lambda rng: float(rng.uniform(*free)), GRID_NETWORK_DWELL, horizon)
        found[node] = Series(one.times, one.values * cluster.bandwidth)
    return found


def grid_loading(cluster: ClusterModel, seed: int, horizon: float) -> Timeline:
    """Loads with the statistics of a grid's monitored nodes: long plateaus, few competitors, small jitter."""
    streams = _streams(seed, "grid cpu", len(cluster.processors))
    cpu = {
        processor: _plateaus(rng, grid_cpu_level, GRID_CPU_DWELL, horizon)
        for processor, rng in zip(cluster.processors, streams, strict=True)
    }
    return Timeline(cpu, _grid_network(cluster, seed, horizon, GRID_NETWORK), horizon)


def dedicated_loading(cluster: ClusterModel, seed: int, horizon: float) -> Timeline:
    """All processors free; the network too, unless other users' jobs use it."""
    cpu = {processor: Series(np.zeros(1), np.ones(1)) for processor in cluster.processors}
    if cluster.other_traffic:
        network = _grid_network(cluster, seed, horizon, OTHER_TRAFFIC)
    else:
        network = {node: Series(np.zeros(1), np.full(1, cluster.bandwidth)) for node in cluster.nodes}
    return Timeline(cpu, network, horizon)


Loading = Callable[[ClusterModel, int, float], Timeline]
LOADINGS: dict[str, Loading] = {
    "random": random_loading,
    "grid": grid_loading,
    "dedicated": dedicated_loading,
}
