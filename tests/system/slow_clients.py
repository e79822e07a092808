"""Clients that send their requests byte by byte and never end, and how the daemon bears with them."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from metasched.service.api import slow_clients as limits
from tests.system.real_daemon import Daemon

CLIENTS = 150
HEADS = (
    b"GET /v1/health HTTP/1.1\r\nX-Slow: ",
    b"POST /v1/loads HTTP/1.1\r\nHost: d\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n[",
    b"",
)
#: Sockets that the daemon may have by itself.
ITS_OWN = 20


def connected(path: str) -> socket.socket:
    """A connection to a daemon's Unix socket."""
    made = socket.socket(socket.AF_UNIX)
    made.settimeout(3 * limits.WITHIN)
    made.connect(path)
    return made


def sockets(daemon: Daemon) -> int:
    """How many sockets the daemon holds."""
    found = 0
    for each in Path(f"/proc/{daemon.pid}/fd").iterdir():
        try:
            found += os.readlink(each).startswith("socket:")
        except OSError:
            continue
    return found


class SlowClients:
    """The clients; ``held`` is how many sockets the daemon held at most, ``answers`` what another client received."""

    def __init__(self, daemon: Daemon) -> None:
        self.held, self.left, self.answers = 0, 0, set[str]()
        self._daemon, self._stop = daemon, threading.Event()
        self._clients = [connected(daemon.socket) for _ in range(CLIENTS)]
        for number, made in enumerate(self._clients):
            made.sendall(HEADS[number % len(HEADS)])
        self._thread = threading.Thread(target=self._drip, daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Wait until the daemon has given them up, or should have long since."""
        self._thread.join()

    def close(self) -> None:
        """Give up."""
        self._stop.set()
        self._thread.join()
        for made in self._clients:
            made.close()

    def _drip(self) -> None:
        end = time.monotonic() + limits.WITHIN + 30.0
        while not self._stop.wait(0.5):
            self.left = sockets(self._daemon)
            self.held = max(self.held, self.left)
            if self.left <= ITS_OWN or time.monotonic() > end:
                return
            for made in self._clients:
                try:
                    made.send(b"a")
                except OSError:
                    continue
            try:
                self.answers.add(self._daemon.ask("GET", "/v1/health")["status"])
            except RuntimeError as error:
                self.answers.add(str(error))


@contextmanager
def dripping(folder: Path) -> Iterator[SlowClients]:
    """A daemon and its slow clients for the duration of a block."""
    daemon = Daemon(folder, "")
    daemon.start()
    try:
        clients = SlowClients(daemon)
        yield clients
        clients.close()
    finally:
        daemon.stop()
