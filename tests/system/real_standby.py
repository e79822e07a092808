"""Two PostgreSQL servers: a primary, and a standby that streams from it and can be promoted."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, create_engine, text

from tests.system.real_postgresql import BINARIES

OWNER = "postgres" if os.getuid() == 0 else pwd.getpwuid(os.getuid()).pw_name  # The server refuses to be root.


class Servers:
    """A primary and its standby, each in a folder with its data and its socket.

    Parameters
    ----------
    folder : of both.
    """

    def __init__(self, folder: Path) -> None:
        self.primary, self.standby = folder / "a", folder / "b"

    def url(self, *servers: Path, options: str = "") -> str:
        """The database on one or several servers."""
        return f"postgresql+psycopg://metasched@/metasched?host={','.join(map(str, servers))}{options}"

    def kill_primary(self) -> None:
        """Kill all processes of the primary at once, as a power cut would."""
        first = int((self.primary / "data/postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        for each in (first, *map(int, children)):
            os.kill(each, signal.SIGKILL)

    def part(self) -> None:
        """Let the primary go on without the standby, which receives nothing any more."""
        self.set(self.primary, synchronous_standby_names="")
        self.set(self.standby, primary_conninfo="")
        with self.asked(self.primary) as connection:
            while connection.scalar(text("SELECT count(*) FROM pg_stat_replication")):
                time.sleep(0.05)

    def set(self, server: Path, **settings: str) -> None:
        """Change settings of one of them."""
        with self.asked(server) as connection:
            for name, value in settings.items():
                connection.execute(text(f"ALTER SYSTEM SET {name} = '{value}'"))
            connection.execute(text("SELECT pg_reload_conf()"))

    @contextmanager
    def asked(self, server: Path) -> Iterator[Connection]:
        """A session with one of them, in no transaction."""
        engine = create_engine(self.url(server).replace("/metasched?", "/postgres?"), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            yield connection
        engine.dispose()

    def promote(self) -> None:
        """Make the standby a primary."""
        self.call("pg_ctl", "promote", "--wait", "--pgdata", str(self.standby / "data"))

    def start(self, server: Path) -> None:
        """Start one of them."""
        options = f"-c listen_addresses='' -c unix_socket_directories={server} -c fsync=off"
        self.call(
            "pg_ctl", "start", "--wait", "--pgdata", f"{server}/data", "--log", f"{server}/log", "--options", options
        )

    def stop(self, server: Path) -> None:
        """Stop one of them, running or not."""
        assert BINARIES is not None
        command = [BINARIES / "pg_ctl", "stop", "--mode", "immediate", "--pgdata", f"{server}/data"]
        subprocess.run(command, check=False, user=OWNER, cwd=server, capture_output=True)

    def call(self, program: str, *arguments: str) -> None:
        """Run one of PostgreSQL's programs as the servers' user."""
        assert BINARIES is not None
        command = [BINARIES / program, *arguments]
        log = None if program == "pg_ctl" else subprocess.DEVNULL
        subprocess.run(command, check=True, user=OWNER, cwd=self.primary.parent, stdout=log)


@contextmanager
def both() -> Iterator[Servers]:
    """Both servers, with an empty database that the standby has as well.

    Commits wait for the standby, so that it has whatever was acknowledged.
    """
    with tempfile.TemporaryDirectory() as name:
        servers = Servers(Path(name))
        Path(name).chmod(0o755)
        for each in (servers.primary, servers.standby):
            each.mkdir()
            shutil.chown(each, OWNER)
        data = str(servers.primary / "data")
        servers.call("initdb", "--pgdata", data, "--username", "metasched", "--auth", "trust", "--no-sync")
        try:
            servers.start(servers.primary)
            with servers.asked(servers.primary) as connection:
                connection.execute(text("CREATE DATABASE metasched"))
            servers.call(
                "pg_basebackup", "--pgdata", str(servers.standby / "data"), "--host", str(servers.primary),
                "--username", "metasched", "--write-recovery-conf", "--no-sync", "--checkpoint", "fast",
            )  # fmt: skip
            servers.start(servers.standby)
            servers.set(servers.primary, synchronous_standby_names="*", synchronous_commit="remote_apply")
            yield servers
        finally:
            for each in (servers.primary, servers.standby):
                servers.stop(each)
