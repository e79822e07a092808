"""Serves the application on an address and on a Unix socket, until it is asked to end."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import signal
import socket
import stat
import sys
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn
import uvloop
from starlette.types import ASGIApp

from metasched.records import InputError
from metasched.service.api import slow_clients
from metasched.service.api.loop_lag import LoopLag
from metasched.service.api.slow_clients import DeadlineProtocol
from metasched.service.app import make_app
from metasched.service.configuration import Listen
from metasched.service.daemon import Daemon
from metasched.service.dashboard import pages
from metasched.service.state import memory_use

_log = logging.getLogger(__name__)

#: How long requests that are being answered may take to end (s).
GRACE = 5
#: How long one thread may compute while others wait (s). Answers are computed in one thread and stored by another;
#: with the usual five thousandths of a second each of an answer's calls to the system could cost it a turn as long.
TURN = 0.0005

#: How long after the start the first page is prepared (s): by then its past predictions are read.
PREPARE_AFTER = 2.0
#: Connections and files that may be open at a time, where the system lets the daemon have so many.
MOST_OPEN = 65_536


class _Loop(uvloop.Loop):
    """A loop whose servers wait for the handshake of a client no longer than for a request."""

    async def create_server(self, *given: Any, ssl: Any = None, **more: Any) -> Any:
        wait = None if ssl is None else slow_clients.WITHIN
        return await super().create_server(*given, ssl=ssl, ssl_handshake_timeout=wait, **more)


class _Server(uvicorn.Server):
    """A server that leaves signals to whoever runs it, since two run beside each other."""

    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]
        return nullcontext()


def serve(daemon: Daemon) -> None:
    """Start a daemon and serve it until SIGTERM or SIGINT; then write what is waiting.

    Raises
    ------
    InputError : when the address or the socket cannot be listened on, or the certificate cannot be read.
    """
    listen = daemon.configuration.listen
    if why := listen.unencrypted:
        _log.warning("%s: set certificate and key under [listen]", why)
    app = make_app(daemon)
    tcp = _tcp_socket(listen)
    unix = None if listen.socket is None else _unix_socket(listen.socket)
    try:
        servers = [(_server(app, listen, tls=True), tcp)]
        if unix is not None:
            servers.append((_server(app, listen, tls=False), unix))
        sys.setswitchinterval(TURN)
        _open_many()
        memory_use.keep_little()
        daemon.start()
        memory_use.keep_for_good()
        daemon.work.once(partial(pages.prepare, daemon), after=PREPARE_AFTER, left=True)
        try:
            with asyncio.Runner(loop_factory=_Loop) as runner:
                runner.run(_run(servers, app.state.lag))
        finally:
            daemon.stop()
    finally:
        tcp.close()
        if unix is not None and listen.socket is not None:
            unix.close()
            with suppress(OSError):
                os.unlink(listen.socket)


def _open_many() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, MOST_OPEN)), hard))


def _server(app: ASGIApp, listen: Listen, *, tls: bool) -> _Server:
    config = uvicorn.Config(
        app,
        http=DeadlineProtocol,
        ws="none",
        log_level="warning",
        access_log=False,
        lifespan="off",
        server_header=False,
        proxy_headers=False,  # what a client says of where it comes from would evade the limits of requests
        timeout_graceful_shutdown=GRACE,
        ssl_certfile=listen.certificate if tls else None,
        ssl_keyfile=listen.key if tls else None,
    )
    try:
        config.load()
    except OSError as error:
        raise InputError(f"cannot be read: {error}", where=f"listen.certificate {listen.certificate}") from None
    return _Server(config)


async def _run(servers: list[tuple[_Server, socket.socket]], lag: LoopLag) -> None:
    loop = asyncio.get_running_loop()

    def end() -> None:
        for server, _ in servers:
            server.should_exit = True

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end)
    watching = asyncio.create_task(lag.watch())
    await asyncio.gather(*(server.serve([each]) for server, each in servers))
    watching.cancel()


def _tcp_socket(listen: Listen) -> socket.socket:
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    tcp = socket.socket(family, socket.SOCK_STREAM)
    tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        tcp.bind((listen.host, listen.port))
    except OSError as error:
        tcp.close()
        raise InputError(
            f"cannot be opened for listening: {error.strerror or error}", where=f"{listen.host}:{listen.port}"
        ) from None
    return tcp


def _unix_socket(path: str) -> socket.socket:
    """A socket that everybody on this host may use: what each may ask for follows from who they are.

    One that a daemon left behind when it was killed is replaced.
    """
    unix = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if Path(path).exists() and stat.S_ISSOCK(os.stat(path).st_mode):
            if _answers(path):
                raise InputError("is in use by another daemon", where=path)
            os.unlink(path)
        mask = os.umask(0o111)
        try:
            unix.bind(path)
        finally:
            os.umask(mask)
    except OSError as error:
        unix.close()
        raise InputError(f"cannot be created: {error.strerror or error}", where=path) from None
    return unix


def _answers(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except OSError:
            return False
    return True
