"""``python -m benchmarks.growth``: how the daemon grows with a site: applications, nodes, and stored load samples.

Each row starts a daemon on a database of that size and prints the seconds until it answers, its memory then and at the
end, how long the first question about an application takes (its model is read then) and how long the others take.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from sqlalchemy import insert

from benchmarks.load import client, site
from metasched.client.connection import ask
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.records import Run
from metasched.service.configuration import Fitting
from metasched.service.state.fit_workers import Fit, FitWorkers
from metasched.store import documents
from metasched.store.database.engine import writing
from metasched.store.database.load_blocks import KEPT, MINUTE, SETTLED, packed
from metasched.store.database.run_records import RecordedRun
from metasched.store.database.store import Store
from metasched.store.database.tables import LoadBlockRow
from metasched.store.files.loads import Loads

#: Applications, nodes, load samples.
ROWS = ((100, 1000, 100_000), (1000, 1000, 1_000_000), (10_000, 1000, 1_000_000), (100, 100_000, 10_000_000))
#: Runs of each application: few, as most have.
RUNS = 12
#: Kinds of applications, each of which has many names.
KINDS = 20
#: Placements a second, and for how many seconds.
RATE, SECONDS = 10.0, 10.0
#: Seconds between two samples of a node, as agents send them; samples that are stored at once.
EVERY, TOGETHER = 10.0, 1_000_000
#: So much later than the present loads may end when the daemon starts (s).
BEHIND = 120.0


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
    """A database of that size: models of a few kinds under many names, with their runs, and the loads of its nodes."""
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
        fill_loads(store, nodes, samples)


def fill_loads(store: Store, nodes: int, samples: int) -> None:
    """At least so many loads of all nodes until now, one each :data:`EVERY` seconds, with means and packed minutes.

    They are written by SQL, as a daemon that has run for as long would have stored them: 10^8 samples would take hours
    by HTTP. That takes minutes, whose loads are then written too.
    """
    names, each = sorted(site.node(number) for number in range(nodes)), max(1, samples // nodes)
    began = _settled() - each * EVERY
    written, moments = 0, each
    while moments > written:
        _write(store, names, began, written, moments)
        written, moments = moments, moments + (late if (late := _due(began) - moments) > BEHIND / EVERY else 0)
    end = math.floor((began + written * EVERY) / MINUTE) * MINUTE
    _write_means(store, names, end, written)
    number, moment = np.arange(nodes)[:, None], np.arange(written)
    for minute in range(max(end - KEPT, math.ceil(began / MINUTE) * MINUTE), end, MINUTE):
        inside = moment[(began + moment * EVERY >= minute) & (began + moment * EVERY < minute + MINUTE)]
        share = 0.2 + 0.8 * ((number * 7919 + inside * 1009) % 1000) / 1000.0
        offsets = np.arange(nodes + 1) * inside.size
        times = np.tile(began + inside * EVERY, nodes)
        loads = Loads(tuple(names), offsets, times, share.ravel(), np.full(share.size, 900.0))
        with writing(store.engine) as connection:
            connection.execute(insert(LoadBlockRow), packed(minute, loads))


def _settled() -> int:
    """The end of the last minute of which all samples should have come in (s)."""
    return math.floor((time.time() - SETTLED) / MINUTE) * MINUTE


def _due(began: float) -> int:
    """The samples of each node that should have come in since a time (s)."""
    return math.floor((_settled() - began) / EVERY)


def _write(store: Store, names: list[str], began: float, since: int, until: int) -> None:
    """Write the samples of all nodes from one number up to and without another."""
    for first in range(0, len(names), step := max(1, TOGETHER // (until - since))):
        with writing(store.engine) as connection:
            run = connection.exec_driver_sql
            run("CREATE TEMP TABLE IF NOT EXISTS filling (number INTEGER PRIMARY KEY, node TEXT)")
            run("DELETE FROM filling")
            run("INSERT INTO filling VALUES (?, ?)", list(enumerate(names[first : first + step], first)))
            run("WITH RECURSIVE moments(k) AS (SELECT ? UNION ALL SELECT k + 1 FROM moments WHERE k + 1 < ?)"
                " INSERT INTO loads"
                " SELECT node, ? + k * ?, 0.2 + 0.8 * ((number * 7919 + k * 1009) % 1000) / 1000.0, 900"
                " FROM filling CROSS JOIN moments", (since, until, float(began), EVERY))  # fmt: skip


def _write_means(store: Store, names: list[str], end: float, each: int) -> None:
    """Write the means of all slots that are over: of five minutes from the samples, and of hours from these."""
    head = "INSERT INTO load_means (step, time, node, available_cpu, available_bandwidth, samples) "
    for first in range(0, len(names), step := max(1, TOGETHER // each)):
        ends = names[first], names[min(first + step, len(names)) - 1]
        with writing(store.engine) as connection:
            connection.exec_driver_sql(
                head + "SELECT 300, floor(time / 300) * 300 AS slot, node, avg(available_cpu),"
                " avg(available_bandwidth), count(*) FROM loads"
                " WHERE node BETWEEN ? AND ? AND time < floor(? / 300) * 300 GROUP BY node, slot",
                (*ends, end),
            )
    with writing(store.engine) as connection:
        connection.exec_driver_sql(
            head + "SELECT 3600, floor(time / 3600) * 3600 AS slot, node, sum(available_cpu * samples) / sum(samples),"
            " sum(available_bandwidth * samples) / sum(samples), sum(samples) FROM load_means"
            " WHERE step = 300 AND time < floor(? / 3600) * 3600 GROUP BY node, slot",
            (end,),
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
