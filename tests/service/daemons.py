"""A daemon with two described clusters and an application whose run time depends on the load of its nodes."""

from __future__ import annotations

import json
import random
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import metered_runs
import uvicorn
from fastapi import FastAPI
from waiting import until

from metasched.predictors.energy.predictor import MeteredPredictor
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.records import Run
from metasched.service.configuration import Configuration
from metasched.service.daemon import Daemon
from metasched.store import documents
from metasched.store.database.run_records import RecordedRun
from metasched.store.database.store import Store

CLUSTERS = """
[[cluster]]
name = "east"
nodes = [{ names = "e[1-4]", processors = 4, available_bandwidth = 100.0 }]
[[cluster]]
name = "west"
nodes = [{ names = "w[1-4]", processors = 4, available_bandwidth = 100.0, available_cpu = 0.5 }]
"""


def seconds(size: float, processors: int, cpu: float) -> float:
    return 1e-3 * size**1.5 / (cpu * processors) + 1e-3 * size * (processors - 1)


def runs(cluster: str, count: int = 40) -> list[RecordedRun]:
    draw = random.Random(cluster)
    made = []
    for _ in range(count):
        size, processors, cpu = draw.choice(range(200, 2000, 100)), draw.choice((1, 2, 4)), draw.uniform(0.3, 1.0)
        noise = draw.uniform(0.98, 1.02)
        made.append(
            RecordedRun(Run("cg", cluster, size, processors, cpu, 100.0, noise * seconds(size, processors, cpu)))
        )
    return made


def teach(store: Store, cluster: str, *, slower: float = 1.0) -> None:
    """Store runs of the application on a cluster so many times slower, and the model learned from them."""
    made = [replace(each, run=replace(each.run, execution_time=slower * each.run.execution_time))
            for each in runs(cluster)]  # fmt: skip
    store.runs.add_all(made)
    predictor = RobustPredictor("cg", cluster).fit(store.runs.learnable(platform=cluster))
    document = json.loads(documents.dump(predictor))
    store.models.save("cg", cluster, document, learned=[record.uid for record in made])


def teach_clocks(store: Store, cluster: str) -> None:
    """Store metered runs of the application ``a`` at two clocks on a cluster, and the model learned from them."""
    made = [RecordedRun(replace(run, cluster=cluster)) for run in metered_runs.made(40, seed=1)]
    store.runs.add_all(made)
    document = json.loads(documents.dump(MeteredPredictor("a", cluster).fit(record.run for record in made)))
    store.models.save("a", cluster, document, learned=[record.uid for record in made])


def database(fill: Callable[[Store], None]) -> bytes:
    """A database, filled."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "made.db")
        with Store.open(path) as store:
            fill(store)
        with closing(sqlite3.connect(path)) as connection:
            return connection.serialize()


@cache
def learned_database() -> bytes:
    """A database with runs and the models that were learned from them; the search takes seconds, so it is made once."""

    def fill(store: Store) -> None:
        for cluster in ("east", "west"):
            teach(store, cluster)

    return database(fill)


@cache
def metered_database() -> bytes:
    """A database whose model of the application ``a`` on the cluster east tells energy at two clocks; made once."""
    return database(partial(teach_clocks, cluster="east"))


@contextmanager
def listening(app: FastAPI) -> Iterator[str]:
    """The address where an application is served by a thread."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until(lambda: server.started)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(20.0)


def headers_for(daemon: Daemon, name: str = "admin", role: Any = "admin", **of: str | None) -> dict[str, str]:
    """What a new client with a token of its own sends with each request."""
    secret = daemon.store.tokens.add(name, role, **of)
    daemon.access.refresh()
    return {"Authorization": f"Bearer {secret}"}


@contextmanager
def running(
    folder: Path,
    *,
    learned: bool = True,
    clusters: str = CLUSTERS,
    wall: Callable[[], float] = time.time,
    **settings: object,
) -> Iterator[Daemon]:
    """A started daemon on a database of its own, where it is the time of day that ``wall`` tells."""
    described = folder / "clusters.toml"
    described.write_text(clusters)
    configuration = Configuration.model_validate({"clusters": str(described)} | settings)
    if learned and not (folder / "metasched.db").exists():
        (folder / "metasched.db").write_bytes(learned_database())
    with Store.open(folder / "metasched.db") as store:
        daemon = Daemon(configuration, store, wall=wall)
        daemon.start()
        try:
            yield daemon
        finally:
            daemon.stop()
