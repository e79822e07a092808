"""How fast loads are kept and found again, in one process on SQLite.

    python -m benchmarks.load_storage

An hour of 1,000 nodes comes in, ten seconds at a time, and is kept up as the daemon does it. Prints samples
taken in per second, the time of keeping up, and of a query for the last hour: five-minute means, and every one of
the 360,000 samples, at the moment when most are not packed yet. Processor time is printed too: on a machine that others
share it is what counts.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from metasched.records import Load
from metasched.service.configuration import Periods
from metasched.store.database.load_blocks import MINUTE, SETTLED
from metasched.store.database.load_means import FIVE_MINUTES, mean_loads, update_means
from metasched.store.database.store import Store

NODES, STEP, START = 1000, 10.0, 1_700_000_100.0
HOUR = 3600.0
PERIOD = Periods().means


def batch(first: float, moments: int) -> list[Load]:
    """Loads of all nodes at so many moments."""
    noise = np.random.default_rng(0)
    values = noise.random((moments, NODES)).tolist()
    return [
        Load(first + row * STEP, f"n{node:04}", values[row][node], 900.0)
        for row in range(moments)
        for node in range(NODES)
    ]


def timed(work: Callable[[], object], repeats: int = 15) -> str:
    """Medians of wall-clock and processor time."""
    spent = []
    for _ in range(repeats):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        spent.append((time.perf_counter() - wall, time.process_time() - cpu))
    wall, cpu = 1e3 * np.median(spent, axis=0)
    return f"{wall:.0f} ms wall clock, {cpu:.0f} ms processor"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder, "loads.db")) as store:
        rates, spent = [], []
        # The query comes when most is not packed: right before the next minute is.
        now = START + HOUR + SETTLED + PERIOD
        for part in range(round(HOUR / MINUTE) + 1):
            loads = batch(START + MINUTE * part, round(MINUTE / STEP))
            wall, cpu = time.perf_counter(), time.process_time()
            store.loads.add(loads)
            rates.append((len(loads) / (time.perf_counter() - wall), len(loads) / (time.process_time() - cpu)))
            if (moment := START + MINUTE * (part + 1) + SETTLED) < now - PERIOD:
                wall = time.perf_counter()
                update_means(store, moment)
                spent.append(time.perf_counter() - wall)
        wall, cpu = np.median(rates, axis=0)
        print(f"taken in: {wall:.0f} samples a second, {cpu:.0f} a second of processor (aim 10,000)")
        print(f"kept up every minute: {1e3 * np.median(spent):.0f} ms, {1e3 * max(spent):.0f} ms at most")
        means = timed(lambda: mean_loads(store, FIVE_MINUTES, since=now - HOUR, until=now))
        print(f"last hour of {NODES} nodes, five-minute means: {means} (aim 100 ms)")
        print(
            f"last hour of {NODES} nodes, every sample: {timed(lambda: store.loads.all(since=now - HOUR))} (aim 100 ms)"
        )


if __name__ == "__main__":
    main()
