"""Jobs that have ended: each learned once, as what it was, and none held up by another."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from quiet_scheduler import QuietScheduler
from sqlalchemy import update

from metasched.advised_placements import AdvisedPlacement, Answer, Ask
from metasched.history.problem_sizes import SizeRule
from metasched.jobs import LEFT_ALONE, UNKNOWN_DEVICES, Devices, EndedJob, Fate, Kind, digest
from metasched.placement.clusters.running_jobs import StartedJob
from metasched.records import InputError, Load
from metasched.service.clock import Clock
from metasched.service.learning.finished_jobs import EndedJobs
from metasched.service.learning.job_energies import _is
from metasched.service.learning.run_outcome import observed
from metasched.service.metrics import Metrics
from metasched.service.state import write_queue
from metasched.service.state.live_clusters import LiveClusters
from metasched.service.state.models import Models
from metasched.service.state.sized_jobs import SizedJobs
from metasched.service.state.write_queue import WriteQueue
from metasched.store.database.ended_records import EndedRecord
from metasched.store.database.engine import writing
from metasched.store.database.run_records import RecordedRun, Selection
from metasched.store.database.store import Store
from metasched.store.database.tables import WaitingJobRow
from metasched.store.errors import StoreError
from monitors.sources.power_history import Drawn, PowerHistory


@dataclass
class Scheduler(QuietScheduler):
    """A scheduler that knows how jobs ended."""

    name: str
    known: dict[str, Fate] = field(default_factory=dict)
    down: bool = False
    asked: int = 0
    listed: int = 0
    ended: Sequence[EndedJob] = ()

    def fates(self, jobs: Collection[str]) -> Mapping[str, Fate]:
        self.asked += len(jobs)
        if self.down:
            raise RuntimeError("squeue does not answer")
        return {job: fate for job, fate in self.known.items() if job in jobs}

    def finished(self, since: float) -> Sequence[EndedJob]:
        self.listed += 1
        if self.down:
            raise RuntimeError("squeue does not answer")
        return self.ended


@dataclass
class Site:
    """What the daemon has for finished jobs, with models that note what they are given."""

    store: Store
    writer: WriteQueue
    jobs: EndedJobs
    learned: list[RecordedRun]
    schedulers: Sequence[Scheduler]
    metrics: Metrics
    moved: list[Sequence[AdvisedPlacement]]

    def confirm(self) -> None:
        for scheduler in self.schedulers:
            self.jobs.confirm(scheduler)

    def runs(self) -> dict[str, RecordedRun]:
        return {each.run.extra["job"]: each for each in self.store.runs.all()}

    def outcome(self, uid: str = "0a") -> Any:
        """What became of a placement that is there."""
        found = self.store.placements.find(uid)
        assert found is not None
        return found.outcome


@contextmanager
def site(
    folder: Path,
    *schedulers: Scheduler,
    rules: Sequence[SizeRule] = (),
    reported: Callable[[EndedJob], object] = lambda job: None,
) -> Iterator[Site]:
    with Store.open(folder / "metasched.db") as store:
        writer, board, models, learned = WriteQueue(store), LiveClusters(), Models(store), list[RecordedRun]()
        models.learn = learned.append  # type: ignore[method-assign]
        writer.start()
        metrics, moved = Metrics(board, models, writer), list[Sequence[AdvisedPlacement]]()
        sized = SizedJobs(rules, models, board)
        jobs = EndedJobs(store, writer, board, models, metrics, schedulers, Clock(), reported, sized, moved.append)
        yield Site(store, writer, jobs, learned, schedulers, metrics, moved)
        writer.stop()


NOW = float(int(time.time())) - 1000.0
WELL = Fate(completed=True, processes=2)


def job(number: object = 7, **changes: object) -> EndedJob:
    plain = EndedJob(
        "c", str(number), "metasched:app=cg,n=500", "p", ("n1",), 2, NOW, NOW + 9.0, 0, user="1000", name="x"
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def asked(uid: str, made_at: float, size: float = 500.0, **more: object) -> AdvisedPlacement:
    question = {"application": "cg", "scheduler": "c", "user": "1000", "name": "x", "problem_size": size}
    ask = Ask.model_validate(question | {"processors": [2]} | more)
    return AdvisedPlacement(made_at, ask, Answer(id=uid, mode="shadow", steer="nodes", placed=False, message=""))


def test_a_job_whose_name_tells_its_size_is_learned_as_if_annotated(tmp_path: Path) -> None:
    rules = [SizeRule("solve_#", "1", "solve")]
    with site(tmp_path, Scheduler("c", {"7": WELL, "8": WELL}), rules=rules) as here:
        here.jobs.take(job(7, comment="", name="solve_1400"))
        here.jobs.take(job(8, comment="", name="other_1400"))
        here.jobs.take(job(9, name="solve_1400"))  # what its comment says goes before
        here.confirm()
        told = {number: (each.run.application, each.run.problem_size) for number, each in here.runs().items()}
        assert told == {"7": ("solve", 1400.0), "9": ("cg", 500.0)}


def test_a_job_whose_arguments_tell_its_size_is_learned_once_its_scheduler_or_its_epilog_has_told_them(
    tmp_path: Path,
) -> None:
    told = replace(WELL, numbers="-n=1400 $1=7")
    rules = [SizeRule("run.sh", "-n", "solve"), SizeRule("run.sh", "script:N=", "solve")]
    with site(tmp_path, Scheduler("c", {"7": told, "8": WELL, "9": told, "10": WELL}), rules=rules) as here:
        for number, name in ((7, "run.sh"), (8, "run.sh"), (9, "other.sh")):
            here.jobs.take(job(number, comment="", name=name))
        here.jobs.take(job(10, comment="", name="run.sh", numbers="script:N==900"))
        here.confirm()
        sizes = {number: (each.run.application, each.run.problem_size) for number, each in here.runs().items()}
        assert sizes == {"7": ("solve", 1400.0), "10": ("solve", 900.0)}
        assert {each.run.extra["job"] for each in here.learned} == {"7", "10"}


def test_the_numbers_of_a_job_outlive_a_restart_while_its_scheduler_is_asked(tmp_path: Path) -> None:
    rules = [SizeRule("run.sh", "script:N=", "solve")]
    with site(tmp_path, Scheduler("c", down=True), rules=rules) as here:
        here.jobs.take(job(comment="", name="run.sh", numbers="script:N==900"))
        here.confirm()
    with site(tmp_path, Scheduler("c", {"7": WELL}), rules=rules) as here:
        here.jobs.expect()
        here.confirm()
        assert [each.run.problem_size for each in here.learned] == [900.0]


def test_a_scheduler_that_raises_holds_up_no_other(tmp_path: Path) -> None:
    silent, well = Scheduler("a", down=True), Scheduler("c", {"7": WELL})
    with site(tmp_path, silent, well) as here:
        here.jobs.take(job(7, scheduler="a"))
        here.jobs.take(job(7))
        here.confirm()
        assert [each.run.extra["scheduler"] for each in here.learned] == ["c"]
        silent.down, silent.known = False, {"7": WELL}
        here.confirm()
        assert [each.run.extra["scheduler"] for each in here.learned] == ["c", "a"]


def test_jobs_that_no_epilog_reports_are_looked_for_and_each_is_learned_once(tmp_path: Path) -> None:
    scheduler = Scheduler("c", ended=[job(7), job(8, end=NOW - 9.0)], down=True)
    with site(tmp_path, scheduler) as here:
        here.jobs.look(scheduler, NOW)
        assert here.learned == []
        scheduler.down = False
        here.jobs.look(scheduler, NOW)
        scheduler.ended = [*scheduler.ended, job(9)]
        here.jobs.look(scheduler, NOW)
        assert [each.run.extra["job"] for each in here.learned] == ["7", "9"]


def test_a_job_that_is_looked_for_and_runs_again_is_learned_again(tmp_path: Path) -> None:
    scheduler = Scheduler("c", ended=[job(7)])
    with site(tmp_path, scheduler) as here:
        here.jobs.look(scheduler, NOW)
        scheduler.ended = [job(7, start=NOW + 20.0, end=NOW + 31.0)]
        here.jobs.look(scheduler, NOW)
        assert [each.run.execution_time for each in here.learned] == [9.0, 11.0]


def refuse(here: Site, job: str, patched: pytest.MonkeyPatch) -> None:
    """Let the database take no job of this number."""

    def refusing(ended: Collection[EndedRecord]) -> frozenset[str]:
        if any(each.record and each.record.run.extra["job"] == job for each in ended):
            raise StoreError("is locked by another process")
        return here.store.ended.add(ended)

    patched.setattr(here.jobs._writer, "_store_rows", {"ended": refusing})


def test_what_could_not_be_caught_up_with_is_tried_again_and_nothing_is_learned_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = Scheduler("a", down=True, ended=[job(9, scheduler="a")])
    answering = Scheduler("c", ended=[job(number) for number in range(3)])
    with site(tmp_path, silent, answering) as here:
        with monkeypatch.context() as patched:
            refuse(here, "1", patched)
            with pytest.raises(StoreError, match="locked"):
                here.jobs.catch_up(NOW)
        assert sorted(here.runs()) == ["0", "2"]
        with pytest.raises(RuntimeError, match="a did not answer"):
            here.jobs.catch_up(NOW)
        silent.down = False
        here.jobs.catch_up(NOW)
        here.jobs.catch_up(NOW)
        assert sorted(each.run.extra["job"] for each in here.learned) == ["0", "1", "2", "9"]
        assert (silent.listed, answering.listed) == (3, 2)  # none is asked again for what was taken


def test_a_job_that_the_database_refused_is_reported_to_the_history_once_it_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported = list[EndedJob]()
    with site(tmp_path, reported=reported.append) as here:
        with monkeypatch.context() as patched:
            refuse(here, "7", patched)
            with pytest.raises(StoreError, match="locked"):
                here.jobs.take(job())
        assert reported == []
        here.jobs.take(job())
        here.jobs.take(job(8, comment=""))
        assert [each.job for each in reported] == ["7", "8"]


def test_a_job_whose_placement_waits_to_be_stored_is_matched_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(_: object) -> None:
        raise StoreError("is locked by another process")

    with site(tmp_path, Scheduler("c", {"7": replace(WELL, submitted=NOW - 20.0)})) as here:
        with monkeypatch.context() as patched:
            patched.setattr(here.writer, "_store_rows", {"placements": refusing, "ended": here.store.ended.add})
            advised = asked("0a", NOW - 20.0, script=digest(b"one"))
            here.jobs.askers.note(advised.question, advised.made_at)
            here.writer.placements([advised])
            with pytest.raises(StoreError, match="locked"):  # its epilog keeps it
                here.jobs.take(job(7, comment="", script=digest(b"one")))
        here.jobs.take(job(7, comment="", script=digest(b"one")))
        here.confirm()
        assert here.outcome().job == "7"


def test_a_job_whose_confirmation_raises_holds_up_no_other_and_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with site(tmp_path, Scheduler("c", {str(number): WELL for number in range(3)})) as here:
        for number in range(3):
            here.jobs.take(job(number))

        with monkeypatch.context() as patched:
            refuse(here, "0", patched)
            here.confirm()
            assert sorted(each.run.extra["job"] for each in here.learned) == ["1", "2"]
        here.confirm()
        assert sorted(each.run.extra["job"] for each in here.learned) == ["0", "1", "2"]


def test_a_job_that_its_scheduler_has_forgotten_is_asked_for_once_kept_and_never_learned(tmp_path: Path) -> None:
    scheduler = Scheduler("c")
    with site(tmp_path, scheduler) as here:
        here.jobs.take(job())
        for _ in range(3):
            here.confirm()
        assert scheduler.asked == 1
        assert not here.runs()["7"].learnable
        assert here.learned == []


def test_a_job_that_never_settles_is_given_up_after_a_day(tmp_path: Path) -> None:
    scheduler = Scheduler("c", {"7": Fate(completed=None), "8": Fate(completed=None)})
    old = NOW - 2 * 86_400.0
    with site(tmp_path, scheduler) as here:
        here.jobs.take(job(7))
        here.jobs.take(job(8, start=old, end=old + 1.0))
        here.confirm()
        here.confirm()
        assert scheduler.asked == 3
        scheduler.known["7"] = WELL
        here.confirm()
        assert [each.run.extra["job"] for each in here.learned] == ["7"]


@pytest.mark.parametrize(
    ("fate", "exit_status"),
    [
        (Fate(completed=False, processes=2), 0),
        (Fate(completed=False, processes=2), 9),
        (Fate(completed=True, processes=2), 9),
        (Fate(completed=True, processes=2, started=NOW + 20.0), 0),
        # Its epilog ran late, when the next run had started.
        (Fate(completed=True, processes=2, started=NOW + 8.0, ended=NOW + 19.0), 0),
    ],
)
def test_a_failed_killed_or_requeued_job_never_teaches(tmp_path: Path, fate: Fate, exit_status: int) -> None:
    with site(tmp_path, Scheduler("c", {"7": fate})) as here:
        here.jobs.take(job(exit_status=exit_status))
        here.confirm()
        assert here.learned == []
        (kept,) = here.runs().values()
        assert not kept.learnable
        assert kept.exit_status == (exit_status or 143)


@pytest.mark.parametrize(
    ("times", "learned"),
    [
        ({"started": NOW, "ended": NOW + 20.0}, [9.0]),
        ({"started": NOW + 1.5, "ended": NOW + 9.0}, [9.0]),
        ({"started": NOW + 5.0, "ended": NOW + 9.0}, [4.0]),
        # Its epilog ran late, or was killed with the controller and run again.
        ({"started": NOW, "ended": NOW + 4.0}, [5.0]),
        ({"started": NOW - 0.9, "ended": NOW - 0.4}, [pytest.approx(0.6, abs=1e-3)]),
        # As short as this, it may be the next run that is told of.
        ({"started": NOW + 8.0, "ended": NOW + 9.0}, []),
        ({"started": NOW + 10.0, "ended": NOW + 10.5}, []),
    ],
)
def test_a_run_whose_nodes_boot_first_or_are_cleaned_up_for_long_is_learned_without_that(
    tmp_path: Path, times: dict[str, float], learned: list[Any]
) -> None:
    with site(tmp_path, Scheduler("c", {"7": replace(WELL, **times)})) as here:
        here.jobs.take(job())
        here.confirm()
        assert [each.run.execution_time for each in here.learned] == learned
        (kept,) = here.runs().values()
        assert kept.uid == job().uid
        assert kept.learnable == bool(learned)


def test_a_job_reported_before_the_daemon_has_caught_up_keeps_its_placement_and_its_times(tmp_path: Path) -> None:
    scheduler = Scheduler("c", {"7": replace(WELL, started=NOW, ended=NOW + 4.0)})
    with site(tmp_path, scheduler) as here:
        here.store.placements.add([asked("0a", NOW - 1.0)])
        here.jobs.take(job(comment="metasched:app=cg,n=500,placement=0a"))
        here.jobs.catch_up(NOW + 60.0)
        here.confirm()
        assert [each.run.execution_time for each in here.learned] == [5.0]
        assert here.outcome() is not None


@pytest.mark.parametrize("confirmed", [False, True], ids=["not confirmed", "confirmed"])
@pytest.mark.parametrize("first", ["epilog", "scheduler"])
@pytest.mark.parametrize(
    ("epilog", "scheduler"),
    [
        ((5.4, 9.4), (0.0, 9.0)),  # its prolog noted the start late
        ((5.9, 6.2), (0.0, 6.0)),  # for longer than it ran
        ((500.4, 2000.4), (0.0, 2000.0)),
        ((0.3, 9.4), (6.0, 9.0)),  # its nodes booted first
        ((0.3, 99.4), (0.0, 60.0)),  # its epilog ran late
        ((5.4, 64.4), (0.0, 60.0)),  # both
    ],
)
def test_a_run_is_learned_once_however_its_epilog_and_its_scheduler_differ_about_its_times(
    tmp_path: Path, epilog: tuple[float, float], scheduler: tuple[float, float], first: str, confirmed: bool
) -> None:
    reported, known = (job(start=NOW + begun, end=NOW + done) for begun, done in (epilog, scheduler))
    with site(tmp_path, Scheduler("c", {"7": replace(WELL, started=known.start, ended=known.end)})) as here:
        for who in (first, "both"):
            if who != "scheduler":
                here.jobs.take(reported)
            if confirmed:
                here.confirm()
            if who != "epilog":
                here.jobs.take(known, sure=True)
        here.confirm()
        assert len(here.learned) == len(here.store.runs.all()) == 1


def test_a_job_that_is_run_again_at_once_has_two_runs_though_the_first_was_reported_late(tmp_path: Path) -> None:
    with site(tmp_path) as here:
        here.jobs.take(job(end=NOW + 60.0))
        here.jobs.take(job(start=NOW + 57.0, end=NOW + 99.0))
        assert sorted(each.run.start_time or 0.0 for each in here.store.runs.all()) == [NOW, NOW + 57.0]


@pytest.mark.parametrize("comment", ["", "metasched:app=cg,n=500"])
def test_jobs_that_epilogs_and_their_scheduler_report_at_once_are_stored_and_learned_once(
    tmp_path: Path, comment: str
) -> None:
    several = [job(number, comment=comment, submitted=NOW - 5.0) for number in range(40)]
    fates = {each.job: replace(WELL, submitted=NOW - 5.0) for each in several}
    with site(tmp_path, Scheduler("c", fates, ended=several)) as here:
        alike = [asked(uid, NOW - 5.5) for uid in ("0a", "0b")]  # what each of them was is known, and not which
        here.store.placements.add(alike)
        here.jobs.askers.note(alike[0].question, alike[0].made_at)

        def report() -> None:
            for each in several:
                here.jobs.take(replace(each, start=NOW + 0.37, end=NOW + 9.37))

        reporting = Thread(target=report)
        reporting.start()
        here.jobs.catch_up(NOW + 60.0)
        reporting.join()
        here.confirm()
        here.confirm()
        assert sorted(each.run.extra["job"] for each in here.store.runs.all()) == sorted(fates)
        assert sorted(each.run.extra["job"] for each in here.learned) == sorted(fates)


def test_a_job_without_a_mark_that_waits_is_not_taken_from_its_schedulers_records_too(tmp_path: Path) -> None:
    first = job(comment="", start=NOW + 0.37, submitted=NOW - 5.0)
    later = job(comment="", start=NOW + 60.0, end=NOW + 70.0, submitted=NOW - 5.0)
    scheduler = Scheduler("c", {"7": replace(WELL, submitted=NOW - 5.0)})
    with site(tmp_path, scheduler) as here:
        alike = [asked(uid, NOW - 5.5) for uid in ("0a", "0b")]
        here.store.placements.add(alike)
        here.jobs.askers.note(alike[0].question, alike[0].made_at)
        here.jobs.take(first)
        scheduler.ended = [replace(first, start=NOW), later]  # which ran again
        here.jobs.catch_up(NOW + 80.0)
        here.confirm()
        assert [each.run.start_time for each in here.store.runs.all()] == [NOW + 60.0, NOW + 0.37]


@pytest.mark.parametrize(("started", "ended"), [(5.0, 9.0), (0.0, 4.0)])
def test_a_run_that_was_shorter_than_was_stored_before_a_restart_is_not_learned(
    tmp_path: Path, started: float, ended: float
) -> None:
    scheduler = Scheduler("c", {"7": replace(WELL, started=NOW + started, ended=NOW + ended)})
    with site(tmp_path, scheduler) as before:
        before.jobs.take(job())
    with site(tmp_path, scheduler) as here:
        here.jobs.catch_up(NOW + 60.0)
        here.confirm()
        assert here.learned == []


@pytest.mark.parametrize(
    ("changes", "fate"),
    [
        ({"kind": "newer"}, WELL),  # as a later version's epilog reported
        ({"devices": UNKNOWN_DEVICES}, WELL),
        ({"kind": "unknown", "comment": "metasched:app=cg,n=500,p=4"}, replace(WELL, processes=None)),
        ({}, replace(WELL, kind="interrupted")),
        ({}, replace(WELL, started=NOW + 9.0, ended=NOW + 20.0)),
    ],
)
def test_what_was_not_to_be_learned_is_not_learned_after_a_restart_either(
    changes: dict[str, Any], fate: Fate, tmp_path: Path
) -> None:
    scheduler = Scheduler("c", {"7": fate})
    with site(tmp_path, scheduler) as before:
        before.jobs.take(job(**changes))
        before.confirm()
        assert before.runs().keys() == {"7"}
        assert before.learned == []
    scheduler.known["7"] = replace(WELL, processes=None)  # which its accounting tells, where the controller knew more
    with site(tmp_path, scheduler) as here:
        here.jobs.catch_up(NOW + 60.0)
        here.confirm()
        assert here.learned == []


def test_a_job_during_which_the_clock_was_set_is_not_learned_after_a_restart_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler = Scheduler("c", {"7": WELL})
    with monkeypatch.context() as changed, site(tmp_path, scheduler) as before:
        changed.setattr(Clock, "was_set_during", lambda *_: True)
        before.jobs.take(job())
        before.confirm()
    with site(tmp_path, scheduler) as here:
        here.jobs.catch_up(NOW + 60.0)
        here.confirm()
        assert here.learned == []


def test_a_job_that_is_put_back_teaches_by_its_second_run_only(tmp_path: Path) -> None:
    scheduler = Scheduler("c", {"7": Fate(completed=False)})
    with site(tmp_path, scheduler) as here:
        here.jobs.take(job())
        here.jobs.take(job(start=NOW + 20.0, end=NOW + 31.0))
        scheduler.known["7"] = replace(WELL, started=NOW + 20.0)
        here.confirm()
        assert [each.run.execution_time for each in here.learned] == [11.0]


@pytest.mark.parametrize("reports", [("waits", "runs"), ("runs",)])
@pytest.mark.parametrize("comment", ["", "metasched:app=cg,n=500"])
def test_a_job_that_is_put_back_settles_its_placement_by_its_second_run(
    tmp_path: Path, comment: str, reports: tuple[str, ...]
) -> None:
    again = replace(WELL, completed=None, submitted=NOW, started=NOW + 20.0)
    fates = {"waits": replace(again, completed=False, started=None, again=True), "runs": again}
    scheduler = Scheduler("c", {"7": fates[reports[0]]})
    with site(tmp_path, scheduler) as here:
        here.store.placements.add([asked("0a", NOW - 0.1)])
        here.jobs.expect()
        here.jobs.take(job(comment=comment, submitted=NOW))
        for each in reports:
            scheduler.known["7"] = fates[each]
            here.confirm()
        assert here.outcome() is None
        here.jobs.take(job(comment=comment, submitted=NOW, start=NOW + 20.0, end=NOW + 24.0))
        scheduler.known["7"] = replace(again, completed=True)
        here.confirm()
        assert [(each.run.execution_time, each.run.problem_size) for each in here.learned] == [(4.0, 500.0)]
        outcome = here.outcome()
        assert outcome is not None
        assert (outcome.exit_status, outcome.execution_time) == (0, 4.0)


def test_what_is_said_of_an_earlier_job_of_the_same_number_confirms_nothing(tmp_path: Path) -> None:
    scheduler = Scheduler("c", {"7": replace(WELL, started=NOW - 900.0, ended=NOW - 890.0)})
    with site(tmp_path, scheduler) as here:
        here.jobs.take(job())
        here.confirm()
        assert here.learned == []
        scheduler.known["7"] = Fate(completed=False, started=NOW, ended=NOW + 9.0)
        here.confirm()
        assert here.learned == []
        assert [each.exit_status for each in here.runs().values()] == [143]


@pytest.mark.parametrize("start", [0.0, -5.0, float("nan")])
def test_a_job_that_never_started_is_refused(tmp_path: Path, start: float) -> None:
    with site(tmp_path) as here:
        with pytest.raises(InputError, match="expected it to start after 0"):
            here.jobs.take(job(start=start))
        assert here.runs() == {}


@pytest.mark.parametrize("kind", sorted(LEFT_ALONE))
@pytest.mark.parametrize("told_by", ["epilog", "scheduler"])
@pytest.mark.parametrize("marked", [True, False])
def test_jobs_whose_processes_are_not_what_the_model_means_are_left_alone(
    tmp_path: Path, kind: Kind, told_by: str, marked: bool
) -> None:
    with site(
        tmp_path, Scheduler("c", {"7": replace(WELL, kind=kind if told_by == "scheduler" else "", submitted=NOW)})
    ) as here:
        here.store.placements.add([asked("0a", NOW - 0.1)])
        here.jobs.expect()
        here.jobs.take(job(kind=kind if told_by == "epilog" else "", **({} if marked else {"comment": ""})))
        here.confirm()
        assert here.learned == []
        assert here.outcome() is None


def test_a_job_of_several_processors_a_process_is_learned_with_its_threads(tmp_path: Path) -> None:
    with site(tmp_path, Scheduler("c", {"7": replace(WELL, kind="threaded", threads=4, submitted=NOW)})) as here:
        here.jobs.expect()
        here.jobs.take(job(7, comment="metasched:app=cg,n=500"))
        here.confirm()
        assert [(each.run.processors, each.run.settings.threads) for each in here.learned] == [(2, 4)]


def test_jobs_on_gpus_are_learned_apart_by_the_type_that_their_comments_name(tmp_path: Path) -> None:
    types = {7: "a100", 8: "v100", 9: "none"}
    fates = {
        str(number): replace(WELL, kind="special" if gpu != "none" else "", submitted=NOW)
        for number, gpu in types.items()
    }
    with site(tmp_path, Scheduler("c", fates)) as here:
        here.jobs.expect()
        for number, gpu in types.items():
            here.jobs.take(job(number, comment=f"metasched:app=lu,n=500,gpu={gpu}"))
        here.confirm()
        found = {int(each.run.extra["job"]): each.run.settings.parameters for each in here.learned}
        assert found == {number: (("gpu", gpu),) for number, gpu in types.items()}


class Remembered(PowerHistory):
    """A meter that remembers 300 W of one node."""

    def __init__(self) -> None:
        super().__init__("http://127.0.0.1:9")

    def drawn(self, start: float, end: float) -> tuple[Mapping[str, Drawn], str]:
        return {"n1": Drawn("node", np.array([start, end]), np.array([300.0]))}, ""


@pytest.mark.parametrize("reported", ["epilog", "after a restart", "waited over it", "caught up", "looked for"])
def test_the_jobs_of_a_metered_node_share_what_it_drew_however_they_are_reported(tmp_path: Path, reported: str) -> None:
    exact = [job(number, comment="metasched:app=cg,n=500,p=2", start=NOW + 0.37, end=NOW + 9.37) for number in (7, 8)]
    whole = [replace(each, start=NOW, end=NOW + 9.0) for each in exact]
    scheduler = Scheduler("c", {"7": WELL, "8": WELL})
    if reported in ("after a restart", "waited over it"):
        with site(tmp_path, scheduler) as before:
            for each in exact:
                before.jobs.take(each)
    with site(tmp_path, scheduler) as here:
        here.jobs.energies.meters = (Remembered(),)
        scheduler.ended = whole if reported in ("caught up", "looked for") else []
        if reported == "epilog":
            for each in exact:
                here.jobs.take(each)
        if reported == "looked for":
            here.jobs.look(scheduler, NOW + 60.0)
        elif reported == "waited over it":
            here.jobs.expect()
        else:
            here.jobs.catch_up(NOW + 60.0)
        here.confirm()
        found = [each.run.energy for each in here.learned]
    assert found == [pytest.approx(300.0 * 9.0 / 2.0)] * 2


def test_a_job_whose_scheduler_is_never_asked_has_its_energy_too(tmp_path: Path) -> None:
    with site(tmp_path) as here:
        here.jobs.energies.meters = (Remembered(),)
        here.jobs.take(job())
        assert [each.run.energy for each in here.learned] == [pytest.approx(300.0 * 9.0)]


def test_the_first_meter_that_sees_the_same_of_all_nodes_of_a_job_tells_its_energy(tmp_path: Path) -> None:
    def seeing(fault: str = "", **nodes: tuple[str, float]) -> Any:
        edges = np.array([NOW, NOW + 9.0])
        drawn = {node: Drawn(covers, edges, np.array([watts])) for node, (covers, watts) in nodes.items()}
        return SimpleNamespace(drawn=lambda start, end: (drawn, fault))

    one, mixed = seeing("gone", n1=("node", 7.0)), seeing(n1=("node", 7.0), n2=("processors", 7.0))
    whole, later = seeing(n1=("node", 300.0), n2=("node", 100.0)), seeing(n1=("node", 7.0), n2=("node", 7.0))
    with site(tmp_path) as here:
        here.jobs.energies.meters = (one, mixed, whole, later)
        here.jobs.take(replace(job(), nodes=("n1", "n2")))
        assert [each.run.energy for each in here.learned] == [pytest.approx(400.0 * 9.0)]


def test_a_job_reported_by_its_epilog_and_its_scheduler_is_one_job_on_its_node(tmp_path: Path) -> None:
    scheduler = Scheduler("c", {"7": WELL, "8": WELL}, ended=[job(7)])
    with site(tmp_path, scheduler) as here:
        here.jobs.energies.meters = (Remembered(),)
        here.jobs.take(job(7, start=NOW + 0.37))
        here.jobs.look(scheduler, NOW + 60.0)
        here.jobs.take(job(8))
        here.confirm()
        found = {each.run.extra["job"]: each.run.energy for each in here.learned}
    assert found["8"] == pytest.approx(300.0 * (0.37 + 8.63 / 2.0))


@pytest.mark.parametrize(
    ("own", "scheduler_says", "expected"), [(None, 900.0, 900.0), (700.0, 900.0, 700.0), (700.0, None, 700.0)]
)
def test_energy_that_a_report_holds_counts_before_what_the_scheduler_says(
    own: float | None, scheduler_says: float | None, expected: float, tmp_path: Path
) -> None:
    fate = replace(WELL, energy=scheduler_says, energy_covers="node" if scheduler_says else "")
    with site(tmp_path, Scheduler("c", {"7": fate})) as here:
        here.jobs.take(replace(job(7), energy=own, energy_covers="node" if own else ""))
        here.confirm()
        assert [each.run.energy for each in here.learned] == [expected]


A100: Devices = (("gpu", "a100"), ("gpus", 2.0))


@pytest.mark.parametrize("reported", ["epilog", "after a restart", "caught up"])
@pytest.mark.parametrize(
    ("comment", "devices", "learned"),
    [
        ("", A100, A100),
        (",gpu=a100", A100, A100),
        (",gpu=v100,gpus=4,steps=5", A100, (*A100, ("steps", 5.0))),
        (",gpu=none", A100, A100),
        (",gpu=a100", (), ()),
        (",gpu=a100", None, (("gpu", "a100"),)),
        (",gpu=a100", UNKNOWN_DEVICES, (("gpu", "a100"),)),
        ("", UNKNOWN_DEVICES, None),
        ("", (), ()),
    ],
)
def test_the_scheduler_tells_which_gpus_a_job_had_whatever_its_comment_says(
    tmp_path: Path, comment: str, devices: Devices | None, learned: Devices | None, reported: str
) -> None:
    marked = job(7, comment=f"metasched:app=lu,n=500,p=2{comment}")
    scheduler = Scheduler("c", {"7": replace(WELL, submitted=NOW, devices=devices)})
    with site(tmp_path, scheduler) as here:
        if reported != "caught up":
            here.jobs.take(marked)
    scheduler.ended = [replace(marked, devices=devices)]
    with site(tmp_path, scheduler) as here:
        if reported == "epilog":
            here.jobs.take(replace(marked, start=NOW + 20.0, end=NOW + 30.0))
            scheduler.known["7"] = replace(scheduler.known["7"], started=NOW + 20.0)
        else:
            here.jobs.catch_up(NOW + 60.0)
        here.confirm()
        here.confirm()
        assert [each.run.settings.parameters for each in here.learned] == ([] if learned is None else [learned])
        assert len(here.runs()) == 1


def test_a_comment_that_contradicts_the_scheduler_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with site(tmp_path, Scheduler("c", {"7": replace(WELL, devices=A100)})) as here:
        here.jobs.take(job(7, comment="metasched:app=lu,n=500,gpu=v100"))
        here.confirm()
    assert "job 7 of c: its comment states gpu=v100, its scheduler gpu=a100, which counts" in caplog.text


@pytest.mark.parametrize("kind", ["array", "postponed", "special", "threaded"])
def test_jobs_that_no_placement_was_asked_for_get_none(tmp_path: Path, kind: Kind) -> None:
    with site(tmp_path, Scheduler("c", {str(n): replace(WELL, kind=kind, submitted=NOW) for n in (7, 8)})) as here:
        here.store.placements.add([asked("0a", NOW - 0.1)])
        here.jobs.expect()
        here.jobs.take(job(7, comment=""))
        here.jobs.take(job(8, comment="metasched:app=cg,n=500,p=1"))
        here.confirm()
        assert here.outcome() is None
        assert [(each.run.extra["job"], each.run.processors) for each in here.learned] == [("8", 2)]


@pytest.mark.parametrize(
    ("claim", "settled"),
    [
        ({}, True),
        ({"user": "1001"}, False),
        ({"user": ""}, False),
        ({"scheduler": "d"}, False),
        ({"comment": "metasched:app=lu,n=500,placement=0a"}, False),
        ({"comment": "metasched:app=cg,n=501,placement=0a"}, False),
    ],
)
def test_a_placement_is_settled_only_by_its_own_users_job_on_its_own_scheduler(
    tmp_path: Path, claim: dict[str, object], settled: bool
) -> None:
    with site(tmp_path) as here:
        here.store.placements.add([asked("0a", NOW - 1.0)])
        here.jobs.take(job(**({"comment": "metasched:app=cg,n=500,placement=0a"} | claim)))
        assert (here.outcome() is not None) == settled
        assert len(here.learned) == 1
        told = [(each.uid, each.outcome) for advised in here.moved for each in advised]
        assert told == ([("0a", here.outcome())] if settled else [])


def test_a_job_that_ends_before_its_placement_is_written_settles_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("APART", "LONGEST_APART"):
        monkeypatch.setattr(write_queue, name, 0.4)
    with site(tmp_path) as here:
        here.writer.placements([asked("0b", NOW - 1.0)]).result()
        here.writer.placements([asked("0a", NOW - 1.0)])
        assert here.store.placements.find("0a") is None
        here.jobs.take(job(comment="metasched:app=cg,n=500,placement=0a"))
        assert here.outcome() is not None


def test_what_is_remembered_of_before_a_restart_is_counted_once_however_often_it_is_tried(tmp_path: Path) -> None:
    faults, moved = [StoreError("the disk is full")], list[str]()

    def judge(advised: Sequence[AdvisedPlacement]) -> None:
        if faults:
            raise faults.pop()
        moved.extend(each.uid for each in advised)

    with site(tmp_path) as here:
        here.store.placements.add([asked("0a", NOW - 1.0)])
        here.jobs.take(job(comment="metasched:app=cg,n=500,placement=0a"))
        nothing: Any = None
        fresh: Any = EndedJobs(here.store, here.writer, nothing, nothing, nothing, (), Clock(), nothing, nothing, judge)
        counted: list[object] = []
        fresh.ledger = SimpleNamespace(add=counted.append)
        with pytest.raises(StoreError):
            fresh.remember()
        assert [each.uid for each in fresh.remember()] == moved == ["0a"]
        assert len(counted) == 1


def test_what_ends_before_the_past_is_remembered_is_counted_once(tmp_path: Path) -> None:
    with site(tmp_path) as here:
        counted: list[object] = []
        here.jobs.ledger = SimpleNamespace(add=counted.append)  # type: ignore[assignment]
        here.store.placements.add([asked("0a", NOW - 1.0)])
        here.jobs.take(job(comment="metasched:app=cg,n=500,placement=0a"))
        assert here.jobs.remember() == []
        assert len(counted) == 1


def test_a_run_that_its_scheduler_confirms_is_counted_once(tmp_path: Path) -> None:
    with site(tmp_path, Scheduler("c", {"7": WELL})) as here:
        here.jobs.take(job())
        here.confirm()
        assert [each.run.extra["job"] for each in here.learned] == ["7"]
        (family,) = here.metrics.runs.collect()
        assert family.samples[0].value == 1.0


def test_a_job_of_an_unknown_kind_is_matched_with_its_placement(tmp_path: Path) -> None:
    with site(tmp_path) as here:
        advised = asked("0a", NOW - 20.0, script=digest(b"one"))
        here.store.placements.add([advised])
        here.jobs.askers.note(advised.question, advised.made_at)
        here.jobs.take(job(comment="", kind="unknown", submitted=NOW - 20.0, script=digest(b"one")))
        assert here.outcome().job == "7"


def test_a_job_that_had_no_placement_gets_none_by_what_the_accounting_tells_of_it(tmp_path: Path) -> None:
    """A task of an array, submitted with a job of its script: the controller has forgotten both."""
    told = replace(WELL, processes=None)
    fates = {"7": replace(told, kind="unadvised"), "8": replace(told, kind="unknown")}
    with site(tmp_path, Scheduler("c", fates)) as here:
        advised = asked("0a", NOW - 20.0, script=digest(b"one"))
        here.store.placements.add([advised])
        here.jobs.askers.note(advised.question, advised.made_at)
        for number, kind in ((7, "array"), (8, "")):
            here.jobs.take(job(number, comment="", kind=kind, submitted=NOW - 20.0, script=digest(b"one")))
            here.confirm()
        assert here.runs().keys() == {"8"}
        assert here.outcome().job == "8"


def test_a_placement_is_settled_once(tmp_path: Path) -> None:
    with site(tmp_path) as here:
        here.store.placements.add([asked("0a", NOW - 1.0)])
        for number in (7, 8):
            here.jobs.take(job(number, comment="metasched:app=cg,n=500,placement=0a"))
        assert here.outcome().job == "7"
        assert [each.run.extra.get("placement") for each in here.learned] == ["0a", None]


@pytest.mark.parametrize("expected", ["9" * 400, "10000001", "0"])
def test_the_schedulers_own_processors_go_before_those_of_a_comment(tmp_path: Path, expected: str) -> None:
    with site(tmp_path) as here:
        here.jobs.take(job(7, comment=f"metasched:app=cg,n=500,p={expected}"))
        here.jobs.take(job(8, comment=f"metasched:app=cg,n=500,p={expected}", processors=None))
        here.jobs.take(job(9, comment="metasched:app=cg,n=500,p=16"))
        here.jobs.take(job(10, comment="metasched:app=cg,n=500,p=16", processors=None))
        runs = here.runs()
        assert [runs[number].run.processors for number in ("7", "9", "10")] == [2, 2, 16]
        # Where nobody says how many they were, one is a guess.
        assert [each.run.extra["job"] for each in here.learned] == ["7", "9", "10"]


def test_a_job_that_is_told_of_five_times_is_stored_and_learned_once(tmp_path: Path) -> None:
    with site(tmp_path) as here:
        answers = [here.jobs.take(job())["stored"] for _ in range(5)]
        assert answers == [True, False, False, False, False]
        assert len(here.learned) == 1


def test_jobs_told_by_several_epilogs_at_once_are_learned_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with site(tmp_path) as here:
        monkeypatch.setattr(EndedJobs, "_known", lambda *_: False)  # each has looked before any has stored
        assert [here.jobs.take(job())["stored"] for _ in range(3)] == [True, False, False]
        assert len(here.learned) == 1


def bursts(count: int, seed: int) -> tuple[list[AdvisedPlacement], list[EndedJob], dict[str, Fate]]:
    """Jobs of one user and one name that loops submit, 20 ms apart, most with a script of their own.

    Every third has its size on the command line, and every tenth was submitted without an answer of the daemon.
    """
    draw, at = random.Random(seed), NOW - 5000.0
    advised, jobs, fates = [], [], {}
    for number in range(count):
        at += draw.choice((0.02, 0.02, 0.02, 0.02, 3.0))
        size, processors = float(draw.randrange(100, 900)), draw.choice((1, 2, 4))
        script = digest(b"#!/bin/sh\n./x $1\n" if number % 3 == 0 else b"#!/bin/sh\n./x %d\n" % size)
        command = digest(b"/home/job.sh %d" % size if number % 3 == 0 else b"/home/job.sh")
        fields = {"command": command} if number % 3 == 0 else {"script": script}
        if number % 10:
            advised.append(asked(f"{number:032x}", at, size, **fields, processors=[processors]))
        start = at + draw.uniform(0.1, 600.0)
        jobs.append(
            job(
                number, comment="", processors=None, start=start, end=start + draw.uniform(1.0, 900.0), script=script,
            )
        )  # fmt: skip
        fates[str(number)] = Fate(True, float(int(at + 0.01)), None, processors, "", command)
    draw.shuffle(jobs)
    return advised, jobs, fates


def test_of_a_thousand_jobs_in_bursts_none_is_mistaken_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_queue, "APART", 0.0)
    advised, jobs, fates = bursts(1_000, seed=1)
    own = {str(int(each.uid, 16)): each for each in advised}
    with site(tmp_path, Scheduler("c", fates)) as here:
        here.store.placements.add(advised)
        here.jobs.expect()
        for each in jobs:
            here.jobs.take(each)
        here.confirm()
        runs = here.runs()
        outcomes = {each.uid: each.outcome for each in here.store.placements.made_between(0.0, NOW) if each.outcome}
    mistaken = [
        number
        for number, each in runs.items()
        if number in own and each.run.problem_size != own[number].question.problem_size
    ]
    wrongly = [uid for uid, outcome in outcomes.items() if outcome.job != str(int(uid, 16))]
    print(f"of {len(jobs)} jobs {len(runs)} are known, {len(mistaken)} mistaken, {len(wrongly)} outcomes wrong")
    assert mistaken == []
    assert wrongly == []
    assert set(runs) == set(own)
    assert len(outcomes) >= 0.95 * len(own)
    assert len(here.learned) == len(runs)


def test_identical_jobs_of_a_loop_are_learned_but_no_placement_is_called_theirs(tmp_path: Path) -> None:
    alike = {"script": digest(b"same")}
    fates = {str(number): replace(WELL, submitted=NOW - 20.0) for number in range(8)}
    with site(tmp_path, Scheduler("c", fates)) as here:
        here.store.placements.add(asked(f"{number:02x}", NOW - 20.0 + 0.02 * number, **alike) for number in range(8))
        here.jobs.expect()
        for number in (5, 2, 7, 0, 1, 3, 4, 6):
            here.jobs.take(job(number, comment="", script=digest(b"same")))
        here.jobs.take(job(9, comment="", script=digest(b"another")))
        here.confirm()
        learned = {(each.run.application, each.run.problem_size, each.run.processors) for each in here.learned}
        assert learned == {("cg", 500.0, 2)}
        assert len(here.learned) == 8
        assert all(each.outcome is None for each in here.store.placements.made_between(0.0, NOW))


def test_jobs_that_nothing_tells_apart_teach_nothing(tmp_path: Path) -> None:
    fates = {str(number): replace(WELL, submitted=NOW - 20.0) for number in range(2)}
    with site(tmp_path, Scheduler("c", fates)) as here:
        here.store.placements.add(asked(f"{number:02x}", NOW - 20.0, 100.0 * (number + 1)) for number in range(2))
        here.jobs.expect()
        for number in range(2):
            here.jobs.take(job(number, comment=""))
        here.confirm()
        assert here.runs() == {}
        assert all(each.outcome is None for each in here.store.placements.made_between(0.0, NOW))


def test_the_loads_of_all_nodes_of_a_job_are_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store.open(tmp_path / "metasched.db") as store:
        nodes = tuple(f"n{number}" for number in range(300))
        store.loads.add(
            Load(NOW + at, node, 0.5 + 0.001 * (place % 100), 90.0)
            for place, node in enumerate(nodes)
            for at in (-5, 5)
        )
        statements: list[str] = []
        from sqlalchemy import event

        event.listen(store.engine, "before_cursor_execute", lambda *answer: statements.append(answer[2]))
        assert observed(nodes[1:], NOW, NOW + 10.0, store) == pytest.approx((0.5, 90.0))
        assert observed(nodes[1:99], NOW, NOW + 10.0, store) == pytest.approx((0.501, 90.0))
        assert sum("FROM loads" in each for each in statements) == 2


def test_a_run_without_samples_is_known_to_be_unmeasured(tmp_path: Path) -> None:
    with site(tmp_path) as here:
        here.store.placements.add([asked("0a", NOW - 1.0)])
        here.store.loads.add([Load(NOW + 1.0, "n2", 0.5, 90.0)])
        here.jobs.take(job(7, comment="metasched:app=cg,n=500,placement=0a"))
        here.jobs.take(job(8, nodes=("n1", "n2", "n3")))
        here.jobs.take(job(9, nodes=("n1", "n2")))
        outcome = here.outcome()
        assert (outcome.available_cpu, outcome.available_bandwidth) == (None, None)
        loads = {
            number: (each.run.min_avg_avail_cpu, each.run.min_avg_avail_bw) for number, each in here.runs().items()
        }
        assert all(math.isnan(value) for number in ("7", "8") for value in loads[number])
        assert loads["9"] == (0.5, 90.0)


PLACED, UNMARKED = "night metasched:app=cg,n=500,placement=0a (Ann)", "night"


@pytest.mark.parametrize("comment", [PLACED, UNMARKED])
def test_a_job_that_waits_when_the_daemon_is_killed_has_its_outcome_and_is_learned_once_afterwards(
    tmp_path: Path, comment: str
) -> None:
    scheduler = Scheduler("c", {"7": Fate(completed=None)})
    reported = job(comment=comment, start=NOW + 0.37, submitted=NOW - 5.0, script=digest(b"one"))
    with site(tmp_path, scheduler) as before:
        advised = asked("0a", NOW - 5.5, script=digest(b"one"))
        before.store.placements.add([advised])
        before.jobs.askers.note(advised.question, advised.made_at)
        before.jobs.take(reported)
        before.confirm()
    scheduler.ended = [replace(reported, start=NOW, comment="", script="")]  # its scheduler knows less
    with site(tmp_path, scheduler) as here:
        (waiting,) = here.store.waiting.all()
        assert waiting.job == replace(reported, comment="metasched:app=cg,n=500,placement=0a" * (comment == PLACED))
        here.jobs.expect()
        here.jobs.catch_up(NOW + 60.0)
        here.confirm()
        scheduler.known["7"] = WELL
        here.confirm()
        here.jobs.take(reported)  # its epilog was not answered
        here.confirm()
        assert [(each.uid, each.run.execution_time) for each in here.learned] == [
            (reported.uid, reported.end - reported.start)
        ]
        assert [each.uid for each in here.store.runs.all()] == [reported.uid]
        assert here.outcome() is not None
        assert here.store.waiting.all() == ()


def test_jobs_wait_until_they_are_confirmed_forgotten_or_known_to_be_no_runs(tmp_path: Path) -> None:
    scheduler = Scheduler("c", {"7": Fate(completed=None), "8": WELL, "9": WELL})
    with site(tmp_path, scheduler) as here:
        here.store.placements.add([asked("0a", NOW - 900.0)])
        here.jobs.askers.note(asked("0a", NOW - 900.0).question, NOW - 900.0)
        here.jobs.take(job(7))
        here.jobs.take(job(8, comment="", submitted=NOW - 5.0))
        here.jobs.take(job(9))
        here.jobs.take(job(10))
        here.jobs.take(job(11, comment="", name="other"))
        assert {each.job.job: each.stored for each in here.store.waiting.all()} == {
            "7": True, "8": False, "9": True, "10": True,
        }  # fmt: skip
        here.confirm()
        assert [each.job.job for each in here.store.waiting.all()] == ["7"]
        assert sorted(here.runs()) == ["10", "7", "9"]


def test_a_job_that_nobody_confirms_does_not_wait_for_ever(tmp_path: Path) -> None:
    with site(tmp_path, Scheduler("c", down=True)) as here:
        here.jobs.take(job(7, start=NOW - 9e6, end=NOW - 8e6))
        here.jobs.take(job(8))
    with site(tmp_path) as here:
        here.jobs.expect()
        assert [each.job.job for each in here.store.waiting.all()] == ["8"]


def test_a_waiting_job_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    scheduler = Scheduler("c", {"7": WELL, "8": WELL})
    with site(tmp_path, scheduler) as here:
        for number in (7, 8):
            here.jobs.take(job(number))
        with writing(here.store.engine) as connection:
            change = update(WaitingJobRow).where(WaitingJobRow.uid == job(7).uid)
            connection.execute(change.values(document={"scheduler": "c", "later": 1}))
    with site(tmp_path, scheduler) as here:
        here.jobs.expect()
        here.confirm()
        assert [each.run.extra["job"] for each in here.learned] == ["8"]


def test_a_run_forgotten_while_it_waits_is_not_learned_when_its_scheduler_confirms_it(tmp_path: Path) -> None:
    with site(tmp_path, Scheduler("c", {"12": WELL, "13": WELL})) as here:
        for number, user in (("12", "7"), ("13", "8")):
            here.jobs.take(job(number, user=user))
        assert here.store.runs.forget(Selection(user="7")).runs == 1
        here.confirm()
        assert [each.run.user for each in here.learned] == ["8"]
        assert {number: each.learnable for number, each in here.runs().items()} == {"12": False, "13": True}


@pytest.mark.parametrize(
    ("reported", "sure", "why", "learned"),
    [
        (job(), True, "", True),
        (job(), False, "", False),
        (job(exit_status=1), True, "", False),
        (job(comment=""), True, "its comment names no application, and no placement was requested for it", None),
        (job(kind="interactive"), True, "it is not handled: interactive", None),
        (job(comment="", script="9-a"), True, "its comment names no application, and no placement matches it", None),
        (job(comment="", script="9-a"), False, "its scheduler is asked for details", None),
        (job(1), True, "it has been reported before", None),
    ],
)
def test_a_report_is_answered_with_what_became_of_it(
    reported: EndedJob, sure: bool, why: str, learned: bool | None, tmp_path: Path
) -> None:
    with site(tmp_path, Scheduler("c")) as here:
        here.jobs.take(job(1))
        if reported.script:
            here.jobs.askers.note(asked("0a", NOW + 99.0).question, NOW + 99.0)
        answer = {"stored": not why, "why": why} | ({} if learned is None else {"learned": learned})
        assert here.jobs.take(reported, sure=sure) == answer
        assert len(here.runs()) == 1 + (not why)


@pytest.mark.parametrize(
    ("number", "begun", "nodes", "same"),
    [
        ("7", 500.0, ("n9",), True),  # its listing was late
        ("7", 1000.0, ("n1",), False),  # the number was given again after its end
        ("8", 100.0, ("n1",), False),
        ("", 100.5, ("n1",), True),
        ("", 100.5, ("n2",), False),
        ("", 500.0, ("n1",), False),
    ],
)
def test_a_running_job_is_one_that_ended_by_its_number_or_else_by_start_and_nodes(
    number: str, begun: float, nodes: tuple[str, ...], same: bool
) -> None:
    ended = job(start=100.0, end=1000.0)
    assert _is(StartedJob(nodes, (1,), 1.0, number=number), begun, ended) is same
