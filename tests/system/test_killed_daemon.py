"""A daemon that is killed at random moments while runs and loads come in has everything that it acknowledged."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import httpx
import pytest

from metasched.store.database.store import Store
from tests.system.real_daemon import Daemon
from tests.system.real_postgresql import BINARIES, server, why_not

__all__ = ["server"]

pytestmark = [pytest.mark.system, pytest.mark.timeout(280)]

RUNS, RUNS_TOGETHER = 5000, 10
LOADS, LOADS_TOGETHER, LOADED_NODES = 50_000, 50, 20
RUN_SENDERS, LOAD_SENDERS = 2, 4
KILLS = 4
#: Loads of the last hour: those older than are kept would be refused.
FIRST = float(int(time.time()) - 3600)
CONFIGURATION = "[limits]\nrequests_per_second = 1e6\nburst = 1000000\n"


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield str(tmp_path / "metasched.db")
        return
    if why_not():
        pytest.skip(why_not())
    folder = request.getfixturevalue("server")
    yield f"postgresql+psycopg://metasched@/postgres?host={folder}"


def uid(number: int) -> str:
    return f"{number:032x}"


def run(number: int) -> dict[str, object]:
    # One in five hundred is learned from: what matters here is the storing.
    return {
        "application": "cg", "cluster": "c", "problem_size": 100 + number % 700, "processors": 1 + number % 8,
        "min_avg_avail_cpu": 0.5, "min_avg_avail_bw": 90.0, "execution_time": 1.0 + number,
        "exit_status": 0 if number % 500 == 0 else 1, "uid": uid(number),
    }  # fmt: skip


def load(number: int) -> list[float]:
    return [FIRST + number // LOADED_NODES, (number % 97) / 97, 90.0]


class Senders:
    """Threads that send everything once, again where it was not acknowledged, and remember what was.

    Each waits for its answers, and several write in turns of one transaction: one alone would mostly wait.
    """

    def __init__(self, socket: str) -> None:
        self._socket = socket
        self.runs: set[str] = set()
        self.loads: set[tuple[str, float]] = set()
        work = [partial(self._send_runs, part) for part in range(RUN_SENDERS)]
        work += [partial(self._send_loads, part) for part in range(LOAD_SENDERS)]
        self._threads = [threading.Thread(target=self._send, args=(each,)) for each in work]
        self.sent_again = 0

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def busy(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    def _send(self, work: Callable[[httpx.Client], None]) -> None:
        with httpx.Client(transport=httpx.HTTPTransport(uds=self._socket, verify=False), timeout=20.0) as client:
            work(client)

    def _post(self, client: httpx.Client, path: str, document: object) -> None:
        while True:
            try:
                if client.post(f"http://metasched{path}", json=document).status_code == 200:
                    return
            except httpx.HTTPError:
                pass
            self.sent_again += 1
            time.sleep(0.05)

    def _send_runs(self, part: int, client: httpx.Client) -> None:
        for first in range(part * RUNS_TOGETHER, RUNS, RUN_SENDERS * RUNS_TOGETHER):
            numbers = range(first, first + RUNS_TOGETHER)
            self._post(client, "/v1/runs", {"runs": [run(number) for number in numbers]})
            self.runs.update(uid(number) for number in numbers)

    def _send_loads(self, part: int, client: httpx.Client) -> None:
        every = LOADED_NODES * LOADS_TOGETHER
        for first in range(0, LOADS, every):
            for node in range(part, LOADED_NODES, LOAD_SENDERS):
                samples = [load(number) for number in range(first + node, first + every, LOADED_NODES)]
                self._post(client, "/v1/loads", {"node": f"n{node}", "samples": samples})
                self.loads.update((f"n{node}", sample[0]) for sample in samples)


def stored(database: str) -> tuple[list[str], list[tuple[str, float]]]:
    with Store.open(database) as store:
        loads = store.loads.all()
        of_node = [node for k, node in enumerate(loads.nodes) for _ in range(loads.offsets[k + 1] - loads.offsets[k])]
        return [record.uid for record in store.runs.all()], list(zip(of_node, loads.time.tolist(), strict=True))


def check_integrity(database: str) -> None:
    if "://" not in database:
        with closing(sqlite3.connect(database)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return
    assert BINARIES is not None
    host = database.partition("host=")[2]
    answer = subprocess.run(
        [BINARIES / "pg_amcheck", "--install-missing", "--heapallindexed", "-h", host, "-U", "metasched",
         "postgres"], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_what_was_acknowledged_is_there_after_kill_9(database: str, tmp_path: Path) -> None:
    daemon = Daemon(tmp_path, CONFIGURATION, database=database)
    daemon.start()
    senders, draw, kills = Senders(daemon.socket), random.Random(), 0
    senders.start()
    while senders.busy():
        if kills < KILLS:
            time.sleep(draw.uniform(0.1, 0.8))
            # Before the kill: whatever is acknowledged by now must be there afterwards.
            runs, loads = senders.runs.copy(), senders.loads.copy()
            daemon.kill()
            kills += 1
            found_runs, found_loads = stored(database)
            assert runs <= set(found_runs)
            assert loads <= set(found_loads)
            daemon.start()
        else:
            time.sleep(0.1)
    daemon.kill()
    found_runs, found_loads = stored(database)
    print(f"{kills} kills, {senders.sent_again} requests sent again, {len(found_runs)} runs, {len(found_loads)} loads")
    assert kills == KILLS
    assert sorted(found_runs) == [uid(number) for number in range(RUNS)]
    assert len(found_loads) == len(set(found_loads)) == LOADS
    check_integrity(database)
