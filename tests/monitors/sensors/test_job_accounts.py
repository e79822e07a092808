"""What a job used, by the kernel's accounts of made processes: each reading by hand."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest

from monitors.sensors import job
from monitors.sensors.job import JobUse, Turn, Use


class Times(NamedTuple):
    user: float
    system: float
    children_user: float = 0.0
    children_system: float = 0.0


@dataclass(eq=False)
class Process:
    """A process as the kernel shows it: its processor, its times (s), and the turns of its threads (s)."""

    processor: int
    times: Times
    state: str = psutil.STATUS_SLEEPING
    turns: dict[str, Turn] = field(default_factory=dict)
    gone: bool = False

    @contextlib.contextmanager
    def oneshot(self) -> Iterator[None]:
        yield

    def cpu_times(self) -> Times:
        if self.gone:
            raise psutil.NoSuchProcess(1)
        return self.times

    def cpu_num(self) -> int:
        return self.processor

    def status(self) -> str:
        return self.state


@pytest.fixture
def tree(monkeypatch: pytest.MonkeyPatch) -> list[Process]:
    """The processes of the job, which a test changes."""
    processes: list[Process] = []
    monkeypatch.setattr(JobUse, "_tree", lambda _: list(processes))
    monkeypatch.setattr(job, "_turns", lambda process: {(process, name): turn for name, turn in process.turns.items()})
    return processes


def reading(use: JobUse, busy: tuple[float, float] = (100.0, 100.0)) -> Use:
    """On processors 4 and 6; all seconds are sums of powers of two, and exact."""
    return use.since_last((4, 6), busy)


def test_time_counts_where_a_process_is_seen_and_only_what_it_used_since(tree: list[Process]) -> None:
    first = Process(4, Times(10.0, 5.0))
    second = Process(6, Times(1.0, 0.5), psutil.STATUS_RUNNING)
    tree += [first, second]
    use = JobUse(1)
    assert reading(use) == Use(1, [0.0, 0.0], [])
    first.times, second.times = Times(12.0, 6.0), Times(1.5, 0.75)
    assert reading(use) == Use(1, [3.0, 0.75], [])
    # Both have moved to the same processor and run.
    first.processor, first.state = 6, psutil.STATUS_RUNNING
    first.times, second.times = Times(12.5, 6.25), Times(2.5, 0.75)
    assert reading(use) == Use(2, [0.0, 1.75], [])
    # A new one counts from its start.
    tree.append(Process(4, Times(0.25, 0.125)))
    assert reading(use) == Use(2, [0.375, 0.0], [])


def test_what_was_used_elsewhere_goes_where_there_is_room(tree: list[Process]) -> None:
    """On a processor that the job may not use, by children that have ended, and beyond what was busy."""
    process = Process(5, Times(1.0, 1.0, 2.0, 1.0))
    tree.append(process)
    use = JobUse(1)
    process.times = Times(2.0, 1.0, 2.0, 1.0)
    assert reading(use, (3.0, 1.0)) == Use(0, [0.75, 0.25], [])
    process.times = Times(2.0, 1.0, 2.5, 1.5)
    assert reading(use, (3.0, 1.0)) == Use(0, [0.75, 0.25], [])
    # Of a second on processor 4 and two of its children.
    process.processor, process.times = 4, Times(3.0, 1.0, 3.5, 2.5)
    assert reading(use, (3.0, 2.0)) == Use(0, [2.0, 1.0], [])
    process.times = Times(6.0, 1.0, 3.5, 2.5)
    assert reading(use, (1.0, 4.0)) == Use(0, [1.0, 2.0], [])


def test_a_child_that_ended_counts_in_its_parents_account_and_not_twice(tree: list[Process]) -> None:
    parent, child = Process(4, Times(1.0, 0.0)), Process(6, Times(4.0, 0.0))
    tree += [parent, child]
    use = JobUse(1)
    # It used half a second more, and ended: four and a half seconds are in its parent's account.
    tree.remove(child)
    parent.times = Times(1.0, 0.0, 4.5, 0.0)
    assert reading(use) == Use(0, [0.25, 0.25], [])


def test_a_process_that_ends_with_its_account_takes_nothing_away(tree: list[Process]) -> None:
    """Until its parent has waited for it, the sum is less than it was: what others use meanwhile is counted once."""
    parent, child = Process(4, Times(1.0, 0.0)), Process(6, Times(4.0, 0.0))
    tree += [parent, child]
    use = JobUse(1)
    child.gone = True
    parent.times = Times(2.0, 0.0)
    assert reading(use) == Use(0, [1.0, 0.0], [])
    tree.remove(child)
    parent.times = Times(2.0, 0.0, 4.25, 0.0)
    assert sum(reading(use).own) == pytest.approx(1.25)  # 6.25 s in all, of which 5 were known


def test_turns_are_those_of_all_threads_since_the_last_reading(tree: list[Process]) -> None:
    first = Process(4, Times(0.0, 0.0), turns={"1": Turn(1.0, 2.0), "2": Turn(3.0, 4.0)})
    second = Process(4, Times(0.0, 0.0))
    tree += [first, second]
    use = JobUse(1)
    first.turns = {"1": Turn(1.5, 2.125), "2": Turn(3.25, 5.0)}
    assert reading(use).turns == [Turn(0.75, 1.125)]
    # A thread has ended, another has begun; the second process has threads now.
    first.turns = {"2": Turn(3.5, 5.0), "3": Turn(0.125, 0.5)}
    second.turns = {"9": Turn(0.0, 0.25)}
    assert reading(use).turns == [Turn(0.375, 0.5), Turn(0.0, 0.25)]
    assert reading(use).turns == [Turn(0.0, 0.0), Turn(0.0, 0.0)]


def test_the_kernel_counts_turns_in_nanoseconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {"7": "1500000000 250000000 12\n", "8": "1 2\n", "9": "1000000 3000000000 1\n"}
    for name, text in texts.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "schedstat").write_text(text)
    monkeypatch.setattr(job.os, "listdir", lambda folder: ["7", "8", "none", "9"] if folder == "/proc/7/task" else [])
    here = lambda path, **how: io.open(path.replace("/proc/7/task", str(tmp_path)), **how)  # noqa: E731, SIM115, UP020
    monkeypatch.setattr(job, "open", here, raising=False)
    process: Any = type("Seven", (), {"pid": 7})()
    assert job._turns(process) == {
        (process, "7"): Turn(pytest.approx(1.5), pytest.approx(0.25)),
        (process, "9"): Turn(pytest.approx(0.001), pytest.approx(3.0)),
    }
