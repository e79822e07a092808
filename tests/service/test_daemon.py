"""What the daemon does by itself, whoever asks it anything."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select
from waiting import until

from metasched.advised_placements import AdvisedPlacement, Ask
from metasched.records import Load
from metasched.service import daemon as daemon_module
from metasched.service.configuration import Configuration
from metasched.service.learning.finished_jobs import EndedJobs
from metasched.service.periodic_work.upkeep import Upkeep
from metasched.service.sources import sources
from metasched.service.state.load_history import LoadHistory
from metasched.store.database.engine import reading
from metasched.store.database.load_means import mean_loads
from metasched.store.database.store import Store
from metasched.store.database.tables import FIVE_MINUTES, LoadMeanRow
from metasched.store.errors import StoreError
from monitors import schedule
from tests.service.daemons import running


def test_the_daemon_rolls_up_what_came_in_by_itself(tmp_path: Path) -> None:
    with running(tmp_path, learned=False, periods={"means": 0.2}) as daemon:
        now = time.time()
        daemon.writes.loads([Load(now - 900.0 + 10 * k, "e1", 0.25, 90.0) for k in range(60)]).result()

        def means() -> int:
            with reading(daemon.store.engine) as connection:
                return connection.scalar(select(func.count()).select_from(LoadMeanRow)) or 0

        until(lambda: means() >= 2)
        kept = mean_loads(daemon.store, FIVE_MINUTES, since=now - 1800.0, until=now)
        assert set(kept.available_cpu) == {0.25}


def test_a_node_that_was_silent_for_hours_is_stale_after_a_restart_too(tmp_path: Path) -> None:
    now = time.time()
    with running(tmp_path) as daemon:
        loads = [Load(now - 7200.0, "e1", 0.95, 99.0), *(Load(now, f"e{n}", 0.3, 60.0) for n in (2, 3, 4))]
        daemon.writes.loads(loads).result()
    with running(tmp_path) as daemon:
        assert daemon.clusters.view.ages()["cluster east", "e1"] == pytest.approx(7200.0, abs=60.0)
        answer = daemon.placer.answer(Ask(application="cg", problem_size=900, processors=[4], clusters=("east",)), now)
        assert answer.warnings[0].startswith("1 of 4 nodes of cluster east have stale measurements, up to 72")


def test_forecasts_are_learned_from_loads_before_the_start_too(tmp_path: Path) -> None:
    now = time.time()
    with running(tmp_path) as daemon:
        loads = [Load(now - 30.0 * k, "e1", 0.3 if k // 20 % 2 else 0.9, 99.0) for k in range(200)]
        daemon.writes.loads(loads).result()
    with running(tmp_path) as daemon:
        state = next(each.state for each in daemon.clusters.view.partitions if each.state.name == "east")

        def expected() -> float:
            daemon.views.forecast()
            return float(daemon.load_forecaster.forecasts.over(state, 3600.0).available_cpu[state.nodes.index("e1")])

        until(lambda: expected() < 0.8)
        assert 0.3 < expected() < 0.8


def test_a_placed_job_counts_until_its_end_where_nothing_is_measured(tmp_path: Path) -> None:
    """Four jobs of hours fill the four nodes of a cluster without monitors, and the fifth shares with one of them."""
    with running(tmp_path, mode="act") as daemon:
        daemon.work.stop()
        ask, now = Ask(application="cg", problem_size=200_000, processors=[4], clusters=("east",)), time.time()
        answers = []
        for number in range(5):
            daemon.clusters.refresh(now + 60.0 * number)
            answers.append(daemon.placer.answer(ask, now + 60.0 * number))
        times = [each.placement.prediction.execution_time for each in answers if each.placement is not None]
        assert {each.nodes for each in answers[:4]} == {"e1", "e2", "e3", "e4"}
        assert times[:4] == pytest.approx([times[0]] * 4)
        assert times[4] > 1.8 * times[0]


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_work_done_once_survives_a_store_that_fails_and_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: dict[str, int] = {"remember": 0, "catch_up": 0}

    def failing_twice(name: str) -> None:
        work = getattr(EndedJobs, name)

        def once(self: EndedJobs, *given: float) -> object:
            tries[name] += 1
            if tries[name] == 1:
                raise StoreError("the disk is full")
            if tries[name] == 2:
                raise ValueError("a fault of ours")
            return work(self, *given)

        monkeypatch.setattr(EndedJobs, name, once)

    for name in tries:
        failing_twice(name)
    monkeypatch.setattr(daemon_module, "CATCH_UP_AFTER", 0.0)
    monkeypatch.setattr(schedule, "RETRY_AFTER", 0.01)
    with running(tmp_path, learned=False) as daemon:
        until(lambda: daemon.upkeep.history_restored and daemon.work.idle)
    assert tries == {"remember": 3, "catch_up": 3}


def test_loads_that_cannot_be_read_have_no_past_job_counted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    restore, remember = LoadHistory.restore, EndedJobs.remember

    def failing_once(self: LoadHistory, *given: Any) -> None:
        done.append("loads")
        if done.count("loads") == 1:
            raise StoreError("the disk is full")
        restore(self, *given)

    def noted(self: EndedJobs) -> list[AdvisedPlacement]:
        done.append("jobs")
        return remember(self)

    monkeypatch.setattr(LoadHistory, "restore", failing_once)
    monkeypatch.setattr(EndedJobs, "remember", noted)
    monkeypatch.setattr(schedule, "RETRY_AFTER", 0.01)
    with running(tmp_path, learned=False) as daemon:
        until(lambda: daemon.upkeep.history_restored and "jobs" in done)
    assert sorted(done) == ["jobs", "loads", "loads"]


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_periodic_work_that_fails_is_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[float] = []

    def failing(self: Upkeep) -> None:
        done.append(time.monotonic())
        raise StoreError("is locked by another process")

    monkeypatch.setattr(Upkeep, "update_means", failing)
    with running(tmp_path, learned=False, periods={"means": 0.05}):
        until(lambda: len(done) >= 3)


def test_each_kind_of_work_is_done_at_its_own_period(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    periodic, once = list[tuple[str, float]](), list[str]()

    def name(work: Any) -> str:
        method = work.func if isinstance(work, partial) else work
        return f"{type(method.__self__).__name__}.{method.__name__}"

    monkeypatch.setattr(schedule.Schedule, "every", lambda self, each, work: periodic.append((name(work), each)))
    monkeypatch.setattr(schedule.Schedule, "once", lambda self, work, **when: once.append(name(work)))
    names = ("loads", "partitions", "confirm", "release", "models", "means", "forecasts", "retention", "sites")
    periods = {each: 1.0 + number for number, each in enumerate(names)} | {"accounting": 120.0}
    settings = {
        "periods": periods, "slurm": [{"name": "s"}], "htcondor": [{"name": "h"}],
        "moving": {"act": True, "every": 99.0},
    }  # fmt: skip
    configuration = Configuration.model_validate(settings)
    with Store.open(tmp_path / "metasched.db") as store:
        daemon = daemon_module.Daemon(configuration, store, sources(configuration))
        daemon.start()
        daemon.stop()
    of_every_scheduler = [
        ("Views.ask", "partitions"), ("EndedJobs.confirm", "confirm"), ("Daemon.release", "release"),
        ("Accounting.catch_up", "accounting"),
    ]  # fmt: skip
    expected = [
        *2 * of_every_scheduler, ("Daemon.look", "accounting"),
        ("JobHistory.follow", "accounting"), ("Views.refresh", "loads"), ("Access.refresh", "loads"),
        ("Views.show_described", "partitions"), ("Views.forecast", "forecasts"),
        ("Models.save", "models"), ("Models.sweep", "models"), ("Daemon.save_waits", "models"),
        ("Upkeep.update_means", "means"), ("Upkeep.apply_retention", "retention"),
    ]  # fmt: skip
    others = [("Daemon.move", 99.0), ("Views.learn_failures", daemon_module.FAILURES)]
    assert sorted(periodic) == sorted([*((each, periods[period]) for each, period in expected), *others])
    assert sorted(once) == sorted([
        "EndedJobs.catch_up", "JobHistory.restore", "Upkeep.check", "Upkeep.restore_history", "Upkeep.restore_outcomes",
        "Views.learn_failures", "Views.restore_forecasts",
    ])  # fmt: skip
