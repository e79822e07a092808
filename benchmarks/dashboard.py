"""How long the dashboard's page takes for a large site: ``python -m benchmarks.dashboard``.

A thousand nodes that have sent loads for two hours, and twenty applications with full sorted lists, each with a record
of predictions, finished jobs and placements to show. The page is asked for as a browser would, by a session of its own.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from fastapi.testclient import TestClient

from benchmarks.load import site
from benchmarks.load.client import Questions
from metasched.records import Load
from metasched.service.app import make_app
from metasched.service.configuration import Configuration
from metasched.service.daemon import Daemon
from metasched.service.quality.advice_quality import Settled
from metasched.store.database.run_records import RecordedRun
from metasched.store.database.store import Store

#: Loads are known of so many moments so far apart (s); placements that are noted; finished jobs that are judged.
MOMENTS, APART, PLACEMENTS, JOBS = 480, 15.0, 200, 5000
#: Runs of each application that are predicted and then learned.
RUNS = 30


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="benchmarks.dashboard", description=__doc__)
    parser.add_argument("--times", type=int, default=50, help="how often the page is asked for (default 50)")
    parser.add_argument("--folder", help="keep the site here, and take up one that was kept")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        folder = Path(options.folder or work)
        site.describe(folder)
        lengths = site.learned(folder)
        configuration = Configuration(clusters=str(folder / "clusters.toml"))
        with Store.open(folder / "metasched.db") as store:
            daemon = Daemon(configuration, store)
            daemon.start()
            try:
                answer = measured(daemon, options.times)
            finally:
                daemon.stop()
    answer = {"nodes": site.NODES, "sorted lists": f"{min(lengths)} to {max(lengths)} models", **answer}
    if options.json:
        print(json.dumps(answer))
    else:
        for name, value in answer.items():
            print(f"{name:24} {value:.4g}" if isinstance(value, float) else f"{name:24} {value}")


def measured(daemon: Daemon, times: int) -> dict[str, object]:
    """Medians over some pages."""
    client = TestClient(make_app(daemon))
    fill(daemon, client)
    client.post("/login", data={"token": daemon_token(daemon, "admin")})
    wall = []
    for _ in range(times):
        began = time.perf_counter()
        page = client.get("/").text
        wall.append(time.perf_counter() - began)
    assert "Recent placements" in page
    return {
        "applications": len(daemon.models.all()),
        "runs beside predictions": sum(len(daemon.models.recent.of(*key)) for key in daemon.models.all()),
        "finished jobs judged": daemon.jobs.ledger.report().overall.jobs,
        "page (kB)": len(page) / 1e3,
        "median (ms)": 1e3 * statistics.median(wall),
        "slowest (ms)": 1e3 * max(wall),
    }


def fill(daemon: Daemon, client: TestClient) -> None:
    """Give the daemon something to show."""
    now, names = time.time(), [site.node(number) for number in range(site.NODES)]
    end = time.monotonic() + site.PATIENCE
    while len(daemon.models.all()) < site.APPLICATIONS or not daemon.upkeep.history_restored:
        assert time.monotonic() < end, "the models were not read"
        time.sleep(0.05)
    for application, cluster in daemon.models.all():
        for run in daemon.store.runs.learnable(application=application, platform=cluster)[-RUNS:]:
            daemon.models.learn(RecordedRun(replace(run, execution_time=1.03 * run.execution_time)))
    for moment in range(MOMENTS):
        at = now - APART * (MOMENTS - 1 - moment)
        daemon.clusters.note(
            Load(at, name, 0.6 + 0.3 * math.sin(at / 900 + number), 900.0) for number, name in enumerate(names)
        )
        view = daemon.clusters.refresh(at)
        daemon.history.note(view.partitions, at)
    headers = {"Authorization": f"Bearer {daemon_token(daemon, 'scheduler')}"}
    questions = Questions()
    for _ in range(PLACEMENTS):
        path, body = questions()
        client.post(path, content=body, headers=headers | {"Content-Type": "application/json"})
    while daemon.models.waiting:
        time.sleep(0.05)
    for number in range(JOBS):
        took = 10.0 + number % 7
        daemon.jobs.ledger.add(
            Settled(False, number % 3 == 0, took, 11.0, True, 12.0, held=True, level=0.9,
                    application=site.application(number % site.APPLICATIONS), platform="site")
        )  # fmt: skip


def daemon_token(daemon: Daemon, role: str) -> str:
    """A fresh token that the daemon knows."""
    secret = daemon.store.tokens.add(f"{role} {time.time()}", role)  # type: ignore[arg-type]
    daemon.access.refresh()
    return secret


if __name__ == "__main__":
    main()
