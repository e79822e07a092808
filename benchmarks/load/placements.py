"""``python -m benchmarks.load.placements``: the processor time of one placement, by mode and by jobs that share.

The site is that of ``benchmarks.load``, with the forecasts of six minutes of loads; every tenth node reports again for
each hundredth placement. One process answers one question after the other, without a server: nothing else is counted.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.load import site
from benchmarks.load.client import Questions
from metasched.advised_placements import Ask
from metasched.records import Load
from metasched.service.configuration import Configuration
from metasched.service.daemon import Daemon
from metasched.store.database.store import Store

#: Mode and running jobs of each row; placements a second by the clock of the answers, and those before any counts.
ROWS, RATE, WARM = (("shadow", 0), ("act", 0), ("shadow", 20), ("act", 20)), 100.0, 100
#: Seconds between two loads of every node before the first placement, and how many there are.
STEP, STEPS = 30.0, 12


def main() -> int:
    """Print a row for each mode and number of running jobs."""
    parser = argparse.ArgumentParser(prog="benchmarks.load.placements", description=__doc__)
    parser.add_argument("--placements", type=int, default=1000, help="how many in each row (default 1000)")
    options = parser.parse_args()
    print(f"{'mode':8} {'running jobs':>12} {'mean':>9} {'median':>9} {'99 of 100':>9} {'load of the machine':>20}")
    for mode, running in ROWS:
        with tempfile.TemporaryDirectory() as work:
            took = 1e3 * np.array(processor_times(Path(work), mode, running, options.placements))
        half, most = np.quantile(took, (0.5, 0.99))
        print(f"{mode:8} {running:12} {took.mean():6.2f} ms {half:6.2f} ms {most:6.2f} ms {os.getloadavg()[0]:20.1f}",
              flush=True)  # fmt: skip
    return 0


def processor_times(folder: Path, mode: str, running: int, placements: int) -> list[float]:
    """The processor time of each placement (s)."""
    site.describe(folder, running=running)
    site.learn(folder)
    configuration = Configuration.model_validate({"clusters": str(folder / "clusters.toml"), "mode": mode})
    draw, questions, took = random.Random(3), Questions(), []
    with Store.open(folder / "metasched.db") as store:
        daemon = Daemon(configuration, store)
        daemon.start()
        try:
            while not daemon.upkeep.history_restored:
                time.sleep(0.01)
            daemon.work.stop()
            moment = time.time()
            for before in range(STEPS, 0, -1):
                at = moment - STEP * before
                daemon.clusters.note(_loads(draw, at, range(site.NODES)))
                daemon.load_forecaster.note(daemon.clusters.latest.values(), at)
            daemon.views.refresh()
            daemon.views.forecast()
            for number in range(WARM + placements):
                if number % RATE == 0:
                    daemon.clusters.note(_loads(draw, moment, draw.sample(range(site.NODES), site.NODES // 10)))
                    daemon.clusters.refresh(moment, daemon.placer.prepare)
                ask = Ask.model_validate(json.loads(questions()[1]))
                began = time.thread_time()
                daemon.placer.answer(ask, moment)
                took.append(time.thread_time() - began)
                moment += 1.0 / RATE
        finally:
            daemon.stop()
    return took[WARM:]


def _loads(draw: random.Random, at: float, nodes: range | list[int]) -> list[Load]:
    return [Load(at, site.node(number), draw.uniform(0.2, 1.0), 900.0) for number in nodes]


if __name__ == "__main__":
    sys.exit(main())
