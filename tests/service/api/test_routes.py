"""The daemon's HTTP interface: who may do what, what is stored and learned, and how wrong input is refused."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest
from fastapi.testclient import TestClient
from waiting import until

from metasched.predictors.robust.predictor import RobustPredictor
from metasched.records import Settings
from metasched.service.app import make_app
from metasched.service.daemon import Daemon
from metasched.store import documents
from metasched.store.database.store import Store
from metasched.store.errors import StoreError
from metasched.store.roles import ROLES
from tests.service.daemons import headers_for, running, runs, seconds

ASK = {"application": "cg", "problem_size": 1400, "processors": [2]}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with running(tmp_path_factory.mktemp("daemon"), limits={"body_bytes": 20_000}) as daemon:
        until(lambda: len(daemon.models.all()) == 2)
        yield daemon


@pytest.fixture(scope="module")
def secrets(daemon: Daemon) -> dict[str, str]:
    nodes = {"agent": "own", "site": "home"}
    made = {role: daemon.store.tokens.add(role, role, node=nodes.get(role)) for role in ROLES}
    daemon.access.refresh()
    return made


@pytest.fixture(scope="module")
def client(daemon: Daemon) -> TestClient:
    return TestClient(make_app(daemon))


@pytest.fixture
def as_(secrets: dict[str, str]) -> Callable[[str], dict[str, str]]:
    return lambda role: {"Authorization": f"Bearer {secrets[role]}"}


Headers = Callable[[str], dict[str, str]]


def test_nobody_gets_in_without_a_token_but_health_is_open(client: TestClient) -> None:
    assert client.get("/v1/status").status_code == 401
    assert client.get("/v1/status", headers={"Authorization": "Bearer wrong"}).status_code == 401
    assert client.get("/v1/health").json()["status"] == "ok"


def test_a_placement_is_found_while_it_waits_to_be_written(
    daemon: Daemon, client: TestClient, as_: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed, add = Event(), daemon.writes._store_rows["placements"]

    def wait_and_add(rows: Sequence[object]) -> object:
        allowed.wait(60.0)
        return add(rows)

    monkeypatch.setitem(daemon.writes._store_rows, "placements", wait_and_add)  # type: ignore[arg-type]
    try:
        uid = client.post("/v1/placements", json=ASK, headers=as_("scheduler")).json()["id"]
        paths = (f"/v1/placements/{uid}", f"/v1/placements/{uid}/explanation")
        assert daemon.store.placements.find(uid) is None
        assert [client.get(path, headers=as_("admin")).status_code for path in paths] == [200, 200]
    finally:
        allowed.set()
    until(lambda: daemon.writes.placement(uid) is None)
    assert daemon.store.placements.find(uid) is not None
    assert [client.get(path, headers=as_("admin")).status_code for path in paths] == [200, 200]


def test_secrets_are_not_in_the_database(daemon: Daemon, secrets: dict[str, str]) -> None:
    kept = Path(daemon.store.name).read_bytes() + Path(daemon.store.name + "-wal").read_bytes()
    assert not any(secret.encode() in kept for secret in secrets.values())


def test_a_revoked_token_lets_nobody_in(daemon: Daemon, client: TestClient) -> None:
    headers = headers_for(daemon, "leaver", "reader")
    assert client.get("/v1/status", headers=headers).status_code == 200
    daemon.store.tokens.revoke("leaver")
    daemon.access.refresh()
    assert client.get("/v1/status", headers=headers).status_code == 401


def test_an_agent_writes_only_its_own_nodes_loads(client: TestClient, daemon: Daemon, as_: Headers) -> None:
    now = time.time()
    batch = {"node": "own", "samples": [[now - 2, 0.25, 80.0], [now - 1, 0.5, 90.0]]}
    assert client.post("/v1/loads", json=batch, headers=as_("agent")).json()["taken"] == 2
    assert len(daemon.store.loads.all(node="own")) == 2
    assert client.post("/v1/loads", json=batch | {"node": "e2"}, headers=as_("agent")).status_code == 403
    refused = client.post("/v1/placements", json=ASK, headers=as_("agent"))
    assert (refused.status_code, refused.json()["detail"]) == (
        403, "the role agent may not do this, expected a token of the role reader or scheduler ($METASCHED_TOKEN)"
    )  # fmt: skip
    assert client.get("/v1/placements", headers=as_("agent")).status_code == 403


def test_bad_samples_are_left_out_counted_and_never_believed(client: TestClient, daemon: Daemon, as_: Headers) -> None:
    daemon.store.tokens.add("of a node that sends bad samples", "agent", node="bad")
    daemon.access.refresh()
    now = time.time()
    samples = [[now - 1, 0.5, 90.0], [now - 2, 1.004, 90.0], [now - 3, 7.0, 90.0], [now + 4e3, 0.01, 1.0]]
    before = counted(client, as_)
    answer = client.post("/v1/loads", json={"node": "bad", "samples": samples}, headers=as_("admin")).json()
    assert answer["taken"] == 2
    assert answer["refused"] == {"above capacity": 1, "from the future": 1}
    assert answer["repaired"] == {"clamped": 1, "put in order": 1}
    assert daemon.store.loads.all(node="bad").available_cpu.tolist() == [1.0, 0.5]
    assert daemon.clusters.latest["bad"].available_cpu == 0.5
    risen = {name for name, value in counted(client, as_).items() if value == before[name] + 1}
    assert {
        'metasched_loads_refused_total{reason="above capacity"}',
        'metasched_loads_refused_total{reason="from the future"}',
        'metasched_loads_repaired_total{rule="clamped"}',
        'metasched_loads_repaired_total{rule="put in order"}',
    } == risen


def test_no_more_bandwidth_is_believed_than_the_link_of_the_node_has(tmp_path: Path) -> None:
    clusters = """
[[cluster]]
name = "north"
nodes = [{names = "n[1-2]", link = [100.0, 1000.0]}, {names = "n3"}, {names = "n4", link = 100.0}]
"""
    with running(tmp_path, learned=False, clusters=clusters, limits={"links": {"n[4-5]": 10.0}}) as daemon:
        headers = headers_for(daemon)
        with TestClient(make_app(daemon)) as client:
            for node, bandwidth, taken in [
                ("n1", 99.0, True),
                ("n1", 100.5, True),
                ("n1", 500.0, False),
                ("n2", 500.0, True),
                ("n2", 1500.0, False),
                ("n3", 1500.0, True),
                ("n4", 9.0, True),
                ("n4", 90.0, False),
            ]:
                batch = {"node": node, "samples": [[time.time(), 0.5, bandwidth]]}
                answer = client.post("/v1/loads", json=batch, headers=headers)
                assert (answer.status_code == 200) == taken, (node, bandwidth, answer.text)
                assert taken or "above capacity" in answer.json()["detail"]
        assert daemon.clusters.latest["n1"].available_bandwidth == 100.0  # rounding above the link is taken off


def test_loads_of_a_node_that_nobody_has_named_are_refused(client: TestClient, daemon: Daemon, as_: Headers) -> None:
    batch = {"node": "stranger", "samples": [[time.time(), 0.5, 90.0]]}
    answer = client.post("/v1/loads", json=batch, headers=as_("admin"))
    assert answer.status_code == 422
    assert "unknown node" in answer.json()["detail"]
    assert "stranger" not in daemon.clusters.latest
    daemon.store.tokens.add("stranger's agent", "agent", node="stranger")
    daemon.access.refresh()
    assert client.post("/v1/loads", json=batch, headers=as_("admin")).status_code == 200


def counted(client: TestClient, as_: Headers) -> dict[str, float]:
    lines = client.get("/metrics", headers=as_("reader")).text.splitlines()
    answer = (line.rpartition(" ") for line in lines if line.startswith(("metasched_loads_re",)) and "_total{" in line)
    return {name: float(value) for name, _, value in answer}


def test_a_reader_changes_nothing(client: TestClient, as_: Headers) -> None:
    assert client.get("/v1/clusters", headers=as_("reader")).status_code == 200
    for path in ("/v1/loads", "/v1/runs", "/v1/jobs", "/v1/placements"):
        assert client.post(path, json={}, headers=as_("reader")).status_code in (403, 422)


def test_a_reader_may_try_a_placement_but_not_ask_for_one(client: TestClient, as_: Headers) -> None:
    before = client.get("/v1/placements", headers=as_("reader")).json()
    refused = client.post("/v1/placements", json=ASK, headers=as_("reader"))
    assert (refused.status_code, "only request trials" in refused.json()["detail"]) == (403, True)
    assert client.post("/v1/placements", json=ASK | {"trial": True}, headers=as_("agent")).status_code == 403
    tried = client.post("/v1/placements", json=ASK | {"trial": True}, headers=as_("reader")).json()
    assert tried["placed"]
    assert client.get("/v1/placements", headers=as_("reader")).json() == before


def test_a_placement_is_found_by_the_number_that_its_scheduler_gave_before_it_asked(
    client: TestClient, as_: Headers, daemon: Daemon
) -> None:
    """Grid Engine lists jobs that wait and run without what notes their placement."""
    made = [
        client.post("/v1/placements", json=ASK | {"job": job}, headers=as_("scheduler")) for job in ("4711", "4712")
    ]
    uids = [each.json()["id"] for each in made]
    until(lambda: all(daemon.store.placements.find(uid) is not None for uid in uids), 10.0)
    for number, expected in (("4711", uids[:1]), ("4712", uids[1:]), ("471", [])):
        found = client.get(f"/v1/placements?job={number}", headers=as_("scheduler")).json()
        assert [each["id"] for each in found] == expected


def test_a_queued_job_that_is_known_by_its_number_is_listed_once(
    client: TestClient, as_: Headers, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    uid = client.post("/v1/placements", json=ASK | {"job": "4713"}, headers=as_("scheduler")).json()["id"]
    until(lambda: daemon.store.placements.find(uid) is not None, 10.0)
    monkeypatch.setattr(daemon.queues, "placements_of", lambda number: [uid] * (number == "4713"))
    assert [each["id"] for each in client.get("/v1/placements?job=4713", headers=as_("scheduler")).json()] == [uid]


def test_placements_have_their_age_for_clients_whose_clocks_are_others(
    client: TestClient, daemon: Daemon, as_: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    uid = client.post("/v1/placements", json=ASK, headers=as_("scheduler")).json()["id"]
    until(lambda: daemon.store.placements.find(uid) is not None, 10.0)
    now = daemon.clock.now()
    monkeypatch.setattr(daemon.clock, "now", lambda: now + 3600.0)
    (found,) = (each for each in client.get("/v1/placements", headers=as_("scheduler")).json() if each["id"] == uid)
    assert found["age"] == pytest.approx(now + 3600.0 - found["made_at"])


def test_the_better_cluster_is_advised_with_a_prediction_near_the_truth(client: TestClient, as_: Headers) -> None:
    answer = client.post("/v1/placements", json=ASK, headers=as_("scheduler")).json()
    assert answer["placed"]
    assert answer["mode"] == "shadow"
    placement = answer["placement"]
    assert placement["cluster"] == "east"
    true = seconds(1400, 2, placement["available_cpu"])
    assert placement["execution_time"] == pytest.approx(true, rel=0.1)
    assert true < answer["time_limit"] <= 2 * true + 60


def test_loads_that_come_in_move_the_placement(client: TestClient, daemon: Daemon, as_: Headers) -> None:
    now = time.time()
    for node in ("e1", "e2", "e3", "e4"):
        batch = {"node": node, "samples": [[now, 0.3, 100.0]]}
        client.post("/v1/loads", json=batch, headers=as_("admin"))
    daemon.views.refresh()
    answer = client.post("/v1/placements", json=ASK, headers=as_("scheduler")).json()
    assert answer["placement"]["cluster"] == "west"
    for node in ("e1", "e2", "e3", "e4"):
        batch = {"node": node, "samples": [[now + 1, 1.0, 100.0]]}
        client.post("/v1/loads", json=batch, headers=as_("admin"))
    daemon.views.refresh()


def test_without_a_model_or_a_fitting_node_the_answer_says_why(client: TestClient, as_: Headers) -> None:
    for change, why in (
        ({"application": "unheard"}, "no model of unheard"),
        ({"processors": [1000]}, "no feasible resource set"),
        ({"partitions": ["elsewhere"]}, "no known partition"),
    ):
        answer = client.post("/v1/placements", json=ASK | change, headers=as_("scheduler")).json()
        assert not answer["placed"]
        assert why in answer["message"]


def test_the_time_limit_is_never_above_the_users(client: TestClient, as_: Headers) -> None:
    answer = client.post("/v1/placements", json=ASK | {"time_limit": 7.0}, headers=as_("scheduler")).json()
    assert answer["time_limit"] == 7.0


def test_a_job_becomes_a_run_with_its_loads_and_settles_its_placement(
    client: TestClient, daemon: Daemon, as_: Headers
) -> None:
    answer = client.post("/v1/placements", json=ASK, headers=as_("scheduler")).json()
    until(lambda: daemon.store.placements.find(answer["id"]) is not None)
    start = time.time() - 30.0
    for node, cpu in (("w1", 0.4), ("w2", 0.8)):
        batch = {"node": node, "samples": [[start - 5, cpu, 70.0], [start + 10, cpu / 2, 70.0]]}
        client.post("/v1/loads", json=batch, headers=as_("admin"))
    job = {
        "scheduler": "west",
        "job": "17",
        "comment": f"metasched:app=cg,n=1400,p=2,steps=7,placement={answer['id']}",
        "nodes": "w[1-2]",
        "processes_per_node": 1,
        "threads": 3,
        "energy": 5400.5,
        "energy_covers": "node",
        "frequency": 2400.0,
        "devices": {"gpu": "a100", "gpus": 2},
        "start": start,
        "end": start + 20.0,
    }
    seen = daemon.models.all()["cg", "west"].window.seen
    assert client.post("/v1/jobs", json=job, headers=as_("scheduler")).json()["stored"]
    assert not client.post("/v1/jobs", json=job, headers=as_("scheduler")).json()["stored"]
    (run,) = [run for run in daemon.store.runs.learnable(platform="west") if run.extra.get("job") == "17"]
    assert run.execution_time == pytest.approx(20.0)
    assert run.settings == Settings(1, 3, (("gpu", "a100"), ("gpus", 2.0), ("steps", 7.0)), 2400.0)
    assert (run.energy, run.energy_covers) == (5400.5, "node")
    assert run.min_avg_avail_cpu == pytest.approx(0.5 * 0.4 + 0.5 * 0.2)
    outcome = daemon.store.placements.find(answer["id"]).outcome
    assert outcome.nodes == ("w1", "w2")
    assert outcome.predicted.execution_time == pytest.approx(seconds(1400, 2, 0.3), rel=0.15)
    until(lambda: daemon.models.all()["cg", "west"].window.seen == seen + 1)
    quality = client.get("/v1/status", headers=as_("reader")).json()["quality"]
    assert (quality["jobs"], quality["followed"], quality["faster"]) == (1, 0, 1)
    assert quality["time_as_advised"] < quality["time_taken"]


def test_failed_jobs_are_kept_and_not_learned_from(client: TestClient, daemon: Daemon, as_: Headers) -> None:
    job = {"scheduler": "east", "job": "18", "comment": "metasched:app=cg,n=700", "nodes": "e1"}
    times = {"start": 1000.0, "end": 1001.5, "exit_status": 137}
    answer = client.post("/v1/jobs", json=job | times, headers=as_("scheduler")).json()
    assert answer == {"stored": True, "why": "", "learned": False}
    (record,) = daemon.store.runs.all(application="cg", learnable=False)
    assert record.exit_status == 137


def test_a_job_without_a_mark_is_left_alone(client: TestClient, as_: Headers) -> None:
    job = {"scheduler": "east", "job": "19", "comment": "metasched:off", "nodes": "e1", "start": 1.0, "end": 2.0}
    assert not client.post("/v1/jobs", json=job, headers=as_("scheduler")).json()["stored"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/loads", b'{"node": "e1", "samples": [[0, NaN, 1]]}'),
        ("/v1/loads", b'{"node": "e1", "samples": [[0, 1.5, 1]]}'),
        ("/v1/loads", b'{"node": "", "samples": [[0, 0.5, 1]]}'),
        ("/v1/loads", b'{"node": "e1", "samples": [[9e10, 0.5, 1]]}'),
        ("/v1/loads", b"\xff\xfe"),
        ("/v1/placements", b'{"application": "cg", "problem_size": -1}'),
        ("/v1/placements", b'{"application": "cg", "problem_size": 1, "exclude": "n[1-99999999999]"}'),
        ("/v1/placements", b'{"application": "cg", "problem_size": 1, "min_processors": 9, "max_processors": 3}'),
        ("/v1/placements", b'{"application": "\\ud800", "problem_size": 1}'),
        ("/v1/jobs", b'{"scheduler": "s", "job": "1", "nodes": "n[", "start": 1, "end": 2}'),
        ("/v1/jobs", b'{"scheduler":"s","job":"1","nodes":"n1","start":1,"end":2,"devices":{"gpu":""}}'),
        ("/v1/jobs", b'{"scheduler":"s","job":"1","nodes":"n1","start":1,"end":2,"devices":{"gpus":[]}}'),
        ("/v1/jobs", b'{"scheduler":"s","job":"1","nodes":"n1","start":3,"end":2,"comment":"metasched:app=a,n=1"}'),
    ],
)
def test_unsound_messages_are_refused_in_one_line(path: str, body: bytes, client: TestClient, as_: Headers) -> None:
    headers = as_("admin") | {"Content-Type": "application/json"}
    answer = client.post(path, content=body, headers=headers)
    assert 400 <= answer.status_code < 500
    assert "\n" not in answer.json()["detail"]


@pytest.mark.parametrize("expected", [True, False])
def test_bodies_that_are_too_large_are_refused(expected: bool, client: TestClient, as_: Headers) -> None:
    body = b'{"node": "e1", "samples": [' + b"[1,1,1]," * 10_000 + b"[1,1,1]]}"
    content = body if expected else iter([body[i : i + 1000] for i in range(0, len(body), 1000)])
    headers = as_("admin") | {"Content-Type": "application/json"}
    assert client.post("/v1/loads", content=content, headers=headers).status_code == 413


def test_metrics_and_the_openapi_document_are_there(client: TestClient, daemon: Daemon, as_: Headers) -> None:
    client.get("/v1/health")
    exposition = client.get("/metrics", headers=as_("reader")).text
    assert 'metasched_requests_total{method="GET",path="/v1/health",status="200"}' in exposition
    assert f"metasched_models {len(daemon.models.all())}.0" in exposition  # other tests may have added some
    assert len(daemon.models.all()) >= 2
    assert "/v1/placements" in client.get("/v1/openapi.json").json()["paths"]


def test_a_model_is_given_out_as_its_document(client: TestClient, daemon: Daemon, as_: Headers) -> None:
    daemon.models.save()
    until(lambda: ("cg", "east") in [model[:2] for model in daemon.store.models.all()])
    assert client.get("/v1/models/cg/east", headers=as_("reader")).json()["application"] == "cg"
    assert client.get("/v1/models/cg/nowhere", headers=as_("reader")).status_code == 404


def test_the_mode_is_an_admins_to_set_and_counts_from_the_next_answer_on(
    client: TestClient, daemon: Daemon, as_: Headers
) -> None:
    def answered() -> str:
        return str(client.post("/v1/placements", json=ASK | {"trial": True}, headers=as_("scheduler")).json()["mode"])

    for role in ("agent", "scheduler", "reader"):
        assert client.put("/v1/mode", json={"mode": "act"}, headers=as_(role)).status_code == 403
    assert client.put("/v1/mode", json={"mode": "act"}).status_code == 401
    assert answered() == "shadow"
    try:
        for mode in ("act", "advise"):
            answer = client.put("/v1/mode", json={"mode": mode}, headers=as_("admin")).json()
            assert (answer["mode"], answer["configured"], answer["set_by"]) == (mode, "shadow", "admin")
            assert answered() == mode
            assert client.get("/v1/health").json()["mode"] == mode
            assert client.get("/v1/status", headers=as_("reader")).json()["mode"] == mode
        for wrong in ({"mode": "dare"}, {"mode": None}, {}, {"mode": "act", "more": 1}):
            assert client.put("/v1/mode", json=wrong, headers=as_("admin")).status_code == 422
        assert answered() == "advise"
    finally:
        client.put("/v1/mode", json={"mode": "shadow"}, headers=as_("admin"))


def test_a_mode_that_cannot_be_noted_does_not_hold(tmp_path: Path) -> None:
    with running(tmp_path, learned=False) as daemon:
        admin = headers_for(daemon)

        class Failing:
            def add(self, change: object) -> None:
                raise StoreError("is locked by another process", where="m.db")

        daemon.mode._journal = Failing()  # type: ignore[assignment]
        answer = TestClient(make_app(daemon)).put("/v1/mode", json={"mode": "act"}, headers=admin)
        assert (answer.status_code, daemon.placer._configuration.mode, daemon.mode.mode) == (503, "shadow", "shadow")
        assert "locked" in answer.json()["detail"]


def test_runs_that_no_model_fits_make_none(tmp_path: Path) -> None:
    with running(tmp_path, learned=False) as daemon:
        admin = headers_for(daemon)
        client = TestClient(make_app(daemon))
        run = {"application": "x", "cluster": "east", "problem_size": 1e300, "processors": 1, "min_avg_avail_cpu": 0.5,
               "min_avg_avail_bw": 1.0, "execution_time": 1e-300}  # fmt: skip
        assert client.post("/v1/runs", json={"runs": [run]}, headers=admin).status_code == 200
        until(lambda: daemon.models.failures == 1)
        ask = {"application": "x", "problem_size": 5.0, "processors": 1}
        at = {"cluster": "east", "available_cpu": 0.5, "available_bandwidth": 1.0}
        assert client.post("/v1/predictions", json=ask | at, headers=admin).status_code == 404
        for where, on in (({}, ""), ({"platform": "east"}, " on east")):
            refused = client.post("/v1/walltimes", json=ask | where, headers=admin)
            detail = f"no model of x{on}, expected one to be learned first"
            assert (refused.status_code, refused.json()["detail"]) == (404, detail)
        answer = client.post("/v1/placements", json=ask | {"processors": [1]}, headers=admin).json()
        assert (answer["placed"], answer["message"]) == (False, "no model of x yet")


def test_a_saved_model_that_is_unsound_keeps_no_time_limit_of_another_platform(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        admin = headers_for(daemon)
        daemon.models._predictors.know([("cg", "unsound")])
        asked = {"application": "cg", "problem_size": 900, "processors": 1}
        found = TestClient(make_app(daemon)).post("/v1/walltimes", json=asked, headers=admin)
        assert found.status_code == 200, found.text
        assert [each["cluster"] for each in found.json()["clusters"]] == ["east", "west"]
        stated = asked | {"parameters": {"steps": 3}}
        refused = TestClient(make_app(daemon)).post("/v1/walltimes", json=stated, headers=admin)
        assert refused.status_code == 422
        assert "parameter 'steps' is unknown" in refused.json()["detail"]


def test_whoever_asks_too_often_is_told_when_to_come_again(tmp_path: Path) -> None:
    with running(tmp_path, learned=False, limits={"requests_per_second": 1e-3, "burst": 3}) as daemon:
        client = TestClient(make_app(daemon))
        answers = [client.get("/v1/health") for _ in range(4)]
        daemon.access.buckets.wait = lambda name: 2.4  # type: ignore[method-assign]
        later = client.get("/v1/health")
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert answers[3].json()["detail"] == "too many requests"
    assert 800 <= int(answers[3].headers["Retry-After"]) <= 1000  # a request in 1,000 s, less what the three took
    assert later.headers["Retry-After"] == "3"  # never before there is room again


def test_what_was_stored_but_not_yet_learned_is_learned_after_a_restart(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        daemon.store.runs.add_all(runs("north", 1))
    with running(tmp_path) as daemon:
        until(lambda: ("cg", "north") in daemon.models.all())
        daemon.store.runs.add_all(runs("north", 2))
    with Store.open(tmp_path / "metasched.db") as store:
        assert ("cg", "north") in {model[:2] for model in store.models.all()}
    with running(tmp_path) as daemon:
        until(lambda: daemon.models.all()["cg", "north"].window.seen == 3)


def test_a_run_that_is_sent_five_times_is_stored_and_learned_once(
    client: TestClient, daemon: Daemon, as_: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned: list[str] = []
    monkeypatch.setattr(daemon.models, "learn", lambda record: learned.append(record.uid))
    run = {"application": "ft", "cluster": "north", "problem_size": 5, "processors": 1, "min_avg_avail_cpu": 1.0,
           "min_avg_avail_bw": 90.0, "execution_time": 2.5, "uid": "ab" * 16}  # fmt: skip
    for _ in range(4):
        assert client.post("/v1/runs", json={"runs": [run]}, headers=as_("scheduler")).status_code == 200
    assert client.post("/v1/runs", json={"runs": [run, run]}, headers=as_("scheduler")).status_code == 200
    assert learned == ["ab" * 16]
    assert len(daemon.store.runs.all(application="ft")) == 1


def test_an_admin_has_the_runs_of_a_user_forgotten(client: TestClient, daemon: Daemon, as_: Headers) -> None:
    fields = {"application": "spin", "cluster": "east", "problem_size": 9, "processors": 1, "execution_time": 2.0}
    taken = [{**fields, "user": "ada"}, {**fields, "user": "eve", "problem_size": 8}]
    assert client.post("/v1/runs", json={"runs": taken}, headers=as_("scheduler")).status_code == 200
    assert client.post("/v1/runs/forget", json={"user": "eve"}, headers=as_("scheduler")).status_code == 403
    assert client.post("/v1/runs/forget", json={"platform": "east"}, headers=as_("admin")).status_code == 422
    found = client.post("/v1/runs/forget", json={"user": "eve"}, headers=as_("admin"))
    assert found.json() == {"forgotten": 1, "models": [{"application": "spin", "platform": "east"}]}
    kept = daemon.store.runs.learnable(application="spin")
    assert [run.user for run in kept] == ["ada"]
    assert daemon.models.all()["spin", "east"].window.seen == 1


def test_a_question_that_states_no_threads_is_about_those_of_all_runs(tmp_path: Path) -> None:
    made = [replace(each, run=replace(each.run, extra={"threads": "2"})) for each in runs("east")]
    with Store.open(tmp_path / "metasched.db") as store:
        store.runs.add_all(made)
        predictor = RobustPredictor("cg", "east").fit(each.run for each in made)
        document = json.loads(documents.dump(predictor))
        store.models.save("cg", "east", document, learned=[each.uid for each in made])
    ask = {"application": "cg", "cluster": "east", "problem_size": 900.0, "processors": 2, "available_cpu": 0.9,
           "available_bandwidth": 100.0}  # fmt: skip
    with running(tmp_path, learned=False) as daemon:
        client, admin = TestClient(make_app(daemon)), headers_for(daemon)
        found = {
            route: [
                client.post(f"/v1/{route}", json=ask | more, headers=admin).json()
                for more in ({}, {"threads": 2}, {"threads": 1})
            ]
            for route in ("predictions", "walltimes")
        }
    unstated, two, one = found["predictions"]
    assert unstated == two
    assert one["interval"]["high"] > 2.0 * two["interval"]["high"]
    unstated, two, one = ([limit["seconds"] for limit in each["clusters"][0]["limits"]] for each in found["walltimes"])
    assert unstated == two
    assert one[-1] > two[-1]
