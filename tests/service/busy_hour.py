"""A daemon's database after a busy day: loads that went up and down, runs, placements, and what came of them."""

from __future__ import annotations

import math
import random
from pathlib import Path

from fastapi.testclient import TestClient
from waiting import until

from metasched.records import Load
from metasched.service.daemon import Daemon
from metasched.store.database.store import Store
from tests.service.daemons import learned_database, runs, seconds

NODES = tuple(f"{cluster}{number}" for cluster in "ew" for number in range(1, 5))
EVERY = 300.0
DAY = 86_400.0


def day_of_loads(folder: Path, now: float) -> None:
    """Fill the database of a daemon that is not started yet."""
    path = folder / "metasched.db"
    path.write_bytes(learned_database())
    draw = random.Random(7)
    with Store.open(path) as store:
        for node in NODES:
            times = [now - DAY + step * EVERY for step in range(int(DAY / EVERY))]
            cpus = [min(1.0, max(0.05, available(node, at) + draw.gauss(0, 0.04))) for at in times]
            store.loads.add(
                Load(at, node, cpu, 100.0 * min(1.0, 0.55 + cpu / 3 + draw.gauss(0, 0.02)))
                for at, cpu in zip(times, cpus, strict=True)
            )


def available(node: str, at: float) -> float:
    """What a node really has to spare at a moment: the nodes of a cluster rise and fall one after the other."""
    usual = 0.75 if node.startswith("e") else 0.5
    return usual + 0.2 * math.sin(2 * math.pi * at / DAY * 4 + NODES.index(node) / 3)


def busy_hour(daemon: Daemon, client: TestClient, headers: dict[str, str], now: float, jobs: int = 14) -> None:
    """Runs that were learned, and placements whose jobs followed them, ran elsewhere, failed, or are not over."""
    draw = random.Random(3)
    for cluster in ("east", "west"):
        for record in runs(cluster, 60)[40:]:
            daemon.models.learn(record)
    for node in NODES:
        cpu = available(node, now)
        batch = {"node": node, "samples": [[now - 1, cpu, 100.0 * (0.55 + cpu / 3)]]}
        client.post("/v1/loads", json=batch, headers=headers)
    daemon.views.refresh()
    for number in range(jobs):
        size, processors = draw.choice(range(400, 1900, 100)), draw.choice((1, 2, 4))
        ask = {"application": "cg", "problem_size": size, "processors": [processors]}
        answer = client.post("/v1/placements", json=ask, headers=headers).json()
        if number >= jobs - 3:
            continue
        until(lambda uid=answer["id"]: daemon.store.placements.find(uid) is not None, 20.0)
        placement = answer["placement"]
        follows = number % 3 != 2
        nodes = placement["nodes"] if follows else [f"w{k}" for k in range(1, max(2, processors) + 1)]
        cpu = min(available(node, now) for node in nodes)
        took = seconds(size, processors, cpu) * draw.uniform(0.96, 1.05)
        start = now - took - number
        job = {
            "scheduler": placement["cluster"] if follows else "west",
            "job": f"{number}",
            "comment": f"metasched:app=cg,n={size},p={processors},placement={answer['id']}",
            "nodes": ",".join(nodes),
            "start": start,
            "end": start + took,
            "exit_status": 137 if number == 4 else 0,
        }
        assert client.post("/v1/jobs", json=job, headers=headers).json()["stored"]
    client.post("/v1/placements", json={"application": "unheard", "problem_size": 5}, headers=headers)
