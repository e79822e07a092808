"""The latest sample by HTTP: a small server that answers ``GET /sample`` to bearers of the token."""

from __future__ import annotations

import hmac
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from monitors.sources.contract import Sample


class SampleServer(ThreadingHTTPServer):
    """Serves one sample.

    Parameters
    ----------
    address : host and port to listen on; port 0 lets the system choose.
    token : what askers have to show.
    latest : the latest sample, None before the first.
    """

    daemon_threads = True

    def __init__(self, address: tuple[str, int], token: str, latest: Callable[[], Sample | None]) -> None:
        if not token:
            raise ValueError("token is empty, expected one before the agent listens")
        self.latest = latest
        self._expected = f"Bearer {token}".encode()
        super().__init__(address, _Asker)

    def allowed(self, header: str) -> bool:
        """Whether the asker showed the token; takes the same time however much of it is right."""
        return hmac.compare_digest(header.encode(), self._expected)

    def start(self) -> None:
        """Serve in a thread of its own until ``shutdown``."""
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Asker(BaseHTTPRequestHandler):
    server: SampleServer
    timeout = 5.0

    def do_GET(self) -> None:
        sample = self.server.latest()
        if not self.server.allowed(self.headers.get("Authorization", "")):
            self._answer(401, {"error": "a token is required"})
        elif self.path != "/sample":
            self._answer(404, {"error": "not found, expected /sample"})
        elif sample is None:
            self._answer(503, {"error": "no sample yet"})
        else:
            self._answer(200, asdict(sample))

    def log_message(self, format: str, *args: object) -> None:
        """Askers come every few seconds: they are not logged."""

    def _answer(self, status: int, content: Mapping[str, object]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
