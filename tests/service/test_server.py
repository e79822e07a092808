"""The daemon's sockets: who may use them, what is replaced and what refused, and what is left when it ends."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import certificates
import pytest
from waiting import until

from metasched.client.connection import ask
from metasched.records import InputError
from metasched.service import server
from metasched.service.api import slow_clients
from metasched.service.configuration import Configuration, Listen
from metasched.service.dashboard import pages
from metasched.service.server import _server, _tcp_socket, _unix_socket
from tests.free_ports import free_port


def test_everybody_on_the_host_may_use_the_socket_and_the_mask_stays(tmp_path: Path) -> None:
    path, before = tmp_path / "d.sock", os.umask(0o027)
    try:
        with _unix_socket(str(path)):
            assert path.stat().st_mode & 0o777 == 0o666
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(before)


def test_a_socket_that_was_left_behind_is_replaced_and_one_in_use_or_another_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "d.sock"
    _unix_socket(str(path)).close()
    with _unix_socket(str(path)) as used:
        used.listen()
        with pytest.raises(InputError) as refusal:
            _unix_socket(str(path))
        assert str(refusal.value) == f"{path}: is in use by another daemon"
    path.unlink()
    path.write_text("mine", encoding="utf-8")
    with pytest.raises(InputError) as refusal:
        _unix_socket(str(path))
    assert str(refusal.value) == f"{path}: cannot be created: Address already in use"
    assert path.read_text(encoding="utf-8") == "mine"
    with pytest.raises(InputError, match=r"none/d\.sock: cannot be created: No such file or directory"):
        _unix_socket(str(tmp_path / "none" / "d.sock"))


def test_an_address_in_use_is_refused_and_one_just_left_is_taken_again() -> None:
    with _tcp_socket(Listen(port=0)) as first:
        first.listen()
        port = first.getsockname()[1]
        assert first.family == socket.AF_INET
        assert first.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR) == 1
        with pytest.raises(InputError) as refusal:
            _tcp_socket(Listen(port=port))
        assert str(refusal.value) == f"127.0.0.1:{port}: cannot be opened for listening: Address already in use"
    _tcp_socket(Listen(port=port)).close()


@pytest.mark.skipif(not socket.has_ipv6, reason="this host has no IPv6")
def test_an_address_with_colons_is_of_ipv6(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[int, int]] = []

    class Noted:
        def __init__(self, family: int, kind: int) -> None:
            made.append((family, kind))

        def setsockopt(self, *_: int) -> None:
            """Nothing is set."""

        def bind(self, address: Any) -> None:
            """Nothing is bound."""

    monkeypatch.setattr(server.socket, "socket", Noted)
    _tcp_socket(Listen(host="::1"))
    assert made == [(socket.AF_INET6, socket.SOCK_STREAM)]


def test_a_certificate_that_cannot_be_read_is_told_and_the_unix_socket_has_none(tmp_path: Path) -> None:
    listen = Listen(certificate=str(tmp_path / "none.pem"), key=str(tmp_path / "none.key"))
    nothing: Any = None
    with pytest.raises(InputError) as refusal:
        _server(nothing, listen, tls=True)
    assert str(refusal.value).startswith(f"listen.certificate {tmp_path}/none.pem: cannot be read: ")
    plain = _server(nothing, listen, tls=False).config
    assert (plain.ssl_certfile, plain.ssl_keyfile, plain.is_ssl) == (None, None, False)
    assert (plain.proxy_headers, plain.server_header, plain.access_log) == (False, False, False)


@pytest.mark.skipif(bool(certificates.why_not()), reason=certificates.why_not())
def test_a_client_that_never_shakes_hands_is_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow_clients, "WITHIN", 0.1)
    certificate, key = certificates.make(tmp_path)
    nothing: Any = None
    serving = _server(nothing, Listen(certificate=str(certificate), key=str(key)), tls=True)

    async def silent(tcp: socket.socket) -> bytes:
        task = asyncio.create_task(serving.serve([tcp]))
        while not serving.started:
            await asyncio.sleep(0.001)
        reader, writer = await asyncio.open_connection(*tcp.getsockname())
        try:
            return await asyncio.wait_for(reader.read(), 30.0)
        finally:
            writer.close()
            serving.should_exit = True
            await task

    with _tcp_socket(Listen(port=0)) as tcp, asyncio.Runner(loop_factory=server._Loop) as runner:
        assert runner.run(silent(tcp)) == b""


def test_the_first_page_is_prepared_before_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[Any] = []

    async def run(servers: Any, lag: Any) -> None:
        begun.append("served")

    monkeypatch.setattr(server, "_run", run)
    monkeypatch.setattr(server, "_open_many", lambda: None)
    monkeypatch.setattr(server.sys, "setswitchinterval", lambda seconds: None)
    monkeypatch.setattr(server, "memory_use", SimpleNamespace(keep_little=lambda: None, keep_for_good=lambda: None))
    daemon: Any = SimpleNamespace(
        configuration=Configuration(listen=Listen(port=0)), metrics=None,
        start=lambda: begun.append("started"), stop=lambda: begun.append("stopped"),
        work=SimpleNamespace(once=lambda work, **_: begun.append((work.func, work.args))),
    )  # fmt: skip
    server.serve(daemon)
    assert begun == ["started", (pages.prepare, (daemon,)), "served", "stopped"]


@pytest.mark.parametrize(
    ("number", "host", "warned"), [(signal.SIGTERM, "127.0.0.1", False), (signal.SIGINT, "0.0.0.0", True)]
)
def test_a_daemon_answers_at_both_addresses_until_a_signal_and_takes_its_socket_with_it(
    number: signal.Signals, host: str, warned: bool, tmp_path: Path
) -> None:
    port = free_port()
    path, configuration = tmp_path / "d.sock", tmp_path / "metasched.toml"
    configuration.write_text(
        f'database = "{tmp_path}/site.db"\n[listen]\nhost = "{host}"\nport = {port}\nsocket = "{path}"\n',
        encoding="utf-8",
    )
    words = [sys.executable, "-m", "metasched", "serve", "--config", str(configuration)]
    with subprocess.Popen(words, stderr=subprocess.PIPE) as daemon:
        try:
            until(path.exists)

            def answers(address: str) -> bool:
                try:
                    return bool(ask(address, "GET", "/v1/health", timeout=30.0)["leads"])
                except RuntimeError:
                    return False

            until(lambda: answers(str(path)))
            assert answers(f"http://127.0.0.1:{port}")
            daemon.send_signal(number)
            daemon.wait(60.0)
        finally:
            daemon.kill()
        assert daemon.stderr is not None
        said = daemon.stderr.read().decode()
        assert (f"{host}:{port} receives tokens unencrypted: set certificate and key" in said) is warned
        assert daemon.returncode == 0
        assert not path.exists()
