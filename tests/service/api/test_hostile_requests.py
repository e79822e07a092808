"""Requests that mean harm, or come from something broken: each is refused in one line, none is an error of ours."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from typing import Annotated

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from metasched import node_names
from metasched.advised_placements import Ask, Message
from metasched.service import schemas
from metasched.service.app import make_app
from metasched.service.daemon import Daemon
from metasched.store.roles import ROLES
from tests.service.daemons import running

JSON = {"Content-Type": "application/json"}
POSTED = ("/v1/loads", "/v1/runs", "/v1/jobs", "/v1/placements", "/v1/predictions")
#: Routes that are an administrator's alone.
ADMINISTRATION = {("POST", "/v1/runs/forget"), ("POST", "/v1/history/forget")}
#: Routes that readers may not ask, since they show jobs of others.
OF_OTHERS = {("GET", "/v1/sites/jobs/{uid}"), ("GET", "/v1/problem-sizes")}
#: Routes for the agents of sites alone.
OF_SITES = {("POST", "/v1/sites/links")}
#: What each role may ask for, besides an admin, who may all; health and the OpenAPI document are open.
ALLOWED = {
    "site": OF_SITES,
    "agent": {("POST", "/v1/loads")},
    "reader": {("GET", "*"), *(("POST", f"/v1/{name}") for name in ("predictions", "history/predictions", "waits"))},
    "scheduler": {("GET", "*"), ("POST", "*")},  # but what only an administrator or a site's agent may
    "admin": {("GET", "*"), ("POST", "*")},
}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    limits = {"body_bytes": 100_000, "requests_per_second": 1e6, "burst": 1_000_000}
    with running(tmp_path_factory.mktemp("attacked"), limits=limits) as daemon:
        yield daemon


@pytest.fixture(scope="module")
def client(daemon: Daemon) -> TestClient:
    return TestClient(make_app(daemon))


@pytest.fixture(scope="module")
def heads(daemon: Daemon) -> dict[str, dict[str, str]]:
    nodes = {"agent": "e1", "site": "home"}
    secrets = {role: daemon.store.tokens.add(role, role, node=nodes.get(role)) for role in ROLES}
    made = {role: {"Authorization": f"Bearer {secret}"} for role, secret in secrets.items()}
    daemon.access.refresh()
    return made


def texts() -> Iterator[tuple[type[Message], str]]:
    """The fields of all requests, but comments, of which only marks are stored, and those with fields of their own."""
    for model in (Ask, *vars(schemas).values()):
        if isinstance(model, type) and issubclass(model, Message):
            yield from ((model, name) for name in model.model_fields if name not in ("comment", "devices"))


@pytest.mark.parametrize(("model", "name"), [*texts()], ids=lambda value: getattr(value, "__name__", value))
@pytest.mark.filterwarnings("ignore:The 'validation_alias' attribute")
def test_no_text_of_a_request_holds_what_a_database_cannot_hold(model: type[Message], name: str) -> None:
    field = model.model_fields[name]
    alone = TypeAdapter(Annotated[field.annotation, field])
    for value in ("a\0b", ["a\0b"], {"a\0b": "x"}, {"x": "a\0b"}):
        with pytest.raises(ValidationError):
            alone.validate_python(value)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[" * 90_000,
        b'{"a":' * 15_000,
        b"[" * 40_000 + b"]" * 40_000,
        b'{"node": "e1", "samples": ' + b"[" * 500 + b"1" + b"]" * 500 + b"}",
        b'{"problem_size": ' + b"9" * 50_000 + b"}",
        b'{"node": "e1", "samples": [[1e400, 1, 1]]}',
        b'{"application": "cg", "problem_size": Infinity}',
        b'{"application": "cg", "problem_size": -NaN}',
        b'{"application": "\xff\xfe", "problem_size": 1}',
        b'{"application": "\\ud800\\ud800", "problem_size": 1}',
        b'{"application": "cg\\u0000", "problem_size": 1}',
        b"\x00" * 1000,
        b"\xef\xbb\xbf{}",
        b"PK\x03\x04" + bytes(range(256)),
    ],
    ids=range(16),
)
def test_bodies_that_are_no_message_are_refused(body: bytes, client: TestClient, heads: dict) -> None:
    for path in POSTED:
        answer = client.post(path, content=body, headers=heads["admin"] | JSON)
        assert 400 <= answer.status_code < 500, (path, answer.text)
        assert "\n" not in json.dumps(answer.json()["detail"])


def test_a_field_that_nobody_knows_is_named_in_short(client: TestClient, heads: dict) -> None:
    name = "a\n\x1b" + "k" * 50_000
    asked = {"application": "cg", "problem_size": 900, name: 1}
    detail = client.post("/v1/rankings", json=asked, headers=heads["admin"]).json()["detail"]
    assert detail.startswith("body.a kkk")
    assert detail.isprintable()
    assert len(detail) < 200


KINDS = ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "x/" * 500, "", None, "json",
         "application/jsonp", "text/plain; application/json"]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_other_kinds_of_content_are_refused(kind: str | None, client: TestClient, heads: dict) -> None:
    """Whatever a version of the framework makes of them: the body would be a sound question."""
    body = json.dumps({"application": "cg", "platform": "east", "problem_size": 900, "processors": 1}
                      | {"available_cpu": 0.5, "available_bandwidth": 90.0}).encode()  # fmt: skip
    said = {} if kind is None else {"Content-Type": kind}
    for path in POSTED:
        answer = client.post(path, content=body, headers=heads["admin"] | said)
        assert answer.status_code == 415
        assert "expected Content-Type: application/json" in answer.json()["detail"]


def test_json_may_be_said_to_be_in_utf_8(client: TestClient, heads: dict) -> None:
    said = {"Content-Type": "Application/JSON; charset=utf-8"}
    body = b'{"application": "cg", "problem_size": 900, "trial": true}'
    assert client.post("/v1/placements", content=body, headers=heads["admin"] | said).status_code == 200


def test_every_route_lets_in_only_the_roles_that_it_is_for(client: TestClient, heads: dict) -> None:
    paths = client.get("/v1/openapi.json").json()["paths"]
    assert len(paths) >= 12
    for path, methods in paths.items():
        if path == "/v1/health":
            continue
        for method in (each.upper() for each in methods):
            filled = path.replace("{application}", "cg").replace("{cluster}", "east")
            assert client.request(method, filled, json={}).status_code == 401, path
            for role, allowed in ALLOWED.items():
                status = client.request(method, filled, json={}, headers=heads[role]).status_code
                may = bool({(method, path), (method, "*")} & allowed)
                may &= role == "admin" or (method, path) not in ADMINISTRATION
                may &= role in ("admin", "site") or (method, path) not in OF_SITES
                may &= role != "reader" or (method, path) not in OF_OTHERS
                assert (status not in (401, 403)) if may else (status in (403, 422)), (method, path, role, status)
                assert status < 500 or (path, status) == ("/v1/waits/{job}", 503)  # no queue is known yet


@pytest.mark.parametrize(
    "authorization",
    [
        "Bearer",
        "Bearer ",
        "Basic !!!",
        "Basic /w==",
        "Basic Og==",
        "Digest x",
        "Bearer " + "x" * 60_000,
        "Bearer \xff",
        "\t",
    ],
)
def test_a_header_that_proves_nothing_opens_nothing(authorization: str, client: TestClient) -> None:
    headers = {"Authorization": authorization.encode("latin-1")}
    assert client.get("/v1/status", headers=headers).status_code == 401
    assert client.get("/", headers=headers, follow_redirects=False).status_code == 303


EXTREME = st.one_of(
    st.floats(min_value=5e-324, allow_infinity=False, allow_nan=False),
    st.sampled_from([5e-324, 1e-300, 1.0, 1e9, 1e300, math.nextafter(math.inf, 0)]),
)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numbers overflow here; what counts is the answer
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    size=EXTREME,
    processors=st.sampled_from([1, 2, 1000, 10_000_000]),
    cpu=st.sampled_from([5e-324, 1e-9, 1.0]),
    bandwidth=EXTREME,
    level=st.sampled_from([1e-300, 0.5, math.nextafter(1.0, 0)]),
)
def test_extreme_numbers_are_answered_or_refused(
    size: float, processors: int, cpu: float, bandwidth: float, level: float, client: TestClient, heads: dict
) -> None:
    asked = {
        "application": "cg", "cluster": "east", "problem_size": size, "processors": processors, "available_cpu": cpu,
        "available_bandwidth": bandwidth, "level": level,
    }  # fmt: skip
    answer = client.post("/v1/predictions", json=asked, headers=heads["reader"])
    assert answer.status_code in (200, 422), answer.text
    question = {
        "application": "cg",
        "problem_size": size,
        "min_processors": min(processors, 2),
        "time_limit": bandwidth,
    }
    answer = client.post("/v1/placements", json=question, headers=heads["scheduler"])
    assert answer.status_code in (200, 422), answer.text


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    words=st.dictionaries(
        st.sampled_from(["app", "n", "p", "placement", "phase"]), st.text(st.characters(codec="utf-8"), max_size=20)
    ),
    rest=st.text(st.characters(codec="utf-8"), max_size=60),
)
def test_jobs_with_any_comment_are_taken_or_refused(
    words: dict[str, str], rest: str, client: TestClient, heads: dict
) -> None:
    comment = f"{rest} metasched:{','.join(f'{name}={value}' for name, value in words.items())}"
    job = {"scheduler": rest[:9] or "s", "job": "1", "comment": comment, "nodes": "e1", "start": 10.0, "end": 12.0}
    assert client.post("/v1/jobs", json=job, headers=heads["scheduler"]).status_code in (200, 422)


@pytest.mark.parametrize(
    ("names", "why"),
    [
        ("n[1-999999999]", "is more than 20000 nodes"),
        ("n[1-3000][1-3000]", "is more than 20000 nodes"),
        ("n[" + "1-9," * 9000 + "1]", "is more than 20000 nodes"),
        (",".join(f"n{number}" for number in range(15_000)), "should have at most 65536 characters"),
        ("n[1-2", "missing bracket"),
        ("n[2-1]", "bad range"),
        ("n[1-9/0]", "bad range"),
    ],
    ids=range(7),
)
def test_names_that_stand_for_too_many_nodes_or_none_are_refused(
    names: str, why: str, client: TestClient, heads: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = node_names._unfolded  # what is not refused before it is unfolded would be answered
    monkeypatch.setattr(node_names, "_unfolded", lambda part: ["n1"] if "more than" in why else really(part))
    asked = {"application": "cg", "problem_size": 900, "exclude": names}
    refused = client.post("/v1/placements", json=asked, headers=heads["scheduler"])
    assert refused.status_code == 422
    assert why in refused.json()["detail"]
    assert len(refused.json()["detail"]) < 600


@pytest.mark.parametrize("names", ["e1,e1", "e[1,1]", "e[1-1],e1", "e1,e[1-1],e1"])
def test_a_node_that_is_named_twice_is_one_node(client: TestClient, daemon: Daemon, heads: dict, names: str) -> None:
    job = {
        "scheduler": "east", "job": names, "comment": "metasched:app=twice,n=7", "nodes": names, "start": 10.0,
        "end": 12.0,
    }  # fmt: skip
    assert client.post("/v1/jobs", json=job, headers=heads["scheduler"]).json()["stored"]
    (run,) = [run for run in daemon.store.runs.all(application="twice") if run.run.extra["job"] == names]
    assert (run.run.nodes, run.run.processors) == (("e1",), 1)


def test_a_page_of_loads_is_bounded_and_goes_on_where_it_ended(client: TestClient, daemon: Daemon, heads: dict) -> None:
    now = time.time()
    times = [now - 9000 + k for k in range(8000)]
    for first in range(0, 8000, 2000):
        batch = {"node": "e2", "samples": [[at, 0.5, 90.0] for at in times[first : first + 2000]]}
        assert client.post("/v1/loads", json=batch, headers=heads["admin"]).status_code == 200
    read: list[float] = []
    since = 0.0
    while page := client.get("/v1/loads", params={"node": "e2", "since": since}, headers=heads["reader"]).json()[
        "samples"
    ]:
        assert len(page) <= 3600
        read += [sample[0] for sample in page]
        since = math.nextafter(page[-1][0], math.inf)
    assert read == times
