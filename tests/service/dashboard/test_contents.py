"""What the dashboard lists: everything up to its limits, and how much is left out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from metasched.placement.clusters.running_jobs import StartedJob
from metasched.records import InputError
from metasched.service.dashboard import (
    advice_quality,
    applications,
    clusters,
    health,
    moving,
    pages,
    placements,
)
from metasched.service.quality.recent_predictions import JudgedRun
from metasched.store.errors import StoreError


class Client:
    """Sees the jobs of everybody but of ``root``."""

    shown = ("ann",)

    def sees(self, user: str) -> bool:
        """Whether a user's jobs are shown."""
        return user != "root"


def daemon(many: int, **changes: Any) -> Any:
    """A daemon with so many of everything; its moves are paid, regretted or neither in turn, every fourth is root's."""
    names = [f"c{number:03}" for number in range(many)]

    def made(number: int) -> Any:
        user = "root" if number % 4 == 3 else "ann"
        question = SimpleNamespace(question=SimpleNamespace(user=user))
        return SimpleNamespace(number=number, paid=(True, False, None)[number % 3], advice=question)

    found = {
        "clusters": SimpleNamespace(view=SimpleNamespace(
            partitions=[SimpleNamespace(state=SimpleNamespace(name=name)) for name in reversed(names)]
        )),
        "models": "models", "started_at": 40.0, "history": "history",
        "jobs": SimpleNamespace(ledger=SimpleNamespace(report=lambda: SimpleNamespace(overall=None, parts=names))),
        "mode": SimpleNamespace(mode="shadow", configured="act"),
        "running_advisor": SimpleNamespace(identified=lambda view, sees: names),
        "moves": SimpleNamespace(made=[made(number) for number in range(many)]),
        "store": SimpleNamespace(
            placements=SimpleNamespace(recent=lambda most, users: [f"{users[0]}{each}" for each in range(most)])
        ),
        "queues": SimpleNamespace(waiting=lambda now, sees: names),
        "configuration": SimpleNamespace(moving=SimpleNamespace(act=True), energy="energy"),
    } | changes  # fmt: skip
    return SimpleNamespace(**found)


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every part of the page is shown as itself."""
    monkeypatch.setattr(pages, "verdict", lambda quality, choice: "sound by " + choice)
    monkeypatch.setattr(pages, "next_step", lambda mode, judged: (mode, judged))
    monkeypatch.setattr(health, "checks", lambda daemon, now: iter(["check"]))
    monkeypatch.setattr(advice_quality, "figures", lambda quality: iter(["figure"]))
    monkeypatch.setattr(advice_quality, "parts", lambda report, choice: ["part by " + choice])
    monkeypatch.setattr(clusters, "shown", lambda each, history, day: (each.state.name, day))
    monkeypatch.setattr(applications, "shown", lambda *key: key[:-1])
    monkeypatch.setattr(applications, "summary", lambda *key: ("summary", *key[:-1]))
    monkeypatch.setattr(moving, "running", lambda job, daemon, now: (job, now))
    monkeypatch.setattr(moving, "moved", lambda made: made.number)
    monkeypatch.setattr(placements, "shown", lambda each: each)


def contents(monkeypatch: pytest.MonkeyPatch, many: int, **changes: Any) -> dict[str, Any]:
    order = [(f"a{number:03}", "c") for number in range(many)]
    monkeypatch.setattr(applications, "in_order", lambda models, application: order)
    client: Any = Client()
    return pages.content(daemon(many, **changes), 100.0, client, application="a", day=True)


def test_models_are_shown_by_how_much_they_were_judged_then_learned_then_by_name() -> None:
    judged = {("a", "c"): 0, ("b", "c"): 2, ("c", "c"): 2, ("d", "c"): 2, ("d", "b"): 2, ("e", "c"): 9}
    learned = {("a", "c"): 90, ("b", "c"): 5, ("c", "c"): 7, ("d", "c"): 5, ("d", "b"): 5, ("e", "c"): 1}
    models: Any = SimpleNamespace(
        keys=list(judged),
        recent=SimpleNamespace(of=lambda *key: [None] * judged[key]),
        learned_by=lambda key: SimpleNamespace(runs=learned[key]),
    )
    expected = [("e", "c"), ("c", "c"), ("b", "c"), ("d", "b"), ("d", "c"), ("a", "c")]
    assert applications.in_order(models, "") == expected
    assert applications.in_order(models, "d") == [("d", "b"), ("d", "c")]


@pytest.mark.parametrize(("judged", "listed"), [(0, 0), (3, 3), (10, 10), (25, 10)])
def test_the_last_ten_judged_runs_are_listed_the_newest_first_and_all_of_them_drawn(judged: int, listed: int) -> None:
    runs = [JudgedRun(float(at), 100.0, 4, 9.0, 8.0, 12.0, 10.0) for at in range(judged)]
    models: Any = SimpleNamespace(
        recent=SimpleNamespace(of=lambda *key: runs),
        answering=lambda key: None,
        learned_by=lambda key: SimpleNamespace(unmeasured=0),
    )
    shown = applications.shown("cg", "east", models)
    assert [run.at for run in shown.runs] == [float(judged - 1 - place) for place in range(listed)]
    drawn = [] if shown.chart is None else shown.chart["actual"]
    assert len(drawn) == judged


@pytest.mark.usefixtures("plain")
def test_a_page_shows_everything_up_to_its_limits_and_how_much_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"c{number:03}" for number in range(220)]
    found = contents(monkeypatch, 220)
    assert found["clusters"] == [(name, True) for name in names[:8]]
    assert found["other_clusters"] == names[8:208]
    assert found["models"] == [(f"a{number:03}", "c") for number in range(6)]
    assert found["other_models"] == [("summary", f"a{number:03}", "c") for number in range(6, 206)]
    assert found["hidden_models"] == 220 - 206
    assert found["hidden_parts"] == 220 - advice_quality.LISTED
    assert found["waiting"] == names[:30]
    assert found["running"] == [(name, 100.0) for name in names[:10]]
    assert found["hidden_running"] == 210
    # Those of root, every fourth, are not seen.
    seen = [number for number in range(220) if number % 4 != 3]
    assert found["moves"] == seen[:10]
    assert found["paid"] == sum(number % 3 == 0 for number in seen)
    assert found["regretted"] == sum(number % 3 == 1 for number in seen)
    assert found["placements"] == [f"ann{number}" for number in range(30)]
    plain = {key: found[key] for key in ("now", "up", "mode", "configured", "judged", "next", "day", "application")}
    assert plain == {
        "now": 100.0, "up": 60.0, "mode": "shadow", "configured": "act", "judged": "sound by energy",
        "next": ("shadow", "sound by energy"), "day": True, "application": "a",
    }  # fmt: skip
    assert (found["checks"], found["figures"], found["parts"]) == (["check"], ["figure"], ["part by energy"])
    assert (found["moving"], found["unread"]) == (False, "")


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("many", [0, 5, 10])
def test_where_everything_fits_nothing_is_left_out(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = contents(monkeypatch, many)
    assert (found["hidden_models"], found["hidden_parts"], found["hidden_running"]) == (0, 0, 0)
    assert (len(found["running"]), len(found["clusters"]), len(found["models"])) == (many, min(many, 8), min(many, 6))


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize(
    ("mode", "act", "moves"), [("act", True, True), ("act", False, False), ("shadow", True, False)]
)
def test_jobs_are_moved_where_the_daemon_acts_and_may_move_them(
    mode: str, act: bool, moves: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    configuration = SimpleNamespace(moving=SimpleNamespace(act=act), energy="energy")
    parts = {"mode": SimpleNamespace(mode=mode, configured=mode), "configuration": configuration}
    assert contents(monkeypatch, 1, **parts)["moving"] is moves


@pytest.mark.usefixtures("plain")
def test_a_database_that_cannot_be_read_leaves_the_rest_of_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    def unread(most: int, users: Any) -> Any:
        raise StoreError("the database is locked")

    found = contents(monkeypatch, 1, store=SimpleNamespace(placements=SimpleNamespace(recent=unread)))
    assert (found["placements"], found["unread"]) == ([], "the database is locked")
    assert len(found["clusters"]) == 1


def job(comment: str = "", nodes: tuple[str, ...] = ("n1", "n2")) -> StartedJob:
    return StartedJob(
        number="17", application="cg", problem_size=500.0, partition="c/p", nodes=nodes, processors=2,
        running_for=90.0, comment=comment,
    )  # fmt: skip


def advised(move: bool, nodes: tuple[str, ...] | None) -> Any:
    sets = SimpleNamespace(cluster="d/q", nodes=nodes)
    placement = None if nodes is None else SimpleNamespace(resource_set=sets)
    decision = SimpleNamespace(move=move, why="it gains 40 s")
    found = SimpleNamespace(advice=SimpleNamespace(decision=decision, placement=placement))
    return SimpleNamespace(
        clusters=SimpleNamespace(view="view"), running_advisor=SimpleNamespace(about=lambda job, view, now: found)
    )


MANY = tuple(f"m{number}" for number in range(65))


@pytest.mark.parametrize(
    ("move", "nodes", "moves", "advice"),
    [
        (True, ("m1", "m2"), True, "move to d/q: m[1-2]"),
        (True, MANY[:64], True, "move to d/q: m[0-63]"),
        (True, MANY, True, "move to d/q: 65 nodes"),
        (False, ("m1", "m2"), False, "stay"),
        (True, None, False, "stay"),
    ],
)
def test_a_running_job_says_whether_it_should_move_where_and_why(
    move: bool, nodes: tuple[str, ...] | None, moves: bool, advice: str
) -> None:
    shown = moving.running(job(), advised(move, nodes), 100.0)
    assert shown == moving.Running("17", "cg", 500.0, "c/p: n[1-2]", 90.0, moves, advice, "it gains 40 s")
    assert moving.running(job(nodes=MANY), advised(move, nodes), 100.0).where == "c/p: 65 nodes"


def test_a_running_job_of_which_nothing_can_be_said_says_why() -> None:
    def refused(job: Any, view: Any, now: float) -> Any:
        raise InputError("there is no model of cg")

    parts: Any = SimpleNamespace(clusters=SimpleNamespace(view="view"), running_advisor=SimpleNamespace(about=refused))
    shown = moving.running(job(), parts, 100.0)
    assert shown == moving.Running(
        "17", "cg", 500.0, "c/p: n[1-2]", 90.0, False, "no advice", "there is no model of cg"
    )


@pytest.mark.parametrize(
    ("paid", "taken", "staying", "outcome", "mark", "came"),
    [
        (None, None, None, False, "…", "not finished, or not reported"),
        (True, 60.0, 100.0, True, "✓", "worthwhile: done 60.0 s after the move, 40.0 s sooner"),
        (False, 100.0, 70.0, True, "≠", "not worthwhile: done 100 s after the move, 30.0 s later"),
        *[(*known, True, "✕", "failed, or the time without the move is unknown")
          for known in ((None, 1.0, 2.0), (True, None, 2.0), (False, 1.0, None))],
    ],
)  # fmt: skip
def test_a_move_says_what_it_saved_or_cost(
    paid: bool | None, taken: float | None, staying: float | None, outcome: bool, mark: str, came: str
) -> None:
    answer = SimpleNamespace(
        move=SimpleNamespace(cluster="c/p", nodes="n[1-2]"), partition="q", nodes="m[1-2]", message="cg n=5: it gains"
    )
    advice = SimpleNamespace(
        made_at=7.0, application="cg", answer=answer, question=SimpleNamespace(job="17", problem_size=5.0),
        outcome="known" if outcome else None,
    )  # fmt: skip
    made: Any = SimpleNamespace(advice=advice, paid=paid, taken=taken, staying=staying)
    assert moving.moved(made) == moving.Moved(7.0, "17", "cg", 5.0, "c/p: n[1-2] → q: m[1-2]", "it gains", mark, came)
    answer.move, answer.message = None, "nothing is known"
    assert (moving.moved(made).went, moving.moved(made).why) == ("", "nothing is known")
