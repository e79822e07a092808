"""Two made-up platforms that run one application: they differ in speed, cache, bandwidth and overlap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metasched.records import Run


@dataclass(frozen=True)
class Platform:
    """Computing seconds for each unit of work, what a cache miss costs, link bandwidth, and overlap of the terms."""

    name: str
    processors: tuple[int, ...]
    second: float
    cache: float
    miss: float
    bandwidth: float
    overlap: float

    def time(self, n: float, p: int, cpu: float, bw: float) -> float:
        slow = 1.0 + self.miss * max(0.0, 1.0 - self.cache / (n / p))
        computing = self.second * n**1.5 * slow / (cpu * p)
        sending = 0.1 * n * np.log2(p) / bw
        return computing + sending - self.overlap * min(computing, sending)


SLOW = Platform("slow8", (2, 4, 8), 2e-4, cache=300.0, miss=0.3, bandwidth=100.0, overlap=0.0)
FAST = Platform("fast16", (2, 4, 8, 12, 16), 9e-5, cache=900.0, miss=0.5, bandwidth=1000.0, overlap=0.3)


def campaign(platform: Platform, count: int, *, seed: int = 0, noise: float = 0.015) -> list[Run]:
    """Runs under load, on 1 processor and on those of the platform in turn."""
    rng = np.random.default_rng(seed)
    counts = (1, *platform.processors)
    made = []
    for number in range(count):
        p = counts[number % len(counts)]
        n = float(np.exp(rng.uniform(np.log(500), np.log(5000))))
        cpu, bw = float(rng.uniform(0.4, 1.0)), float(rng.uniform(0.3, 1.0) * platform.bandwidth)
        time = platform.time(n, p, cpu, bw) * float(np.exp(rng.normal(0, noise)))
        made.append(Run("made", platform.name, n, p, cpu, bw, time))
    return made


def idle(platform: Platform, *, seed: int = 0, noise: float = 0.015) -> list[Run]:
    """Dedicated runs on one and on two processors."""
    rng = np.random.default_rng(seed)
    made = []
    for p, times in ((1, 5), (2, 15)):
        for n in np.geomspace(600, 4500, times):
            time = platform.time(float(n), p, 1.0, platform.bandwidth) * float(np.exp(rng.normal(0, noise)))
            made.append(Run("made", platform.name, float(n), p, 1.0, platform.bandwidth, time))
    return made
