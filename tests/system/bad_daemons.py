"""Daemons that answer wrongly, enormously, late or never, for the hooks of every scheduler."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

#: What a sound daemon answers to a job of two processors.
GOOD = {
    "id": "0f", "mode": "act", "steer": "nodes", "placed": True, "message": "go", "scheduler": "proof",
    "partition": "new", "nodes": "b[1-2]", "node_count": 2, "processors": 2, "prefer": "", "time_limit": 120,
    "placement": None,
}  # fmt: skip

Answer = Callable[[socket.socket], None]


class Bad:
    """Listens on a port, or on the Unix socket of a path, reads what it is sent, and then does what the test sets.

    Attributes
    ----------
    asked, heads : the bodies and the heads of the requests, the first one first.
    """

    def __init__(self, answer: Answer, path: str = "") -> None:
        self.asked: list[bytes] = []
        self.heads: list[bytes] = []
        self._answer, self._path = answer, path
        if path:
            self._listening = socket.socket(socket.AF_UNIX)
            self._listening.bind(path)
            self._listening.listen(64)
        else:
            self._listening = socket.create_server(("127.0.0.1", 0), backlog=64)
            self.address = f"127.0.0.1:{self._listening.getsockname()[1]}"
        self._serving = threading.Thread(target=self._serve, daemon=True)
        self._serving.start()

    def close(self) -> None:
        # Still about to accept, the thread would take a client of whatever socket is given the same number next.
        self._listening.shutdown(socket.SHUT_RDWR)
        self._serving.join()
        self._listening.close()
        if self._path:
            Path(self._path).unlink()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                threading.Thread(target=self._one, args=(connection,), daemon=True).start()

    def _one(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            head, body = _taken(connection)
            self.heads.append(head)
            self.asked.append(body)
            self._answer(connection)


def _taken(connection: socket.socket) -> tuple[bytes, bytes]:
    """The head and the body of the whole request: a socket closed with something unread would take the answer back from
    the hook."""
    head = b""
    while b"\r\n\r\n" not in head:
        if not (piece := connection.recv(65536)):
            return head, b""
        head += piece
    head, _, body = head.partition(b"\r\n\r\n")
    length = next((int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0)
    while len(body) < length and (piece := connection.recv(65536)):
        body += piece
    return head, body


def http(body: bytes, status: str = "200 OK") -> bytes:
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status.encode(), len(body), body)


def changed(**fields: object) -> Answer:
    return lambda connection: connection.sendall(http(json.dumps(GOOD | fields).encode()))


def byte_by_byte(connection: socket.socket) -> None:
    """An answer whose end does not come, however long the hook would wait; it ends when the hook hangs up."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n{")
    while True:
        connection.send(b" ")
        time.sleep(0.01)


def hang(connection: socket.socket) -> None:
    """No answer; it ends when the hook hangs up, so a hook without a deadline would keep its job for ever."""
    while connection.recv(65536):
        pass


FAULTS: dict[str, Answer] = {
    "hangs": hang,
    "answers garbage": lambda connection: connection.sendall(bytes(range(256)) * 40),
    "answers no JSON": lambda connection: connection.sendall(http(b"<html>%n%s" + b"{" * 5000)),
    "answers without end": lambda connection: [connection.sendall(b"x" * 65536) for _ in range(1000)] and None,
    "answers byte by byte": byte_by_byte,
    "hangs up": lambda connection: None,
    "fails": lambda connection: connection.sendall(http(b'{"detail": "no"}', "503 Service Unavailable")),
    "names unknown nodes": changed(nodes="b[1-2],z9", node_count=3),
    "names nodes of another partition": changed(nodes="a[1-2]"),
    "names an unknown partition": changed(partition="gold"),
    "miscounts nodes": changed(node_count=7),
    "names too many nodes": changed(nodes="b[1-99999999999]", node_count=2),
    "gives other processors than asked for": changed(processors=4),
    "gives words for numbers": changed(processors="many", time_limit={"a": 1}),
}
