"""One scheduler that takes its time holds up no other: partitions, ended jobs, and the daemon's start."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event, Timer

import pytest
from quiet_scheduler import QuietScheduler
from waiting import until

from metasched.blocks.failures import FailureRate
from metasched.jobs import EndedJob, Fate
from metasched.placement.clusters.partition import Partition
from metasched.placement.clusters.state import ClusterState
from metasched.service import daemon as daemon_module
from metasched.service.configuration import Configuration
from metasched.service.daemon import Daemon
from metasched.service.periodic_work import views
from metasched.store.database.store import Store

NOW = time.time() - 100.0


class Scheduler(QuietScheduler):
    """Tells of one partition and of one job that has ended, once it may answer."""

    def __init__(self, name: str, may_answer: Event) -> None:
        self.name, self._may_answer, self.asked = name, may_answer, 0

    def partitions(self) -> Sequence[Partition]:
        self._may_answer.wait()
        self.asked += 1
        return [Partition(ClusterState.make(f"{self.name}/p", [f"{self.name}1"]), self.name, self.name, "p")]

    def fates(self, jobs: Collection[str]) -> Mapping[str, Fate]:
        self._may_answer.wait()
        return {job: Fate(completed=True, processes=2) for job in jobs}

    def finished(self, since: float) -> Sequence[EndedJob]:
        self._may_answer.wait()
        return [answer(self.name, 1)]


def answer(scheduler: str, number: int) -> EndedJob:
    return EndedJob(
        scheduler,
        str(number),
        "metasched:app=cg,n=500",
        "p",
        (f"{scheduler}1",),
        2,
        NOW + number,
        NOW + 9.0 + number,
        0,
    )


def test_a_scheduler_that_does_not_answer_holds_up_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "FIRST_ANSWERS", 0.2)
    monkeypatch.setattr(daemon_module, "CATCH_UP_AFTER", 0.0)
    released, always = Event(), Event()
    always.set()
    slow, quick = Scheduler("slow", released), Scheduler("quick", always)
    periods = {"partitions": 0.1, "confirm": 0.1, "loads": 0.1}
    with Store.open(tmp_path / "metasched.db") as store:
        daemon = Daemon(Configuration.model_validate({"periods": periods}), store, [slow, quick])
        daemon.start()
        try:
            until(lambda: quick.asked > 2 and [each.name for each in daemon.clusters.view.partitions] == ["p"])
            for name in ("slow", "quick"):
                daemon.jobs.take(answer(name, 2))

            def learned() -> set[tuple[str, str]]:
                return {
                    (each.run.extra["scheduler"], each.run.extra["job"]) for each in store.runs.all() if each.learnable
                }

            until(lambda: learned() == {("quick", "1"), ("quick", "2")})
            assert slow.asked == 0
            released.set()
            until(lambda: len(learned()) == 4)
        finally:
            released.set()
            daemon.stop()


class Failing(Scheduler):
    """Records a failure of a node; another of its kind does not answer."""

    def __init__(self, name: str, rate: FailureRate | None) -> None:
        super().__init__(name, Event())
        self._may_answer.set()
        self._rate, self._known = rate, False

    def partitions(self) -> Sequence[Partition]:
        failures = self._rate if self._known else None
        return [replace(each, state=replace(each.state, failures=failures)) for each in super().partitions()]

    def learn_failures(self) -> None:
        self._known = True
        if self._rate is None:
            raise RuntimeError("the accounting does not answer")


def test_placements_know_how_often_nodes_fail_by_the_records_of_their_scheduler(tmp_path: Path) -> None:
    rate = FailureRate.observed(2, 1e6)
    always = Event()
    always.set()
    sources = [Failing("silent", None), Failing("recorded", rate), Scheduler("plain", always)]
    with Store.open(tmp_path / "metasched.db") as store:
        daemon = Daemon(Configuration.model_validate({"periods": {"partitions": 0.1, "loads": 0.1}}), store, sources)
        daemon.start()
        try:
            until(lambda: {p.scheduler: p.state.failures for p in daemon.clusters.view.partitions}
                  == {"silent": None, "recorded": rate, "plain": None})  # fmt: skip
            until(lambda: daemon.metrics.registry.get_sample_value(
                "metasched_source_failures_total", {"source": "silent"}))  # fmt: skip
        finally:
            daemon.stop()


def test_the_first_view_has_what_schedulers_answer_soon(tmp_path: Path) -> None:
    soon = Event()
    scheduler = Scheduler("soon", soon)
    with Store.open(tmp_path / "metasched.db") as store:
        daemon = Daemon(Configuration(), store, [scheduler])
        Timer(0.2, soon.set).start()
        daemon.start()
        try:
            assert [each.name for each in daemon.clusters.view.partitions] == ["p"]
        finally:
            daemon.stop()
