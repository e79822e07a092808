"""How long forecasters take on one core: a value more for each of 10,000 series, and one forecast over a run.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.forecast_speed

Prints medians, in wall-clock time and in the processor time of this process: on a machine that others share, the second
is what the work itself takes.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from benchmarks.forecasters.battery import Battery
from monitors.forecasters.sets import forecast_sets

SERIES = 10_000


def timed(work: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Medians of wall-clock and processor time, ms."""
    spent = []
    for _ in range(repeats):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        spent.append((time.perf_counter() - wall, time.process_time() - cpu))
    return tuple(1e3 * np.median(spent, axis=0))


def main() -> None:
    noise = np.random.default_rng(0)
    battery = Battery(SERIES)
    for _ in range(60):
        battery.update(noise.random(SERIES))
    values = noise.random(SERIES)
    wall, cpu = timed(lambda: battery.update(values), 60)
    print(f"battery, {SERIES} series, one value each: {wall:.1f} ms wall clock, {cpu:.1f} ms processor (limit 50)")
    holed = np.where(noise.random(SERIES) < 0.1, np.nan, values)
    wall, cpu = timed(lambda: battery.update(holed), 60)
    print(f"the same, one series in ten without a value: {wall:.1f} ms wall clock, {cpu:.1f} ms processor")
    moments = np.arange(1000) * 10.0
    cpu_loads, bandwidths = noise.random((1000, 16)), 100 * noise.random((1000, 16))

    def over_run() -> None:
        forecast_sets(moments, cpu_loads, bandwidths, 9995.0, 300.0, chosen=range(8))

    wall, cpu = timed(over_run, 60)
    print(f"both minima of 8 of 16 nodes over a run: {wall:.2f} ms wall clock, {cpu:.2f} ms processor (limit 5)")


if __name__ == "__main__":
    main()
