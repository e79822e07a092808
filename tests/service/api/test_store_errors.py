"""A database that fails is never the client's fault: 503 at every route, and the same request succeeds afterwards."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from itertools import count
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from httpx import Response
from sqlalchemy import event

from metasched.service.app import make_app
from metasched.service.daemon import Daemon
from metasched.store.database.store import Store
from tests.service.api.test_routes import until
from tests.service.daemons import headers_for, running, runs

#: Nodes with names so long that a row of them needs pages of its own.
NODES = [f"{'n' * 200}{number}" for number in range(100)]
RUN = {"application": "lu", "cluster": "east", "problem_size": 900, "processors": 1, "min_avg_avail_cpu": 0.5,
       "min_avg_avail_bw": 90.0, "execution_time": 9.0, "nodes": NODES}  # fmt: skip
Call = Callable[[TestClient], Response]
WRITES: dict[str, Call] = {
    "jobs": lambda client: client.post("/v1/jobs", json=job()),
    "runs": lambda client: client.post("/v1/runs", json={"runs": [RUN]}),
    "loads": lambda client: client.post("/v1/loads", json=loads()),
    "mode": lambda client: client.put("/v1/mode", json={"mode": "advise"}),
}
READS: dict[str, Call] = {
    "loads": lambda client: client.get("/v1/loads", params={"node": "e1", "since": 0}),
    "placements": lambda client: client.get("/v1/placements"),
    "placement": lambda client: client.get(f"/v1/placements/{'0' * 32}"),
    "explanation": lambda client: client.get(f"/v1/placements/{'0' * 32}/explanation"),
    "models": lambda client: client.get("/v1/models"),
    "model": lambda client: client.get("/v1/models/cg/east"),
    "walltimes": lambda client: client.post(
        "/v1/walltimes", json={"application": "cg", "problem_size": 900, "processors": 1}
    ),
}


#: Writes that need another page.
LARGE = [name for name in WRITES if name != "mode"]


def job(number: Iterator[int] = count(1)) -> dict[str, object]:  # noqa: B008
    """A finished job that nobody has reported before."""
    start = 1e9 + 100.0 * (which := next(number))
    return {"scheduler": "east", "job": f"{which}", "comment": "metasched:app=cg,n=900", "nodes": ",".join(NODES),
            "start": start, "end": start + 9.0}  # fmt: skip


def loads() -> dict[str, object]:
    """Samples of the last seconds that nobody has sent before."""
    now = time.time()
    return {"node": "e1", "samples": [[now - number / 100.0, 0.5, 90.0] for number in range(500)]}


@contextmanager
def locked(daemon: Daemon) -> Iterator[None]:
    """Another process writes for longer than anybody waits."""
    restore_timeout = _with_pragma(daemon, "busy_timeout = 10")
    with closing(sqlite3.connect(daemon.store.name, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")
    restore_timeout()


@contextmanager
def full(daemon: Daemon) -> Iterator[None]:
    """The file cannot grow by a page."""
    unlimited = _with_pragma(daemon, "max_page_count = 1")
    yield
    unlimited()


@contextmanager
def absent(daemon: Daemon) -> Iterator[None]:
    """The file system of the database is not mounted."""
    folder = Path(daemon.store.name).parent
    away = folder.rename(folder.with_name("away"))
    yield
    away.rename(folder)


def _with_pragma(daemon: Daemon, pragma: str) -> Callable[[], None]:
    """Set something for all connections from now on; the answer takes it back."""
    engine = daemon.store.engine

    def prepare(connection: sqlite3.Connection, _: object) -> None:
        connection.execute(f"PRAGMA {pragma}")

    event.listen(engine, "connect", prepare)
    engine.dispose()

    def back() -> None:
        event.remove(engine, "connect", prepare)
        engine.dispose()

    return back


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    never = dict.fromkeys(("loads", "partitions", "confirm", "models", "means", "forecasts", "retention"), 1e6)
    folder = tmp_path_factory.mktemp("above") / "mounted"
    folder.mkdir()
    with running(folder, periods=never) as daemon:
        yield daemon


@pytest.fixture(scope="module")
def client(daemon: Daemon) -> TestClient:
    return TestClient(make_app(daemon), headers=headers_for(daemon, "all", "admin"), raise_server_exceptions=False)


@pytest.mark.parametrize(
    ("fault", "write"),
    [
        *((locked, write) for write in WRITES),
        *((absent, write) for write in WRITES),
        *((full, write) for write in LARGE),
    ],
)
def test_what_cannot_be_written_is_unavailable_and_then_taken(
    fault: Callable[[Daemon], AbstractContextManager[None]], write: str, daemon: Daemon, client: TestClient
) -> None:
    with fault(daemon):
        failed = WRITES[write](client)
    assert failed.status_code == 503, failed.text
    assert int(failed.headers["Retry-After"]) > 0
    assert daemon.store.name in failed.json()["detail"]
    if write in ("loads", "runs"):
        health = client.get("/v1/health").json()  # anybody may ask: no address, no path
        assert health["status"] == "database"
        assert health["faults"] == ["the database stored nothing the last time, the log says why"]
    assert WRITES[write](client).status_code == 200
    if write in ("loads", "runs"):
        assert client.get("/v1/health").json()["status"] == "ok"


@pytest.mark.parametrize("call", READS.values(), ids=READS)
def test_what_cannot_be_read_is_unavailable(call: Call, daemon: Daemon, client: TestClient) -> None:
    with absent(daemon):
        failed = call(client)
    assert failed.status_code == 503, failed.text
    assert int(failed.headers["Retry-After"]) > 0
    assert call(client).status_code in (200, 404)


def test_a_finished_job_is_stored_once_the_database_is_back(daemon: Daemon, client: TestClient) -> None:
    ended = job()
    for fault in (locked, full, absent):
        with fault(daemon):
            assert client.post("/v1/jobs", json=ended).status_code == 503
    assert client.post("/v1/jobs", json=ended).json()["stored"]
    stored = daemon.store.runs.all(application="cg", since=float(str(ended["start"])))
    assert [record.run.extra["job"] for record in stored] == [ended["job"]]


def test_a_job_whose_outcome_cannot_be_written_is_learned_when_it_is_told_again(tmp_path: Path) -> None:
    with running(tmp_path) as daemon, closing(sqlite3.connect(daemon.store.name, isolation_level=None)) as other:
        client = TestClient(make_app(daemon), headers=headers_for(daemon, "a", "admin"))
        placed = client.post("/v1/placements", json={"application": "cg", "problem_size": 900}).json()["id"]
        now, seen = time.time(), daemon.models.predictor("cg", "east").window.seen  # type: ignore[union-attr]
        fields = {"scheduler": "east", "job": "7", "comment": f"metasched:app=cg,n=900,p=1,placement={placed}"}
        fields |= {"nodes": "e1", "start": now - 60.0, "end": now - 1.0}  # type: ignore[dict-item]
        other.execute(
            "CREATE TRIGGER full BEFORE UPDATE OF outcome ON placements BEGIN SELECT raise(ABORT, 'disk is full'); END"
        )
        assert client.post("/v1/jobs", json=fields).status_code == 503
        assert daemon.store.runs.to_learn() == ()
        other.execute("DROP TRIGGER full")
        assert client.post("/v1/jobs", json=fields).json()["learned"]
        advised = daemon.store.placements.find(placed)
        assert advised is not None
        assert advised.outcome is not None
        until(lambda: daemon.models.predictor("cg", "east").window.seen == seen + 1)  # type: ignore[union-attr]
        assert client.post("/v1/jobs", json=fields).json()["why"] == "it has been reported before"


def test_a_run_that_somebody_else_has_stored_is_learned_once(tmp_path: Path) -> None:
    with running(tmp_path, periods={"models": 0.1}) as daemon:
        seen = daemon.models.predictor("cg", "east").window.seen  # type: ignore[union-attr]
        with Store.open(daemon.store.name) as store:
            (record, *_) = runs("east", 1)
            store.runs.add_all([record])
        until(lambda: not daemon.store.runs.to_learn())
        daemon.models.learn(record)
        daemon.models.sweep()
        daemon.models.stop()
        assert daemon.models.predictor("cg", "east").window.seen == seen + 1  # type: ignore[union-attr]
