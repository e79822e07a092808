"""Two daemons on one real PostgreSQL: one leads, the other answers reads and takes over when the leader is killed."""

from __future__ import annotations

import json
import re
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from waiting import until

from metasched.records import InputError
from metasched.store.database.backup import backup, restore
from metasched.store.database.engine import reading
from metasched.store.database.store import Store
from metasched.store.errors import StoreError
from tests.service.daemons import CLUSTERS, learned_database
from tests.system.real_daemon import Daemon
from tests.system.real_postgresql import server, url, why_not

__all__ = ["server", "url"]
pytestmark = [
    pytest.mark.system,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]
#: Until when the other daemon must have taken over (s).
PROMISED = 10.0
TIMEOUT = 120.0
wait_for = partial(until, timeout=TIMEOUT, pause=0.05, despite=RuntimeError)
DISTURBANCES = (StoreError, InputError, RuntimeError, httpx.HTTPError)


@pytest.fixture
def pair(url: str, tmp_path: Path) -> Iterator[tuple[Daemon, Daemon]]:
    (tmp_path / "learned.db").write_bytes(learned_database())
    with Store.open(tmp_path / "learned.db") as store:
        backup(store, tmp_path / "b.db")
    with Store.open(url) as store:
        restore(store, tmp_path / "b.db")
    made = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "clusters.toml").write_text(CLUSTERS)
        made.append(Daemon(folder, 'clusters = "clusters.toml"\n[periods]\nmodels = 2.0', database=url))
    for daemon in made:
        daemon.start()
    yield made[0], made[1]
    for daemon in made:
        daemon.stop()


class Clients:
    """Clients that ask one daemon, and where it does not take what they send, the other, until it is acknowledged."""

    def __init__(self, daemons: tuple[Daemon, Daemon]) -> None:
        self.sockets = [daemon.socket for daemon in daemons]
        self.stop = threading.Event()
        self.runs: dict[str, float] = {}
        self.samples: list[float] = []
        self.placed: list[float] = []
        self.errors: Counter[int] = Counter()
        work = (self.send_runs, self.send_loads, self.ask)
        self.threads = [threading.Thread(target=each, daemon=True) for each in work]

    def __enter__(self) -> Clients:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        for thread in self.threads:
            thread.join()

    def post(self, path: str, document: Any) -> None:
        """Send it until somebody takes it."""
        while True:
            for socket in self.sockets:
                try:
                    with httpx.Client(
                        transport=httpx.HTTPTransport(uds=socket), base_url="http://d", timeout=5.0
                    ) as client:
                        status = client.post(path, json=document).status_code
                except httpx.HTTPError:
                    continue
                if status == 200:
                    return
                self.errors[status] += 1
            time.sleep(0.05)

    def send_runs(self) -> None:
        while not self.stop.is_set():
            uid, size = uuid.uuid4().hex, 5000.0 + len(self.runs)
            run = {"application": "lu", "cluster": "east", "problem_size": size, "processors": 1, "uid": uid}
            run |= {"min_avg_avail_cpu": 0.5, "min_avg_avail_bw": 90.0, "execution_time": size / 100.0}
            self.post("/v1/runs", {"runs": [run]})
            self.runs[uid] = size

    def send_loads(self) -> None:
        while not self.stop.is_set():
            at = round(time.time(), 3)
            self.post("/v1/loads", {"node": "e1", "samples": [[at, 0.5, 90.0]]})
            self.samples.append(at)

    def ask(self) -> None:
        while not self.stop.is_set():
            self.post("/v1/placements", {"application": "cg", "problem_size": 900, "processors": [1]})
            self.placed.append(time.monotonic())


def test_the_second_follows_and_answers_reads(pair: tuple[Daemon, Daemon]) -> None:
    leader, other = pair
    assert [each.ask("GET", "/v1/health")["leads"] for each in pair] == [True, False]
    ask = {"application": "cg", "problem_size": 900}
    run = {"application": "lu", "cluster": "east", "problem_size": 1.0, "processors": 1, "execution_time": 1.0}
    loads = {"node": "e1", "samples": [[time.time(), 0.5, 90.0]]}
    for path, document in (
        ("placements", ask), ("loads", loads), ("runs", {"runs": [run]}),
        ("jobs", {"scheduler": "s", "job": "1", "nodes": "e1", "start": 1.0, "end": 2.0}),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match="is a follower"):
            other.ask("POST", f"/v1/{path}", document)
    assert other.ask("POST", "/v1/placements", ask | {"trial": True})["placed"]
    assert other.ask("POST", "/v1/rankings", ask)["placements"]
    for path in ("status", "clusters", "models", "applications", "placements"):
        other.ask("GET", f"/v1/{path}")
    leader.ask("POST", "/v1/loads", {"node": "e2", "samples": [[time.time(), 0.125, 90.0]]})
    wait_for(lambda: free(other, "e2") == 0.125)


def test_a_killed_leader_loses_nothing_acknowledged_and_nothing_is_learned_twice(
    pair: tuple[Daemon, Daemon], url: str
) -> None:
    leader, other = pair
    with Clients(pair) as clients:
        wait_for(lambda: len(clients.runs) > 30 and len(clients.placed) > 30)
        leader.kill()
        killed = time.monotonic()
        wait_for(lambda: len(clients.placed) > 0 and clients.placed[-1] > killed + 0.5)
        wait_for(lambda: other.ask("GET", "/v1/health")["leads"])
        before = len(clients.runs)
        wait_for(lambda: len(clients.runs) > before + 30)
    assert set(clients.errors) <= {503}
    gap = min(at for at in clients.placed if at > killed) - max(at for at in clients.placed if at <= killed)
    print(json.dumps({"refused for (s)": round(gap, 1), "runs": len(clients.runs), "samples": len(clients.samples)}))
    assert gap <= PROMISED
    with Store.open(url) as store:
        check_kept_and_learned_once(store, clients)
    leader.start()
    assert leader.ask("GET", "/v1/health")["leads"] is False


def test_a_leader_whose_session_is_cut_goes_on_where_nobody_else_led(pair: tuple[Daemon, Daemon], url: str) -> None:
    leader, other = pair
    other.stop()
    with Store.open(url) as store, reading(store.engine) as connection:
        assert connection.exec_driver_sql(
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'"
        ).scalar()
    run = {"application": "lu", "cluster": "east", "problem_size": 1.0, "processors": 1, "execution_time": 1.0}

    def taken() -> bool:
        try:
            return bool(leader.ask("POST", "/v1/runs", {"runs": [run]})["taken"])
        except DISTURBANCES:
            return False

    wait_for(taken)
    assert leader.ask("GET", "/v1/health")["leads"]


def check_kept_and_learned_once(store: Store, clients: Clients) -> None:
    """All that clients were told is stored is there, and each run is learned once."""
    wait_for(lambda: not store.runs.to_learn())
    kept = {record.uid: record.run.problem_size for record in store.runs.all(application="lu")}
    assert {uid: kept.get(uid) for uid in clients.runs} == clients.runs
    assert sorted(set(clients.samples) - set(store.loads.all(node="e1").time.tolist())) == []
    wait_for(lambda: seen(store) >= len(kept))
    assert seen(store) == len(kept)


def seen(store: Store) -> int:
    """How many runs the saved model of lu has learned."""
    versions = [version for application, _, version, _ in store.models.all() if application == "lu"]
    return int(store.models.document("lu", "east")["seen"]) if versions else 0


def free(daemon: Daemon, node: str) -> float:
    found = [each for cluster in daemon.ask("GET", "/v1/clusters") for each in cluster["nodes"] if each["node"] == node]
    return float(found[0]["available_cpu"])


def test_the_log_says_who_leads(pair: tuple[Daemon, Daemon]) -> None:
    logs = [(daemon.folder / "daemon.log").read_text() for daemon in pair]
    assert re.search("this daemon leads", logs[0])
    assert re.search(r"another daemon leads \(.*process \d+\); this one answers reads", logs[1])
