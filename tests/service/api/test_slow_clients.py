"""What a request may take besides its body is bounded, whatever pieces it comes in."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from metasched.service.api import slow_clients
from metasched.service.api.slow_clients import MOST_HEAD, MOST_WAITING, DeadlineProtocol
from monitors.recurring_faults import RecurringFaults


class Wire(asyncio.Transport):
    """What a client is sent, until it is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.sent, self.closed, self.aborted = b"", False, False

    def write(self, data: Any) -> None:
        self.sent += bytes(data)

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = self.aborted = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        pass  # the pieces that are received are few

    def resume_reading(self) -> None:
        pass


def connected(app: Any, wire: Wire, **settings: Any) -> DeadlineProtocol:
    """What reads the requests of one client for an application."""
    config = uvicorn.Config(app, lifespan="off", **settings)
    config.load()
    protocol = DeadlineProtocol(config=config, server_state=ServerState(), app_state={})
    protocol.connection_made(wire)
    return protocol


async def _answered(pieces: list[bytes]) -> tuple[bool, bytes]:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.Event().wait()

    wire = Wire()
    protocol = connected(app, wire)
    for piece in pieces:
        if not wire.closed:
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


CHUNKED = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "more",
    [b"0\r\n" + b"X:1\r\n" * 20_000, b"0\r\nX: " + b"a" * 100_000, b"1;" + b"a" * 100_000],
    ids=["many trailers", "a long trailer", "a long chunk extension"],
)
def test_what_follows_a_body_is_bounded_like_a_head(more: bytes) -> None:
    pieces = [CHUNKED, b"2\r\n{}\r\n", *(more[at : at + 1000] for at in range(0, len(more), 1000))]
    closed, sent = asyncio.run(_answered(pieces))
    assert closed
    assert b"The headers of the request are too long." in sent


def test_a_long_body_in_small_pieces_is_no_head() -> None:
    closed, sent = asyncio.run(_answered([CHUNKED, *[b"1\r\na\r\n"] * 20_000]))
    assert (closed, sent) == (False, b"")


GET = b"GET / HTTP/1.1\r\n\r\n"


@pytest.mark.parametrize("together", [True, False])
def test_more_requests_than_may_wait_for_an_answer_end_the_connection(together: bool) -> None:
    """Without an answer, which would be taken for that to the first of them."""
    most = [GET] * (1 + MOST_WAITING)
    assert asyncio.run(_answered([b"".join(most)] if together else most)) == (False, b"")
    more = [*most, GET]
    assert asyncio.run(_answered([b"".join(more)] if together else more)) == (True, b"")


def test_what_is_wrong_after_an_unanswered_request_is_no_answer_to_it() -> None:
    assert asyncio.run(_answered([GET, b"\0\r\n\r\n"])) == (True, b"")
    closed, sent = asyncio.run(_answered([CHUNKED, b"ZZ\r\n"]))
    assert closed
    assert sent.startswith(b"HTTP/1.1 400 ")


ASKING = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"
BODIES = {
    "none": (b"", b""),
    "declared": (b"Content-Length: 5\r\n", b"hello"),
    "in chunks": (b"Transfer-Encoding: chunked\r\n", b"2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"),
}


async def _received(data: bytes, size: int) -> list[tuple[str, bytes, bytes]]:
    """The requests that an application receives that is sent some data in pieces: each path, header and body."""
    found: list[tuple[str, bytes, bytes]] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        body = b""
        while (message := await receive())["type"] == "http.request":
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        found.append((scope["path"], dict(scope["headers"]).get(b"x", b""), body))
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    wire = Wire()
    protocol = connected(app, wire, access_log=False)
    for at in range(0, len(data), size):
        protocol.data_received(data[at : at + size])
        await asyncio.sleep(0)
    while protocol.tasks:
        await asyncio.sleep(0)
    protocol.connection_lost(None)
    return found


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("protocol", [b"h2c", b"websocket"])
@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_a_request_that_asks_for_another_protocol_is_answered_in_this_one(
    body: tuple[bytes, bytes], protocol: bytes, size: int, caplog: pytest.LogCaptureFixture
) -> None:
    length, sent = body
    asking = b"POST /v1/a HTTP/1.1\r\nX: 1\r\n" + ASKING.replace(b"h2c", protocol) + length + b"\r\n" + sent
    plain = b"POST /b HTTP/1.1\r\nX: 2\r\nContent-Length: 2\r\n\r\nok"
    whole = b"" if not sent else b"hello"
    expected = [("/v1/a", b"1", whole), ("/b", b"2", b"ok")]
    assert asyncio.run(_received(asking + plain, size)) == expected
    assert asyncio.run(_received(asking * 90, size)) == expected[:1] * 90
    assert caplog.text == ""


@pytest.mark.parametrize("size", [1, 7, 100_000])
@pytest.mark.parametrize("head", [b"", ASKING, b"Content-Length: 5\r\n"], ids=["plain", "upgrading", "with a body"])
def test_a_tunnel_is_refused_at_once(head: bytes, size: int) -> None:
    data = b"CONNECT elsewhere:80 HTTP/1.1\r\n" + head + b"\r\nhello"
    closed, sent = asyncio.run(_answered([data[at : at + size] for at in range(0, len(data), size)]))
    assert (closed, b"400" in sent) == (True, True)


LATE = (
    (GET, b"\r\n"),
    (GET, b"\r"),
    (b"GET / HTTP/1.1\r\nContent-Length: 4\r\n\r\nab", b"cd"),
    (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", b"2\r\nab\r\n0\r\n\r\n"),
    (GET, b"GET /"),
)


async def _ended(pieces: tuple[bytes, ...], *, unread: bool = False) -> Wire:
    """Wait until a connection is closed whose client sends some pieces and is answered at once, or until it is aborted.

    Without another request it stays open for long; where answers are left unread, it is closed as soon as may be.
    """

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    wire = Wire()
    protocol = connected(app, wire, access_log=False, timeout_keep_alive=0 if unread else 1_000_000)
    for piece in pieces:
        protocol.data_received(piece)
        while protocol.tasks:
            await asyncio.sleep(0)
    while not (wire.aborted if unread else wire.closed):
        await asyncio.sleep(0.001)
    protocol.connection_lost(None)
    return wire


@pytest.mark.parametrize(
    "pieces",
    [(GET,), (b"GET / HTTP/1.0\r\n\r\n",), (b"nonsense\r\n\r\n",), (GET, b"nonsense\r\n\r\n"), (b"GET",)],
    ids=len,
)
def test_a_connection_whose_last_answer_is_not_read_is_given_up(
    pieces: tuple[bytes, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slow_clients, "WITHIN", 0.01)
    wire = asyncio.run(asyncio.wait_for(_ended(pieces, unread=True), 20.0))
    assert (wire.closed, wire.aborted) == (True, True)


@pytest.mark.parametrize("pieces", LATE)
def test_what_comes_after_an_answer_does_not_hold_the_connection(
    pieces: tuple[bytes, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slow_clients, "WITHIN", 0.01)
    assert asyncio.run(asyncio.wait_for(_ended(pieces), 20.0)).closed


@pytest.mark.parametrize("least", [0.0, 1000.0])
@pytest.mark.parametrize("sent", [b"", b"GET / HT", GET, GET + b"\r\n", CHUNKED + b"2\r\nab"])
def test_of_too_many_connections_the_one_that_waits_longest_for_its_client_is_ended(
    sent: bytes, least: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is being answered is none of these, nor is one that has not waited for long."""
    monkeypatch.setattr(slow_clients, "MOST_CONNECTIONS", 4)
    monkeypatch.setattr(slow_clients, "LEAST_WAIT", least)
    closed = asyncio.run(_made([b"GET /long HTTP/1.1\r\n\r\n", *[sent] * 5]))
    assert closed == ([False, True, True, False, False, False] if least == 0.0 else [False] * 6)


async def _made(sent: list[bytes]) -> list[bool]:
    """Which connections are closed once all were made, one after the other, and have sent something."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/long":
            await asyncio.Event().wait()
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    config, state = uvicorn.Config(app, lifespan="off", access_log=False), ServerState()
    config.load()
    wires: list[Wire] = []
    protocols: list[DeadlineProtocol] = []
    for data in sent:
        protocols.append(DeadlineProtocol(config=config, server_state=state, app_state={}))
        wires.append(Wire())
        protocols[-1].connection_made(wires[-1])
        protocols[-1].data_received(data)
        for _ in range(5):
            await asyncio.sleep(0)
        for protocol, wire in zip(protocols, wires, strict=True):
            if wire.closed and protocol in state.connections:
                protocol.connection_lost(None)
    closed = [wire.closed for wire in wires]
    for task in state.tasks:
        task.cancel()
    for protocol in [*state.connections]:
        protocol.connection_lost(None)
    return closed


class Lost(Wire):
    """A connection that takes nothing any more once it is lost."""

    lost = False

    def write(self, data: Any) -> None:
        if self.lost:
            raise RuntimeError("the connection is lost")
        super().write(data)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_client_that_is_gone_while_its_requests_wait_is_no_fault(
    count: int, caplog: pytest.LogCaptureFixture
) -> None:
    assert asyncio.run(_gone(count)) == b""
    assert caplog.text == ""


async def _gone(count: int) -> bytes:
    """What a client is sent that is gone before the first of its requests is answered."""
    answer = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await answer.wait()
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    wire = Lost()
    protocol = connected(app, wire, access_log=False, log_config=None)
    protocol.data_received(count * GET)
    await asyncio.sleep(0)
    wire.closed = wire.lost = True
    protocol.connection_lost(None)
    answer.set()
    while protocol.tasks:
        await asyncio.sleep(0)
    return wire.sent


def test_malformed_requests_are_logged_once_a_minute(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DeadlineProtocol, "_malformed", RecurringFaults())
    for _ in range(50):
        closed, sent = asyncio.run(_answered([b"nonsense\r\n\r\n"]))
        assert (closed, b"400" in sent) == (True, True)
    assert [each.levelname for each in caplog.records] == ["WARNING"]
