"""Runs at several clocks with their energy, of a law that tests know."""

from __future__ import annotations

import numpy as np

from metasched.records import Run

CLOCKS = (1200.0, 2000.0)


def seconds(n: float, p: float, cpu: float, f: float, memory: float) -> float:
    return 1e-4 * n**1.5 / (p * cpu) * (memory + (1.0 - memory) * 2000.0 / f) + 2e-4 * n


def watts(p: float, cpu: float, f: float) -> float:
    return p * (20.0 + 30.0 * cpu * (f / 2000.0) ** 2.5)


def made(
    count: int, seed: int, memory: float = 0.4, clocks: tuple[float, ...] = CLOCKS, phase: str = "train"
) -> list[Run]:
    rng = np.random.default_rng(seed)
    runs = []
    for _ in range(count):
        n, p, f = float(rng.integers(200, 2000)), int(rng.choice([1, 2, 4, 8])), float(rng.choice(clocks))
        cpu = float(rng.uniform(0.5, 1.0))
        time = seconds(n, p, cpu, f, memory) * float(np.exp(rng.normal(0.0, 0.01)))
        joules = time * watts(p, cpu, f) * float(np.exp(rng.normal(0.0, 0.02)))
        extra = {"energy": repr(joules), "energy_covers": "node", "frequency": repr(f)}
        runs.append(Run("a", "c", n, p, cpu, 90.0, time, phase=phase, extra=extra))
    return runs
