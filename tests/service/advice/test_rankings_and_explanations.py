"""Rankings and explanations of the daemon: the same as the ranker's, and wrong questions refused in one line."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from descriptions import description_of
from fastapi.testclient import TestClient
from waiting import until

from metasched.placement.clusters.running_jobs import RunningJob, StartedJob, later, terms_left
from metasched.placement.explaining.documents import PlacementTable
from metasched.placement.ranking.query import Question
from metasched.placement.ranking.ranker import rank
from metasched.records import Load, Run
from metasched.service.app import make_app
from metasched.service.daemon import Daemon
from metasched.service.state.described_clusters import DescribedClusters
from metasched.service.state.live_clusters import LiveClusters
from metasched.store.database.run_records import RecordedRun
from metasched.validation import parse_toml
from tests.service.daemons import CLUSTERS, headers_for, running

LIMITED = f'{CLUSTERS}\n[[application]]\nname = "cg"\nmax_processors = 6\n'
ASK: dict[str, Any] = {"application": "cg", "problem_size": 1400}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with running(tmp_path_factory.mktemp("daemon"), clusters=LIMITED) as daemon:
        yield daemon


@pytest.fixture(scope="module")
def client(daemon: Daemon) -> Iterator[TestClient]:
    with TestClient(make_app(daemon), headers=headers_for(daemon, "reader", "reader")) as client:
        yield client


@pytest.fixture(scope="module")
def scheduler(daemon: Daemon) -> dict[str, str]:
    return headers_for(daemon, "scheduler", "scheduler")


def ranking(client: TestClient, **asked: Any) -> dict[str, Any]:
    answer = client.post("/v1/rankings", json=ASK | asked)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def test_the_daemon_ranks_as_the_ranker_does(client: TestClient, daemon: Daemon) -> None:
    found = ranking(client, top=5)
    states = [each.state for each in daemon.clusters.view.partitions]
    known = {name: daemon.models.all()["cg", name] for name in ("east", "west")}
    expected = rank(states, known, Question(1400, daemon.placer.demands["cg"], top=5))
    for answer, placement in zip(found["placements"], expected.placements, strict=True):
        assert (answer["cluster"], answer["nodes"]) == (
            placement.resource_set.cluster,
            list(placement.resource_set.nodes),
        )
        assert answer["completion"] == pytest.approx(placement.completion)
        assert answer["reason"] == placement.reason
        assert answer["interval"]["low"] < answer["execution_time"] < answer["interval"]["high"]
    assert max(each["processors"] for each in found["by_processors"]) == 6


def test_the_first_of_a_ranking_is_where_a_job_would_be_placed(client: TestClient, scheduler: dict[str, str]) -> None:
    placed = client.post("/v1/placements", json=ASK | {"trial": True}, headers=scheduler).json()["placement"]
    first = ranking(client, top=1)["placements"][0]
    assert placed["completion"] == pytest.approx(first["completion"])
    assert placed["processors"] == first["processors"] <= 6


def test_the_interval_is_the_same_from_every_route(client: TestClient, scheduler: dict[str, str]) -> None:
    placed = client.post("/v1/placements", json=ASK | {"trial": True}, headers=scheduler).json()["placement"]
    explained = client.post("/v1/explanations", json=ASK | {"placement": placed}).json()
    job = {name: placed[name] for name in ("processors", "available_cpu", "available_bandwidth")}
    level = placed["interval"]["level"]
    asked = ASK | job | {"platform": placed["cluster"], "chances": [(1 - level) / 2]}
    [limits] = client.post("/v1/walltimes", json=asked).json()["clusters"]
    assert explained["interval"] == placed["interval"]
    assert limits["limits"][0]["seconds"] == pytest.approx(placed["interval"]["high"], rel=1e-9)


def test_constraints_weights_and_drained_nodes_count(client: TestClient) -> None:
    assert {each["cluster"] for each in ranking(client, clusters=["west"])["placements"]} == {"west"}
    thrifty = ranking(client, weights={"core_hours": 1.0})["placements"][0]
    assert thrifty["processors"] == 1
    assert thrifty["costs"]["core_hours"] == pytest.approx(thrifty["execution_time"] / 3600)
    left = ranking(client, drain="e[1-3]", clusters=["east"], max_processors=4, top=50)
    assert {node for each in left["placements"] for node in each["nodes"]} == {"e4"}
    assert left["ruled_out"]["east"] == {"down, drained or reserved": 3}


def test_a_parameter_that_no_run_had_is_left_out_of_a_ranking_and_said(client: TestClient) -> None:
    plain, stated = ranking(client), ranking(client, parameters={"steps": 3})
    why = "parameter 'steps' is unknown, expected none, since the runs learned had none"
    assert stated["warnings"] == [why, *plain["warnings"]]
    assert stated["placements"] == plain["placements"]
    assert stated["parameters"] == {}


def test_with_no_feasible_set_it_says_why(client: TestClient) -> None:
    found = ranking(client, memory=100)
    assert found["placements"] == []
    assert "4 ruled out (memory of 100 MB)" in found["why"]


def test_a_grid_may_exclude_nodes_of_other_sites(client: TestClient) -> None:
    assert ranking(client, exclude="n1", later=True)["placements"]


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        ({"application": "ep"}, "no model of ep yet, only of: cg"),
        ({"clusters": ["north"]}, "no cluster north, expected one of east, west"),
        ({"partitions": ["north"]}, "no known partition"),
        ({"drain": "n1"}, "node n1 is in none of the clusters"),
        ({"exclude": "e1,n[2-3]"}, "node n2 is in none of the clusters"),
        ({"min_processors": 8}, "max_processors is 6"),
        ({"weights": {"time": 0}}, "all weights of the objective are 0"),
        ({"weights": {"speed": 1}}, "weights.speed"),
        ({"weights": {"time": 1e-320}}, "weight of time is 1e-320, expected 0 or a number from 1e-30 to 1e+30"),
        ({"least_efficiency": 2}, "least_efficiency: Input should be less than or equal to 1"),
        ({"exclude": "n[1-20001]"}, "exclude: 'n[1-20001]' is more than 20000 nodes"),
        ({"drain": "n[1-20001]"}, "drain: 'n[1-20001]' is more than 20000 nodes"),
        ({"processors": "1-10001"}, "processors names more than 10000 numbers"),
        ({"saving": 1}, "saving"),
        ({"problem_size": -1}, "problem_size"),
        ({"top": 0}, "top"),
        ({"exclude": "n[1-"}, "exclude"),
    ],
)
def test_wrong_questions_are_refused_in_one_line(client: TestClient, wrong: dict[str, Any], line: str) -> None:
    answer = client.post("/v1/rankings", json=ASK | wrong)
    assert answer.status_code == 422
    assert line in answer.json()["detail"]
    assert "\n" not in answer.json()["detail"]


def test_a_placement_of_a_ranking_is_explained(client: TestClient) -> None:
    second = ranking(client)["placements"][1]
    answer = client.post("/v1/explanations", json=ASK | {"placement": second}).json()
    assert sum(part["seconds"] for part in answer["parts"]) == pytest.approx(second["completion"])
    assert answer["notes"] == []
    elsewhere = client.post("/v1/explanations", json=ASK | {"placement": second | {"cluster": "north"}})
    assert (elsewhere.status_code, elsewhere.json()["detail"]) == (
        422,
        "cluster north of the placement is not known here",
    )
    unknown = client.post("/v1/explanations", json=ASK | {"placement": second | {"nodes": ["n1"]}})
    assert (unknown.status_code, "n1" in unknown.json()["detail"]) == (422, True)


def test_advice_is_explained_by_its_id_with_the_model_and_loads_of_then(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        client = TestClient(make_app(daemon), headers=headers_for(daemon))
        now = time.time()
        for name, cpu in (("e1", 0.75), ("e2", 0.5)):
            assert client.post("/v1/loads", json={"node": name, "samples": [[now, cpu, 90.0]]}).status_code == 200
        daemon.views.refresh()
        asked = ASK | {"processors": [2], "per_node": 1, "exclude": "e[3-4],w[1-4]"}
        placed = client.post("/v1/placements", json=asked).json()
        assert placed["placement"]["nodes"] == ["e1", "e2"]
        # What is measured and learned afterwards must not show.
        after = Load(time.time() + 1, "e1", 0.25, 80.0)
        daemon.writes.loads([after]).result()
        daemon.clusters.note([after])
        daemon.views.refresh()
        at = placed["placement"]
        for factor in (3.0, 3.1, 2.9, 3.0):
            run = Run("cg", "east", 1400, 2, at["available_cpu"], 90.0, factor * at["execution_time"])
            daemon.models.learn(RecordedRun(run))
        until(lambda: not daemon.models.waiting and daemon.models.all()["cg", "east"].window.seen >= 44)
        answer = client.get(f"/v1/placements/{placed['id']}/explanation").json()
        assert sum(part["seconds"] for part in answer["parts"]) == pytest.approx(at["completion"])
        assert "model then" not in [part["name"] for part in answer["parts"]]
        assert (answer["least_cpu"], answer["notes"]) == ("node e2", [])
        # With the versions of then gone, what was learned since is a part of its own.
        assert client.get(f"/v1/placements/{placed['id']}").json()["answer"]["placement"] == at
        table = PlacementTable.model_validate(at)
        since = client.post("/v1/explanations", json=ASK | {"placement": table.model_dump()}).json()
        assert sum(part["seconds"] for part in since["parts"]) == pytest.approx(at["completion"])
        assert "model then" in [part["name"] for part in since["parts"]]
        assert client.get(f"/v1/placements/{'0' * 32}/explanation").status_code == 404
        assert client.get("/v1/placements/nonsense/explanation").status_code == 422
        nothing = client.post("/v1/placements", json=ASK | {"memory": 100}).json()
        refused = client.get(f"/v1/placements/{nothing['id']}/explanation")
        assert (refused.status_code, "no placement was made" in refused.json()["detail"]) == (422, True)


RUNNING = """
[[cluster]]
name = "east"
nodes = [{ names = "e[1-4]", processors = 4, available_bandwidth = 100.0 }]
[[cluster.running]]
nodes = "e[1-2]"
processors = 4
computation = 400.0
communication = 100.0
[[cluster.running]]
nodes = "e[2-3]"
processors = 1
application = "cg"
problem_size = 1400
"""


def test_described_jobs_share_with_a_new_one(tmp_path: Path) -> None:
    with running(tmp_path, clusters=RUNNING) as daemon:
        client = TestClient(make_app(daemon), headers=headers_for(daemon))
        wide = ranking(client, processors=[16])["placements"][0]
        assert wide["slowdown"] > 1.02
        assert ranking(client, processors=[4], top=1)["placements"][0]["nodes"] == ["e4"]
        assert client.post("/v1/placements", json=ASK | {"exclusive": True}).json()["nodes"] == "e4"


def test_described_jobs_are_over_when_they_should_be(daemon: Daemon) -> None:
    found = description_of(parse_toml(RUNNING, where="clusters"))
    clusters, described = LiveClusters(), DescribedClusters(found, read_at=1000.0)

    def model(platform: str, name: str) -> Any:
        return daemon.models.predictor(name, platform)

    [alone] = daemon.clusters.view.partitions[:1]
    [whole], _ = terms_left(
        [StartedJob(("e2", "e3"), (1, 1), 0.0, "cg", 1400.0)], alone.state, lambda name: model("east", name)
    )
    short = whole.computation + whole.communication
    assert short < 400.0
    jobs = []
    for now in (1000.0, 1000.0 + short + 1.0, 1501.0):
        described.show(clusters, model, now)
        view = clusters.refresh(now)
        jobs.append(view.partitions[0].state.jobs.tolist())
        assert len(view.running_on(view.partitions[0])) == 3 - len(jobs)
    assert jobs == [[1, 2, 1, 0], [1, 1, 0, 0], [0, 0, 0, 0]]


def test_a_job_that_tells_what_it_has_left_loses_as_much_as_passes() -> None:
    job = RunningJob(("n0",), (1,), 30.0, 10.0, running_for=5.0)
    assert later(job, 10.0) == replace(job, computation=22.5, communication=7.5, running_for=15.0)
    assert later(job, 41.0) is None
