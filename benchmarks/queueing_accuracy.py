"""Errors of the approximate queueing solvers against exact solutions of networks drawn at random.

Beside them Seidmann's transformation, which is the usual way to bring multi-server stations into approximate mean value
analysis: one server m times as fast, and a delay for the rest of the service. Also how often the error estimate that
comes with an answer covers its error. Run by ``make queueing-accuracy``.
"""

from __future__ import annotations

import argparse
import itertools
import sys

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from metasched.queueing.approximate import Level, solve_approximately
from metasched.queueing.multi_class import solve_exactly

Floats = NDArray[np.float64]

#: Most jobs of a class where there are one, two or three classes, so that exact solutions stay quick.
MOST_JOBS = {1: 30, 2: 12, 3: 8}


def draw(rng: np.random.Generator, servers: tuple[int, ...]) -> tuple[Floats, Floats, NDArray[np.int64], list[int]]:
    """Demands, think times, populations and servers of a network whose stations have some of the given servers."""
    classes, stations = int(rng.integers(1, 4)), int(rng.integers(2, 5))
    demands = rng.uniform(0.05, 1.0, (stations, classes))
    demands[rng.random((stations, classes)) < 0.15] = 0.02
    count = rng.choice(servers, stations)
    # Most multi-server stations are given the work that their servers can do.
    demands *= np.where(rng.random(stations) < 0.6, count, 1)[:, None]
    think = rng.uniform(0.0, 4.0, classes) * (rng.random(classes) < 0.7)
    return demands, think, rng.integers(1, MOST_JOBS[classes] + 1, classes), [int(each) for each in count]


def seidmann(demands: Floats, think: Floats, jobs: NDArray[np.int64], servers: list[int], level: Level) -> Floats:
    """Throughputs after Seidmann's transformation."""
    share = np.array(servers, dtype=float)[:, None]
    rest = (demands * (share - 1) / share).sum(axis=0)
    return solve_approximately(demands / share, think + rest, jobs, None, level).throughput


def covers(estimate: Floats, error: Floats) -> bool:
    """Whether the estimates of a network's classes are at least their errors, of every class."""
    return bool(np.all(error <= estimate + 1e-9))


def measure(networks: int, seed: int, servers: tuple[int, ...]) -> tuple[dict[str, Floats], dict[str, float]]:
    """Largest error over the classes of each network for each method, and the share of networks that are covered."""
    rng = np.random.default_rng(seed)
    levels: tuple[Level, ...] = ("bard", "schweitzer", "linearizer")
    errors: dict[str, list[float]] = {}
    covered: dict[str, list[bool]] = {"schweitzer": [], "linearizer": []}
    for _ in range(networks):
        demands, think, jobs, count = draw(rng, servers)
        rates = np.minimum(np.arange(1, jobs.sum() + 1), np.array(count)[:, None])
        exact = solve_exactly(demands, think, jobs, rates).throughput
        kinds = [tuple(np.arange(1.0, each + 1)) for each in count]
        found = {level: solve_approximately(demands, think, jobs, kinds, level).throughput for level in levels}
        for level in levels:
            errors.setdefault(level, []).append(float(np.abs(found[level] / exact - 1).max()))
            if max(servers) > 1:
                other = seidmann(demands, think, jobs, count, level)
                errors.setdefault(f"{level}, Seidmann", []).append(float(np.abs(other / exact - 1).max()))
        for coarse, fine in itertools.pairwise(levels):
            estimate = np.abs(found[coarse] / found[fine] - 1)
            covered[fine].append(covers(estimate, np.abs(found[fine] / exact - 1)))
    return {name: np.array(each) for name, each in errors.items()}, {
        name: float(np.mean(each)) for name, each in covered.items()
    }


def main() -> int:
    """Print one table for single-server networks and one for networks with several servers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", type=int, default=200, help="how many networks of each kind (default 200)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the networks (default 1)")
    options = parser.parse_args()
    for title, servers in (("single servers", (1,)), ("1, 2, 4 and 8 servers", (1, 1, 2, 4, 8))):
        errors, covered = measure(options.networks, options.seed, servers)
        table = Table("", "mean", "90 %", "largest", "estimate covers", title=title, title_justify="left")
        for name, each in sorted(errors.items()):
            figures = (each.mean(), np.quantile(each, 0.9), each.max())
            cover = f"{100 * covered[name]:.0f} %" if name in covered else ""
            table.add_row(name, *(f"{100 * figure:.2f} %" for figure in figures), cover)
        Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
