"""The real agent and the real daemon: what the agent says it kept arrives, whoever of the two dies in between."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
import waiting

from metasched.store.database.store import Store
from tests.free_ports import free_port
from tests.system.real_daemon import ROOT, TIMEOUT, Daemon

pytestmark = [pytest.mark.system, pytest.mark.timeout(280)]
#: Daemons and agents take seconds to start.
until = partial(waiting.until, timeout=TIMEOUT, pause=0.1)


class Agent:
    """``metasched agent`` with a settings file, a token file and a spool of its own, five samples a second."""

    def __init__(self, folder: Path, node: str, port: int, token: str) -> None:
        folder.mkdir()
        self.node, self._folder, self._spool = node, folder, folder / "spool.db"
        (folder / "token").write_text(f"{token}\n")
        (folder / "agent.toml").write_text(
            f'node = "{node}"\ndaemon = "http://127.0.0.1:{port}"\ninterval = 0.2\nspool = "{self._spool}"\n'
        )
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with (self._folder / "agent.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "metasched", "agent", str(self._folder / "agent.toml")],
                cwd=ROOT, stdout=log, stderr=log,
                env=os.environ | {"METASCHED_AGENT_TOKEN_FILE": str(self._folder / "token")},
            )  # fmt: skip

    def end(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)
        self._process.wait(TIMEOUT)

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.end(signal.SIGKILL)

    def kept(self) -> int:
        """How many samples it has ever said it kept."""
        return self._count("SELECT coalesce(max(seq), 0) FROM sqlite_sequence")

    def waiting(self) -> int:
        """How many of them wait on disk."""
        return self._count("SELECT count(*) FROM samples")

    def log(self) -> str:
        return (self._folder / "agent.log").read_text()

    def _count(self, query: str) -> int:
        if not self._spool.exists():
            return 0
        with closing(sqlite3.connect(self._spool, timeout=10.0)) as spool:
            try:
                return int(spool.execute(query).fetchone()[0])
            except sqlite3.OperationalError:  # not made yet
                return 0


def test_nothing_that_was_kept_is_lost_whoever_dies(tmp_path: Path) -> None:
    port = free_port()
    daemon = Daemon(tmp_path, "", port=port)
    with Store.open(daemon.database) as store:
        agent = Agent(tmp_path / "n1", "n1", port, store.tokens.add("n1's agent", "agent", node="n1"))
        try:
            daemon.start()
            agent.start()
            until(lambda: len(store.loads.all(node="n1")) >= 5)
            assert store.loads.all().available_cpu.max() <= 1.0

            daemon.kill()
            until(lambda: agent.waiting() >= 10)
            before = agent.kept()
            agent.end(signal.SIGKILL)
            assert agent.kept() >= before
            agent.start()
            until(lambda: agent.kept() >= before + 10)

            daemon.start()
            until(lambda: len(store.loads.all(node="n1")) >= before + 10)
            agent.end(signal.SIGTERM)
            assert agent.waiting() == 0
            assert len(store.loads.all(node="n1")) == agent.kept()
        finally:
            agent.stop()
            daemon.kill()


def test_an_agent_without_the_right_token_stores_nothing_and_keeps_all(tmp_path: Path) -> None:
    port = free_port()
    daemon = Daemon(tmp_path, "", port=port)
    with Store.open(daemon.database) as store:
        token = store.tokens.add("n1's agent", "agent", node="n1")
        agents = [Agent(tmp_path / "a", "n1", port, "metasched_wrong"), Agent(tmp_path / "b", "n2", port, token)]
        try:
            daemon.start()
            for agent, status in zip(agents, ("401", "403"), strict=True):
                agent.start()
                until(lambda agent=agent, status=status: f"HTTP {status}" in agent.log())  # type: ignore[misc]
            until(lambda: all(agent.kept() >= 10 for agent in agents))
            for agent in agents:
                agent.end(signal.SIGTERM)
                assert agent.waiting() == agent.kept()
            assert not len(store.loads.all())
        finally:
            for agent in agents:
                agent.stop()
            daemon.kill()
