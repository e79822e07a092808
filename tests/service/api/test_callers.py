"""Of what strangers send to the interface no body is read, and each request counts once."""

from __future__ import annotations

import asyncio
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from metasched.service.app import make_app
from metasched.service.authentication import Access, Buckets
from tests.service.daemons import running

KIND = {"Content-Type": "application/json"}


def status(app: FastAPI, method: str, path: str) -> int:
    """The status of a request whose body never comes; -1 where it is waited for."""
    sent: list[Any] = []

    async def receive() -> Any:
        raise NotImplementedError

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": b"",
        "headers": [(b"content-type", b"application/json")], "client": ("192.0.2.1", 9), "scheme": "http",
        "server": ("127.0.0.1", 80), "http_version": "1.1", "root_path": "",
    }  # fmt: skip
    try:
        asyncio.run(app(scope, receive, send))
    except NotImplementedError:
        return -1
    return int(sent[0]["status"])


def test_no_body_of_a_stranger_is_read(tmp_path: Path) -> None:
    with running(tmp_path, learned=False, limits={"requests_per_second": 1e-3, "burst": 100}) as daemon:
        app = make_app(daemon)
        paths = TestClient(app).get("/v1/openapi.json").json()["paths"]
        with_body = [(method, path) for path, methods in paths.items() for method in methods if method != "get"]
        assert len(with_body) > 10
        for method, path in with_body:
            assert status(app, method.upper(), path) == 401, path
        assert status(app, "POST", "/v1/nothing") == 401
        assert status(app, "POST", "/v1/rankings") == 401
        while status(app, "POST", "/v1/rankings") == 401:
            pass
        assert status(app, "POST", "/v1/loads") == 429


BODIES = (b"{}", b"[", b'{"node": "e1", "samples": [[0, 0.5, 90.0]]}')


def test_a_request_counts_once_and_its_credential_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[str] = []
    read: list[str] = []

    class Counting(Buckets):
        def wait(self, name: str, now: float | None = None, *, count: int = 1) -> float:
            counted.append(name)
            return 0.0

    async def other(self: Access, authorization: str, request: str, host: str) -> Any:
        read.append(request)
        return self.known.client(f"Bearer {secret}")

    monkeypatch.setattr(Access, "other", other)
    with running(tmp_path, learned=False) as daemon:
        secret = daemon.store.tokens.add("once", "admin")
        daemon.access.refresh()
        daemon.access.buckets = Counting(1.0, 1)
        client = TestClient(make_app(daemon))
        for path, body in product(("/v1/placements", "/v1/loads", "/v1/rankings", "/v1/runs"), BODIES):
            counted.clear()
            read.clear()
            assert client.post(path, content=body, headers=KIND | {"Authorization": "MUNGE x"}).status_code == 422
            assert (counted.count("once"), read) == (1, [f"POST {path}"])
