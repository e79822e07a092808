"""Where the command line asks the daemon."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import unquote

import pytest

from metasched.client import connection
from metasched.client.connection import DeniedError, address_of, ask
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

    def unknown(host: str, port: int, **_: object) -> list[Any]:
        called.append((host, port))
        raise socket.gaierror(f"no address of {host}")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
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
    for status in (401, 403, 404, 422, 429):
        with pytest.raises(InputError) as refused:
            ask(address, "GET", f'/{status}/{{"detail": "no"}}', timeout=30.0)
        assert isinstance(refused.value, DeniedError) == (status in (401, 403, 429))
    with pytest.raises(RuntimeError, match="failed: no disk is left"):
        ask(address, "GET", '/500/{"detail": "no disk is left"}', timeout=30.0)
    for status in (500, 502):
        with pytest.raises(RuntimeError, match=f"failed with status {status}, see its log"):
            ask(address, "GET", f"/{status}/Internal Server Error", timeout=30.0)
    with pytest.raises(RuntimeError, match=f"what answers at {address} is not metasched"):
        ask(address, "GET", "/200/<html>", timeout=30.0)


def test_a_daemon_that_does_not_answer_is_named(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"the daemon at .*nobody\.sock does not answer"):
        ask(str(tmp_path / "nobody.sock"), "GET", "/", timeout=30.0)
    with pytest.raises(RuntimeError, match="does not answer"):
        ask("http://127.0.0.1:1", "GET", "/", timeout=30.0)


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


def length(request: bytes) -> int:
    """Bytes of the body of a request, by its head."""
    found = re.search(rb"Content-Length: (\d+)", request)
    return int(found[1]) if found else 0


def exchanged(tmp_path: Path, answers: list[bytes], **asked: Any) -> tuple[Any, list[bytes]]:
    """What a Unix socket that sends these answers is asked, and what comes of it."""
    path, requests = str(tmp_path / "d.sock"), []

    def serve(listening: socket.socket) -> None:
        for answer in answers:
            connection, _ = listening.accept()
            with connection:
                request = connection.recv(65_536)
                # The body may come after the head.
                while len(request.partition(b"\r\n\r\n")[2]) < length(request) and (more := connection.recv(65_536)):
                    request += more
                requests.append(request)
                connection.sendall(answer)

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        serving = Thread(target=serve, args=(listening,), daemon=True)
        serving.start()
        found = ask(path, **({"method": "GET", "path": "/v1/status", "timeout": 30.0} | asked))
        serving.join(30.0)
    return found, requests


OK = b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}"
HEAD = b"Host: localhost\r\nConnection: close\r\nAccept: application/json\r\nAccept-Encoding: identity\r\n"


@pytest.mark.parametrize(
    ("asked", "request_sent"),
    [
        ({}, b"GET /v1/status HTTP/1.1\r\n" + HEAD + b"\r\n"),
        ({"path": "/a b?x=1&y=\u00e4"}, b"GET /a%20b?x=1&y=%C3%A4 HTTP/1.1\r\n" + HEAD + b"\r\n"),
        ({"token": "a\r\nb"}, b"GET /v1/status HTTP/1.1\r\n" + HEAD + b"Authorization: Bearer a%0D%0Ab\r\n\r\n"),
        (
            {"method": "POST", "document": {"a": 1}, "token": "t"},
            b"POST /v1/status HTTP/1.1\r\nContent-Length: 8\r\n" + HEAD
            + b'Content-Type: application/json\r\nAuthorization: Bearer t\r\n\r\n{"a": 1}',
        ),
        (
            {"document": 0},
            b"GET /v1/status HTTP/1.1\r\nContent-Length: 1\r\n" + HEAD
            + b"Content-Type: application/json\r\n\r\n0",
        ),
    ],
)  # fmt: skip
def test_a_request_is_sent_byte_by_byte_as_it_is_asked_for(
    asked: dict[str, Any], request_sent: bytes, tmp_path: Path
) -> None:
    assert exchanged(tmp_path, [OK], **asked) == ({}, [request_sent])


def refuses(challenge: bytes) -> bytes:
    return b"HTTP/1.0 401 No\r\n" + challenge + b'Content-Length: 16\r\n\r\n{"detail": "no"}'


@pytest.mark.parametrize("made", ["MUNGE:Ab+/9=:", "MUNGE:A b:", "", "fails"])
@pytest.mark.parametrize(
    "challenge", [b"WWW-Authenticate: MUNGE\r\n", b"WWW-Authenticate: Bearer\r\n", b"X: munge\r\n"]
)
def test_whom_a_daemon_refuses_without_a_token_proves_who_asks_where_both_have_munge(
    made: str, challenge: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "munge"
    lines = f"echo '{made}'" if made != "fails" else "exit 1"
    program.write_text(f'#!/bin/sh\nprintf %s "$1" >"{tmp_path}/words"\n{lines}\n', encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    if made == "MUNGE:Ab+/9=:" and challenge.endswith(b": MUNGE\r\n"):
        found, (first, second) = exchanged(tmp_path, [refuses(challenge), OK], path="/v1/a b")
        assert found == {}
        assert b"Authorization" not in first
        assert b"\r\nAuthorization: MUNGE MUNGE:Ab+/9=:\r\n" in second
        assert (tmp_path / "words").read_text(encoding="utf-8") == "--string=metasched GET /v1/a%20b"
    else:
        with pytest.raises(InputError, match=r"no$"):
            exchanged(tmp_path, [refuses(challenge)], path="/v1/a b")


def test_a_token_that_is_refused_is_not_replaced_by_another_proof(tmp_path: Path) -> None:
    with pytest.raises(InputError) as refusal:
        exchanged(tmp_path, [refuses(b"WWW-Authenticate: MUNGE\r\n")], token="t")
    assert str(refusal.value) == f"{tmp_path / 'd.sock'}: no"


def test_who_does_not_answer_in_time_is_named_with_the_time(tmp_path: Path) -> None:
    path = str(tmp_path / "d.sock")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        with pytest.raises(RuntimeError) as refusal:
            ask(path, "GET", "/", timeout=0.05)
    assert str(refusal.value) == f"the daemon at {path} does not answer within 0.05 s"
