"""The latest sample by HTTP: a small server that answers ``GET /sample`` to bearers of the token."""

from __future__ import annotations

import hmac
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, HTTPServer

from monitors.few_callers import FewCallers
from monitors.http_exchange import MOST, Bounded
from monitors.sources.contract import Sample

#: How long a question may take to come, and its answer to go (s).
PATIENCE = 5.0


class SampleServer(FewCallers, HTTPServer):
    """Serves one sample.

    Parameters
    ----------
    address : host and port to listen on; port 0 lets the system choose.
    token : what askers have to show.
    latest : the latest sample, None before the first.
    """

    def __init__(self, address: tuple[str, int], token: str, latest: Callable[[], Sample | None]) -> None:
        if not token:
            raise ValueError("token is empty, expected one before the agent listens")
        self.latest = latest
        self._expected = f"Bearer {token}".encode()
        super().__init__(address, _Asker)

    def allowed(self, header: str) -> bool:
        """Whether the asker showed the token; takes the same time however much of it is right."""
        return hmac.compare_digest(header.encode(), self._expected)


class _Asker(BaseHTTPRequestHandler):
    server: SampleServer
    timeout = PATIENCE

    def setup(self) -> None:
        super().setup()
        # One time for the whole head: by itself each byte would start it again.
        self.rfile = Bounded(self.connection, time.monotonic() + PATIENCE, MOST).makefile("rb")

    def do_GET(self) -> None:
        sample = self.server.latest()
        if not self.server.allowed(self.headers.get("Authorization", "")):
            self._answer(401, {"error": "a token is required"})
            return
        self.server.know(self.connection)
        if self.path != "/sample":
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
