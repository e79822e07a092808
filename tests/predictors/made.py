"""Runs of a made-up application that obeys Eq. (1) up to noise, and whatever else a test of predictors needs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from metasched.records import Run


def true_time(n: float, p: int, cpu: float, bw: float) -> float:
    return 2e-4 * n**2 / (cpu * p) + (0.05 * n**1.5 / bw * np.log(p) if p > 1 else 0.0)


def runs(
    count: int, *, seed: int = 0, counts: Sequence[int] = (1, 2, 4, 8), noise: float = 0.03, largest: float = 4000
) -> list[Run]:
    rng = np.random.default_rng(seed)
    made = []
    for number in range(count):
        n = float(np.exp(rng.uniform(np.log(200), np.log(largest))))
        p = int(counts[number % len(counts)])
        cpu, bw = float(rng.uniform(0.3, 1.0)), float(rng.uniform(20, 95))
        time = true_time(n, p, cpu, bw) * float(np.exp(rng.normal(0, noise)))
        made.append(Run("made", "c8", n, p, cpu, bw, time, start_time=100.0 * number))
    return made
