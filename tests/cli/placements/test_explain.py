"""``metasched explain`` with the number of a job, before a real daemon."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from command_line import call
from fastapi.testclient import TestClient

from metasched.cli.placements import given
from metasched.history.queue import QueuedJob
from metasched.service.app import make_app
from metasched.service.daemon import Daemon
from tests.service.daemons import running


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Daemon, TestClient, dict[str, dict[str, str]]]]:
    with running(tmp_path_factory.mktemp("site")) as daemon:
        made = {name: daemon.store.tokens.add(name, "reader", user=name) for name in ("alice", "bob")}
        made |= {"scheduler": daemon.store.tokens.add("s", "scheduler"), "admin": daemon.store.tokens.add("a", "admin")}
        daemon.access.refresh()
        yield daemon, TestClient(make_app(daemon)), {k: {"Authorization": f"Bearer {v}"} for k, v in made.items()}


@pytest.fixture
def asker(site: tuple[Daemon, TestClient, Any], monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Who asks the daemon, under ``who``; an administrator at first."""
    _, client, heads = site
    who = {"who": "admin"}

    def consult(config: Any, url: Any, method: str, path: str, document: Any = None) -> Any:
        answer = client.request(method, path, json=document, headers=heads[who["who"]])
        assert answer.status_code == 200, answer.text
        return answer.json()

    monkeypatch.setattr(given, "ask_daemon", consult)
    return who


def placed(site: tuple[Daemon, TestClient, Any], size: float, user: str) -> str:
    _, client, heads = site
    ask = {"application": "cg", "problem_size": size, "user": user}
    return str(client.post("/v1/placements", json=ask, headers=heads["scheduler"]).json()["id"])


def ended(site: tuple[Daemon, TestClient, Any], job: str, size: float, user: str, uid: str) -> None:
    _, client, heads = site
    now = time.time()
    told = {"scheduler": "cluster east", "job": job, "user": user, "nodes": "e1", "start": now - 60.0, "end": now - 1.0}
    told["comment"] = f"metasched:app=cg,n={size:g},p=1,placement={uid}"
    assert client.post("/v1/jobs", json=told, headers=heads["scheduler"]).json()["stored"]


def explained(capsys: pytest.CaptureFixture[str], what: str) -> Any:
    status, out, err = call(capsys, "explain", what, "--json")
    assert status == 0, err
    return json.loads(out)


def test_a_job_that_has_ended_is_explained_by_its_number(
    site: tuple[Daemon, TestClient, Any], asker: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = placed(site, 1000, "alice"), placed(site, 1900, "alice")
    ended(site, "70", 1000, "alice", first)
    ended(site, "71_2", 1900, "alice", second)
    by_number = [explained(capsys, job) for job in ("70", "71_2")]
    assert by_number == [explained(capsys, uid) for uid in (first, second)]
    assert by_number[0]["execution_time"] < by_number[1]["execution_time"]


def queued(site: tuple[Daemon, TestClient, Any], number: str, user: str, uid: str, **known: Any) -> None:
    """Have the scheduler list a job whose comment names a placement."""
    job = QueuedJob(number, frozenset({"east"}), 4, 600.0, user=user, placement=uid, **known)
    site[0].queues.put("east", (), [job], time.time())


@pytest.mark.parametrize(("number", "known"), [("80", {"ran": 5.0, "nodes": ("e1",)}), ("81", {})])
def test_a_number_that_was_given_again_is_that_of_the_newest_job(
    number: str,
    known: dict[str, Any],
    site: tuple[Daemon, TestClient, Any],
    asker: dict[str, str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    old = placed(site, 1000, "alice")
    ended(site, number, 1000, "alice", old)
    new = placed(site, 1500, "alice")
    queued(site, number, "alice", new, **known)
    assert explained(capsys, number) == explained(capsys, new) != explained(capsys, old)


@pytest.mark.parametrize("who", ["alice", "bob"])
def test_jobs_of_others_are_unknown(
    who: str, site: tuple[Daemon, TestClient, Any], asker: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    ended(site, f"90{who}", 1000, "bob", placed(site, 1000, "bob"))
    # A job of one user that names the placement of another shows it to nobody else.
    queued(site, "91", "alice", placed(site, 1000, "bob"))
    asker["who"] = who
    for number in (f"90{who}", "91"):
        status, _, err = call(capsys, "explain", number, "--json")
        assert status == (0 if who == "bob" else 2)
        assert (f"no placement of a job {number} is known" in err) == (who == "alice")
