"""The store on a real PostgreSQL server, started for the test on a socket of its own."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest
from sqlalchemy import create_engine, text

from metasched.records import InputError, Load, Run
from metasched.store.database import RecordedRun, Store
from metasched.store.keeping import backup, restore
from metasched.store.schema import VERSION_TABLE

pytest.importorskip("psycopg")
BINARIES = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), None)
pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(BINARIES is None, reason="PostgreSQL is not installed (Debian: postgresql)"),
]

RUN = Run("cg", "c8", 1400, 4, 0.8, 93.5, 12.25, 100.5, ("n0", "n1"), "train", MappingProxyType({"job": "77"}))
WRITER = """
import sys
from metasched.records import Run
from metasched.store.database import Store
print("ready", flush=True)
sys.stdin.readline()
with Store.open(sys.argv[1]) as store:
    for number in range(20):
        store.add_run(Run("cg", "c8", 1 + number, 1, 0.5, 90.0, 1.0))
        store.save_model("cg", "c8", {"number": number})
"""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """A server in a folder of its own; gives its socket's folder."""
    assert BINARIES is not None
    # The server refuses to be root.
    user = "postgres" if os.getuid() == 0 else pwd.getpwuid(os.getuid()).pw_name
    with tempfile.TemporaryDirectory() as name:
        shutil.chown(name, user)
        Path(name).chmod(0o755)
        data = f"{name}/data"

        def call(program: str, *arguments: str) -> None:
            log = None if program == "pg_ctl" else subprocess.DEVNULL
            subprocess.run([BINARIES / program, *arguments], check=True, user=user, cwd=name, stdout=log)

        call("initdb", "--pgdata", data, "--username", "metasched", "--auth", "trust", "--no-sync")
        options = f"-c listen_addresses='' -c unix_socket_directories={name} -c fsync=off"
        call("pg_ctl", "start", "--wait", "--pgdata", data, "--log", f"{name}/log", "--options", options)
        yield name
        call("pg_ctl", "stop", "--mode", "immediate", "--pgdata", data)


@pytest.fixture
def url(server: str, request: pytest.FixtureRequest) -> str:
    """A fresh database."""
    name = f"t{abs(hash(request.node.name))}"
    engine = create_engine(f"postgresql+psycopg://metasched@/postgres?host={server}", isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return f"postgresql+psycopg://metasched@/{name}?host={server}"


def test_runs_loads_and_models_come_out_as_they_went_in(url: str) -> None:
    with Store.open(url) as store:
        record = RecordedRun(RUN, exit_status=0)
        assert store.add_runs([record, RecordedRun(RUN, 137, learnable=False)]) == 2
        assert store.add_runs([record]) == 0
        (back,) = store.runs(application="cg")
        assert back == RUN
        assert back.extra == RUN.extra
        assert store.add_loads(Load(10.0 * k, "n0", 0.5, 90.0) for k in range(3)) == 3
        assert store.add_loads([Load(0.0, "n0", 0.9, 80.0), Load(0.0, "n1", 0.9, 80.0)]) == 1
        np.testing.assert_array_equal(store.loads(node="n0").time, [0, 10, 20])
        assert store.save_model("cg", "c8", {"format": 1}) == 1
        assert store.load_model("cg", "c8") == {"format": 1}


def test_many_processes_open_a_fresh_database_at_once_and_lose_nothing(url: str) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate()
    assert [writer.returncode for writer in writers] == [0] * 4
    with Store.open(url) as store:
        assert len(store.runs()) == 80
        assert store.save_model("cg", "c8", {}) == 81


def test_a_newer_schema_and_a_foreign_database_are_refused(url: str) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE photographs (id int)"))
    with pytest.raises(InputError, match="is a database of another program"):
        Store.open(url)
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE photographs"))
    Store.open(url).close()
    with engine.begin() as connection:
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))
    with pytest.raises(InputError, match="has schema 9999, newer than"):
        Store.open(url)
    engine.dispose()


def test_a_backup_goes_from_one_kind_of_database_to_the_other_and_back(url: str, tmp_path: Path) -> None:
    with Store.open(tmp_path / "one.db") as store:
        store.add_run(RUN)
        store.add_loads([Load(float(second), "n0", 0.5, 90.0) for second in range(7000)])
        store.save_model("cg", "c8", {"of": [1, None]})
        counts = backup(store, tmp_path / "first.backup")
    with Store.open(url) as store:
        assert restore(store, tmp_path / "first.backup") == counts
        store.add_run(RUN)  # its number is a new one
        assert restore(store, tmp_path / "first.backup", replace=True) == counts
        assert (store.runs(), store.load_model("cg", "c8")) == ((RUN,), {"of": [1, None]})
        assert backup(store, tmp_path / "second.backup") == counts
    with Store.open(tmp_path / "two.db") as store:
        assert restore(store, tmp_path / "second.backup") == counts
        assert (store.runs(), len(store.loads())) == ((RUN,), 7000)
