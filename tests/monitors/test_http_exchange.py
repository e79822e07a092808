"""One exchange over HTTP: its answer is whole or refused, and nothing that is sent can become a header of its own."""

from __future__ import annotations

import math
import socket
import time
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from odd_servers import body, serving

from monitors import http_exchange, reached_hosts
from monitors.http_exchange import MOST, MOST_BESIDE, Answer, exchange, read_answer

SOON = 30.0


def answered(sent: bytes, most: int = MOST, *, close: bool = True) -> Answer:
    """What is read of an answer after which the connection is closed, or else left open."""
    here, there = socket.socketpair()
    with here, there:
        there.sendall(sent)
        if close:
            there.shutdown(socket.SHUT_WR)
        return read_answer(here, time.monotonic() + SOON, most)


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"HTTP/1.1 200 OK\r\n",
        *(line + b"\r\n\r\n{}" for line in (b"SSH/2.0 200 OK", b"HTTP/1.1 OK", b"HTTP/1.1", b"HTTP/2 200 OK")),
        *(line + b"\r\n\r\n{}" for line in (b"HTTP/1.1 2x0", b"HTTP/1.1 2000 OK")),
    ],
)
def test_what_ends_before_its_head_or_has_another_is_no_http(sent: bytes) -> None:
    with pytest.raises(ValueError, match=r"^the answer is not HTTP: |^the answer was truncated$"):
        answered(sent)


@pytest.mark.parametrize(
    ("head", "read"),
    [
        (b"Content-Length: 12", b"123456789012"),
        (b"Server: x\r\ncontent-length:7\r\nAge: 3", b"1234567"),
        (b"Age: 3", b"1234567890123"),
        (b"Content-Length: -1", b"1234567890123"),
        (b"Content-Length: 0", b""),
    ],
)
def test_an_answer_is_as_long_as_its_head_says_or_lasts_until_the_end(head: bytes, read: bytes) -> None:
    assert answered(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n1234567890123").body == read


@pytest.mark.parametrize(
    "rest",
    [
        b"Content-Length: 9\r\n\r\n12345678",
        b"Transfer-Encoding: chunked\r\n\r\n8",
        b"Transfer-Encoding: chunked\r\n\r\n8\r\n1234567",
        b"Transfer-Encoding: chunked\r\n\r\n8\r\n12345678\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n",
    ],
)
def test_an_answer_that_ends_before_its_length_is_refused(rest: bytes) -> None:
    with pytest.raises(ValueError, match=r"^the answer was truncated$"):
        answered(b"HTTP/1.1 200 OK\r\n" + rest)


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=6), st.sampled_from([b"", b";name=value"]))
def test_an_answer_in_chunks_is_joined_and_its_end_is_seen_while_the_connection_stays_open(
    chunks: list[bytes], extension: bytes
) -> None:
    sent = b"".join(b"%x%s\r\n%s\r\n" % (len(chunk), extension, chunk) for chunk in chunks) + b"0\r\n\r\n"
    whole = answered(b"HTTP/1.1 203 Fine\r\nTransfer-Encoding: chunked\r\n\r\n" + sent, close=False)
    assert (whole.status, whole.body) == (203, b"".join(chunks))


@pytest.mark.parametrize("size", [b"-8", b"-1", b"x", b"", b"f" * 15, b"f" * 30])
def test_chunks_of_no_size_are_refused(size: bytes) -> None:
    with pytest.raises(ValueError):
        answered(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + size + b"\r\n12345678\r\n0\r\n\r\n")


@pytest.mark.parametrize(
    "rest",
    [
        b"\r\n" + b"x" * 101,
        b"Content-Length: 101\r\n\r\n" + b"x" * 101,
        b"Content-Length: 99999999999999999999\r\n\r\n12345678",
        b"Transfer-Encoding: chunked\r\n\r\n65\r\n" + b"x" * 101 + b"\r\n0\r\n\r\n",
    ],
)
def test_an_answer_that_is_too_long_is_refused(rest: bytes) -> None:
    with pytest.raises(ValueError, match=r"^the answer is longer than 100 bytes$"):
        answered(b"HTTP/1.1 200 OK\r\n" + rest, 100)


def test_the_request_carries_the_path_the_user_and_the_headers_of_its_address() -> None:
    asked: list[tuple[str, str, str]] = []

    def answer(handler) -> None:
        asked.append((handler.path, handler.headers["Host"], handler.headers["Authorization"]))
        body("{}")(handler)

    with serving(answer) as url:
        place = url.removeprefix("http://")
        ends = time.monotonic() + SOON
        exchange(f"http://reader:a%20word@{place}/prefix/", "GET", "/v1?n=a b", headers={}, ends=ends)
        exchange(url, "GET", headers={"Authorization": "Bearer secret"}, ends=ends)
    basic = f"Basic {b64encode(b'reader:a word').decode()}"
    assert asked == [("/prefix/v1?n=a%20b", place, basic), ("/", place, "Bearer secret")]


@pytest.mark.parametrize("token", ["a\r\nX: 1", "a\nb", "a\x00", "\u20ac"])
def test_a_header_that_http_does_not_allow_is_not_sent(token: str) -> None:
    asked: list[str] = []
    with (
        serving(lambda handler: asked.append(handler.path)) as url,
        pytest.raises(ValueError, match="does not allow"),
    ):
        exchange(url, "GET", headers={"Authorization": token}, ends=time.monotonic() + SOON)
    assert asked == []


class Pieces:
    """A connection that gives these pieces one by one, and then ends."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = list(pieces)

    def settimeout(self, seconds: float) -> None:
        """The time that is left is positive."""
        assert 0.0 < seconds <= 30.0

    def recv_into(self, buffer: memoryview) -> int:
        """The next piece."""
        piece = self.pieces.pop(0) if self.pieces else b""
        buffer[: min(len(piece), len(buffer))] = piece[: len(buffer)]
        self.pieces[:0] = [piece[len(buffer) :]] if len(piece) > len(buffer) else []
        return min(len(piece), len(buffer))


def pieced(*pieces: bytes, most: int = MOST) -> Answer:
    made: Any = Pieces(*pieces)
    return read_answer(made, time.monotonic() + 30.0, most)


def test_a_body_may_be_as_long_as_it_may() -> None:
    short = b"HTTP/1.1 200 OK\r\n\r\n"
    assert pieced(short + b"12", b"345", most=5).body == b"12345"
    with pytest.raises(ValueError, match=r"^the answer is longer than 5 bytes$"):
        pieced(short + b"12", b"3456", most=5)


@pytest.mark.parametrize("sent", [b"x" * 100_000, b"HTTP/1.1 200 OK\r\n" + b"X: 1\r\n" * 20_000])
def test_a_head_without_an_end_is_read_up_to_a_limit(sent: bytes) -> None:
    with pytest.raises(ValueError, match="the answer is not HTTP"):
        answered(sent, close=False)


def test_what_comes_before_an_answer_is_read_up_to_a_limit() -> None:
    assert MOST_BESIDE == 65_536
    with pytest.raises(ValueError, match="the answer is longer than 100 bytes"):
        answered(b"HTTP/1.1 100 Continue\r\n\r\n" * 5_000, 100, close=False)


def test_an_answer_in_single_bytes_is_the_same_and_ends_with_its_length() -> None:
    whole = b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}and more"
    for pieces in ([whole], [whole[k : k + 1] for k in range(len(whole))]):
        found = pieced(*pieces)
        assert (found.status, found.headers["content-length"], found.body) == (404, "2", b"{}")


def test_what_comes_before_the_answer_is_passed_over() -> None:
    found = pieced(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n")
    assert (found.status, found.body) == (204, b"")


class Clock:
    """A monotonic clock that stands still but for what connections take."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        """The time (s)."""
        return self.now


class Host:
    """A socket of a host that takes some time to connect (s), more than it is given where it is silent."""

    def __init__(self, clock: Clock, takes: float) -> None:
        self.clock, self.takes, self.given, self.closed = clock, takes, math.inf, False

    def settimeout(self, seconds: float) -> None:
        """The time that it is given."""
        self.given = seconds

    def connect(self, _: object) -> None:
        """Take as long as it does, or as it may."""
        self.clock.now += min(self.takes, self.given)
        if self.takes > self.given:
            raise TimeoutError("silent")

    def close(self) -> None:
        """Not needed any more."""
        self.closed = True


@pytest.mark.parametrize(("takes", "last"), [((9.0, 9.0), 1.0), ((9.0, 9.0, 9.0, 9.0), 1.0), ((9.0, 0.25), 0.75)])
def test_all_addresses_of_a_host_and_the_handshake_share_the_time(
    takes: tuple[float, ...], last: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, shaken = Clock(), []
    hosts = [Host(clock, each) for each in takes]
    waiting = iter(hosts)

    class Trust:
        def wrap_socket(self, connection: Host, server_hostname: str) -> None:
            shaken.append(connection.given)
            raise TimeoutError("silent")

    monkeypatch.setattr(reached_hosts, "time", clock)
    monkeypatch.setattr(http_exchange, "_system_trust", Trust)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(0, 0, 0, "", each) for each in takes])
    monkeypatch.setattr(socket, "socket", lambda *_: next(waiting))
    with pytest.raises(TimeoutError):
        exchange("https://slow.example", "GET", headers={}, ends=101.0)
    assert clock.now - 100.0 == pytest.approx(last)
    assert shaken == ([pytest.approx(1.0 - last)] if last < 1.0 else [])
    assert all(host.closed for host in hosts)
