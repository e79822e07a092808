"""A server whose strangers cannot fill the host: it answers a few callers at a time, and hangs up on all others."""

from __future__ import annotations

import socketserver
import threading
from typing import Any

from monitors.bounded_room import BoundedRoom

#: Callers at a time, and those of one address.
MOST, MOST_OF_ONE = 8, 4


class FewCallers(socketserver.ThreadingMixIn):
    """Mixed into a server of :mod:`socketserver`: a thread for each caller, a few at most, and fewer of one address."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, *arguments: Any) -> None:
        self._room = BoundedRoom(MOST, MOST_OF_ONE)
        super().__init__(*arguments)

    def start(self) -> None:
        """Serve in a thread of its own until ``shutdown``."""
        serve: Any = self
        threading.Thread(target=serve.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True).start()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer a caller in a thread, or hang up."""
        if not self._room.take(client_address[0]):
            self.shutdown_request(request)  # type: ignore[attr-defined]
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._room.leave(client_address[0])
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer a caller, in its thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.leave(client_address[0])
