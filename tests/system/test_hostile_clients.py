"""Clients that speak no HTTP, too much of it, or hardly any: the daemon goes on answering the others."""

from __future__ import annotations

import os
import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from metasched.service import impatient
from tests.system.real_daemon import Daemon

pytestmark = [pytest.mark.system, pytest.mark.timeout(200)]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path_factory.mktemp("hostile"), "")
    daemon.start()
    yield daemon
    daemon.stop()


def connected(daemon: Daemon) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.settimeout(3 * impatient.WITHIN)
    made.connect(daemon.socket)
    return made


def answer_to(daemon: Daemon, sent: bytes) -> bytes:
    with closing(connected(daemon)) as made:
        try:
            made.sendall(sent)
            made.shutdown(socket.SHUT_WR)
            return made.recv(65_536)
        except OSError:
            return b""


@pytest.mark.parametrize(
    "sent",
    [
        b"\x00\x01\x02",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: d\r\n\r\n",
        b"GET //evil.example/%00%0d%0aX:1 HTTP/1.1\r\nHost: d\r\n\r\n",
        b"POST /v1/loads HTTP/1.1\r\nHost: d\r\nContent-Length: -5\r\n\r\n",
        b"POST /v1/loads HTTP/1.1\r\nHost: d\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"POST /v1/loads HTTP/1.1\r\nHost: d\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
        b"POST /v1/loads HTTP/1.1\r\nHost: d\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
        b"POST /v1/loads HTTP/1.1\r\nHost: d\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nabc",
        b"GET /v1/health HTTP/1.1\r\n" + b"X: y\r\n" * 30_000 + b"\r\n",
        b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\n\r\n",
        b"GET /static/../../../../etc/passwd HTTP/1.1\r\nHost: d\r\n\r\n",
        b"GET /static/%2e%2e/%2e%2e/pages.py HTTP/1.1\r\nHost: d\r\n\r\n",
    ],
    ids=range(14),
)
def test_what_is_no_request_is_refused_and_others_are_answered(sent: bytes, daemon: Daemon) -> None:
    answer = answer_to(daemon, sent)
    assert not answer.startswith(b"HTTP/1.1 5"), answer
    assert not answer.startswith(b"HTTP/1.1 200") or b"health" in sent, answer
    assert daemon.ask("GET", "/v1/health")["status"] == "ok"


def test_random_bytes_break_nothing(daemon: Daemon) -> None:
    draw = random.Random(1)
    for _ in range(300):
        start = draw.choice([b"", b"POST /v1/loads HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost: d\r\n"])
        answer_to(daemon, start + draw.randbytes(draw.randrange(2000)))
    assert daemon.ask("GET", "/v1/health")["status"] == "ok"


def test_requests_that_come_byte_by_byte_are_given_up_and_hold_up_nobody(daemon: Daemon) -> None:
    heads = (
        b"GET /v1/health HTTP/1.1\r\nX-Slow: ",
        b"POST /v1/loads HTTP/1.1\r\nHost: d\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n[",
        b"",
    )
    slow = [connected(daemon) for _ in range(150)]
    stop = threading.Event()

    def drip() -> None:
        while not stop.wait(0.5):
            for made in slow:
                try:
                    made.send(b"a")
                except OSError:
                    continue

    for number, made in enumerate(slow):
        made.sendall(heads[number % 3])
    dripping = threading.Thread(target=drip)
    dripping.start()
    try:
        end = time.monotonic() + impatient.WITHIN + 30.0
        while time.monotonic() < end and sockets(daemon) > 20:
            assert daemon.ask("GET", "/v1/health")["status"] == "ok"
            time.sleep(0.5)
        assert sockets(daemon) <= 20
    finally:
        stop.set()
        dripping.join()
        for made in slow:
            made.close()


def test_a_head_without_end_takes_no_memory(daemon: Daemon) -> None:
    before = memory(daemon)
    with closing(connected(daemon)) as made:
        made.sendall(b"GET / HTTP/1.1\r\nX: ")
        sent = 0
        try:
            while sent < 50_000_000:
                sent += made.send(b"a" * 65_536)
        except OSError:
            pass
    assert sent < 50_000_000
    assert memory(daemon) - before < 20e6
    assert daemon.ask("GET", "/v1/health")["status"] == "ok"


def sockets(daemon: Daemon) -> int:
    folder = Path(f"/proc/{daemon.pid}/fd")
    found = 0
    for each in folder.iterdir():
        try:
            found += os.readlink(each).startswith("socket:")
        except OSError:
            continue
    return found


def memory(daemon: Daemon) -> float:
    return int(Path(f"/proc/{daemon.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
