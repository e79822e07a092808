"""Which run of a job its scheduler speaks of, by their moments, and what becomes of those that wait for its word."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import cast

import pytest

from metasched.jobs import EndedJob, Fate
from metasched.records import Run
from metasched.schedulers.contract import Source
from metasched.service.learning.confirmation import GIVE_UP, Pending, Waiting, ended_by_scheduler
from metasched.service.learning.run_outcome import Concluded
from metasched.store.database.run_records import RecordedRun

#: A run from 100 s to 500 s; moments that differ by less than 2 s are the same.
JOB = EndedJob("c", "7", "", "p", ("n0",), 1, 100.0, 500.0, 0)
RUN = Run("a", "c", 9.0, 1, 0.5, 9.0, 400.0, start_time=100.0)
REPORTED = Pending("c", "7", 500.0, job=JOB)
STORED = Pending("c", "7", 500.0, record=RecordedRun(RUN, uid="0" * 32))
UNDATED = Pending("c", "7", 500.0, record=RecordedRun(Run("a", "c", 9.0, 1, 0.5, 9.0, 400.0), uid="1" * 32))


@pytest.mark.parametrize(
    ("started", "ended", "earlier", "later", "otherwise", "otherwise_stored"),
    [
        (None, None, False, False, False, False),
        (100.0, 500.0, False, False, False, False),
        # Nodes that booted first: a later start, or a later end, but not both.
        (102.0, 500.0, False, False, False, False),
        (103.0, 500.0, False, False, False, True),
        (100.0, 900.0, False, False, False, False),
        (103.0, 502.0, False, False, False, True),
        (103.0, 503.0, True, False, False, True),
        (102.0, 503.0, False, False, False, False),
        (103.0, None, False, False, False, True),
        # About the end of this run, or after it.
        (498.0, None, False, False, False, True),
        (499.0, None, False, False, True, True),
        (502.0, None, False, False, True, True),
        (503.0, None, True, False, True, True),
        # Still the run before.
        (10.0, 98.0, False, False, False, True),
        (10.0, 97.0, False, True, False, True),
        (None, 97.0, False, True, False, True),
        # An earlier end: its epilog ran late, or again.
        (100.0, 498.0, False, False, False, False),
        (100.0, 497.0, False, False, False, True),
    ],
)
def test_moments_tell_which_run_is_meant(
    started: float | None, ended: float | None, earlier: bool, later: bool, otherwise: bool, otherwise_stored: bool
) -> None:
    fate = Fate(True, started=started, ended=ended)
    for pending, unsure in ((REPORTED, otherwise), (STORED, otherwise_stored)):
        assert pending.is_earlier_than(fate) is earlier
        assert pending.is_later_than(fate) is later
        assert pending.ran_otherwise(fate) is unsure


def test_a_run_whose_start_is_not_known_is_told_by_its_end() -> None:
    assert (REPORTED.started, STORED.started, UNDATED.started) == (100.0, 100.0, None)
    assert (REPORTED.uid, STORED.uid) == (JOB.uid, "0" * 32)
    late, beside = Fate(True, started=503.0, ended=900.0), Fate(True, started=502.0, ended=900.0)
    assert (UNDATED.is_earlier_than(late), UNDATED.is_earlier_than(beside)) == (True, False)
    assert not UNDATED.is_later_than(Fate(True, ended=1.0))
    assert not UNDATED.ran_otherwise(late)


class Told:
    """A scheduler that tells the fates that it is given."""

    name = "c"

    def __init__(self, fates: dict[str, Fate] | Exception) -> None:
        self.told, self.asked = fates, list[set[str]]()

    def fates(self, numbers: set[str]) -> dict[str, Fate]:
        self.asked.append(set(numbers))
        if isinstance(self.told, Exception):
            raise self.told
        return self.told


def confirmed(
    waiting: Waiting, source: Told, now: float, failing: str = ""
) -> tuple[list[tuple[str, Fate | None]], list[str]]:
    """The jobs that are settled with their fates, and what is said of a scheduler that is silent."""
    settled: list[tuple[str, Fate | None]] = []
    silent: list[str] = []

    def settle(pending: Pending, fate: Fate | None) -> None:
        if pending.number == failing:
            raise RuntimeError("disk full")
        settled.append((pending.number, fate))

    waiting.confirm(cast(Source, source), settle, lambda name, error: silent.append(f"{name}: {error}"), now)
    return settled, silent


def waiting_for(*numbers: str, scheduler: str = "c") -> Waiting:
    found = Waiting([cast(Source, Told({}))])
    for number in numbers:
        job = EndedJob(scheduler, number, "", "p", ("n0",), 1, 100.0, 500.0, 0)
        found.add(Pending(scheduler, number, 500.0, job=job))
    return found


WELL, OPEN = Fate(True, started=100.0, ended=500.0), Fate(None)


@pytest.mark.parametrize(
    ("fates", "now", "settled", "left"),
    [
        ({"7": WELL}, 600.0, [("7", WELL)], False),
        ({}, 600.0, [("7", None)], False),
        ({"7": OPEN}, 600.0, [], True),
        ({"7": OPEN}, 500.0 + GIVE_UP, [], True),
        ({"7": OPEN}, 501.0 + GIVE_UP, [("7", None)], False),
        # The run before, or an earlier job of that number: its own end is still to be told.
        ({"7": Fate(True, started=1.0, ended=50.0)}, 600.0, [], True),
        ({"7": Fate(True, started=1.0, ended=50.0)}, 501.0 + GIVE_UP, [("7", None)], False),
        # A later run: this one was ended by its scheduler.
        (
            {"7": Fate(True, started=600.0, ended=None, processes=3)},
            700.0,
            [("7", Fate(False, processes=3, again=True))],
            False,
        ),
        # Another job that was given its number, which may wait, run or have ended.
        ({"7": Fate(False, submitted=503.0, again=True, first_run=True)}, 700.0, [("7", None)], False),
        ({"7": Fate(None, submitted=503.0, started=600.0, first_run=True)}, 700.0, [("7", None)], False),
        (
            {"7": replace(WELL, submitted=100.0, first_run=True)},
            700.0,
            [("7", replace(WELL, submitted=100.0, first_run=True))],
            False,
        ),
        # It was put back into the queue.
        (
            {"7": Fate(False, submitted=503.0, again=True)},
            700.0,
            [("7", Fate(False, submitted=503.0, again=True))],
            False,
        ),
    ],
)
def test_jobs_wait_until_their_own_end_is_told_or_for_a_day(
    fates: dict[str, Fate], now: float, settled: list[tuple[str, Fate | None]], left: bool
) -> None:
    waiting, source = waiting_for("7"), Told(fates)
    assert confirmed(waiting, source, now) == (settled, [])
    confirmed(waiting, source, now)
    assert source.asked == [{"7"}] * (1 + left)


def test_one_that_cannot_be_settled_is_tried_again_logged_once_and_given_up_after_a_day(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.ERROR)
    waiting, source = waiting_for("7", "8"), Told({"7": WELL, "8": WELL})
    assert confirmed(waiting, source, 600.0, failing="7") == ([("8", WELL)], [])
    assert confirmed(waiting, source, 700.0, failing="7") == ([], [])
    assert confirmed(waiting, source, 501.0 + GIVE_UP, failing="7") == ([], [])
    assert confirmed(waiting, source, 502.0 + GIVE_UP) == ([], [])
    assert source.asked == [{"7", "8"}, {"7"}, {"7"}]
    assert [each.getMessage() for each in caplog.records] == ["job 7 of c could not be settled: disk full"]


def test_a_scheduler_that_does_not_answer_is_told_and_its_jobs_go_on_waiting() -> None:
    waiting = waiting_for("7")
    assert confirmed(waiting, Told(RuntimeError("no slurmctld")), 600.0) == ([], ["c: no slurmctld"])
    assert confirmed(waiting, Told({"7": WELL}), 600.0) == ([("7", WELL)], [])


def test_nobody_is_asked_for_jobs_of_another_scheduler() -> None:
    waiting, source = waiting_for("7", scheduler="d"), Told({})
    assert (confirmed(waiting, source, 600.0), source.asked) == (([], []), [])
    assert (waiting.concerns("c"), waiting.concerns("d")) == (True, False)


def test_a_job_that_its_scheduler_ended_is_kept_and_not_learned_from() -> None:
    record = RecordedRun(RUN, uid="0" * 32)
    found = ended_by_scheduler(Concluded(record, None, None))
    assert (found.record.exit_status, found.record.learnable, found.outcome) == (143, False, None)
    assert found.record.run is record.run
