"""``python -m benchmarks.growth``: how the daemon grows with a site: applications, nodes, and stored load samples.

Each row starts a daemon on a database of that size and prints the seconds until it answers, its memory then and at the
end, how long the first question about an application takes (its model is read then) and how long the others take.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.load import client, site
from metasched.client.connection import ask
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.records import Load, Run
from metasched.service.configuration import Fitting
from metasched.service.state.fit_workers import Fit, FitWorkers
from metasched.store import documents
from metasched.store.database.run_records import RecordedRun
from metasched.store.database.store import Store

#: Applications, nodes, load samples.
ROWS = ((100, 1000, 100_000), (1000, 1000, 1_000_000), (10_000, 1000, 1_000_000), (100, 100_000, 10_000_000))
#: Runs of each application: few, as most have.
RUNS = 12
#: Kinds of applications, each of which has many names.
KINDS = 20
#: Placements a second, and for how many seconds.
RATE, SECONDS = 10.0, 10.0
#: Load samples that are stored at once.
TOGETHER = 50_000


def main() -> int:
    """Print a row for each size."""
    parser = argparse.ArgumentParser(prog="benchmarks.growth", description=__doc__)
    parser.add_argument("--rows", nargs="+", type=_row, default=ROWS, metavar="APPLICATIONS,NODES,SAMPLES")
    parser.add_argument("--fits", type=int, default=0, metavar="APPLICATIONS",
                        help="fit so many applications by the daemon and by two processes of Dask instead")  # fmt: skip
    options = parser.parse_args()
    if options.fits:
        fits(options.fits)
        return 0
    print(f"{'applications':>12} {'nodes':>8} {'samples':>11} {'start':>7} {'memory':>7} {'later':>7} "
          f"{'first':>8} {'p50':>7} {'p99':>7} {'status':>7}")  # fmt: skip
    for row in options.rows:
        with tempfile.TemporaryDirectory() as work:
            print(measured(Path(work), *row), flush=True)
    return 0


def measured(folder: Path, applications: int, nodes: int, samples: int) -> str:
    """One row."""
    site.describe(folder, nodes, racks=max(1, nodes // 50))
    fill(folder, applications, nodes, samples)
    began = time.monotonic()
    daemon = site.Server.daemon(folder)
    start, memory = time.monotonic() - began, daemon.memory()
    try:
        first = np.median([_first(daemon.socket, applications - 1 - number) for number in range(20)])
        asked, _ = asyncio.run(client.load(daemon.socket, RATE, 0.0, SECONDS, lambda: None))
        assert asked.refused == asked.put_off == 0
        at = time.monotonic()
        ask(daemon.socket, "GET", "/v1/status", timeout=60.0)
        status, later = time.monotonic() - at, daemon.memory()
    finally:
        daemon.stop()
    half, most = 1e3 * np.quantile(asked.seconds, (0.5, 0.99))
    return (f"{applications:12,} {nodes:8,} {samples:11,} {start:5.1f} s {memory:4.0f} MB {later:4.0f} MB "
            f"{1e3 * first:5.1f} ms {half:4.1f} ms {most:4.0f} ms {1e3 * status:4.0f} ms")  # fmt: skip


def fill(folder: Path, applications: int, nodes: int, samples: int) -> None:
    """A database of that size: models of a few kinds under many names, with their runs, and an hour of loads."""
    kinds = [runs_of(site.application(number)) for number in range(KINDS)]
    fitted = [RobustPredictor(runs[0].application, "site").fit(runs) for runs in kinds]
    written = [documents.dump(predictor) for predictor in fitted]
    with Store.open(folder / "metasched.db") as store:
        for number in range(applications):
            name, kind = site.application(number), number % KINDS
            records = [RecordedRun(replace(run, application=name)) for run in kinds[kind]]
            store.runs.add_all(records)
            document = json.loads(written[kind].replace(f'"{site.application(kind)}"', f'"{name}"'))
            store.models.save(name, "site", document, learned=[record.uid for record in records])
        began, draw = time.time() - 3600.0, np.random.default_rng(5)
        for first in range(0, samples, TOGETHER):
            cpu = draw.uniform(0.2, 1.0, min(TOGETHER, samples - first)).tolist()
            moments = (first + np.arange(len(cpu))) // nodes * (3600.0 * nodes / samples) + began
            store.loads.add(
                Load(at, site.node((first + number) % nodes), share, 900.0)
                for number, (at, share) in enumerate(zip(moments.round(3).tolist(), cpu, strict=True))
            )


def runs_of(name: str) -> list[Run]:
    """Runs of an application on twelve sizes and counts, drawn by its name."""
    draw = random.Random(name)
    work, exchanged = 10 ** draw.uniform(-3.5, -2.5), 10 ** draw.uniform(-3.0, -1.5)
    power, found = draw.choice((1.0, 1.5, 2.0)), []
    for _ in range(RUNS):
        size, count = draw.choice(site.SIZES), draw.choice(site.COUNTS)
        cpu, bandwidth = draw.uniform(0.3, 1.0), draw.uniform(200.0, 1000.0)
        seconds = work * size**power / (cpu * count) + exchanged * size * (count - 1) / bandwidth * 10
        found.append(Run(name, "site", size, count, cpu, bandwidth, draw.uniform(0.95, 1.05) * seconds))
    return found


def fits(applications: int) -> None:
    """Fit so many applications here, by two processes of this host, and by a scheduler with two workers."""
    work = [Fit(site.application(number), "site", runs_of(site.application(number))) for number in range(applications)]
    began = time.monotonic()
    own = {fit.application: documents.dump(fit.fitted()) for fit in work}
    print(f"{'the daemon itself':30} {time.monotonic() - began:7.1f} s for {applications} applications")
    began = time.monotonic()
    done = FitWorkers(Fitting(processes=2)).fit(work)
    others = {fit.application: documents.dump(found) for fit, found in done if not isinstance(found, Exception)}
    print(f"{'two processes of this host':30} {time.monotonic() - began:7.1f} s, "
          f"{sum(others.get(name) == text for name, text in own.items())} of {len(own)} models the same")  # fmt: skip


def _first(socket: str, number: int) -> float:
    """Seconds that the first question about an application takes."""
    began = time.monotonic()
    asked = {"application": site.application(number), "problem_size": 1000.0, "max_processors": 8}
    ask(socket, "POST", "/v1/placements", asked, timeout=60.0)
    return time.monotonic() - began


def _row(text: str) -> tuple[int, int, int]:
    applications, nodes, samples = map(int, text.split(","))
    return applications, nodes, samples


if __name__ == "__main__":
    sys.exit(main())
