"""Forecasts on made-up loads, which :mod:`tests.monitors.forecasters.test_whole_answers` compares with those known.

``make answers`` writes them down anew; read the difference before it is kept.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from whole_documents import written_down

from monitors.forecasters.fixed_point import solve_horizon
from monitors.forecasters.sets import Sets, forecast_sets

#: How many nodes and samples there are; of more than 200 nodes, a part is learned from.
SIZES = ((1, 12), (3, 5), (4, 60), (6, 200), (3, 700), (230, 40))


def loads(source: np.random.Generator, nodes: int, samples: int) -> tuple[Any, Any, Any]:
    """Times, shares of processors and bandwidths, some of them missing: busy spells, steps and noise."""
    time = np.cumsum(source.choice([9.0, 10.0, 11.0], samples))
    spells = np.repeat(source.random((samples // 4 + 1, nodes)) < 0.3, 4, axis=0)[:samples]
    cpu = np.where(spells, source.choice([0.0, 0.2, 0.6], nodes), 1.0) * source.choice([1.0, 0.9], (samples, 1))
    bandwidth = 90.0 - 60.0 * (np.arange(samples) % 20 < 5)[:, None] + source.normal(0, 3, (samples, nodes))
    holes = source.random((samples, nodes)) < 0.05
    holes[0] = False
    return time, np.where(holes, np.nan, cpu), np.where(holes[::-1] & (time > time[0])[:, None], np.nan, bandwidth)


def shown(found: Sets) -> dict[str, Any]:
    """A forecast, of many nodes or sets some."""
    document = {"cpu": found.cpu[::9], "bandwidth": found.bandwidth[::9]}
    for name in ("cpu_sets", "bandwidth_sets"):
        sets = getattr(found, name)
        document |= {f"{name}: {part}": np.asarray(value)[..., ::9] for part, value in asdict(sets).items()}
    return {name: value.tolist() for name, value in document.items()}


def answer(number: int) -> dict[str, Any]:
    """A forecast over one horizon, and the horizon that a run takes."""
    source = np.random.default_rng(number)
    nodes, samples = SIZES[number % len(SIZES)]
    time, cpu, bandwidth = loads(source, nodes, samples)
    chosen = tuple(source.permutation(nodes)[: int(source.integers(1, nodes + 1))].tolist())
    more: dict[str, Any] = {
        "chosen": None if source.random() < 0.5 else chosen[:7],
        "least": (0.01, 0.001) if source.random() < 0.7 else (0.3, 50.0),
    }
    now = float(time[-1] + source.choice([0.0, 5.0, 60.0, -30.0]))

    def forecast(horizon: float) -> Sets:
        return forecast_sets(time, cpu, bandwidth, now, horizon, **more)

    found = shown(forecast(float(source.choice([5.0, 30.0, 300.0, 3000.0]))))
    if number % 3 == 0:
        own = solve_horizon(lambda sets: float(100.0 / sets.cpu.min()), forecast)
        found |= {"horizon": [own.seconds, own.steps]}
    return found


def answers() -> dict[str, Any]:
    """All answers by name."""
    return {f"loads {number}": answer(number) for number in range(48)}


if __name__ == "__main__":
    print(written_down(answers(), 7))
