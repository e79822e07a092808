"""Connections that wait only so long for a request: those that send byte by byte would else hold every place."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

#: How long a request may take to come in, with its body, and how long a connection may stay without any (s).
WITHIN = 20.0
#: Largest head of a request (bytes).
MOST_HEAD = 65_536


class ImpatientProtocol(HttpToolsProtocol):
    """Uvicorn's protocol, with a deadline for whole requests and a limit for their heads."""

    _deadline: asyncio.TimerHandle | None = None
    _head: int | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take in a piece; a head that grows too long ends the connection."""
        super().data_received(data)
        if self._head is not None:
            self._head += len(data)
            if self._head > MOST_HEAD and not self.transport.is_closing():
                self.send_400_response("The head of the request is too long.")

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._head = 0
        self._wait()

    def on_headers_complete(self) -> None:
        """Its head is there."""
        self._head = None
        super().on_headers_complete()

    def on_message_complete(self) -> Any:
        """All of it is there."""
        self._stop_waiting()
        return super().on_message_complete()

    def _wait(self) -> None:
        self._stop_waiting()
        self._deadline = self.loop.call_later(WITHIN, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
