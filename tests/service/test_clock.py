"""The time of day is set while the daemon runs: nothing freezes, nobody's samples are lost, and health tells."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from metasched.service.app import make_app
from metasched.service.clock import Clock
from metasched.service.daemon import Daemon
from metasched.sites.choice import SitePlacement
from metasched.sites.data import transfers
from metasched.sites.trust import Trust
from tests.service.daemons import headers_for, running
from tests.sites.answers import offer

HOUR = 3600.0


class Day:
    """The time of day, which somebody may set."""

    def __init__(self) -> None:
        self.set_by = 0.0

    def __call__(self) -> float:
        return time.time() + self.set_by


@contextmanager
def dated(folder: Path, day: Day, **settings: object) -> Iterator[tuple[Daemon, TestClient]]:
    with running(folder, wall=day, periods={"loads": 0.05}, **settings) as daemon:
        client = TestClient(make_app(daemon), headers=headers_for(daemon, "a", "admin"))
        yield daemon, client


def send(client: TestClient, node: str, at: float, cpu: float = 0.5) -> int:
    return client.post("/v1/loads", json={"node": node, "samples": [[at, cpu, 90.0]]}).status_code


def within(seconds: float, found: object) -> bool:
    end = time.monotonic() + seconds
    while not found():  # type: ignore[operator]
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def test_all_parts_of_the_daemon_go_by_one_clock(tmp_path: Path) -> None:
    with running(tmp_path, learned=False, wall=lambda: 1.5e9 + time.monotonic()) as daemon:
        now = daemon.clock.now()
        daemon.mode.set("act", "root")
        assert daemon.mode.as_dict()["set_at"] == pytest.approx(now, abs=60.0)
        daemon.sites.sent.send([SitePlacement(offer("east"), 0.0, transfers(["east"], 1.0, {})["east"], Trust())])
        [document] = daemon.store.sent_jobs.jobs().values()
        assert document["chosen_at"] == pytest.approx(now, abs=60.0)


@pytest.mark.parametrize("jump", [-HOUR, HOUR])
def test_a_clock_that_is_set_wrongly_changes_nothing_but_health(jump: float, tmp_path: Path) -> None:
    day = Day()
    with dated(tmp_path, day) as (daemon, client):
        assert [send(client, f"e{n}", time.time()) for n in (1, 2, 3, 4)] == [200] * 4
        assert client.get("/v1/health").json()["status"] == "ok"
        secret = daemon.store.tokens.add("late", "reader")
        day.set_by = jump
        made = daemon.clusters.view
        assert within(60.0, lambda: daemon.clusters.view is not made and daemon.clock.fault())
        made = daemon.clusters.view
        assert within(60.0, lambda: daemon.clusters.view is not made)
        assert [send(client, f"e{n}", time.time()) for n in (1, 2, 3, 4)] == [200] * 4
        answer = client.get("/v1/health").json()
        assert (answer["status"], answer["faults"]) == (
            "clock",
            [f"the clock was set by {jump:.0f} s; the daemon keeps its own time, which the nodes confirm"],
        )
        daemon.views.refresh()
        assert max(daemon.clusters.view.ages()[("cluster east", f"e{n}")] for n in (1, 2, 3, 4)) < 60.0
        reader = {"Authorization": f"Bearer {secret}"}
        assert within(60.0, lambda: client.get("/v1/mode", headers=reader).status_code == 200)
        daemon.store.tokens.revoke("late")
        assert within(60.0, lambda: client.get("/v1/mode", headers=reader).status_code == 401)
        assert "the clock was set" in client.get("/").text


def test_a_clock_that_was_wrong_and_is_put_right_loses_no_sample(tmp_path: Path) -> None:
    day = Day()
    day.set_by = -HOUR
    with dated(tmp_path, day) as (daemon, client):
        sent = [send(client, f"e{n}", time.time()) for n in (1, 2, 3, 4)]
        # Until three nodes agree, the one that is heard first may as well be the one that is wrong.
        assert sent == [422, 422, 503, 503]
        assert client.get("/v1/health").json()["faults"] == ["the clocks of most nodes are 3600 s ahead of this one"]
        assert send(client, "w1", time.time() + 10 * HOUR) == 422
        day.set_by = 0.0
        assert within(60.0, lambda: abs(daemon.clock.now() - time.time()) < 1.0)
        assert [send(client, f"e{n}", time.time()) for n in (1, 2, 3, 4)] == [200] * 4


def test_loads_count_at_once_when_the_clocks_of_a_whole_site_are_put_right(tmp_path: Path) -> None:
    day, nodes = Day(), [f"e{n}" for n in (1, 2, 3, 4)]
    day.set_by = HOUR
    with dated(tmp_path, day) as (daemon, client):
        assert [send(client, node, day()) for node in nodes] == [200] * 4
        day.set_by = 0.0

        def shown() -> list[float]:
            assert [send(client, node, time.time(), 0.25) for node in nodes] == [200] * 4
            state = next(each.state for each in daemon.clusters.view.partitions if each.state.name == "east")
            return [float(state.available_cpu[state.nodes.index(node)]) for node in nodes]

        assert within(60.0, lambda: shown() == [0.25] * 4)
        assert abs(daemon.clock.now() - time.time()) < 1.0


def test_without_a_witness_the_new_time_counts_and_is_told_for_an_hour() -> None:
    day, passed = [1e9], [2.0 * HOUR]
    clock = Clock(lambda: day[0], lambda: passed[0])
    day[0] -= HOUR
    clock.mind()
    assert (clock.now(), clock.fault()) == (1e9 - HOUR, "the clock was set by -3600 s, 0 s ago")
    passed[0], day[0] = 3.0 * HOUR - 1.0, 1e9 - 1.0
    clock.mind()
    assert clock.fault() == "the clock was set by -3600 s, 3599 s ago"
    passed[0], day[0] = 3.0 * HOUR + 1.0, 1e9 + 1.0
    clock.mind()
    assert clock.fault() == ""


@pytest.mark.parametrize("witnessed", [True, False], ids=["kept", "followed"])
@pytest.mark.parametrize("jump", [HOUR, -HOUR, 86_400.0])
def test_jobs_during_which_the_clock_was_set_are_told_from_all_others(jump: float, witnessed: bool) -> None:
    day, passed = [1e9], [0.0]
    clock = Clock(lambda: day[0], lambda: passed[0])
    if witnessed:
        clock.heard("n1", 1e9)
    for second in range(1, 101):
        passed[0] += 1.0
        day[0] += 1.0 + (jump if second == 50 else 0.0)
        clock.mind()
    began, ended = 1e9 + 10.0, 1e9 + 90.0
    assert clock.was_set_during(began, ended + max(jump, 0.0))
    assert clock.was_set_during(began + min(jump, 0.0), ended) == (jump < 0.0)
    assert not clock.was_set_during(began - 2 * HOUR, began + min(jump, 0.0))
    assert not clock.was_set_during(ended + max(jump, 0.0), ended + max(jump, 0.0) + HOUR)
    assert [clock.was_set_during(1e9 + jump + 60.0, 1e9 + jump + 70.0)] == [jump < 0.0]


@pytest.mark.parametrize("jump", [HOUR, -HOUR])
def test_a_job_that_ends_just_after_the_clock_was_set_is_told_before_the_clock_is_minded(jump: float) -> None:
    day, passed = [1e9], [0.0]
    clock = Clock(lambda: day[0], lambda: passed[0])
    passed[0], day[0] = 10.0, 1e9 + 10.0
    clock.mind()
    passed[0], day[0] = 10.5, 1e9 + 10.5 + jump
    assert clock.was_set_during(1e9, day[0])
    assert not clock.was_set_during(1e9 + min(jump, 0.0) - 60.0, 1e9 + min(jump, 0.0) - 1.0)


@pytest.mark.parametrize("jump", [HOUR, 86_400.0])
def test_a_job_during_which_the_clock_was_set_is_kept_and_not_learned(jump: float, tmp_path: Path) -> None:
    day = Day()
    with dated(tmp_path, day) as (daemon, client):
        asked = {"application": "cg", "problem_size": 900, "user": "7"}
        placed = client.post("/v1/placements", json=asked).json()
        comment = f"metasched:app=cg,n=900,p=1,placement={placed['id']}"

        def end(number: int, start: float, seconds: float) -> dict[str, object]:
            document = {"scheduler": "east", "job": f"{number}", "nodes": "e1", "start": start, "user": "7"}
            document |= {"end": start + seconds, "comment": comment, "exit_status": 0}
            answer: dict[str, object] = client.post("/v1/jobs", json=document).json()
            return answer

        start = day()
        day.set_by = jump
        assert within(60.0, daemon.clock.fault)
        assert end(1, start, jump + 60.0) == {"stored": True, "why": "", "learned": False}
        assert client.get(f"/v1/placements/{placed['id']}").json()["outcome"] is None
        assert end(2, day(), 60.0)["learned"]


def test_a_clock_that_is_slewed_is_followed() -> None:
    day, passed = [1e9], [0.0]
    clock = Clock(lambda: day[0], lambda: passed[0])
    clock.heard("n1", 1e9)
    for second in range(1, 100):
        passed[0], day[0] = float(second), 1e9 + 1.01 * second
        clock.mind()
    assert clock.now() == pytest.approx(day[0])
    assert clock.fault() == ""
