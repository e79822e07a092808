"""What is known of sent jobs and of sites outlives the daemon: by the time of day, whole, or not noted at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import astuple
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import update

from metasched.sites import sent_jobs
from metasched.sites.choice import SitePlacement
from metasched.sites.data import transfers
from metasched.sites.sent_jobs import SentJobs
from metasched.sites.trust import Trust
from metasched.store.database.engine import writing
from metasched.store.database.sent_job_records import SentJobRecords
from metasched.store.database.store import Store
from metasched.store.database.tables import SentJobRow
from metasched.store.errors import StoreError
from tests.sites.answers import offer

NAMES = ["east", "west"]
PLACES = [SitePlacement(offer(name), 0.0, transfers(NAMES, 1.0, {})[name], Trust()) for name in NAMES]


class Machine:
    """A machine with a time of day and a clock that begins anew with each start."""

    def __init__(self, store: Store) -> None:
        self.store, self.wall, self.up = store, 1.7e9, 500.0

    def start(self, down: float = 0.0) -> SentJobs:
        self.wall, self.up = self.wall + down, 3.0
        made = SentJobs(lambda: self.up, self.store.sent_jobs, lambda: self.wall)
        made.restore()
        return made

    def passes(self, seconds: float) -> None:
        self.wall, self.up = self.wall + seconds, self.up + seconds


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    with Store.open(tmp_path / "grid.db") as store:
        yield Machine(store)


def all_of(jobs: SentJobs, now: float, age: Callable[[float], Any] = float) -> tuple[Any, ...]:
    """All that is known, moments as ages (s), and what follows from them."""
    known = jobs.known(NAMES)
    ages = {
        name: (*(f"{value:.6g}" for value in astuple(each.trust)), each.last and age(each.last), len(each.sent))
        for name, each in known.items()
    }
    rows = [job.as_dict(now) for job in jobs.newest(100)]
    return ages, jobs.links(dict.fromkeys(NAMES)), [row | {"age": age(row["age"])} for row in rows]


def test_a_restart_loses_nothing_and_ages_go_on(machine: Machine) -> None:
    jobs = machine.start()
    uids = []
    for _ in range(3):
        machine.passes(1.0)
        uids.append(jobs.send(PLACES).uid)
    first, second, third = uids
    machine.passes(10.0)
    jobs.submitted(first, "west", "7", gigabytes=1.0, seconds=8.0)
    jobs.submitted(second, "east", "8")
    machine.passes(300.0)
    jobs.ended(jobs.find(first), 290.0)
    jobs.seen(jobs.find(second), running=True)
    jobs.missed(jobs.find(second))
    again = machine.start(down=60.0)
    assert [(job.uid, job.state, job.job) for job in again.newest(9)] == [
        (third, "chosen", ""), (second, "submitted", "8"), (first, "ended", "7")
    ]  # fmt: skip
    (left,) = again.open()
    moments = (left.submitted_at, left.seen_at, left.missed_at)
    assert [machine.up - (at or 0.0) for at in moments] == pytest.approx([360.0, 60.0, 60.0], abs=1e-3)
    assert again.known(NAMES)["west"].trust.outcomes == 1
    assert again.known(NAMES)["west"].last == pytest.approx(360.0, abs=1e-3)
    assert again.links({"west": None})["west"].bandwidth == 1000.0
    again.ended(again.find(second), 350.0)
    assert machine.start().open() == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(st.lists(st.tuples(st.sampled_from(["send", "submit", "end", "fail", "withdraw", "see", "forget"]),
                          st.integers(0, 5), st.floats(0.1, 1000.0)), max_size=12))  # fmt: skip
def test_whatever_happened_is_known_after_a_kill(machine: Machine, steps: list[tuple[str, int, float]]) -> None:
    jobs = machine.start()
    for what, which, seconds in steps:
        machine.passes(seconds)
        chosen = [job for job in jobs.newest(6) if job.state == "chosen"]
        open_ = jobs.open()
        if what == "send":
            jobs.send(PLACES)
        elif what == "submit" and chosen:
            jobs.submitted(chosen[which % len(chosen)].uid, NAMES[which % 2], f"{which}", 1.0, seconds)
        elif what == "withdraw" and chosen:
            jobs.withdrawn(chosen[which % len(chosen)].uid)
        elif what in ("end", "fail") and open_:
            jobs.ended(open_[which % len(open_)], seconds, failed=what == "fail")
        elif what == "see" and open_:
            jobs.seen(open_[which % len(open_)], running=which % 2 == 0)
        elif what == "forget" and open_:
            jobs.forgotten(open_[which % len(open_)])
    # Times of day hold no more than some microseconds.
    before = all_of(jobs, machine.up, lambda age: pytest.approx(age, abs=1e-3))
    assert all_of(machine.start(), machine.up) == before


def test_what_cannot_be_stored_is_not_noted(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = machine.start()
    uid = jobs.send(PLACES).uid
    before = all_of(jobs, machine.up)

    def full(*_: object) -> None:
        raise StoreError("is full", where="grid.db")

    monkeypatch.setattr(machine.store.sent_jobs, "save", full)
    for step in (lambda: jobs.send(PLACES), lambda: jobs.submitted(uid, "east", "7"), lambda: jobs.withdrawn(uid)):
        with pytest.raises(StoreError):
            step()
    assert all_of(jobs, machine.up) == before


def test_the_oldest_jobs_are_forgotten_here_and_there(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sent_jobs, "MOST", 3)
    jobs = machine.start()
    sent = []
    for _ in range(5):
        machine.passes(1.0)
        sent.append(jobs.send(PLACES).uid)
    assert [job.uid for job in machine.start().newest(9)] == sent[:1:-1] == [job.uid for job in jobs.newest(9)]


def test_a_row_that_was_changed_by_hand_hides_no_other(machine: Machine, caplog: pytest.LogCaptureFixture) -> None:
    jobs = machine.start()
    first, second = (jobs.send(PLACES).uid for _ in range(2))
    with writing(machine.store.engine) as connection:
        broken = update(SentJobRow).where(SentJobRow.uid == first)
        connection.execute(broken.values(document={"uid": first, "state": "gone"}))
    assert [job.uid for job in machine.start().newest(9)] == [second]
    assert f"the record of {first} cannot be read" in caplog.text


def test_a_clock_that_was_put_back_makes_nothing_younger_than_now(machine: Machine) -> None:
    jobs = machine.start()
    jobs.submitted(jobs.send(PLACES).uid, "east", "7")
    (job,) = machine.start(down=-86_400.0).open()
    assert (job.chosen_at, job.submitted_at) == (machine.up, machine.up)


def test_nothing_is_kept_where_nothing_is_to_be(machine: Machine) -> None:
    alone = SentJobs(lambda: 5.0)
    alone.send(PLACES)
    alone.restore()
    assert len(alone.newest(9)) == 1
    assert SentJobRecords(machine.store.engine).jobs() == {}
