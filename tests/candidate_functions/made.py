"""Runs made from a known model of Eq. (1), for tests that ask whether it is found again."""

from __future__ import annotations

import numpy as np

from candidate_functions.terms import Observations, TermTable, positions

#: N^2/(cpu P) and N^1.5/(bw / log P): computation shared out, communication that grows.
KNOWN = positions(["n^2", "n^3/2", "bw", "p", "1/log"])


def runs(
    *,
    n: int = 60,
    noise: float = 0.0,
    seed: int = 0,
    counts: tuple[int, ...] = (1, 2, 4, 8),
    a: float = 1e-4,
    b: float = 1e-2,
) -> Observations:
    rng = np.random.default_rng(seed)
    size = np.exp(rng.uniform(np.log(200), np.log(4000), n))
    p = np.resize(np.asarray(counts, dtype=float), n)
    cpu, bw = rng.uniform(0.3, 1.0, n), rng.uniform(20.0, 95.0, n)
    columns = TermTable(size, p, cpu, bw).columns(KNOWN[None])[0]
    time = (a * columns[0] + b * columns[1]) * np.exp(rng.normal(0.0, noise, n))
    return Observations.of(size, p, cpu, bw, time)
