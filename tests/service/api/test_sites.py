"""The routes of sites: what a site answers a grid where all is taken, and who may send jobs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from metasched.client.completion import estimates
from metasched.history.queue import QueuedJob
from metasched.placement.clusters.partition import Partition
from metasched.placement.clusters.queue_wait import QueueWait
from metasched.placement.clusters.state import ClusterState
from metasched.service.app import make_app
from metasched.service.daemon import Daemon
from metasched.sites.offer import offers_in
from tests.service.daemons import headers_for, running

FULL = Partition(ClusterState.make("c/p", ["n1", "n2"], processors=0), "east", "c", "p", total=4)
ASK = {"application": "cg", "problem_size": 900, "processors": [2], "scheduler": "c", "later": True}
UID = 32 * "0"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with running(tmp_path_factory.mktemp("daemon"), site=[{"name": "far", "url": "/nowhere/d.sock"}]) as made:
        runs = QueuedJob("1", frozenset("p"), 4, 7200.0, 3600.0, ("n1", "n2"))
        made.queues.put("c", [FULL], [runs], time.time())
        made.clusters.put("c", [FULL], time.time() - 5.0)
        made.clusters.refresh(time.time())
        yield made


@pytest.fixture(scope="module")
def client(daemon: Daemon) -> TestClient:
    return TestClient(make_app(daemon))


def as_(daemon: Daemon, role: str) -> dict[str, str]:
    return headers_for(daemon, f"{role} {time.monotonic_ns()}", role)


def test_a_site_where_all_is_taken_says_how_long_the_job_would_wait(daemon: Daemon, client: TestClient) -> None:
    answer = client.post("/v1/rankings", json=ASK, headers=as_(daemon, "reader")).json()
    assert answer["placements"] == []
    (found,) = offers_in(answer, "here")
    assert (found.processors, found.free, found.capacity) == (2, 0, 4)
    assert found.wait == pytest.approx(3600.0, rel=0.1)
    assert found.age is not None
    assert found.age >= 5.0
    assert (found.scheduler, found.partition) == ("c", "p")


def test_a_client_that_knows_its_wait_takes_the_run_time_from_the_same_answer(
    daemon: Daemon, client: TestClient
) -> None:
    def ask(method: str, path: str, document: object) -> Any:
        answer = client.request(method, path, json=document, headers=as_(daemon, "scheduler"))
        assert answer.status_code == 200, answer.text
        return answer.json()

    (waiting,) = ask("POST", "/v1/rankings", ASK)["later"]
    (found,) = estimates(ask, "cg", 900.0, 2, {("c", "p"): QueueWait.always(60.0)})
    assert (found.cluster, found.partition, found.nodes) == ("c", "p", "")
    assert (found.wait, found.execution_time) == (60.0, waiting["execution_time"])


def test_without_later_a_ranking_is_what_it_was(daemon: Daemon, client: TestClient) -> None:
    answer = client.post("/v1/rankings", json=ASK | {"later": False}, headers=as_(daemon, "reader")).json()
    assert answer.keys() == {"application", "problem_size", "placements", "why", "for_now"}


def test_only_schedulers_send_and_report_jobs(daemon: Daemon, client: TestClient) -> None:
    ask = {"application": "cg", "problem_size": 900}
    reader, scheduler = as_(daemon, "reader"), as_(daemon, "scheduler")
    assert client.post("/v1/sites/rankings", json=ask).status_code == 401
    answer = client.post("/v1/sites/rankings", json=ask, headers=reader)
    assert answer.status_code == 200
    assert "does not answer" in answer.json()["left_out"][0]["why"]
    assert client.post("/v1/sites/rankings", json=ask | {"send": True}, headers=reader).status_code == 403
    assert "id" not in client.post("/v1/sites/rankings", json=ask | {"send": True}, headers=scheduler).json()
    assert client.put(f"/v1/sites/jobs/{UID}", json={}, headers=reader).status_code == 403
    missing = client.put(f"/v1/sites/jobs/{UID}", json={"site": "far", "job": "1"}, headers=scheduler)
    assert (missing.status_code, missing.json()["detail"]) == (422, f"no job {UID} was sent")


LINK = {"site": "far", "bandwidth": 940.0, "round_trip": 0.01}


def of(daemon: Daemon, site: str) -> dict[str, str]:
    """The header of an agent that reports the links of a site."""
    return headers_for(daemon, f"links of {site} {time.monotonic_ns()}", "site", node=site)


def test_only_the_agent_of_a_site_reports_its_links(daemon: Daemon, client: TestClient) -> None:
    agent = headers_for(daemon, "agent of n1", "agent", node="n1")
    report = {"site": "home", "links": [LINK | {"age": 30.0}, LINK | {"site": "else"}]}
    assert client.post("/v1/sites/links", json=report).status_code == 401
    for refused in (agent, as_(daemon, "reader"), as_(daemon, "scheduler"), of(daemon, "n1"), of(daemon, "far")):
        assert client.post("/v1/sites/links", json=report, headers=refused).status_code == 403
    (site,) = client.get("/v1/sites", headers=as_(daemon, "reader")).json()["sites"]
    assert site["bandwidth_source"] is None
    home = of(daemon, "home")
    assert client.post("/v1/sites/links", json=report, headers=home).json() == {"taken": 1, "unknown": ["else"]}
    (site,) = client.get("/v1/sites", headers=as_(daemon, "reader")).json()["sites"]
    assert (site["bandwidth"], site["round_trip"], site["bandwidth_source"]) == (940.0, 0.01, "probes")
    assert site["bandwidth_age"] >= 30.0
    assert client.post("/v1/sites/links", json=report, headers=as_(daemon, "admin")).status_code == 200


def test_the_token_of_a_site_does_nothing_else(daemon: Daemon, client: TestClient) -> None:
    home = of(daemon, "home")
    sample = {"node": "home", "samples": [[time.time(), 1.0, 100.0]]}
    assert client.post("/v1/loads", json=sample, headers=home).status_code == 403
    assert client.post("/v1/rankings", json=ASK, headers=home).status_code == 403
    assert client.get("/v1/sites", headers=home).status_code == 403
    assert client.get("/v1/runs", headers=home).status_code == 403


def test_what_another_site_measures_of_the_way_to_a_site_is_not_the_link_from_here(
    daemon: Daemon, client: TestClient
) -> None:
    before = client.get("/v1/sites", headers=as_(daemon, "reader")).json()["sites"][0]
    answer = client.post(
        "/v1/sites/links", json={"site": "far", "links": [LINK | {"bandwidth": 1.0}]}, headers=of(daemon, "far")
    )
    assert answer.json() == {"taken": 0, "unknown": ["far"]}
    after = client.get("/v1/sites", headers=as_(daemon, "reader")).json()["sites"][0]
    assert before["bandwidth"] == after["bandwidth"]


@pytest.mark.parametrize(
    "wrong",
    [{"bandwidth": 0}, {"bandwidth": "fast"}, {"bandwidth": 1e10}, {"round_trip": -1}, {"age": -5}, {"age": 1e9}],
    ids=str,
)
def test_links_that_cannot_be_are_refused(wrong: dict[str, object], daemon: Daemon, client: TestClient) -> None:
    report = {"site": "home", "links": [LINK | wrong]}
    assert client.post("/v1/sites/links", json=report, headers=as_(daemon, "admin")).status_code == 422


@pytest.mark.parametrize(
    "wrong", [{"data": -1}, {"sites": ["x"]}, {"via": 17 * ["a"]}, {"within": 0}, {"lag": 1}], ids=str
)
def test_wrong_questions_are_refused(wrong: dict[str, object], daemon: Daemon, client: TestClient) -> None:
    asked = {"application": "cg", "problem_size": 900} | wrong
    assert client.post("/v1/sites/rankings", json=asked, headers=as_(daemon, "reader")).status_code == 422


def test_the_sites_are_shown(daemon: Daemon, client: TestClient, tmp_path: Path) -> None:
    answer = client.get("/v1/sites", headers=as_(daemon, "reader")).json()
    assert [each["site"] for each in answer["sites"]] == ["far"]
    assert answer["jobs"] == []
