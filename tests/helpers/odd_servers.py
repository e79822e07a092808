"""HTTP servers for sources: one that answers as Prometheus does, and some that are broken, slow or hostile."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

#: Answers a request by its path with its query.
Answer = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def serving(answer: Answer) -> Iterator[str]:
    """A server that answers every GET so; its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            try:
                answer(self)
            except (BrokenPipeError, ConnectionResetError):  # the other end had enough
                self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def body(text: str | bytes, status: int = 200, **headers: str) -> Answer:
    """Answers with a fixed body."""
    raw = text.encode() if isinstance(text, str) else text

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(raw)))
        handler.end_headers()
        handler.wfile.write(raw)

    return answer


def drip(handler: BaseHTTPRequestHandler) -> None:
    """Answers for ever, a byte at a time, so that no single wait is long."""
    handler.wfile.write(b"HTTP/1.0 200 OK\r\nX-Padding: ")
    while True:
        handler.wfile.write(b"x")
        handler.wfile.flush()
        time.sleep(0.02)


def flood(handler: BaseHTTPRequestHandler) -> None:
    """Answers with a body that never ends, as fast as it is read."""
    handler.send_response(200)
    handler.end_headers()
    while True:
        handler.wfile.write(b" " * (1 << 20))


def prometheus(nodes: Mapping[str, Mapping[str, float]]) -> Answer:
    """Answers node_exporter's questions: of each node idle, processors, runnable, time and perhaps spare (bytes/s)."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        query = parse_qs(urlsplit(handler.path).query)["query"][0]
        kinds = {"node_procs": "runnable", "timestamp": "time", "count by": "processors", "node_network": "spare"}
        kind = next((kind for word, kind in kinds.items() if word in query), "idle")
        document: dict[str, Any] = {
            "status": "success",
            "data": {
                "resultType": "vector",
                "result": [
                    {"metric": {"instance": f"{node}:9100"}, "value": [time.time(), str(values[kind])]}
                    for node, values in nodes.items()
                    if kind in values
                ],
            },
        }
        body(json.dumps(document))(handler)

    return answer
