"""PostgreSQL as Debian ships it, started for a module of tests on a socket of its own."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

BINARIES = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), None)


def why_not() -> str:
    """Why it cannot be run here, empty where it can."""
    if BINARIES is None:
        return "PostgreSQL is not installed (`make system-test` installs it as root on Debian)"
    return "" if find_spec("psycopg") else "psycopg is in the extra postgresql"


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
