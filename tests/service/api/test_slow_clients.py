"""The head of a request is bounded, whatever pieces it comes in."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from metasched.service.api.slow_clients import MOST_HEAD, DeadlineProtocol


class Wire(asyncio.Transport):
    """What a client is sent, until it is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.sent, self.closed = b"", False

    def write(self, data: Any) -> None:
        self.sent += bytes(data)

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


async def _answered(pieces: list[bytes]) -> tuple[bool, bytes]:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.Event().wait()

    config = uvicorn.Config(app, lifespan="off")
    config.load()
    protocol = DeadlineProtocol(config=config, server_state=ServerState(), app_state={})
    wire = Wire()
    protocol.connection_made(wire)
    for piece in pieces:
        protocol.data_received(piece)
    closed = wire.closed
    for task in protocol.tasks:
        task.cancel()
    protocol.connection_lost(None)
    return closed, wire.sent


@pytest.mark.parametrize(("more", "refused"), [(0, False), (1, True)])
@pytest.mark.parametrize("parts", [1, 7])
def test_a_head_longer_than_it_may_be_is_refused(more: int, refused: bool, parts: int) -> None:
    begin = b"GET / HTTP/1.1\r\nX: "
    head = begin + (MOST_HEAD - len(begin) + more) * b"a"
    size = -(-len(head) // parts)
    closed, sent = asyncio.run(_answered([head[at : at + size] for at in range(0, len(head), size)]))
    assert closed == refused
    assert (b"400" in sent and b"The headers of the request are too long." in sent) == refused
