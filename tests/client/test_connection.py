"""Where the command line asks the daemon."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import unquote

import pytest

from metasched.client import connection
from metasched.client.connection import MOST, _answer, _length, address_of, ask
from metasched.records import InputError
from metasched.service.configuration import Listen


def test_the_socket_is_used_where_there_is_one(tmp_path: Path) -> None:
    assert address_of(Listen()) == "http://127.0.0.1:8765"
    assert address_of(Listen(host="::1", certificate="c", key="k")) == "https://[::1]:8765"
    # One that is not there is named, so that whoever reads the error knows that the daemon is down.
    path = str(tmp_path / "d.sock")
    assert address_of(Listen(socket=path)) == path
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path)
        assert address_of(Listen(socket=path)) == path


@pytest.mark.skipif(os.getuid() != 0, reason="only root may become somebody else")
def test_whom_the_socket_is_closed_to_asks_at_the_address(tmp_path: Path) -> None:
    path = tmp_path / "d.sock"
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))
        path.chmod(0o660)
        for above in tmp_path.parents:
            if above.owner() == "root" and not above.stat().st_mode & 0o001:
                above.chmod(above.stat().st_mode | 0o001)
        tmp_path.chmod(0o755)
        child = os.fork()
        if child == 0:  # os.access looks at the real user, which cannot be changed back
            try:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
                os._exit(0 if address_of(Listen(socket=str(path))) == "http://127.0.0.1:8765" else 1)
            finally:
                os._exit(2)
        assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize(("url", "port"), [("http://h/", 80), ("https://h/", 443), ("https://h:8765/", 8765)])
def test_a_url_without_a_port_means_that_of_its_scheme(url: str, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[tuple[str, int]] = []

    def refuse(address: tuple[str, int], timeout: float) -> socket.socket:
        called.append(address)
        raise ConnectionRefusedError(f"nothing listens at {address} within {timeout:g} s")

    monkeypatch.setattr(socket, "create_connection", refuse)
    with pytest.raises(RuntimeError, match="does not answer"):
        ask(url, "GET", "/v1/status")
    assert called == [("h", port)]


class Answers(BaseHTTPRequestHandler):
    """Answers with the status and the text that the path names: ``/404/text``."""

    def do_GET(self) -> None:
        _, status, text = self.path.split("/", 2)
        self.send_response(int(status))
        self.end_headers()
        self.wfile.write(unquote(text).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_what_a_daemon_answers_is_returned_or_raised_by_who_can_mend_it(address: str) -> None:
    assert ask(address, "GET", '/200/{"a": 1}', timeout=30.0) == {"a": 1}
    with pytest.raises(InputError, match="processors is -1"):
        ask(address, "GET", '/422/{"detail": "processors is -1"}', timeout=30.0)
    with pytest.raises(RuntimeError, match="failed: no disk is left"):
        ask(address, "GET", '/500/{"detail": "no disk is left"}', timeout=30.0)
    for status in (500, 502):
        with pytest.raises(RuntimeError, match=f"failed with status {status}, see its log"):
            ask(address, "GET", f"/{status}/Internal Server Error", timeout=30.0)
    with pytest.raises(RuntimeError, match=f"what answers at {address} is not metasched"):
        ask(address, "GET", "/200/<html>", timeout=30.0)


@pytest.mark.parametrize("sent", [b"SSH/2.0 200 OK", b"HTTP/1.1 OK", b"HTTP/1.1"])
def test_what_does_not_begin_as_http_does_is_refused(sent: bytes) -> None:
    here, there = socket.socketpair()
    with here, there:
        there.sendall(sent + b"\r\n\r\n{}")
        there.shutdown(socket.SHUT_WR)
        with pytest.raises(ValueError, match="what it sends is not HTTP"):
            _answer(here, time.monotonic() + 30.0, MOST)


def test_a_daemon_that_does_not_answer_is_named(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"the daemon at .*nobody\.sock does not answer"):
        ask(str(tmp_path / "nobody.sock"), "GET", "/", timeout=30.0)
    with pytest.raises(RuntimeError, match="does not answer"):
        ask("http://127.0.0.1:1", "GET", "/", timeout=30.0)


@pytest.mark.parametrize(
    ("head", "length"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 12", 12),
        (b"HTTP/1.1 200 OK\r\nServer: x\r\ncontent-length:7\r\nAge: 3", 7),
        (b"HTTP/1.1 200 OK\r\nAge: 3", MOST),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1", MOST),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999", MOST),
    ],
)
def test_an_answer_is_as_long_as_its_head_says_or_lasts_until_the_end(head: bytes, length: int) -> None:
    assert _length(head) == length


@pytest.mark.parametrize("address", ["ftp://h", "http://", "https://:80"])
def test_an_address_that_is_no_url_of_a_daemon_is_refused(address: str) -> None:
    with pytest.raises((InputError, ValueError, RuntimeError), match="expected a URL that begins with http"):
        ask(address, "GET", "/v1/status", timeout=5.0)


def test_the_token_of_the_environment_and_the_certificate_of_the_daemon_are_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[object, ...]] = []

    def noted(address: str, method: str, path: str, document: object, **more: object) -> None:
        asked.append((address, more["token"], more["verify"], more["timeout"]))

    monkeypatch.setattr(connection, "ask", noted)
    monkeypatch.setenv("METASCHED_TOKEN", "")
    connection.ask_configured(Listen(), "GET", "/v1/status")
    monkeypatch.setenv("METASCHED_TOKEN", "secret")
    secured = Listen(certificate="c", key="k")
    connection.ask_configured(secured, "GET", "/v1/status", timeout=3.0)
    connection.ask_configured(secured, "GET", "/v1/status", url="http://other")
    assert asked == [
        ("http://127.0.0.1:8765", None, True, 10.0),
        ("https://127.0.0.1:8765", "secret", "c", 3.0),
        ("http://other", "secret", "c", 10.0),
    ]


@pytest.mark.parametrize(("missing", "whole"), [(0, True), (1, False)])
def test_an_answer_that_ends_before_its_length_is_refused(missing: int, whole: bool) -> None:
    here, there = socket.socketpair()
    with here, there:
        body = b'{"a": 1}'
        there.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body) + missing, body))
        there.shutdown(socket.SHUT_WR)
        if whole:
            assert _answer(here, time.monotonic() + 30.0, MOST)[2] == body
        else:
            with pytest.raises(ValueError, match=r"^the answer was truncated$"):
                _answer(here, time.monotonic() + 30.0, MOST)
