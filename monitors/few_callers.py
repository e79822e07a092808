"""A server whose strangers cannot fill the host: it answers a few callers at a time, and hangs up on all others."""

from __future__ import annotations

import socketserver
import threading
from collections import Counter
from typing import Any

#: Callers at a time, and those of one address.
MOST, MOST_OF_ONE = 8, 4


class FewCallers(socketserver.ThreadingMixIn):
    """Mixed into a server of :mod:`socketserver`: a thread for each caller, a few at most, and fewer of one address."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, *arguments: Any) -> None:
        self._callers: Counter[str] = Counter()
        self._counting = threading.Lock()
        super().__init__(*arguments)

    def start(self) -> None:
        """Serve in a thread of its own until ``shutdown``."""
        serve: Any = self
        threading.Thread(target=serve.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True).start()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer a caller in a thread, or hang up."""
        with self._counting:
            room = self._callers.total() < MOST and self._callers[client_address[0]] < MOST_OF_ONE
            self._callers[client_address[0]] += room
        if not room:
            self.shutdown_request(request)  # type: ignore[attr-defined]
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._left(client_address)
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer a caller, in its thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._left(client_address)

    def _left(self, client_address: Any) -> None:
        with self._counting:
            self._callers[client_address[0]] -= 1
            self._callers += Counter()  # forgets addresses without callers
