"""Requests that are answered without the framework's detours are answered as the framework answers them."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from metasched.service.api import busy_routes
from metasched.service.app import make_app
from metasched.service.daemon import Daemon
from tests.service.daemons import headers_for, running

JSON = {"Content-Type": "application/json"}
ASKED = {"application": "cg", "problem_size": 500}
BODIES: tuple[tuple[str, Any], ...] = (
    ("/v1/placements", ASKED),
    ("/v1/placements", ASKED | {"max_processors": 2, "trial": True, "parameters": {"a": 1.5}}),
    ("/v1/placements", ASKED | {"processors": "1,2"}),
    ("/v1/placements", ASKED | {"problem_size": "500"}),
    ("/v1/placements", ASKED | {"application": "unheard of"}),
    ("/v1/placements", ASKED | {"min_processors": 4, "max_processors": 2}),
    ("/v1/placements", ASKED | {"problem_size": -1}),
    ("/v1/placements", ASKED | {"unknown": 1}),
    ("/v1/placements", [ASKED]),
    ("/v1/placements", None),
    ("/v1/loads", {"node": "e1", "samples": [[0, 0.5, 90.0]]}),
    ("/v1/loads", {"node": "e2", "samples": [[0, 7, 90.0], [1, 0.5, 90]]}),
    ("/v1/loads", {"node": "e1", "samples": [[0, 7, 90.0]]}),
    ("/v1/loads", {"node": "nobody knows it", "samples": [[0, 0.5, 90.0]]}),
    ("/v1/loads", {"node": "e1", "samples": []}),
    ("/v1/loads", {"node": "e1", "samples": [[0, 0.5]]}),
)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with running(tmp_path_factory.mktemp("busy"), limits={"requests_per_second": 1e6, "burst": 1_000_000}) as daemon:
        daemon.work.stop()  # each view has its nodes in another order
        yield daemon


def answered(daemon: Daemon, path: str, content: bytes, heads: dict[str, str]) -> tuple[Any, ...]:
    """Status, headers and body, without what no two answers have in common."""
    answer = TestClient(make_app(daemon)).post(path, content=content, headers=JSON | heads)
    kept = {name: value for name, value in answer.headers.items() if name != "content-length"}
    return answer.status_code, kept, re.sub(r"[0-9a-f]{32}", "", answer.text)


@pytest.mark.parametrize("role", ["reader", "scheduler", "agent", "nobody"])
def test_the_framework_would_answer_the_same(role: Any, daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    heads = {}
    if role != "nobody":
        secret = daemon.store.tokens.add(f"busy {role}", role, node="e1" if role == "agent" else None)
        heads = {"Authorization": f"Bearer {secret}"}
    daemon.access.refresh()
    statuses = set()
    for path, asked in BODIES:
        if path == "/v1/loads" and isinstance(asked, dict):
            now = time.time()
            asked = asked | {"samples": [[now + each[0], *each[1:]] for each in asked["samples"]]}
        body = json.dumps(asked).encode()
        direct = answered(daemon, path, body, heads)
        with monkeypatch.context() as patch:
            patch.setattr(busy_routes, "BUSY", {})
            assert answered(daemon, path, body, heads) == direct, (path, asked)
        statuses.add(direct[0])
    assert statuses == {"nobody": {401}}.get(role, {200, 422, 403} if role != "scheduler" else {200, 422})


@pytest.mark.parametrize(
    "content_type",
    ["application/json; charset=utf-8", "Application/JSON", "application/problem+json", "text/plain", "text/json", ""],
)
def test_the_type_of_a_body_counts_as_it_does_for_the_framework(
    content_type: str, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = daemon.store.tokens.add(f"busy {content_type}", "scheduler")
    daemon.access.refresh()
    body, heads = json.dumps(ASKED).encode(), {"Authorization": f"Bearer {secret}", "Content-Type": content_type}
    direct = answered(daemon, "/v1/placements", body, heads)
    with monkeypatch.context() as patch:
        patch.setattr(busy_routes, "BUSY", {})
        assert answered(daemon, "/v1/placements", body, heads) == direct
    assert direct[0] == (200 if content_type.lower().startswith("application/json") else 415)


def test_a_follower_refuses_both_ways(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    heads = headers_for(daemon, "busy follower", "scheduler")
    monkeypatch.setattr(daemon, "leads", False)
    for path, asked in (BODIES[0], ("/v1/loads", {"node": "e1", "samples": [[time.time(), 0.5, 90.0]]})):
        body = json.dumps(asked).encode()
        direct = answered(daemon, path, body, heads)
        with monkeypatch.context() as patch:
            patch.setattr(busy_routes, "BUSY", {})
            assert answered(daemon, path, body, heads) == direct
        assert direct[0] == 503


def test_the_two_routes_do_not_go_through_the_framework(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    async def framework(*_: object) -> None:
        raise AssertionError("the framework was asked")

    app = make_app(daemon)
    monkeypatch.setattr(app, "router", framework)
    heads = JSON | headers_for(daemon, "busy direct", "scheduler")
    for path, asked in (BODIES[0], ("/v1/loads", {"node": "e1", "samples": [[time.time(), 0.5, 90.0]]})):
        assert TestClient(app).post(path, json=asked, headers=heads).status_code == 200
    with pytest.raises(AssertionError, match="the framework was asked"):
        TestClient(app).get("/v1/health")
