"""Periodic work: done again after each period, once only where once is asked for, and ended with its process."""

from __future__ import annotations

import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest

from monitors import schedule as module
from monitors.schedule import Schedule

LEFT = """
from monitors.schedule import Schedule
Schedule().every(3600.0, print)
Schedule().once(print, after=3600.0)
print("ended")
"""


def test_work_is_done_every_period_even_after_it_has_failed() -> None:
    done, enough = [], threading.Event()

    def work() -> None:
        done.append(len(done))
        if len(done) == 1:
            raise RuntimeError("the database is away")
        if len(done) == 2:
            raise ValueError("a fault")
        enough.set()

    schedule = Schedule()
    schedule.every(0.001, work)
    assert enough.wait(60.0)
    schedule.stop()
    known = len(done)
    assert known >= 3
    assert [thread for thread in threading.enumerate() if thread.name == "metasched-work"] == []


def test_what_is_to_be_done_once_is_done_once_and_then_the_schedule_is_idle() -> None:
    schedule, done, go = Schedule(), [], threading.Event()

    def work() -> None:
        assert go.wait(60.0)
        done.append(1)

    schedule.every(3600.0, print)
    assert schedule.idle
    schedule.once(work)
    assert not schedule.idle
    go.set()
    schedule._once[0].join(60.0)
    assert schedule.idle
    schedule.stop()
    assert done == [1]


def test_the_end_does_not_wait_for_work_that_only_reads() -> None:
    begun, over = [threading.Event(), threading.Event()], threading.Event()
    done: list[str] = []

    def work(number: int, name: str) -> None:
        begun[number].set()
        over.wait(60.0)
        done.append(name)

    schedule = Schedule()
    schedule.once(lambda: work(0, "reading"), left=True)
    assert begun[0].wait(60.0)
    schedule.stop()
    assert done == []
    schedule = Schedule()
    schedule.once(lambda: work(1, "writing"))
    assert begun[1].wait(60.0)
    threading.Timer(0.1, over.set).start()
    schedule.stop()
    assert "writing" in done


def test_the_end_does_not_wait_for_ever_for_work_that_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ENDING", 0.01)
    begun, over = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        over.wait()

    schedule = Schedule()
    schedule.every(0.001, work)
    assert begun.wait(60.0)
    schedule.stop()
    over.set()


def test_a_fault_that_stays_is_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    done, enough = [], threading.Event()

    def work() -> None:
        done.append(1)
        if len(done) == 5:
            enough.set()
        raise RuntimeError("the database is away")

    schedule = Schedule()
    schedule.every(0.001, work)
    assert enough.wait(60.0)
    schedule.stop()
    assert [each.getMessage() for each in caplog.records] == ["work failed and is retried: the database is away"]


def test_a_process_that_ends_without_stopping_its_schedule_does_not_wait_for_it() -> None:
    ended = subprocess.run([sys.executable, "-c", LEFT], capture_output=True, text=True, timeout=60.0, check=True)
    assert ended.stdout == "ended\n"


def test_the_log_names_the_work_that_failed_and_shows_where_only_for_a_fault(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures: list[Exception] = [RuntimeError("the database is away"), ValueError("a fault")]

    def work() -> None:
        if failures:
            raise failures.pop(0)

    monkeypatch.setattr(module, "RETRY_AFTER", 0.001)
    schedule = Schedule()
    schedule.once(work)
    schedule._once[0].join(60.0)
    schedule.stop()
    assert [(each.levelname, each.getMessage(), bool(each.exc_info)) for each in caplog.records] == [
        ("WARNING", "work failed and is retried: the database is away", False),
        ("ERROR", "work failed and is retried: a fault", True),
    ]


class Waits:
    """Stands for the event that ends a schedule: notes how long it is waited for, and says when it has come."""

    def __init__(self, moments: list[float], now: list[float]) -> None:
        self.moments, self.now, self.waited = moments, now, list[float]()

    def wait(self, seconds: float) -> bool:
        self.waited.append(seconds)
        self.now[0] += seconds
        return len(self.waited) > len(self.moments)


def test_work_begins_each_period_and_what_was_missed_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(module, "random", SimpleNamespace(random=iter([0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 0.25]).__next__))
    schedule, took = Schedule(), [1.0, 25.0, 3.0, 0.0]
    waits = Waits(took, now)
    monkeypatch.setattr(schedule, "_stopping", waits)
    work = iter(took)

    def pass_time() -> None:
        now[0] += next(work)

    schedule._again(pass_time, 10.0, 4.0)
    # The second took two periods and a half: the third begins at once, and the fourth a period after it.
    assert waits.waited == [10.0, 9.0, 0.0, 7.0, 10.0]
    # Up to the spread later, at random.
    waits.waited, waits.moments, work = [], [1.0], iter([1.0])
    schedule._again(pass_time, 10.0, 4.0)
    assert waits.waited == [12.0, 8.0]
