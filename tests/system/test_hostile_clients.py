"""Clients that speak no HTTP, too much of it, or hardly any: the daemon goes on answering the others."""

from __future__ import annotations

import http.client
import os
import random
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from metasched.service.api import slow_clients as limits
from tests.free_ports import free_port
from tests.system.real_daemon import Daemon
from tests.system.slow_clients import CLIENTS, ITS_OWN, SlowClients, connected

pytestmark = [pytest.mark.system, pytest.mark.timeout(200)]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path_factory.mktemp("hostile"), "")
    daemon.start()
    yield daemon
    daemon.stop()


def answer_to(daemon: Daemon, sent: bytes) -> bytes:
    with closing(connected(daemon.socket)) as made:
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


def test_what_a_client_says_of_where_it_comes_from_evades_no_limit(tmp_path: Path) -> None:
    port = free_port()
    daemon = Daemon(tmp_path, "[limits]\nrequests_per_second = 0.001\nburst = 2\n", port=port)
    daemon.start()
    try:
        answers = []
        for host in range(6):
            with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60.0)) as made:
                made.request("GET", "/v1/health", headers={"X-Forwarded-For": f"10.0.0.{host}"})
                answers.append(made.getresponse().status)
    finally:
        daemon.stop()
    assert answers == [200] * 2 + [429] * 4


def test_random_bytes_break_nothing(daemon: Daemon) -> None:
    draw = random.Random(1)
    for _ in range(300):
        start = draw.choice([b"", b"POST /v1/loads HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost: d\r\n"])
        answer_to(daemon, start + draw.randbytes(draw.randrange(2000)))
    assert daemon.ask("GET", "/v1/health")["status"] == "ok"


def test_requests_that_come_byte_by_byte_are_given_up_and_hold_up_nobody(slow_clients: SlowClients) -> None:
    slow_clients.wait()
    assert slow_clients.held >= CLIENTS
    assert slow_clients.left <= ITS_OWN
    assert slow_clients.answers == {"ok"}


BODY = b"POST /v1/loads HTTP/1.1\r\nHost: d\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("start", "more"),
    [
        pytest.param(b"GET / HTTP/1.1\r\nX: ", b"aaaa", id="a head without end"),
        pytest.param(BODY + b"0\r\n", b"X:1\r\n", id="trailers"),
        pytest.param(BODY + b"0\r\nX: ", b"aaaa", id="a trailer without end"),
        pytest.param(BODY + b"1;", b"aaaa", id="a chunk extension without end"),
        pytest.param(b"", b"GET / HTTP/1.1\r\n\r\n", id="requests before the answers"),
    ],
)
def test_what_has_no_end_takes_no_memory(start: bytes, more: bytes, daemon: Daemon) -> None:
    before = memory(daemon)
    with closing(connected(daemon.socket)) as made:
        made.sendall(start)
        sent = 0
        try:
            while sent < 50_000_000:
                sent += made.send(more * 10_000)
        except OSError:
            pass
    assert sent < 50_000_000
    assert memory(daemon) - before < 20e6
    assert daemon.ask("GET", "/v1/health")["status"] == "ok"


def test_a_client_that_never_reads_its_answers_is_given_up(daemon: Daemon) -> None:
    question = b"GET /v1/openapi.json HTTP/1.1\r\nHost: d\r\n\r\n"
    with closing(socket.socket(socket.AF_UNIX)) as made:
        made.connect(daemon.socket)
        made.setblocking(False)
        sent_all, given_up, end = True, False, time.monotonic() + 3 * limits.WITHIN
        while not given_up and time.monotonic() < end:
            try:
                made.send(question)
            except BlockingIOError:
                sent_all = False
                time.sleep(0.05)
            except (BrokenPipeError, ConnectionResetError):
                given_up = True
        # First its answers filled what a connection holds, then the daemon took no more questions, then it ended it.
        assert not sent_all
        assert given_up
    assert daemon.ask("GET", "/v1/health")["status"] == "ok"


def memory(daemon: Daemon) -> float:
    return int(Path(f"/proc/{daemon.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
