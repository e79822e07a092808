"""A PostgreSQL server that falls silent: it is stopped, or the network between loses every packet."""

from __future__ import annotations

import os
import select
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


class LossyNetwork:
    """A port that leads to the Unix socket of a server, and may lose whatever comes either way.

    Attributes
    ----------
    port : of this host.
    """

    def __init__(self, target: str) -> None:
        self._target, self._carries = target, threading.Event()
        self._carries.set()
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port = self._door.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def lose(self) -> None:
        """From now on nothing arrives."""
        self._carries.clear()

    def carry(self) -> None:
        """From now on everything arrives, what was held back first."""
        self._carries.set()

    def _accept(self) -> None:
        while True:
            client, _ = self._door.accept()
            threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        self._carries.wait()
        with client, socket.socket(socket.AF_UNIX) as server, suppress(OSError):
            server.connect(self._target)
            other = {client: server, server: client}
            while True:
                for ready in select.select([client, server], [], [])[0]:
                    self._carries.wait()
                    if not (data := ready.recv(65536)):
                        return
                    other[ready].sendall(data)


@contextmanager
def stopped(folder: str, *, sessions: bool = False) -> Iterator[None]:
    """All processes of the server in a folder, stopped as by a hypervisor that froze its host.

    Or only its present sessions, as by a disk that hangs; it begins others.
    """
    first = int(Path(folder, "data/postmaster.pid").read_text().split()[0])
    every = [] if sessions else [first]  # It starts no more of them.
    try:
        for each in every:
            os.kill(each, signal.SIGSTOP)
        for each in map(int, Path(f"/proc/{first}/task/{first}/children").read_text().split()):
            if not sessions or b"metasched" in Path(f"/proc/{each}/cmdline").read_bytes():
                every.append(each)
                os.kill(each, signal.SIGSTOP)
        yield
    finally:
        for each in every:
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGCONT)


@contextmanager
def losing(network: LossyNetwork) -> Iterator[None]:
    """A network that loses every packet, for a while."""
    network.lose()
    try:
        yield
    finally:
        network.carry()
