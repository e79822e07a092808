"""Runs of a made-up application whose processes share nodes, with two parameters by name."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from metasched.records import Run, Settings

SOLVERS = {"amg": 1.0, "cg": 1.8, "jacobi": 3.0}


def true_time(n: float, p: int, k: int, steps: float, solver: str, threads: int) -> float:
    """Memory that k processes of a node share, a link that they share, and a parameter that counts in full."""
    outside = (p - k) / max(p - 1, 1)
    computation = 1e-5 * n**2 / p * k**0.4 / threads**0.9 * SOLVERS[solver]
    return (computation + 2e-3 * n * k * outside) * steps / 100.0


def laid_out(count: int, seed: int = 0, *, layouts: bool = True, parameters: bool = True) -> list[Run]:
    rng, made = np.random.default_rng(seed), []
    for _ in range(count):
        n, p = float(np.round(np.exp(rng.uniform(5, 7)))), int(rng.choice([4, 8, 16]))
        k = int(rng.choice([1, 2, 4])) if layouts else 2
        steps, solver = float(rng.integers(20, 400)) if parameters else 100.0, "amg"
        threads = 1
        if parameters:
            solver, threads = str(rng.choice(list(SOLVERS))), int(rng.choice([1, 2, 4]))
        stated = Settings.of(k, threads, {"steps": steps, "solver": solver})
        time = true_time(n, p, k, steps, solver, threads) * np.exp(rng.normal(0, 0.01))
        made.append(Run("cg", "c8", n, p, 0.9, 90.0, time, extra=stated.cells))
    return made


def without_settings(runs: Iterable[Run]) -> list[Run]:
    return [Run("cg", "c8", run.problem_size, run.processors, 0.9, 90.0, run.execution_time) for run in runs]
