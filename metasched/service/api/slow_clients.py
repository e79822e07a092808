"""Connections with deadlines for slow clients, and the peer of a Unix socket by the system.

Otherwise clients that send byte by byte, or never read their answers, could occupy all connections.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
import os
import socket
import struct
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from monitors.recurring_faults import RecurringFaults

_log = logging.getLogger(__name__)

#: Headers by which a client asks for another protocol; it goes on with this one where it is not answered.
UPGRADING = frozenset({b"upgrade", b"connection", b"http2-settings"})
#: How long a request may take to come in, with its body, how long a connection may stay without any, and how long a
#: client may leave what is sent to it unread (s).
WITHIN = 20.0
#: Set in the scope of a request that came by a Unix socket: the :class:`Peer`.
PEER_SCOPE = "metasched.peer"
#: Largest head of a request (bytes), and most that may come between two pieces of its body, or after the last one.
MOST_HEAD = 65_536
#: Most requests that wait on one connection for the answer to an earlier one.
MOST_WAITING = 100
#: Connections of one address or socket beyond which those that have waited for their clients for longest are ended,
#: and how long they must have waited (s): many agents at once are read in turn.
MOST_CONNECTIONS, LEAST_WAIT = 500, 2.0
#: Linux's option that returns the groups of the peer (asm-generic/socket.h), and the longest answer that Python
#: takes, of 256 groups.
SO_PEERGROUPS, MOST_BYTES = 59, 1024


@dataclass(frozen=True, slots=True)
class Peer:
    """The peer of a Unix socket, by the system: numbers of the user and of its groups."""

    user: int
    groups: frozenset[int]


def peer_of(connection: socket.socket) -> Peer:
    """The peer of a connection.

    Raises
    ------
    OSError : when the system does not say.
    """
    _, user, group = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    more = b""
    with suppress(OSError):  # an older system, or a user of more groups than that: the first one counts
        more = connection.getsockopt(socket.SOL_SOCKET, SO_PEERGROUPS, MOST_BYTES)
    return Peer(user, frozenset((group, *struct.unpack(f"{len(more) // 4}I", more))))


class DeadlineProtocol(HttpToolsProtocol):
    """Uvicorn's protocol, with deadlines for whole requests and for reading answers, and limits of what is held."""

    #: Since when the daemon has been waiting for this client, by the loop's clock (s); None while it answers.
    _waiting_since: float | None = None
    _deadline: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None
    _unanswered: Sequence[RequestResponseCycle] = ()
    _head = 0
    _peer: Peer | None = None
    #: The head of a request that asks for another protocol, whose body the parser would leave out.
    _asking: bytes | None = None
    #: Of all connections.
    _malformed = RecurringFaults()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the deadline of the first request, and note who is at the other end of a Unix socket."""
        super().connection_made(transport)
        own = transport.get_extra_info("socket")
        if own is not None and own.family == socket.AF_UNIX:
            with suppress(OSError), socket.socket(fileno=os.dup(own.fileno())) as connection:
                self._peer = peer_of(connection)
        self._wait()
        if len(self.connections) > MOST_CONNECTIONS:
            self._make_room()

    def _make_room(self) -> None:
        """End the connections that have waited for their clients for longest: other clients need milliseconds."""
        others, ended = cast(set[DeadlineProtocol], self.connections - {self}), self.loop.time() - LEAST_WAIT
        since = {each: each._waiting_since for each in others if each._waiting_since is not None}
        for longest in heapq.nsmallest(len(others) + 1 - MOST_CONNECTIONS, since, key=since.__getitem__):
            if since[longest] <= ended:
                longest._waiting_since = None
                longest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel both deadlines when the connection is lost, and tell all requests of it, not the last one alone."""
        self._stop_waiting()
        for cycle in self._unanswered:
            cycle.disconnected = True
        self.resume_writing()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The client reads more slowly than the daemon answers: the whole answer must be read before the deadline."""
        super().pause_writing()
        if self._unread is None:
            self._unread = self.loop.call_later(WITHIN, self.transport.abort)

    def resume_writing(self) -> None:
        """Cancel the deadline for reading: the client has read enough of the answer."""
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        """Process received bytes; too many of a head, of a trailer, or between pieces of a body end the connection."""
        self._head += len(data)
        self._unset_keepalive_if_required()
        try:
            while data:
                data = self._parsed(data)
        except HttpParserError:
            if count := self._malformed.to_log():
                _log.warning("%d malformed HTTP requests were refused, the last one now", count)
            self.send_400_response("Invalid HTTP request received.")
        if self._head > MOST_HEAD and not self.transport.is_closing():
            self.send_400_response("The headers of the request are too long.")
        answered = self.cycle is not None and self.cycle.response_complete
        if answered and self._deadline is None and not self.transport.is_closing():
            self._wait()  # for a request: what came was none, or the rest of one that had been answered

    def _parsed(self, data: bytes) -> bytes:
        """Parse what was received; return what is to be parsed again, since a request asks for another protocol."""
        try:
            self.parser.feed_data(data)
        except HttpParserUpgrade as asked:
            head, self._asking = self._asking or b"", None
            self.parser = HttpRequestParser(self)
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn sets it
            return head + data[asked.args[0] :]
        return b""

    def send_400_response(self, msg: str) -> None:
        """Refuse what was received; without a word if that could be taken for the answer to an earlier request."""
        cycle = self.cycle
        its_own = cycle is not None and cycle.scope is self.scope and not self.pipeline and not cycle.response_started
        if cycle is None or cycle.response_complete or its_own:
            super().send_400_response(msg)
        self._end()

    def on_message_begin(self) -> None:
        """Start the deadline of a request."""
        super().on_message_begin()
        cast(dict[str, Any], self.scope)[PEER_SCOPE] = self._peer
        self._wait()

    def on_headers_complete(self) -> None:
        """The head of a request is complete. What follows the body as trailers is none of its headers."""
        self._head = 0
        if len(self.pipeline) >= MOST_WAITING:
            raise HttpParserError("too many requests before the first is answered")
        if self.parser.get_method() == b"CONNECT":  # asks for another protocol whatever its headers are
            raise HttpParserError("this is no proxy")
        if self.parser.should_upgrade():
            kept = [b": ".join(each) for each in self.headers if each[0] not in UPGRADING]
            start = b"%s %s HTTP/%s" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())
            self._asking = b"\r\n".join([start, *kept, b"", b""])
            return
        super().on_headers_complete()
        self.headers = []
        self._unanswered = [*(each for each in self._unanswered if not each.response_complete), self.cycle]

    def on_chunk_header(self) -> None:
        """A piece of a body begins."""
        self._head = 0

    def on_body(self, body: bytes) -> None:
        """A piece of a body has arrived."""
        self._head = 0
        super().on_body(body)

    def on_message_complete(self) -> Any:
        """Cancel the deadline: the whole request has arrived."""
        self._head = 0
        if self._asking is not None:
            return None
        self._stop_waiting()
        return super().on_message_complete()

    def on_response_complete(self) -> None:
        """The client's turn again, unless it sent more requests already."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._end()
        elif self.cycle.response_complete:
            self._waiting_since = self.loop.time()

    def timeout_keep_alive_handler(self) -> None:
        """No other request has come for a while."""
        self._end()

    def _wait(self) -> None:
        self._stop_waiting()
        self._waiting_since = self.loop.time()
        self._deadline = self.loop.call_later(WITHIN, self._end)

    def _end(self) -> None:
        """Close; abort if the client does not read the rest of its answer."""
        self._stop_waiting()
        self.transport.close()
        self._waiting_since = self.loop.time()
        self._deadline = self.loop.call_later(WITHIN, self.transport.abort)

    def _stop_waiting(self) -> None:
        self._waiting_since = None
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
