"""The dashboard's pages: who may see them, what they say, and that nothing in them comes alive."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from waiting import until

from candidate_functions.exhaustive import exhaustive_search
from candidate_functions.terms import Observations
from metasched.predictors.analytic.signature import SignaturePredictor
from metasched.predictors.formulas import searched
from metasched.records import Load, Run
from metasched.service import simulations
from metasched.service.app import make_app
from metasched.service.authentication import NOBODY
from metasched.service.daemon import Daemon
from metasched.service.dashboard import pages, simulation
from metasched.service.simulations import Wrong
from metasched.signature.rules.fitting import fit
from metasched.signature.times.hardware import assumed
from metasched.signature.traces.trace import Trace, trace_of
from metasched.store.database.placement_records import PlacementRecords
from metasched.store.documents import dump
from metasched.store.errors import StoreError
from tests.service.busy_hour import busy_hour, day_of_loads
from tests.service.daemons import headers_for, running

HOSTILE = "<script>alert(1)</script>\"'{{7*7}}<img src=x onerror=alert(2)>\u202e"


class Page(HTMLParser):
    """The elements of a page with their attributes, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    folder, now = tmp_path_factory.mktemp("dashboard"), time.time()
    day_of_loads(folder, now)
    with running(folder) as daemon:
        admin = headers_for(daemon)
        client = TestClient(make_app(daemon))
        until(lambda: daemon.history.of("west", day=True))
        busy_hour(daemon, client, admin, now)
        client.post("/v1/placements", json={"application": HOSTILE, "problem_size": 1}, headers=admin)
        until(lambda: not daemon.models.waiting and daemon.store.placements.recent(1)[0].application == HOSTILE)
        yield daemon


@pytest.fixture
def client(daemon: Daemon) -> TestClient:
    return TestClient(make_app(daemon), follow_redirects=False)


def logged_in(client: TestClient, daemon: Daemon, role: str = "reader") -> str:
    name = f"{role} {time.monotonic()}"
    secret = daemon.store.tokens.add(name, role, node="e1" if role == "agent" else None)
    daemon.access.refresh()
    client.post("/login", data={"token": secret})
    return name


def test_lists_of_models_are_searched_before_the_first_page_is_asked_for(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched._searched.cache_clear()
    asked: list[int] = []

    def search(runs: Observations, **how: Any) -> Any:
        asked.append(len(runs))
        return exhaustive_search(runs, **how)

    monkeypatch.setattr(searched, "exhaustive_search", search)
    pages.prepare(daemon)
    prepared = len(asked)
    client = TestClient(make_app(daemon))
    assert "sorted list" in client.get("/", headers=headers_for(daemon, "prepared", "reader")).text.lower()
    assert len(asked) == prepared > 0


def test_without_a_session_one_is_sent_to_log_in(client: TestClient) -> None:
    answer = client.get("/")
    assert (answer.status_code, answer.headers["location"]) == (303, "/login")
    assert client.get("/login").status_code == 200
    client.cookies.set(pages.COOKIE, "made up")
    assert client.get("/").status_code == 303


def test_a_token_that_may_read_opens_the_page_until_it_is_revoked(client: TestClient, daemon: Daemon) -> None:
    name = logged_in(client, daemon)
    assert client.get("/").status_code == 200
    daemon.store.tokens.revoke(name)
    daemon.access.refresh()
    assert client.get("/").status_code == 303


def test_a_token_that_may_not_read_opens_nothing(client: TestClient, daemon: Daemon) -> None:
    logged_in(client, daemon, "agent")
    assert not client.cookies
    assert client.get("/").status_code == 303
    assert client.post("/login", data={"token": "wrong"}).status_code == 401


def test_logging_out_ends_the_session_itself(client: TestClient, daemon: Daemon) -> None:
    logged_in(client, daemon)
    word = client.cookies[pages.COOKIE]
    client.post("/logout")
    client.cookies.set(pages.COOKIE, word)
    assert client.get("/").status_code == 303


def test_the_cookie_holds_no_token_is_out_of_reach_and_opens_only_the_pages(client: TestClient, daemon: Daemon) -> None:
    secret = daemon.store.tokens.add("cookie", "admin")
    daemon.access.refresh()
    cookie = client.post("/login", data={"token": secret}).headers["set-cookie"]
    assert secret not in cookie
    assert {"httponly", "samesite=strict"} <= set(cookie.lower().split("; "))
    assert client.get("/v1/status").status_code == 401
    assert client.post("/v1/placements", json={"application": "cg", "problem_size": 9}).status_code == 401


def test_a_login_from_another_site_is_refused(client: TestClient, daemon: Daemon) -> None:
    secret = daemon.store.tokens.add("elsewhere", "reader")
    daemon.access.refresh()
    for origin, status in (("https://evil.example", 403), ("null", 403), ("http://testserver", 303)):
        answer = client.post("/login", data={"token": secret}, headers={"Origin": origin})
        assert answer.status_code == status
    # A browser does not say where a form comes from if the page that holds it says "no-referrer".
    assert client.get("/login").headers["referrer-policy"] == "same-origin"


def test_another_site_logs_nobody_out(client: TestClient, daemon: Daemon) -> None:
    logged_in(client, daemon)
    for origin in ("https://evil.example", "null"):
        answer = client.post("/logout", headers={"Origin": origin})
        assert (answer.status_code, "set-cookie" in answer.headers) == (403, False)
    assert client.get("/").status_code == 200


@pytest.mark.parametrize("body", [b"", b"token=" + b"x" * 100_000, b"\xff\xfe%zz=&&&", b"&".join([b"a=b"] * 2000)])
def test_any_login_form_is_answered(body: bytes, client: TestClient) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    assert client.post("/login", content=body, headers=headers).status_code == 401


def test_no_more_of_a_login_form_is_read_than_a_token_needs(daemon: Daemon) -> None:
    taken: list[int] = []
    sent: list[Any] = []

    async def receive() -> Any:
        taken.append(1000)
        return {"type": "http.request", "body": b"x" * 1000, "more_body": True}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(make_app(daemon)(posted("/login"), receive, send))
    assert (sent[0]["status"], sum(taken)) == (401, 5000)


def test_a_client_that_is_gone_before_its_form_has_come_is_no_fault(
    daemon: Daemon, caplog: pytest.LogCaptureFixture
) -> None:
    secret = daemon.store.tokens.add("gone", "reader")
    daemon.access.refresh()

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        """There is nobody to send it to."""

    for path in ("/login", "/simulation"):
        asyncio.run(make_app(daemon)(posted(path, (b"authorization", f"Bearer {secret}".encode())), receive, send))
    assert caplog.text == ""
    assert 'metasched_requests_total{method="POST",path="/login",status="400"} 1.0' in (
        daemon.metrics.exposition().decode()
    )


def posted(path: str, *heads: tuple[bytes, bytes]) -> dict[str, Any]:
    """The scope of a form that a client begins to send."""
    return {
        "type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b"",
        "headers": [*heads], "client": ("192.0.2.1", 9), "scheme": "http", "server": ("127.0.0.1", 80),
        "http_version": "1.1", "root_path": "",
    }  # fmt: skip


def test_the_page_tells_of_clusters_applications_and_placements(client: TestClient, daemon: Daemon) -> None:
    logged_in(client, daemon, "admin")
    page = Page(client.get("/").text)
    text = " ".join(page.text.split())
    for answer in (
        "shadow mode",
        "4 of 4 nodes up",
        "cg on east",
        "(N^1.5)/(cpu · P)",
        "standard error",
        "elsewhere, on w[1-2]",
        "failed after",
        "inside the interval",
        "best; the next is",
        "no model of unheard yet",
        "median error of the advice",
    ):
        assert answer in text, answer
    assert sum(tag == "figure" for tag, _ in page.elements) == 6
    assert len(daemon.models.recent.of("cg", "east")) >= 20
    day = Page(client.get("/?day=1").text)
    assert sum(tag == "tr" for tag, _ in day.elements) > 50
    assert "No model of unheard" in " ".join(Page(client.get("/?application=unheard").text).text.split())


def test_nothing_that_a_client_sent_comes_alive(client: TestClient, daemon: Daemon) -> None:
    logged_in(client, daemon, "admin")
    html = client.get("/", params={"application": HOSTILE}).text + client.get("/").text
    page = Page(html)
    assert HOSTILE in page.text
    assert not [tag for tag, attributes in page.elements if any(name.startswith("on") for name in attributes)]
    assert {attributes.get("src") for tag, attributes in page.elements if tag == "img"} == {"/static/mark.svg"}
    scripts = [attributes for tag, attributes in page.elements if tag == "script"]
    assert all(each.get("type") == "application/json" or each["src"].startswith("/static/") for each in scripts)
    assert "alert(1)</script>" not in html


def test_nothing_comes_from_elsewhere_and_the_policy_says_so(client: TestClient, daemon: Daemon) -> None:
    logged_in(client, daemon, "admin")
    answer = client.get("/")
    policy = dict(part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert {policy["script-src"], policy["style-src"], policy["form-action"]} == {"'self'"}
    assert policy["frame-ancestors"] == "'none'"
    assert "style=" not in answer.text
    for tag, attributes in Page(answer.text).elements:
        for name in ("src", "href", "action"):
            target = attributes.get(name)
            assert target is None or re.match(r"[/?#](?!/)", target), (tag, target)
            if target is not None and target.startswith("/static/"):
                assert client.get(target).status_code == 200
    assert "MIT" in client.get("/static/uplot/LICENSE").text
    assert client.get("/static/../pages.py").status_code == 404


def test_charts_and_tables_tell_the_loads_that_came(client: TestClient, daemon: Daemon) -> None:
    rows = daemon.history.of("west", day=True)
    assert len(rows) > 200
    assert all(row.cpu[0] <= row.cpu[1] <= row.cpu[2] for row in rows)
    assert all(later.time > row.time for row, later in pairwise(rows))
    fine = daemon.history.of("west")
    assert fine[0].time - rows[0].time > 12 * 3600.0  # the last two hours of a day
    assert 1 <= fine[-1].fresh <= 4
    found = daemon.store.loads.all(since=rows[50].time, until=rows[50].time + 300.0)
    mine = [k for k, node in enumerate(found.nodes) if node.startswith("w")]
    means = [found.available_cpu[found.offsets[k] : found.offsets[k + 1]].mean() for k in mine]
    assert rows[50].cpu[1] == pytest.approx(np.median(means))


def test_the_page_of_a_fresh_daemon_says_what_is_missing_and_a_failing_database_shows(tmp_path: Path) -> None:
    with running(tmp_path, learned=False) as daemon:
        client = TestClient(make_app(daemon), follow_redirects=False)
        logged_in(client, daemon)
        page = " ".join(Page(client.get("/").text).text.split())
        assert "No application is known yet" in page
        assert "No placement has been requested yet" in page
        assert "e1" in page

        class Failing(PlacementRecords):
            def recent(self, limit: int = 100, **filters: object) -> tuple[object, ...]:  # type: ignore[override]
                raise StoreError("is locked by another process", where="m.db")

        daemon.store.placements = Failing(daemon.store.engine)
        answer = client.get("/")
        assert answer.status_code == 200
        assert "m.db: is locked by another process" in answer.text


def test_a_model_made_from_a_signature_shows_its_phases(tmp_path: Path) -> None:
    def ring(n: int) -> Trace:
        solve = [("compute", (1.6e9 / n,)), ("allreduce", (1000, 0, 0))] * 10
        write = [("compute", (1e7,)), ("gather", (800, 800, 0, 0, 0))] * 5
        return trace_of({rank: [("init", ()), *solve, *write, ("finalize", ())] for rank in range(n)})

    model = SignaturePredictor(
        fit([ring(n) for n in (4, 8, 16)]).application,
        assumed(),
        problem_size=1000.0,
        application="ring",
        cluster="east",
    )
    model.fit([Run("ring", "east", 1000.0, 64, 1.0, 1000.0, 0.5)])
    with running(tmp_path, learned=False) as daemon:
        daemon.store.models.save("ring", "east", json.loads(dump(model)))
        daemon.models.read()
        client = TestClient(make_app(daemon), follow_redirects=False)
        logged_in(client, daemon)
        page = client.get("/?application=ring").text
        assert "Phases of the signature on 64" in page
        _, _, table = page.partition("efficiency against 4<")
        row = r'<th scope="row">(\w+)</th>' + 3 * r"<td>([\d.]+) %</td>"
        phases = {name: [float(each) for each in shown] for name, *shown in re.findall(row, table)}
        assert {*phases} <= {"1", "2", "others"}
        assert sum(shown[0] for shown in phases.values()) == pytest.approx(100.0, abs=0.2)
        # The first phase is shared out among all; in the second each process does the same work again.
        assert phases["1"][2] > 80.0
        assert 4.0 < phases["2"][2] < 6.3


def test_what_was_known_before_a_restart_is_known_after_it(tmp_path: Path) -> None:
    now = time.time()
    day_of_loads(tmp_path, now)
    with running(tmp_path) as daemon:
        admin = headers_for(daemon)
        busy_hour(daemon, TestClient(make_app(daemon)), admin, now)
        before = daemon.jobs.ledger.report().overall
        assert (before.jobs, before.failed) == (10, 1)
    with running(tmp_path) as daemon:
        until(lambda: daemon.jobs.ledger.report().overall == before and daemon.history.of("east"))
        until(lambda: len(daemon.models.recent.of("cg", "east") + daemon.models.recent.of("cg", "west")) == 10)


def test_a_page_of_a_thousand_nodes_asks_the_database_for_the_newest_placements_only(tmp_path: Path) -> None:
    clusters = '[[cluster]]\nname = "big"\nnodes = [{ names = "b[1-1000]", processors = 8 }]\n'
    with running(tmp_path, learned=False, clusters=clusters) as daemon:
        daemon.clusters.note([Load(time.time(), f"b{k}", 0.5 + k / 3000, 90.0) for k in range(1, 1001)])
        daemon.views.refresh()
        asked: list[str] = []
        real_store = daemon.store

        class Only(PlacementRecords):
            def recent(self, limit: int = 100, **filters: object) -> tuple[object, ...]:  # type: ignore[override]
                asked.append(f"recent {limit}")
                return super().recent(limit, **filters)  # type: ignore[arg-type]

        daemon.store = SimpleNamespace(placements=Only(real_store.engine))  # type: ignore[assignment]
        try:
            found = pages.content(daemon, time.time(), NOBODY)
        finally:
            daemon.store = real_store
        assert asked == [f"recent {pages.PLACEMENTS}"]
        assert (found["clusters"][0].nodes, found["clusters"][0].free) == (1000, 8000)
        assert found["clusters"][0].tight[0].name == "b1"


def test_the_simulator_is_for_those_who_may_read_and_shows_errors_at_their_line(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = TestClient(make_app(daemon), follow_redirects=False)
    form = {"system": "name = 1\n", "application": f"def a():\n    {HOSTILE}\n", "processes": "", "variables": ""}
    assert client.get("/simulation").status_code == client.post("/simulation", data=form).status_code == 303
    secret = daemon.store.tokens.add("simulating", "reader")
    daemon.access.refresh()
    client.headers["Authorization"] = f"Bearer {secret}"
    page = client.get("/simulation")
    assert page.status_code == 200
    assert "galera-plus" in page.text
    monkeypatch.setattr(simulations, "_simulated", lambda asked: Wrong("line 2: is wrong", "application", 2))
    refused = client.post("/simulation", data=form)
    assert refused.status_code == 422
    assert "line 2: is wrong" in refused.text
    assert "<script>alert" not in refused.text
    assert client.post("/simulation", data=form, headers={"Origin": "https://elsewhere.example"}).status_code == 403
    told = {"execution_time": 2.5, "energy": None, "power": {"mean": None, "peak": None}, "success": None,
            "expected_completion": None, "labels": {"a": {"processes": 3, "finished": 2.5, "energy": None}},
            "warnings": ["no failure rate"]}  # fmt: skip
    monkeypatch.setattr(simulations, "_simulated", lambda asked: told)
    shown = client.post("/simulation", data=form)
    assert shown.status_code == 200
    assert "2.500000 s" in shown.text
    number = re.search(r"/simulation\?kept=(\d+)", shown.text)
    assert number is not None
    again = client.get(f"/simulation?kept={number[1]}")
    assert "2.500000 s" in again.text
    assert "name = 1" in again.text


@pytest.mark.parametrize(
    ("wrong", "marked"),
    [
        (Wrong("no model", "system", 1), [(1, "s1", True), (2, "s2", False), (3, "s3", False)]),
        (Wrong("no model", "system", 4), [(1, "s1", False), (2, "s2", False), (3, "s3", False), (4, "s4", True)]),
        (
            Wrong("no name", "application", 5),
            [(2, "a2", False), (3, "a3", False), (4, "a4", False), (5, "a5", True), (6, "a6", False), (7, "a7", False)],
        ),
        (Wrong("processes"), []),
        (None, []),
    ],
)
def test_a_text_that_is_wrong_is_shown_with_the_lines_around_the_one_that_is(
    wrong: Wrong | None, marked: list[tuple[int, str, bool]]
) -> None:
    asked = simulations.Asked("s1\ns2\ns3\ns4\n", "a1\na2\na3\na4\na5\na6\na7\na8\n")
    shown = simulation.content(asked, wrong, [])
    assert shown["marked"] == marked
    assert (shown["asked"], shown["wrong"], shown["kept"]) == (asked, wrong, None)
