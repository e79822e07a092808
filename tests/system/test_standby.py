"""Two daemons on a PostgreSQL whose primary is killed and whose standby is promoted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text
from waiting import until

from metasched.store.database.backup import backup, restore
from metasched.store.database.leadership import Leadership
from metasched.store.database.store import Store
from metasched.store.errors import StoreError
from tests.service.daemons import CLUSTERS, learned_database
from tests.system.real_daemon import Daemon
from tests.system.real_postgresql import why_not
from tests.system.real_standby import Servers, both
from tests.system.test_two_daemons import DISTURBANCES, Clients, check_kept_and_learned_once, seen

pytestmark = [
    pytest.mark.system,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]
wait_for = partial(until, timeout=120.0, pause=0.05, despite=DISTURBANCES)
WRITABLE = "&target_session_attrs=read-write"
STANDBY = "is read-only: its server is a standby, or was set so"


@pytest.fixture
def servers() -> Iterator[Servers]:
    with both() as made:
        yield made


def daemon(folder: Path, url: str) -> Daemon:
    folder.mkdir()
    (folder / "clusters.toml").write_text(CLUSTERS)
    return Daemon(folder, 'clusters = "clusters.toml"\n[periods]\nmodels = 1.0', database=url)


def run(size: float) -> dict[str, Any]:
    named = {"application": "lu", "cluster": "east", "problem_size": size, "processors": 1, "uid": f"{size:032.0f}"}
    return {"runs": [named | {"min_avg_avail_cpu": 0.5, "min_avg_avail_bw": 90.0, "execution_time": size / 100.0}]}


def fault_of(daemon: Daemon) -> str:
    return str(daemon.ask("GET", "/v1/health")["status"])


def ends(daemon: Daemon) -> bool:
    return "this one exits, and follows when it is started again" in (daemon.folder / "daemon.log").read_text()


def test_a_promoted_standby_has_all_that_was_acknowledged_and_each_run_is_learned_once(
    servers: Servers, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = servers.url(servers.primary, servers.standby, options=WRITABLE)
    (tmp_path / "learned.db").write_bytes(learned_database())
    with Store.open(tmp_path / "learned.db") as store:
        backup(store, tmp_path / "b.db")
    with Store.open(url) as store:
        restore(store, tmp_path / "b.db")
    pair = daemon(tmp_path / "one", url), daemon(tmp_path / "two", url)
    for each in pair:
        request.addfinalizer(each.stop)
        each.start()
    leader, other = pair
    with Clients(pair) as clients:
        wait_for(lambda: len(clients.runs) > 30 and len(clients.samples) > 30)
        servers.kill_primary()
        wait_for(lambda: [fault_of(each) for each in pair] == ["database", "database"])
        servers.promote()
        wait_for(lambda: ends(leader))
        wait_for(lambda: other.ask("GET", "/v1/health")["leads"])
        before = len(clients.runs)
        wait_for(lambda: len(clients.runs) > before + 30)
    assert set(clients.errors) <= {503}
    print(json.dumps({"runs": len(clients.runs), "samples": len(clients.samples), "refused": clients.errors[503]}))
    leader.start()
    assert leader.ask("GET", "/v1/health")["leads"] is False
    wait_for(lambda: [fault_of(each) for each in pair] == ["ok", "ok"])
    with Store.open(url) as store:
        check_kept_and_learned_once(store, clients)


def test_what_a_standby_lacks_is_neither_believed_nor_learned_twice(
    servers: Servers, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = servers.url(servers.primary, servers.standby, options=WRITABLE)
    alone = daemon(tmp_path / "one", url)
    request.addfinalizer(alone.stop)
    alone.start()
    alone.ask("POST", "/v1/runs", run(1.0))
    with Store.open(url) as store:
        wait_for(lambda: not store.runs.to_learn())
        servers.part()
        alone.ask("POST", "/v1/runs", run(2.0))
        wait_for(lambda: len(store.runs.all(application="lu")) == 2)
        wait_for(lambda: not store.runs.to_learn())
    servers.kill_primary()
    servers.promote()
    wait_for(lambda: ends(alone))
    alone.stop()
    alone.start()
    alone.ask("POST", "/v1/runs", run(3.0))
    with Store.open(url) as store:
        wait_for(lambda: not store.runs.to_learn() and seen(store))
        kept = store.runs.all(application="lu")
        assert [record.run.problem_size for record in kept] == [1.0, 3.0]
        assert seen(store) == len(kept)


def test_a_standby_is_said_to_be_one(servers: Servers, tmp_path: Path) -> None:
    Store.open(servers.url(servers.primary)).close()
    url = servers.url(servers.standby)
    wait_for(lambda: Store.open(url).close() is None)
    with Store.open(url) as store:
        with pytest.raises(StoreError, match=STANDBY):
            store.tokens.add("n", "reader")
        with pytest.raises(StoreError, match=STANDBY):
            Leadership(store.engine).take()
    follower = daemon(tmp_path / "one", url)
    with pytest.raises(AssertionError):
        follower.start()
    (line,) = (follower.folder / "daemon.log").read_text().strip().splitlines()
    assert line.endswith(STANDBY)


def test_a_server_that_was_set_read_only_is_not_the_clients_fault(
    servers: Servers, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    leader = daemon(tmp_path / "one", servers.url(servers.primary))
    request.addfinalizer(leader.stop)
    leader.start()
    engine = create_engine(servers.url(servers.primary), isolation_level="AUTOCOMMIT")
    request.addfinalizer(engine.dispose)

    def set_read_only(how: str) -> None:
        with engine.connect() as connection:
            connection.execute(text("SET transaction_read_only = off"))
            connection.execute(text(f"ALTER DATABASE metasched SET default_transaction_read_only = {how}"))
            ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'metasched'"
            connection.execute(text(f"{ended} AND pid <> pg_backend_pid()"))

    set_read_only("on")
    wait_for(lambda: fault_of(leader) == "database")
    for number in range(1, 4):
        with pytest.raises(RuntimeError, match=r"failed: .*(read-only|does not lead)"):
            leader.ask("POST", "/v1/runs", run(float(number)))
    assert STANDBY in (leader.folder / "daemon.log").read_text()
    set_read_only("off")
    wait_for(lambda: leader.ask("POST", "/v1/runs", run(1.0)))
    wait_for(lambda: fault_of(leader) == "ok")
