"""A spin by made clocks: the share, the pace and the cost by hand."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from monitors.sensors import spin as module
from monitors.sensors.spin import Spin, spin


class Clocks:
    """A wall clock, and one of the thread, which moves by a share of it; a round of hashing takes 10 ms."""

    def __init__(self, share: float) -> None:
        self.now, self.share, self.rounds = 5.0, share, 0

    def perf_counter(self) -> float:
        return self.now

    def thread_time(self) -> float:
        return 3.0 + self.share * self.now

    def pbkdf2_hmac(self, *_: object) -> None:
        self.now += 0.01
        self.rounds += 1


@pytest.mark.parametrize(
    ("share", "expected"), [(0.5, Spin(0.5, 200.0, 0.05)), (1.0, Spin(1.0, 100.0, 0.1)), (1.25, Spin(1.0, 80.0, 0.125))]
)
def test_a_spin_tells_the_processor_time_of_the_wall_clock_time_and_the_rounds_in_it(
    share: float, expected: Spin, monkeypatch: pytest.MonkeyPatch
) -> None:
    clocks = Clocks(share)
    monkeypatch.setattr(module, "time", clocks)
    monkeypatch.setattr(module, "hashlib", clocks)
    found = spin(0.095)
    assert clocks.rounds == 10
    assert (found.share, found.pace, found.cost) == pytest.approx((expected.share, expected.pace, expected.cost))


def test_the_threads_of_a_spin_count_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is started, and waited for; here one after the other, with clocks of its own."""
    shares = iter([0.5, 0.25, 0.75])
    current: list[Clocks] = []

    def next_thread() -> None:
        current.append(Clocks(next(shares)))

    class Thread:
        def __init__(self, target: object, daemon: bool) -> None:
            assert daemon
            self.target, self.joined = target, False

        def start(self) -> None:
            self.target()  # type: ignore[operator]

        def join(self) -> None:
            self.joined = True

    barriers: list[int] = []

    def barrier(parties: int) -> SimpleNamespace:
        barriers.append(parties)
        return SimpleNamespace(wait=next_thread)

    monkeypatch.setattr(module, "threading", SimpleNamespace(Barrier=barrier, Thread=Thread))
    here = SimpleNamespace(
        perf_counter=lambda: current[-1].perf_counter(), thread_time=lambda: current[-1].thread_time(),
        pbkdf2_hmac=lambda *given: current[-1].pbkdf2_hmac(*given),
    )  # fmt: skip
    monkeypatch.setattr(module, "time", here)
    monkeypatch.setattr(module, "hashlib", here)
    found = spin(0.095, threads=3)
    assert barriers == [3]
    assert (found.share, found.pace, found.cost) == pytest.approx((0.5, 30 / 0.15, 0.15))


def test_where_too_few_threads_can_be_started_those_that_were_end(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[threading.Thread] = []
    start = threading.Thread.start

    def refused(self: threading.Thread) -> None:
        if len(started) == 3:
            raise RuntimeError("can't start new thread")
        start(self)
        started.append(self)

    monkeypatch.setattr(threading.Thread, "start", refused)
    with pytest.raises(RuntimeError, match="start new thread"):
        spin(0.01, threads=8)
    assert len(started) == 3
    for helper in started:
        helper.join(60.0)
    assert [helper.is_alive() for helper in started] == [False] * 3
