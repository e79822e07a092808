"""Upkeep and views: what is done with which parts of the daemon, by stand-ins that note it."""

from __future__ import annotations

import logging
import math
from types import SimpleNamespace
from typing import Any

import pytest

from metasched.service.configuration import Keep
from metasched.service.periodic_work import upkeep, views
from metasched.service.periodic_work.upkeep import DAY, Upkeep
from metasched.service.periodic_work.views import Views


class Noted:
    """Stands for any part: notes each call as ``part.verb`` with its arguments, and answers what it was given."""

    def __init__(self, calls: list[tuple[Any, ...]], name: str, **answers: Any) -> None:
        self.calls, self.name, self.answers = calls, name, answers

    def __getattr__(self, verb: str) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            self.calls.append((f"{self.name}.{verb}", *arguments, *sorted(named.items())))
            answer = self.answers.get(verb)
            if isinstance(answer, Exception):
                raise answer
            return answer

        return call


@pytest.fixture
def calls() -> list[tuple[Any, ...]]:
    return []


def made(calls: list[tuple[Any, ...]], now: float, fault: str = "") -> Upkeep:
    parts: dict[str, Any] = {name: Noted(calls, name) for name in ("history", "models")}
    parts["models"].recent = Noted(calls, "recent")
    jobs = Noted(calls, "jobs", remember=["ended"])
    store = SimpleNamespace(name="site.db", waiting=Noted(calls, "waiting"))
    clusters: Any = SimpleNamespace(view=SimpleNamespace(load_names=lambda: {"p": ("n1",)}))
    clock, keep = Noted(calls, "clock", now=now, fault=fault), Keep(loads=2.0, placements=3.0, past_jobs=4.0)
    found = Upkeep(store, keep, clock, clusters, parts["history"], parts["models"], jobs)  # type: ignore[arg-type]
    calls.clear()
    return found


def test_the_history_is_restored_from_the_means_of_the_day_before_the_start(
    calls: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    rests = []
    moments = iter(float(each * each) for each in range(10_000))
    stand_in = SimpleNamespace(monotonic=lambda: next(moments), sleep=rests.append)
    monkeypatch.setattr(upkeep, "time", stand_in)
    monkeypatch.setattr(upkeep, "mean_loads", lambda store, step, since, until: (step, since, until))
    now = 10 * DAY + 450.0
    found = made(calls, now)
    assert not found.history_restored
    found.restore_history()
    assert found.history_restored
    [(verb, names, slots)] = calls
    slots = list(slots)
    assert (verb, names) == ("history.restore", {"p": ("n1",)})
    first = 9 * DAY + 600.0
    assert slots[0] == (300, first, first + 300.0)
    assert slots[-1] == (300, 10 * DAY + 300.0, now)
    assert len(slots) == 288
    # It rests as long as each took: here 1, 5, 9, ...
    assert rests[:3] == [1.0, 5.0, 9.0]


def test_what_became_of_jobs_before_the_start_is_shown(calls: list[tuple[Any, ...]]) -> None:
    made(calls, 7.0).restore_outcomes()
    assert calls == [("jobs.remember",), ("recent.restore", ["ended"])]


def test_each_kind_of_thing_is_kept_for_its_own_days(
    calls: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    pruned: list[dict[str, float]] = []
    monkeypatch.setattr(upkeep, "prune", lambda store, **before: pruned.append(before))
    made(calls, 100 * DAY).apply_retention()
    before = {"loads_before": 98 * DAY, "placements_before": 97 * DAY, "past_jobs_before": 96 * DAY}
    assert pruned == [{"now": 100 * DAY} | before]
    # What a scheduler never confirms is kept no longer where the daemon is not started again.
    assert calls[2:] == [("waiting.forget", 93 * DAY)]


def test_nothing_is_removed_while_the_clock_is_in_doubt(
    calls: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(upkeep, "prune", lambda store, **before: calls.append(("pruned",)))
    made(calls, 4000 * DAY, fault="the clock was set by 315360000 s, 60 s ago").apply_retention()
    assert calls == [("clock.fault",)]
    assert caplog.messages == ["nothing is removed for its age: the clock was set by 315360000 s, 60 s ago"]


def test_means_are_made_up_to_now_with_rests_and_memory_is_given_back(
    calls: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[Any] = []
    monkeypatch.setattr(upkeep, "update_means", lambda store, now, pause: done.append((store.name, now, pause)))
    monkeypatch.setattr(upkeep.memory_use, "give_back", lambda: done.append("given back"))
    made(calls, 7.0).update_means()
    assert done == [("site.db", 7.0, views.REST), "given back"]


@pytest.mark.parametrize(
    ("damage", "logged"), [("", []), ("torn", ["site.db is damaged, restore it from a backup: torn"])]
)
def test_damage_is_shown_and_logged(
    damage: str, logged: list[str], calls: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    monkeypatch.setattr(upkeep, "damage", lambda store: damage)
    found = made(calls, 7.0)
    found.damage = "of before"
    found.check()
    assert found.damage == damage
    assert [each.getMessage() for each in caplog.records if each.levelno >= logging.ERROR] == logged


def viewed(calls: list[tuple[Any, ...]], *sources: Any) -> Views:
    view = SimpleNamespace(partitions=(SimpleNamespace(state="s1"), SimpleNamespace(state="s2")), made_at=5.0)
    view.load_names = dict
    clusters: Any = Noted(calls, "clusters", refresh=view, newest_loads="loads")
    clusters.view, clusters.seen_at = view, {}
    told = ({"scheduler": "c"}, {"scheduler": "d"}, {}, {"scheduler": "c"})
    runs = [SimpleNamespace(extra=extra, nodes=(f"n{number}",)) for number, extra in enumerate(told)]
    ran = Noted(calls, "runs", all=[SimpleNamespace(run=run) for run in runs])
    store: Any = SimpleNamespace(loads=Noted(calls, "loads", newest="newest"), runs=ran)
    parts: Any = {name: Noted(calls, name) for name in ("history", "forecaster", "models", "metrics")}
    queues: Any = Noted(calls, "queues", put="waiting")
    clock: Any = Noted(calls, "clock", now=5.0)
    prepare: Any = "prepare"
    history, forecaster, models, metrics = parts.values()
    return Views(store, sources, clock, clusters, history, forecaster, models, metrics, queues, prepare)


def source(calls: list[tuple[Any, ...]], **answers: Any) -> Any:
    found: Any = Noted(calls, "source", **({"partitions": ["p"], "queue": ["q"], "running": ["r"]} | answers))
    found.name = found.__dict__["name"] = "c"
    return found


PUT = [("queues.put", "c", ["p"], ["q"], 5.0), ("clusters.put", "c", "waiting", 5.0)]
RAN = ("clusters.put_running", "c", ["r"], 5.0)


def asked(calls: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [each for each in calls if each[0].startswith(("queues.", "clusters.", "metrics."))]


def test_a_scheduler_that_answers_is_put_with_the_time_it_was_asked_at(calls: list[tuple[Any, ...]]) -> None:
    viewed(calls).ask(source(calls))
    assert asked(calls) == [*PUT, RAN]


def test_a_scheduler_whose_queue_is_unknown_keeps_the_last_one_and_the_rest_goes_on(
    calls: list[tuple[Any, ...]], caplog: pytest.LogCaptureFixture
) -> None:
    viewed(calls).ask(source(calls, queue=RuntimeError("denied")))
    assert asked(calls) == [("queues.put", "c", ["p"], None, 5.0), PUT[1], RAN]
    assert [each.getMessage() for each in caplog.records] == ["the queue of c is unknown: denied"]


def test_a_scheduler_that_does_not_answer_is_counted_and_changes_nothing(calls: list[tuple[Any, ...]]) -> None:
    away, fault = RuntimeError("away"), ValueError("a fault")
    viewed(calls).ask(source(calls, partitions=away))
    assert asked(calls) == [("metrics.unheard", "c", away)]
    calls.clear()
    viewed(calls).ask(source(calls, running=fault))
    assert asked(calls) == [*PUT, ("metrics.unheard", "c", fault)]


def test_the_first_view_is_of_new_loads_and_of_all_schedulers_and_goes_to_history_and_forecasts(
    calls: list[tuple[Any, ...]],
) -> None:
    found = viewed(calls, source(calls), source(calls, partitions=RuntimeError("away")))
    described: list[Any] = []
    stand_in: Any = SimpleNamespace(show=lambda clusters, predictor, now: described.append((predictor("p", "cg"), now)))
    found.described = stand_in
    found.make()
    assert described == [(None, 5.0)]
    assert ("models.predictor", "cg", "p") in calls
    assert ("loads.newest", ("since", -math.inf)) in calls
    assert ("clusters.note", "newest") in calls
    assert RAN in calls
    assert [each[0] for each in calls].count("metrics.unheard") == 1
    (partitions, made_at) = found._clusters.view.partitions, 5.0
    assert calls[-6:] == [
        ("clock.mind",), ("clock.now",), ("clusters.refresh", 5.0, "prepare"), ("history.note", partitions, made_at),
        ("clusters.newest_loads",), ("forecaster.note", "loads", made_at),
    ]  # fmt: skip


@pytest.mark.parametrize("seen", [True, False])
def test_a_scheduler_that_has_not_answered_has_the_nodes_of_its_last_runs(
    seen: bool, calls: list[tuple[Any, ...]]
) -> None:
    found = viewed(calls, source(calls))
    found._clusters.seen_at = {"c": 5.0} if seen else {"d": 5.0}  # type: ignore[misc]
    found.make()
    expected = [("runs.all", ("last", views.LAST_RUNS)), ("clusters.expect", "c", {"n0", "n3"})]
    assert [each for each in calls if each[0] in ("runs.all", "clusters.expect")] == ([] if seen else expected)


def test_loads_are_forecast_of_the_partitions_of_the_view_with_rests(calls: list[tuple[Any, ...]]) -> None:
    viewed(calls).forecast()
    assert calls[-1] == ("forecaster.forecast", ["s1", "s2"], 5.0, ("names", {}), ("pause", views.REST))
