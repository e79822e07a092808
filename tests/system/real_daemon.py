"""The real daemon as a process of its own, with a configuration and a database in a folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from waiting import until

from metasched.client.connection import ask
from metasched.store.database.run_records import RecordedRun
from metasched.store.database.store import Store

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT = 180.0


class Daemon:
    """``metasched serve`` in a folder; it listens on a Unix socket and on a port, any free one by default."""

    def __init__(
        self, folder: Path, configuration: str, *, database: str | None = None, port: int = 0, listen: str = ""
    ) -> None:
        self.folder = folder
        self.port, self.socket = port, str(folder / "d.sock")
        self.database = database or str(folder / "metasched.db")
        (folder / "metasched.toml").write_text(
            f'database = "{self.database}"\n{configuration}\n[listen]\nport = {port}\n'
            f'socket = "{self.socket}"\n{listen}'
        )
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it answers."""
        with (self.folder / "daemon.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "metasched", "serve", "--config", str(self.folder / "metasched.toml")],
                cwd=ROOT, stdout=log, stderr=log, env=dict(os.environ, OPENBLAS_NUM_THREADS="1"),
            )  # fmt: skip
        end = time.monotonic() + TIMEOUT
        while True:
            assert self._process.poll() is None, (self.folder / "daemon.log").read_text()
            try:
                self.ask("GET", "/v1/health")
            except RuntimeError:
                assert time.monotonic() < end, (self.folder / "daemon.log").read_text()
                time.sleep(0.05)
            else:
                return

    def kill(self) -> None:
        """End it without a chance to tidy up."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Ask it to end."""
        self._end(signal.SIGTERM)

    def ask(self, method: str, path: str, document: Any = None, *, token: str | None = None) -> Any:
        """Ask it something by its Unix socket."""
        return ask(self.socket, method, path, document, token=token)

    def runs(self, *jobs: int) -> list[RecordedRun]:
        """The stored runs of these of a scheduler's jobs, by default all, in the order of storing."""
        numbers = {str(job) for job in jobs}
        with Store.open(self.database) as store:
            return [each for each in store.runs.all() if not jobs or each.run.extra.get("job") in numbers]

    def learned(self, *jobs: int) -> dict[int, RecordedRun]:
        """The runs of these jobs by their numbers, once each has one that may be learned from; none has two."""

        def found() -> dict[int, RecordedRun] | None:
            own = [each for each in self.runs(*jobs) if each.learnable]
            by_job = {int(each.run.extra["job"]): each for each in own}
            assert len(own) == len(by_job), own
            return by_job if len(by_job) == len(jobs) else None

        learned: dict[int, RecordedRun] = until(found, why=f"not all learned from: {jobs}", pause=0.3)
        return learned

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process is not None
        return self._process.pid

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)
            self._process.wait(TIMEOUT)
