"""Readings of the processor by hand: what the kernel counts, the two views of it, and their correction by probes."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest

from monitors.sensors import cpu, processor_time
from monitors.sensors.cpu import ProbedCpu
from monitors.sensors.cpu_views import followed_view, queue_view, turns_view, utilisation_view
from monitors.sensors.job import Turn, Use
from monitors.sensors.limits import CpuLimit
from monitors.sensors.schedule import ProbeSchedule
from monitors.sensors.spin import Spin


class Times(NamedTuple):
    """Seconds of a processor since the host was started, as Linux counts them; guests are in user too."""

    user: float = 0.0
    nice: float = 0.0
    system: float = 0.0
    idle: float = 0.0
    iowait: float = 0.0
    steal: float = 0.0
    guest: float = 0.0
    guest_nice: float = 0.0


class Kernel:
    """Three processors, of which the sensor may use those numbered 2 and 4; tasks that are ready to run; a clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, shares_core: bool = False) -> None:
        self.now, self.runnable = 0.0, 1
        self.times = [Times(), Times(), Times()]
        counts = lambda logical=True: 3 if logical or not shares_core else 2  # noqa: E731
        monkeypatch.setattr(cpu, "online_processors", lambda: [0, 2, 4])
        monkeypatch.setattr(cpu, "_runnable", lambda: self.runnable)
        monkeypatch.setattr(cpu, "psutil", SimpleNamespace(cpu_times=lambda percpu: list(self.times), cpu_count=counts))

    def sensor(
        self, processors: int = 1, found: list[Spin] | None = None, limit: tuple[float, Path | None] = (math.inf, None)
    ) -> ProbedCpu:
        """One that probes where it is said what is found."""
        spins = iter(found or [])
        return ProbedCpu(
            processors, limit=CpuLimit((2, 4), *limit), probe=lambda: next(spins),
            schedule=ProbeSchedule(10.0, 10.0, 1.0), probing=bool(found), clock=lambda: self.now,
        )  # fmt: skip

    def pass_time(self, seconds: float, *used: Times) -> None:
        self.now += seconds
        self.times = [Times(*map(sum, zip(was, more, strict=True))) for was, more in zip(self.times, used, strict=True)]


@pytest.mark.parametrize("k", [1, 2, 5])
def test_without_probes_the_share_is_that_of_utilisation(k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel(monkeypatch)
    sensor = kernel.sensor(k)
    kernel.runnable = 7
    busy = Times(user=1.0, nice=0.5, system=0.5, iowait=1.0, idle=5.0, guest=0.25, guest_nice=0.25)
    kernel.pass_time(8.0, Times(user=8.0), busy, Times(idle=8.0))
    # Of 16 s on both, 14 were idle; of six others on three processors, four are on the two that are allowed.
    assert sensor.read() == pytest.approx(utilisation_view(2 * 14 / 16, 2 * 2 / 16, 4.0, k))
    # What passed before counts no more.
    kernel.pass_time(8.0, Times(), Times(user=8.0), Times(user=8.0))
    assert sensor.read() == pytest.approx(utilisation_view(0.0, 2.0, 4.0, k))


def test_probes_choose_the_view_that_is_nearest_and_correct_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both views against one probe each ten seconds: half of the misses is remembered, and the bias follows them."""
    kernel = Kernel(monkeypatch)
    spins = [Spin(0.5, 1.0, 0.0), Spin(0.35, 1.0, 0.0)]
    sensor = kernel.sensor(found=spins)
    kernel.runnable = 7  # six others on three processors: four of them on two
    miss, bias = {"queue": 0.0, "utilisation": 0.0}, {"queue": 0.0, "utilisation": 0.0}
    for spin, idle in zip(spins, (5.0, 2.0), strict=True):
        kernel.pass_time(10.0, Times(), Times(idle=idle, user=10.0 - idle), Times(idle=idle, user=10.0 - idle))
        found = sensor.read()
        views = {"queue": queue_view(2, 4.0), "utilisation": utilisation_view(0.2 * idle, 2.0 - 0.2 * idle, 4.0)}
        for name, view in views.items():
            missed = spin.share - view - bias[name]
            miss[name] = (miss[name] + abs(missed)) / 2
            bias[name] += missed * missed**2 / (missed**2 + 0.05**2)
        best = min(("utilisation", "queue"), key=lambda name: miss[name])
        assert found == pytest.approx(views[best] + bias[best])
    assert miss["queue"] < miss["utilisation"]
    # Between two probes the view that was nearest, with its correction, and never less than a hundredth.
    kernel.pass_time(1.0, Times(), Times(user=1.0), Times(user=1.0))
    assert sensor.read() == pytest.approx(views["queue"] + bias["queue"])
    kernel.runnable = 1000
    kernel.pass_time(1.0, Times(), Times(user=1.0), Times(user=1.0))
    assert sensor.read() == 0.01


def test_a_probe_without_threads_costs_no_reading_and_is_tried_again_when_the_next_is_due(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kernel, tried = Kernel(monkeypatch), list[float]()

    def probe() -> Spin:
        tried.append(kernel.now)
        raise RuntimeError("can't start new thread")

    sensor = ProbedCpu(
        limit=CpuLimit((2, 4), math.inf, None), probe=probe, schedule=ProbeSchedule(10.0, 40.0, 1.0),
        clock=lambda: kernel.now,
    )  # fmt: skip
    for _ in range(10):
        kernel.pass_time(10.0, Times(), Times(idle=10.0), Times(user=10.0))
        assert sensor.read() == pytest.approx(utilisation_view(1.0, 1.0, 0.0))
    assert tried == [10.0, 20.0, 40.0, 80.0]


@pytest.mark.parametrize(("shares_core", "found"), [(True, [0.8, 0.4, 0.8, 0.2]), (False, [0.8, 0.8, 0.8, 0.8])])
def test_on_processors_that_share_a_core_the_pace_of_the_work_counts_against_the_fastest(
    shares_core: bool, found: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    sensor = Kernel(monkeypatch, shares_core).sensor()
    assert [sensor._truth(Spin(0.8, pace, 0.0)) for pace in (10.0, 5.0, 20.0, 5.0)] == pytest.approx(found)


@pytest.mark.parametrize(
    ("logical", "physical", "shared"), [(8, 4, True), (8, 8, False), (8, None, False), (None, 4, False)]
)
def test_processors_share_cores_where_there_are_more_of_them(
    logical: int | None, physical: int | None, shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = {True: logical, False: physical}
    monkeypatch.setattr(cpu, "psutil", SimpleNamespace(cpu_count=lambda logical=True: counts[logical]))
    assert cpu._processors_share_cores() is shared


def test_a_quota_leaves_what_the_group_has_not_used_since(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = tmp_path / "cpu.stat"
    usage.write_text("usage_usec 5000000\n")
    kernel = Kernel(monkeypatch)
    sensor = kernel.sensor(limit=(1.0, usage))
    usage.write_text("usage_usec 8000000\n")
    kernel.pass_time(10.0, Times(idle=10.0), Times(idle=10.0), Times(idle=10.0))
    assert sensor.read() == pytest.approx(0.7)  # 3 of 10 s
    usage.write_text("usage_usec 17000000\n")
    kernel.pass_time(10.0, Times(idle=10.0), Times(idle=10.0), Times(idle=10.0))
    assert sensor.read() == pytest.approx(0.5)  # 9 of 10 s: an even part is more than what is left


def test_a_job_is_followed_by_its_turns_among_those_that_are_ready_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    uses = iter([Use(1, [2.0, 3.0], [Turn(3.0, 1.0), Turn(2.0, 2.0)]), Use(9, [2.0, 3.0], []), Use(0, [0.0, 0.0], [])])

    class Job:
        def __init__(self, pid: int) -> None:
            asked.append(pid)

        def since_last(self, processors: list[int], busy: list[float]) -> Use:
            asked.append((processors, busy))
            return next(uses)

    monkeypatch.setattr(cpu, "JobUse", Job)
    kernel = Kernel(monkeypatch)
    sensor = kernel.sensor(2, found=[Spin(1.0, 1.0, 0.0)])
    kernel.pass_time(100.0, Times(), Times(user=100.0), Times(user=100.0))
    sensor.follow(77)  # what passed before is no load of the job's
    idle, busy = (4.0, 1.0), (4.0, 7.0)
    spent = [Times(idle=rest, user=used - 1.0, steal=1.0) for rest, used in zip(idle, busy, strict=True)]
    kernel.runnable = 8  # less this process and the one of the job: six on three processors
    kernel.pass_time(8.0, Times(user=8.0), *spent)
    share = followed_view(idle, busy, [2.0, 3.0], 2.0, 2)
    turns = [Turn(3.0, 1.0), Turn(2.0, 2.0)]
    assert sensor.read() == pytest.approx(turns_view(turns, 8.0, 2.0 / 11.0, share, 2, 2))
    assert asked == [77, ([2, 4], [4.0, 7.0])]
    # More of the job's than are ready to run: no others. A kernel that counts no turns: the other view.
    kernel.pass_time(8.0, Times(), *spent)
    assert sensor.read() == pytest.approx(followed_view(idle, busy, [2.0, 3.0], 0.0, 2))
    # Where all is idle, none of it was stolen.
    kernel.pass_time(8.0, Times(), Times(idle=8.0), Times(idle=8.0))
    assert sensor.read() == 1.0


def test_a_sensor_is_of_one_processor_at_least() -> None:
    for processors in (0, -1):
        with pytest.raises(ValueError, match=rf"^processors is {processors}, expected at least 1$"):
            ProbedCpu(processors)
    assert ProbedCpu().processors == 1


def test_tasks_that_run_are_counted_by_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "loadavg").write_text("0.50 0.40 0.30 12/345 6789\n")
    monkeypatch.setattr(cpu, "open", lambda path, **_: (tmp_path / Path(path).name).open(), raising=False)
    assert cpu._runnable() == 12


def test_busy_are_all_seconds_but_idle_ones_and_those_of_guests_once(monkeypatch: pytest.MonkeyPatch) -> None:
    times = Times(user=10.0, nice=5.0, system=3.0, idle=100.0, iowait=20.0, steal=2.0, guest=4.0, guest_nice=1.0)
    assert processor_time.idle_and_busy(times) == (120.0, 20.0)
    monkeypatch.setattr(processor_time.psutil, "cpu_times", lambda: times)
    assert processor_time.busy_seconds() == 20.0
    used = SimpleNamespace(ru_utime=3.0, ru_stime=0.5)
    monkeypatch.setattr(processor_time.resource, "getrusage", {-1: used}.__getitem__)
    assert processor_time.seconds_of_children() == 3.5
