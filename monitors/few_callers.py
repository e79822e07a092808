"""A server whose strangers cannot fill the host: it answers a few callers at a time, and hangs up on all others."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections import Counter
from contextlib import suppress
from typing import Any

from monitors.bounded_room import BoundedRoom

#: Callers at a time, and those of one address.
MOST, MOST_OF_ONE = 8, 4


class FewCallers(socketserver.ThreadingMixIn):
    """Mixed into a server of :mod:`socketserver`: a thread for each caller, a few at most, and fewer of one address.

    Where all places are taken, strangers give way to a caller whose address has fewer places: of the address with most
    of them the one that has been there longest. So the places of strangers are shared evenly, whoever comes how often,
    and it takes as many addresses as there are places to hold them all. Whoever answers a caller says :meth:`know` as
    soon as it has shown that it may ask.
    """

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, *arguments: Any) -> None:
        self._room = BoundedRoom(MOST, MOST_OF_ONE)
        #: The address of each caller that has a place, the first first, and of those not known yet.
        self._callers, self._strangers = dict[Any, str](), dict[Any, str]()
        self._placing = threading.Lock()
        super().__init__(*arguments)

    def start(self) -> None:
        """Serve in a thread of its own until ``shutdown``."""
        serve: Any = self
        threading.Thread(target=serve.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True).start()

    def know(self, request: Any) -> None:
        """Let a caller stay: it is no stranger."""
        with self._placing:
            self._strangers.pop(request, None)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer a caller in a thread, or hang up."""
        if not self._place(request, client_address[0]):
            self.shutdown_request(request)  # type: ignore[attr-defined]
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._leave(request)
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer a caller, in its thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._leave(request)

    def _place(self, request: Any, peer: str) -> bool:
        """Give a caller a place, for which a stranger may have to go; return whether it has one."""
        if not self._room.take(peer):
            if not self._made_room(peer):
                return False
            self._room.take(peer)
        with self._placing:
            self._callers[request] = self._strangers[request] = peer
        return True

    def _made_room(self, peer: str) -> bool:
        with self._placing:
            own = Counter(self._callers.values())[peer]
            most, count = max(Counter(self._strangers.values()).items(), key=lambda each: each[1], default=("", 0))
            if count <= own + 1:
                return False
            longest = next(each for each, whose in self._strangers.items() if whose == most)
        self._leave(longest)
        with suppress(OSError):  # its thread, which waits for it, ends
            longest.shutdown(socket.SHUT_RDWR)
        return True

    def _leave(self, request: Any) -> None:
        with self._placing:
            peer = self._callers.pop(request, None)
            self._strangers.pop(request, None)
        if peer is not None:
            self._room.leave(peer)
