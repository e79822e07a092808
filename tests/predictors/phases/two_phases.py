"""A made-up application of two phases: one that all processes go through together, one with more work for the last."""

from __future__ import annotations

import numpy as np

from metasched.records import PhaseMark, Run


def marked_run(n: float, cpu: np.ndarray, bw: np.ndarray, rng: np.random.Generator, noise: float = 0.01) -> Run:
    p = len(cpu)
    together = 2e-3 * n * np.log2(n) / (p * cpu.min()) + (0.3 * n / (bw.min() * p) if p > 1 else 0.0)
    alone = 4e-6 * n**2 * (2 * np.arange(p) + 1) / p**2 / cpu
    wrong = np.exp(rng.normal(0, noise))
    marks = [PhaseMark("a", k, float(cpu[k]), float(bw[k]), float(together * wrong)) for k in range(p)]
    marks += [PhaseMark("b", k, float(cpu[k]), float(bw[k]), float(alone[k] * wrong)) for k in range(p)]
    total = float((together + alone.max()) * wrong)
    return Run("two", "c8", n, p, float(cpu.min()), float(bw.min()), total, marks=tuple(marks))


def campaign(count: int, low: float, high: float, *, seed: int = 0, counts=(1, 2, 4, 8)) -> list[Run]:
    rng = np.random.default_rng(seed)
    return [
        marked_run(
            float(np.exp(rng.uniform(np.log(low), np.log(high)))),
            rng.uniform(0.3, 1.0, p),
            rng.uniform(40, 100, p),
            rng,
        )
        for p in (counts[number % len(counts)] for number in range(count))
    ]
