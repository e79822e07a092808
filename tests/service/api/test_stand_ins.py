"""Routes beside a daemon of which everything is known: whole answers, and what is passed on of a request."""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import HTTPException
from starlette.requests import ClientDisconnect

from metasched import __version__
from metasched.service.api import middleware, observations, status
from metasched.service.schemas import ForgetIn
from metasched.store.database.run_records import Selection


@dataclass
class Learned:
    """What is learned of an application."""

    runs: int


def judged(word: str) -> Any:
    return SimpleNamespace(as_dict=lambda: {"said": word})


def daemon(parts: int, models: int) -> Any:
    report = SimpleNamespace(
        overall=judged("overall"), parts={(f"a{number}", "c"): judged(f"part {number}") for number in range(parts)}
    )
    learned = {(f"a{number}", "east"): Learned(number) for number in range(models)}
    partitions = [SimpleNamespace(scheduler=name, releases=name != "b") for name in ("c", "b", "a", "a")]
    return SimpleNamespace(
        clock=SimpleNamespace(now=lambda: 100.0), started_at=40.0, leads=True, faults=lambda: {"late": "a fault"},
        models=SimpleNamespace(
            all=lambda: learned, waiting=3, failures=2, learned=lambda: learned,
            notices=lambda application, platform: [f"{application} on {platform}"],
        ),
        mode=SimpleNamespace(mode="shadow", as_dict=lambda: {"mode": "shadow"}), store=SimpleNamespace(name="site.db"),
        clusters=SimpleNamespace(
            view=SimpleNamespace(partitions=partitions), seen_at={"c8": 70.0, "g": 99.0}, latest={"n1": 1, "n2": 2}
        ),
        load_sources=SimpleNamespace(reports=lambda: [SimpleNamespace(as_dict=lambda now: {"at": now})]),
        moves=SimpleNamespace(paid=4, regretted=1),
        jobs=SimpleNamespace(ledger=SimpleNamespace(report=lambda: report)),
        configuration=SimpleNamespace(energy="energy"),
    )  # fmt: skip


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "verdict", lambda quality, by: judged(f"{by} verdict on {quality.as_dict()['said']}"))
    monkeypatch.setattr(status, "next_step", lambda mode, found: judged(f"in {mode} after {found.as_dict()['said']}"))


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("sees_all", [True, False])
def test_the_status_is_what_the_daemon_knows_now(sees_all: bool) -> None:
    client: Any = SimpleNamespace(sees_all=sees_all)
    assert status.status(daemon(1, 2), client) == {
        "version": __version__, "mode": "shadow", "up": 60.0, "database": "site.db", "leads": True,
        "faults": {"late": "a fault"}, "partitions": 4, "sources": {"c8": 30.0, "g": 1.0}, "releases": ["a", "c"],
        "load_sources": [{"at": 100.0}], "nodes_with_loads": 2, "models": 2, "runs_to_learn": 3, "learning_failures": 2,
        "moves": {"paid": 4, "regretted": 1},
        "learned": [
            {"application": f"a{number}", "platform": "east", "runs": number,
             "notices": [f"a{number} on east"] if sees_all else []}
            for number in range(2)
        ],
        "quality": {"said": "overall"}, "verdict": {"said": "energy verdict on overall"},
        "next_step": {"said": "in shadow after energy verdict on overall"},
        "by_application": [
            {"application": "a0", "platform": "c", "cluster": "c", "said": "part 0",
             "verdict": {"said": "energy verdict on part 0"}}
        ],
        "more_applications": 0,
    }  # fmt: skip


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize(("many", "listed", "more"), [(0, 0, 0), (200, 200, 0), (203, 200, 3)])
def test_no_more_applications_are_listed_than_a_status_holds(many: int, listed: int, more: int) -> None:
    client: Any = SimpleNamespace(sees_all=True)
    found = status.status(daemon(many, many), client)
    assert (len(found["by_application"]), found["more_applications"]) == (listed, more)
    assert (len(found["learned"]), found["models"]) == (listed, many)


@pytest.mark.parametrize(
    ("asked", "selected"),
    [
        ({"ids": ["0a" * 16, "1b" * 16]}, Selection(("0a" * 16, "1b" * 16), None, None, None, None, None)),
        (
            {"user": "ann", "since": 1.0, "until": 2.0, "application": "cg", "platform": "east"},
            Selection(None, "ann", 1.0, 2.0, "cg", "east"),
        ),
    ],
)
def test_the_runs_are_forgotten_that_were_asked_for(
    asked: dict[str, Any], selected: Selection, monkeypatch: pytest.MonkeyPatch
) -> None:
    forgotten, said = [], []
    found = SimpleNamespace(runs=2)
    monkeypatch.setattr(observations, "audit", lambda *words: said.append(words))
    monkeypatch.setattr(observations, "forgotten_document", lambda found: {"runs": found.runs})
    models: Any = SimpleNamespace(forget=lambda selection: forgotten.append(selection) or found)
    client: Any = SimpleNamespace(name="root")
    assert observations.forget_runs(ForgetIn.model_validate(asked), models, client) == {"runs": 2}
    assert forgotten == [selected]
    assert said == [("2 runs forgotten", "client root")]


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    ("role", "node", "refused"), [("agent", "n1", ""), ("agent", "n2", "n2"), ("scheduler", "n2", "")]
)
def test_an_agent_sends_loads_of_its_own_node_alone(role: str, node: str, refused: str, known: bool) -> None:
    screened = SimpleNamespace(kept=[1, 2] if known else [], refused={"old": 3, "odd": 1}, repaired={"x": 1})
    taken = []

    async def take(*given: Any) -> Any:
        taken.append(given)
        return screened

    reported: list[Any] = []
    metrics: Any = SimpleNamespace(reported=lambda *given: reported.append(given))
    batch: Any = SimpleNamespace(node="n1", samples="samples", unknown=("newer",))
    intake: Any = SimpleNamespace(take=take)
    client: Any = SimpleNamespace(role=role, node=node, name="token")
    answer = observations.take_loads(batch, intake, metrics, client)
    if refused or not known:
        with pytest.raises(HTTPException) as refusal:
            asyncio.run(answer)
        assert (refusal.value.status_code, refusal.value.detail) == (
            (403, "this agent may only send loads of node n2")
            if refused
            else (422, "no sample of node n1 is valid: old (3), odd (1)")
        )
    else:
        assert asyncio.run(answer) == {"taken": 2, "refused": {"old": 3, "odd": 1}, "repaired": {"x": 1}}
    assert taken == ([] if refused else [("n1", "samples", "token")])
    assert reported == ([] if refused else [("/v1/loads", ("newer",))])


class Behind:
    """What stands behind the gate: reads the whole body, and answers or fails."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error, self.bodies = error, []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        self.bodies.append(body)
        if self.error:
            raise self.error
        scope["route"] = SimpleNamespace(path="/v1/{x}")
        await send({"type": "http.response.start", "status": 201, "headers": []})
        await send({"type": "http.response.body", "body": b"done"})


def passed(
    behind: Behind, *pieces: bytes, method: str = "POST", path: str = "/v1/x", busy: tuple[bool, int] = (False, 0),
    **heads: str,
) -> tuple[list[dict[str, Any]], list[tuple[str, str, int]]]:  # fmt: skip
    """The messages that leave the gate, of at most ten bytes, and what is counted."""
    counted, sent, left = [], [], list(pieces)
    metrics: Any = SimpleNamespace(answered=lambda *given: counted.append(given))
    lag: Any = SimpleNamespace(busy=busy[0])
    gate = middleware.Gate(behind, 10, metrics, lag)
    gate._batches = busy[1]

    async def receive() -> dict[str, Any]:
        piece = left.pop(0) if left else b""
        return {"type": "http.request", "body": piece, "more_body": bool(left)}

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(name.replace("_", "-").encode(), value.encode()) for name, value in heads.items()]
    asyncio.run(gate({"type": "http", "method": method, "path": path, "headers": headers}, receive, send))
    assert gate._batches == busy[1]
    ((method, route, status, seconds),) = counted
    assert 0.0 <= seconds < 3600.0
    return sent, [(method, route, status)]


def refusal(status: int, why: str, header: tuple[bytes, bytes]) -> list[dict[str, Any]]:
    body = f'{{"detail":"{why}"}}'.encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), header]
    return [
        {"type": "http.response.start", "status": status, "headers": headers},
        {"type": "http.response.body", "body": body},
    ]


JSON = {"content_type": "Application/JSON ; charset=utf-8"}
DONE = [
    {"type": "http.response.start", "status": 201, "headers": []}, {"type": "http.response.body", "body": b"done"},
]  # fmt: skip
CLOSE = (b"connection", b"close")
LARGE = refusal(413, "the request is larger than 10 bytes", CLOSE)
NO_JSON = refusal(415, "the request is not said to be JSON, expected Content-Type: application/json", CLOSE)
BUSY = refusal(503, "too busy for samples, send them again later", (b"retry-after", b"5"))


@pytest.mark.parametrize(
    ("pieces", "asked", "answer"),
    [
        ((b"0123456789",), JSON, DONE),
        ((b"01234", b"56789"), JSON, DONE),
        ((b"01234", b"567890"), JSON, LARGE),
        ((b"",), JSON | {"content_length": "10"}, DONE),
        ((b"",), JSON | {"content_length": "11"}, LARGE),
        ((b"",), JSON | {"content_length": "9" * 30}, LARGE),
        ((b"",), JSON | {"content_length": "-11"}, DONE),
        ((b"x",), {}, NO_JSON),
        ((b"x",), {"content_type": "text/plain"}, NO_JSON),
        ((b"x",), {"method": "PUT"}, NO_JSON),
        ((b"x",), {"method": "PATCH"}, NO_JSON),
        ((b"x",), {"method": "GET"}, DONE),
        ((b"x",), {"path": "/login"}, DONE),
        ((b"x",), JSON | {"path": "/v1/loads"}, DONE),
        ((b"x",), JSON | {"path": "/v1/loads", "busy": (True, 0)}, DONE),
        ((b"x",), JSON | {"path": "/v1/loads", "busy": (False, 1)}, DONE),
        ((b"x",), JSON | {"path": "/v1/loads", "busy": (True, 1)}, BUSY),
        ((b"x",), JSON | {"path": "/v1/x", "busy": (True, 1)}, DONE),
        ((b"x",), {"method": "GET", "path": "/v1/loads", "busy": (True, 1)}, DONE),
    ],
)
def test_a_request_is_let_through_or_refused_and_counted_by_its_route(
    pieces: tuple[bytes, ...], asked: dict[str, Any], answer: list[dict[str, Any]]
) -> None:
    behind = Behind()
    sent, counted = passed(behind, *pieces, **asked)
    assert sent == answer
    assert behind.bodies == ([b"".join(pieces)] if answer is DONE else [])
    method = asked.get("method", "POST")
    assert counted == ([(method, "/v1/{x}", 201)] if answer is DONE else [("", "other", answer[0]["status"])])


@pytest.mark.parametrize(
    ("error", "status", "raised"),
    [(LookupError("behind"), 500, pytest.raises(LookupError)), (ClientDisconnect(), 400, nullcontext())],
)
def test_what_fails_behind_the_gate_is_counted_as_a_failure_and_raised_unless_its_client_went(
    error: Exception, status: int, raised: AbstractContextManager[object]
) -> None:
    counted = []
    metrics: Any = SimpleNamespace(answered=lambda *given: counted.append(given[:3]))
    gate = middleware.Gate(Behind(error), 10, metrics, SimpleNamespace(busy=False))  # type: ignore[arg-type]

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    scope = {"type": "http", "method": "POST", "path": "/v1/loads", "headers": [(b"content-type", b"application/json")]}
    with raised:
        asyncio.run(gate(scope, receive, receive))  # type: ignore[arg-type]
    assert (counted, gate._batches) == ([("", "other", status)], 0)
