"""Clients newer than the daemon: what they report is taken as far as it is known, what they ask is not."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from waiting import until

from metasched.service.app import make_app
from metasched.service.daemon import Daemon
from metasched.service.metrics import MOST_NAMED
from tests.service.daemons import headers_for, running

NOW = time.time()
JOB = {
    "scheduler": "west", "job": "1", "comment": "metasched:app=cg,n=1400,p=2", "nodes": "w[1-2]",
    "start": NOW - 60.0, "end": NOW - 30.0,
}  # fmt: skip
LOADS = {"node": "w1", "samples": [[NOW - 10.0, 0.5, 90.0]]}
LINKS = {"site": "home", "links": [{"site": "far", "bandwidth": 900.0, "round_trip": 0.01}]}
LATER = {"newer": {"than": ["this"]}}
REPORTS = {"/v1/jobs": JOB, "/v1/loads": LOADS, "/v1/sites/links": LINKS}
WRONG = {"/v1/jobs": {"processors": "x"}, "/v1/loads": {"samples": []}, "/v1/sites/links": {"links": [{"site": "far"}]}}
ASKED = {"application": "cg", "problem_size": 1400}
RUN = ASKED | {
    "cluster": "west", "processors": 2, "min_avg_avail_cpu": 1.0, "min_avg_avail_bw": 90.0, "execution_time": 9.0
}  # fmt: skip


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    with running(tmp_path) as daemon:
        yield daemon


@pytest.fixture
def client(daemon: Daemon) -> TestClient:
    return TestClient(make_app(daemon), headers=headers_for(daemon, "newer", "admin"))


def counted(daemon: Daemon) -> dict[str, float]:
    lines = daemon.metrics.exposition().decode().splitlines()
    found = (line.rpartition(" ") for line in lines if line.startswith("metasched_newer_reports_total{"))
    return {name.split('"')[1]: float(value) for name, _, value in found}


@pytest.mark.parametrize("path", REPORTS)
def test_a_report_is_taken_without_what_this_version_does_not_know(
    path: str, daemon: Daemon, client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    report = REPORTS[path]
    assert counted(daemon) == dict.fromkeys(REPORTS, 0.0)
    with caplog.at_level(logging.WARNING):
        answer = client.post(path, json=report | LATER)
        again = client.post(path, json=report | LATER)
    assert (answer.status_code, again.status_code) == (200, 200)
    (line,) = [each.getMessage() for each in caplog.records if "newer is" in each.getMessage()]
    assert line.startswith(f"{path}: newer is not known to version ")
    assert counted(daemon) == dict.fromkeys(REPORTS, 0.0) | {path: 2.0}


def test_the_run_of_such_a_job_is_learned(daemon: Daemon, client: TestClient) -> None:
    seen = daemon.models.all()["cg", "west"].window.seen
    answer = client.post("/v1/jobs", json=JOB | LATER).json()
    assert (answer["stored"], answer["learned"]) == (True, True)
    until(lambda: daemon.models.all()["cg", "west"].window.seen == seen + 1)


def test_a_job_with_devices_that_this_version_does_not_know_is_stored_but_not_learned(
    daemon: Daemon, client: TestClient
) -> None:
    job = JOB | {"devices": {"gpus": 2, "fpga": ["a", 7]}}
    answer = client.post("/v1/jobs", json=job).json()
    assert (answer["stored"], answer["learned"]) == (True, False)
    assert counted(daemon)["/v1/jobs"] == 1.0


@pytest.mark.parametrize(
    ("field", "values", "learned", "said"),
    [
        ("kind", ("spot", "spot"), False, "kind=spot"),
        ("script", ("sha256:0a", "sha256:1b"), True, "the form of script"),
        ("numbers", ("n => 400", "n => 500"), True, "the form of numbers"),
    ],
)
def test_a_job_with_a_value_that_this_version_does_not_know_is_taken_without_it(
    field: str, values: tuple[str, str], learned: bool, said: str, daemon: Daemon, client: TestClient,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    with caplog.at_level(logging.WARNING):
        answer, _ = [
            client.post("/v1/jobs", json=JOB | {field: value, "job": f"{number}"}).json()
            for number, value in enumerate(values, start=1)
        ]
    assert (answer["stored"], answer["learned"]) == (True, learned)
    (line,) = [each.getMessage() for each in caplog.records if "is not known to version" in each.getMessage()]
    assert line.startswith(f"/v1/jobs: {said} is not known to version ")
    assert counted(daemon)["/v1/jobs"] == 2.0


@pytest.mark.parametrize("path", REPORTS)
def test_what_is_known_is_checked_as_ever(path: str, daemon: Daemon, client: TestClient) -> None:
    assert client.post(path, json=REPORTS[path] | LATER | WRONG[path]).status_code == 422
    assert client.post("/v1/jobs", json=JOB | {"kind": 7}).status_code == 422
    assert counted(daemon)[path] == 0.0


def test_links_with_more_are_taken(daemon: Daemon, client: TestClient) -> None:
    links = [each | LATER for each in LINKS["links"]]  # type: ignore[operator]
    assert client.post("/v1/sites/links", json=LINKS | {"links": links}).status_code == 200
    assert counted(daemon)["/v1/sites/links"] == 1.0


def test_no_client_fills_the_log_with_keys(
    daemon: Daemon, client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    keys: dict[str, Any] = {f"key\n{number}" + 500 * "x": number for number in range(2 * MOST_NAMED)}
    with caplog.at_level(logging.WARNING):
        assert client.post("/v1/jobs", json=JOB | keys).status_code == 200
    lines = [each.getMessage() for each in caplog.records if "is not known to version" in each.getMessage()]
    assert len(lines) == MOST_NAMED
    assert all("\n" not in line and len(line) < 300 for line in lines)


def test_what_became_of_a_job_that_was_sent_is_refused_with_more_and_reported_later(client: TestClient) -> None:
    refused = client.put(f"/v1/sites/jobs/{32 * '0'}", json={"site": "far", "job": "1"} | LATER)
    assert (refused.status_code, refused.json()["detail"]) == (422, "body.newer: Extra inputs are not permitted")


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/v1/placements", ASKED), ("/v1/rankings", ASKED), ("/v1/problem-sizes", {"name": "a"}),
        ("/v1/running-jobs/advice", {"job": "1"}), ("/v1/sites/rankings", ASKED), ("/v1/runs", {"runs": [RUN]}),
    ],
)  # fmt: skip
def test_a_question_with_an_unknown_demand_is_refused(path: str, asked: dict[str, Any], client: TestClient) -> None:
    refused = client.post(path, json=asked | LATER)
    assert (refused.status_code, refused.json()["detail"]) == (422, "body.newer: Extra inputs are not permitted")
