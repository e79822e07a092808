"""The daemon on a PostgreSQL that says nothing any more and closes no connection: it answers, tells, and recovers."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pytest
from waiting import until

from metasched.store.database.store import Store
from metasched.store.errors import StoreError
from tests.service.daemons import CLUSTERS
from tests.system.real_daemon import Daemon
from tests.system.real_postgresql import server, url, why_not
from tests.system.silent_server import LossyNetwork, losing, stopped

__all__ = ["server", "url"]
pytestmark = [
    pytest.mark.system,
    pytest.mark.timeout(280),
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]
wait_for = partial(until, pause=0.1, despite=RuntimeError)
ASKED = {"application": "cg", "problem_size": 900, "processors": [1]}

Silence = Callable[[], AbstractContextManager[None]]


@pytest.fixture(params=["stopped", "unreachable"])
def silent(request: pytest.FixtureRequest, server: str, url: str, tmp_path: Path) -> Iterator[tuple[Daemon, Silence]]:
    if request.param == "stopped":
        address, silence = url, lambda: stopped(server)
    else:
        network = LossyNetwork(f"{server}/.s.PGSQL.5432")
        address, silence = url.replace("@/", f"@127.0.0.1:{network.port}/").partition("?")[0], lambda: losing(network)
    (tmp_path / "clusters.toml").write_text(CLUSTERS)
    daemon = Daemon(tmp_path, f'clusters = "{tmp_path}/clusters.toml"', database=address)
    daemon.start()
    yield daemon, silence
    daemon.stop()


def ended(number: int) -> dict[str, object]:
    now = time.time()
    named = {"scheduler": "s", "job": str(number), "comment": f"metasched:app=lu,n={number}"}
    return named | {"nodes": "e1", "processors": 1, "start": now - 20.0, "end": now - 10.0}


def test_the_daemon_answers_and_tells_while_the_server_is_silent_and_goes_on_after_it(
    silent: tuple[Daemon, Silence], url: str
) -> None:
    daemon, silence = silent
    daemon.ask("POST", "/v1/jobs", ended(1))
    with silence():
        for number in (2, 3):
            daemon.ask("POST", "/v1/placements", ASKED)
            with pytest.raises(RuntimeError, match=r"failed: .*(does not answer|does not lead)"):
                daemon.ask("POST", "/v1/jobs", ended(number))
        with pytest.raises(RuntimeError, match=r"failed: .*does not answer"):
            daemon.ask("GET", "/v1/runs")
        wait_for(lambda: daemon.ask("GET", "/v1/health")["status"] == "database")
        with pytest.raises(StoreError, match="does not answer"):
            Store.open(daemon.database, timeout=2.0)
    wait_for(lambda: all(daemon.ask("POST", "/v1/jobs", ended(number)) for number in (2, 3)))
    wait_for(lambda: daemon.ask("GET", "/v1/health")["status"] == "ok")
    with Store.open(url) as store:
        assert sorted(each.run.problem_size for each in store.runs.all(application="lu")) == [1.0, 2.0, 3.0]
        wait_for(lambda: len(store.placements.recent()) == 2)


def test_the_daemon_ends_when_asked_to_while_the_server_is_silent(silent: tuple[Daemon, Silence]) -> None:
    daemon, silence = silent
    daemon.ask("POST", "/v1/loads", {"node": "e1", "samples": [[time.time(), 0.5, 90.0]]})
    with silence():
        daemon.ask("POST", "/v1/placements", ASKED)
        daemon.stop()
    assert "Traceback" not in (daemon.folder / "daemon.log").read_text()


def test_a_leader_whose_session_hangs_and_has_the_lead_waits_for_it(
    server: str, url: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    daemon = Daemon(tmp_path, "", database=url)
    request.addfinalizer(daemon.stop)
    daemon.start()

    numbers = itertools.count(1)

    def refused() -> bool:
        try:
            daemon.ask("POST", "/v1/jobs", ended(next(numbers)))
        except RuntimeError as refusal:
            return str(refusal).endswith("this daemon does not lead")
        return False  # The lead is its own as far as it knows.

    with stopped(server, sessions=True):
        wait_for(refused)
        for _ in range(30):  # while it looks several times whether the lead is free
            assert refused()
            time.sleep(0.1)
    wait_for(lambda: daemon.ask("POST", "/v1/jobs", ended(next(numbers))))
    assert daemon.ask("GET", "/v1/health")["leads"]
