"""Runs whose loads were not measured: taken, counted wherever one looks, and no judge of predictions."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from waiting import until

from metasched.cli.daemon import status
from metasched.jobs import EndedJob, Mark
from metasched.service.app import make_app
from metasched.service.authentication import NOBODY
from metasched.service.daemon import Daemon
from metasched.service.dashboard.pages import content
from metasched.service.learning.run_outcome import conclude
from tests.service.daemons import headers_for, running, seconds


def sent(size: float, **minima: float | None) -> dict[str, object]:
    return {"application": "cg", "platform": "east", "problem_size": size, "processors": 1,
            "execution_time": seconds(size, 1, 1.0), **minima}  # fmt: skip


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon that has learned three runs without loads, and one with."""
    with running(tmp_path_factory.mktemp("daemon")) as daemon:
        client, headers = TestClient(make_app(daemon)), headers_for(daemon, "s", "scheduler")
        before = daemon.models.learned()["cg", "east"].runs
        batch = [
            sent(1000.0),
            sent(1100.0, min_avg_avail_cpu=None, min_avg_avail_bw=90.0),
            sent(1200.0, min_avg_avail_cpu=0.5),
            sent(1300.0, min_avg_avail_cpu=0.9, min_avg_avail_bw=90.0),
        ]
        assert client.post("/v1/runs", json={"runs": batch}, headers=headers).status_code == 200
        until(lambda: daemon.models.learned()["cg", "east"].runs >= before + 4)
        yield daemon


def fetched(daemon: Daemon, path: str) -> TestClient:
    return TestClient(make_app(daemon)).get(path, headers=headers_for(daemon, path, "reader"))


def test_the_status_counts_them_by_application_and_platform(daemon: Daemon, capsys: pytest.CaptureFixture[str]) -> None:
    answer = fetched(daemon, "/v1/status").json()
    assert {part["platform"]: (part["runs"], part["unmeasured"]) for part in answer["learned"]} == {
        "east": (44, 3),
        "west": (40, 0),
    }
    status._show(answer, "metasched.toml")
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("unmeasured")]
    assert [line.split(maxsplit=1)[1].strip() for line in lines] == ["the loads of 3 of 44 runs learned of cg on east"]


def test_the_metrics_count_them(daemon: Daemon) -> None:
    lines = fetched(daemon, "/metrics").text.splitlines()
    assert 'metasched_learned_runs{application="cg",measured="no",platform="east"} 3.0' in lines
    assert 'metasched_learned_runs{application="cg",measured="yes",platform="east"} 41.0' in lines


def test_the_dashboard_counts_them(daemon: Daemon) -> None:
    shown = {each.summary.platform: each.summary.unmeasured for each in content(daemon, time.time(), NOBODY)["models"]}
    assert shown == {"east": 3, "west": 0}
    assert "44 runs learned, 3 of them without measured loads" in " ".join(fetched(daemon, "/").text.split())


def test_what_is_predicted_of_them_judges_nothing(daemon: Daemon) -> None:
    assert [run.problem_size for run in daemon.models.recent.of("cg", "east")] == [1300.0]
    job = EndedJob("east", "7", "", "", ("unheard",), 2, 1e9, 1e9 + 9.0, 0)
    outcome = conclude(job, Mark("cg", 900.0, 2, None), daemon.clusters, daemon.models, daemon.store).outcome
    assert outcome is not None
    assert (outcome.available_cpu, outcome.predicted) == (None, None)


def test_the_counts_outlast_a_restart(daemon: Daemon, tmp_path: Path) -> None:
    daemon.models.save()
    until(lambda: daemon.store.runs.learned()["cg", "east"] == (44, 3))
