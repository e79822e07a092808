"""Available CPU: limits of control groups, passive views, and their correction by the probe."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.sensors import cpu
from monitors.sensors.cpu import ProbedCpu
from monitors.sensors.cpu_views import queue_view, quota_view, utilisation_view
from monitors.sensors.limits import CpuLimit, cpu_limit, cpu_seconds
from monitors.sensors.schedule import ProbeSchedule
from monitors.sensors.spin import Spin, spin

shares = st.floats(0, 1)
counts = st.integers(1, 64)


def kernel(folder: Path, groups: str, files: dict[str, str]) -> tuple[Path, Path]:
    """A process folder and a mount of control groups with these files."""
    (folder / "proc" / "self").mkdir(parents=True)
    (folder / "proc" / "self" / "cgroup").write_text(groups)
    for name, text in files.items():
        path = folder / "mount" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "mount").mkdir(exist_ok=True)
    return folder / "proc", folder / "mount"


def test_version_2_takes_the_tightest_quota_on_the_way_up(tmp_path: Path) -> None:
    usage = "usage_usec 2500000\nuser_usec 1\n"
    proc, mount = kernel(
        tmp_path,
        "0::/batch/job\n",
        {"batch/cpu.max": "150000 100000\n", "batch/cpu.stat": usage, "batch/job/cpu.max": "max 100000\n"},
    )
    limit = cpu_limit(proc, mount)
    assert limit.quota == 1.5
    assert limit.usage is not None
    assert cpu_seconds(limit.usage) == 2.5


def test_version_1_finds_quota_and_usage_in_their_two_places(tmp_path: Path) -> None:
    quota = {"cpu/job/cpu.cfs_quota_us": "50000\n", "cpu/job/cpu.cfs_period_us": "100000\n"}
    account = {"cpuacct/job/cpuacct.usage": "7000000000\n", "cpu/job/cpu.stat": "nr_periods 0\n"}
    limit = cpu_limit(*kernel(tmp_path, "4:cpu:/job\n5:cpuacct:/job\n", quota | account))
    assert limit.quota == 0.5
    assert limit.usage is not None
    assert cpu_seconds(limit.usage) == 7.0


@pytest.mark.parametrize("groups", ["", "0::/\n", "0::/../../etc\n", "nonsense"])
def test_without_a_limit_the_quota_is_infinite(tmp_path: Path, groups: str) -> None:
    limit = cpu_limit(*kernel(tmp_path, groups, {"cpu.stat": "usage_usec 1\n"}))
    assert limit.quota == float("inf")
    assert set(limit.processors) == os.sched_getaffinity(0)


@given(counts, st.floats(0, 100), counts)
def test_views_are_shares_and_more_processes_get_no_more_each(processors: int, others: float, k: int) -> None:
    busy = min(others, float(processors))
    for view in (
        lambda k: queue_view(processors, others, k),
        lambda k: utilisation_view(processors - busy, busy, others, k),
        lambda k: quota_view(processors / 2, busy / 2, k),
    ):
        assert 0 < view(k) <= 1
        assert view(k + 1) <= view(k) + 1e-12


@given(counts, st.integers(0, 64), counts)
def test_views_agree_where_all_load_is_endless(processors: int, others: int, k: int) -> None:
    """Others that never sleep keep min(others, processors) of them busy; both views then divide evenly."""
    busy = min(others, processors)
    even = queue_view(processors, others, k)
    by_use = utilisation_view(processors - busy, busy, others, k)
    assert by_use == pytest.approx(even) if others >= processors else by_use >= even - 1e-12


def test_a_spin_counts_no_more_than_all_and_costs_what_it_says() -> None:
    seen = spin(0.05, threads=2)
    assert 0 < seen.share <= 1
    assert seen.cost > 0


@pytest.mark.parametrize("truth", [0.3, 0.9])
def test_probes_pull_a_blind_view_to_the_truth(truth: float) -> None:
    moments = iter(range(10_000))
    sensor = ProbedCpu(
        limit=CpuLimit(tuple(sorted(os.sched_getaffinity(0))), float("inf"), None),
        probe=lambda: Spin(truth, 1.0, 0.0),
        schedule=ProbeSchedule(shortest=1.0, longest=1.0),
        clock=lambda: float(next(moments)),
    )
    for _ in range(12):
        time.sleep(0.01)
        reading = sensor.read()
    assert reading == pytest.approx(truth, abs=0.25)  # this host's own views move meanwhile


def test_a_quota_caps_what_an_idle_host_promises(tmp_path: Path) -> None:
    usage = tmp_path / "cpuacct.usage"
    usage.write_text("0")
    limit = CpuLimit(tuple(sorted(os.sched_getaffinity(0))), 0.25, usage)
    assert ProbedCpu(limit=limit, probe=lambda: Spin(1.0, 1.0, 0.0)).read() <= 0.25


@given(st.lists(shares, min_size=2, max_size=60), st.floats(0.01, 1.0))
def test_probing_stays_within_its_budget(found: list[float], cost: float) -> None:
    schedule = ProbeSchedule(shortest=10.0, longest=100.0, budget=0.01)
    moment, spent = 0.0, 0.0
    for value in found:
        while not schedule.due(moment):
            moment += 5.0
        schedule.probed(moment, value, cost)
        spent += cost
    assert spent <= 0.01 * moment + 2 * cost


def test_probing_is_sooner_after_a_large_change() -> None:
    schedule = ProbeSchedule(shortest=10.0, longest=100.0, budget=1.0)
    for moment in range(5):
        schedule.probed(200.0 * moment, 0.9, 0.0)
    resting = schedule.interval
    schedule.probed(1200.0, 0.2, 0.0)
    assert schedule.interval < resting


def test_a_resting_schedule_probes_when_the_passive_view_has_changed_by_much() -> None:
    schedule = ProbeSchedule(shortest=10.0, longest=100.0, budget=1.0)
    for moment in range(5):
        schedule.probed(200.0 * moment, 0.9, 0.0, 0.8)
    assert schedule.interval == 100.0
    assert not schedule.due(815.0, 0.75)
    assert schedule.due(815.0, 0.5)
    assert not schedule.due(805.0, 0.5)


def test_a_changed_schedule_still_keeps_its_budget() -> None:
    schedule = ProbeSchedule(shortest=10.0, longest=100.0, budget=0.001)
    schedule.probed(0.0, 0.9, 0.2, 0.8)
    assert not schedule.due(150.0, 0.1)
    assert schedule.due(201.0, 0.1)


def probing_always(found: Iterator[float], views: dict[str, float]) -> ProbedCpu:
    """A sensor that probes at each reading, with what probes find and other views of the load."""
    moments = iter(range(10_000))
    sensor = ProbedCpu(
        limit=CpuLimit(tuple(sorted(os.sched_getaffinity(0))), float("inf"), None),
        probe=lambda: Spin(next(found), 1.0, 0.0),
        schedule=ProbeSchedule(shortest=1.0, longest=1.0),
        clock=lambda: float(next(moments)),
    )
    sensor._views = lambda *_: views  # type: ignore[method-assign]
    return sensor


@pytest.mark.parametrize("truth", [0.2, 0.95])
def test_one_probe_undoes_a_wrong_correction(truth: float) -> None:
    """A bias learned under another load is gone with the first probe that contradicts it."""
    found = iter([0.6, 0.6, 0.6, truth])
    sensor = probing_always(found, {"queue": 0.5, "utilisation": 0.4})
    for _ in range(4):
        reading = sensor.read()
    assert reading == pytest.approx(truth, abs=0.03)


def test_noise_of_single_probes_is_smoothed() -> None:
    found = iter([0.5 + 0.03 * (-1) ** step for step in range(40)])
    sensor = probing_always(found, {"queue": 0.5, "utilisation": 0.5})
    readings = [sensor.read() for _ in range(40)]
    assert max(abs(reading - 0.5) for reading in readings[10:]) < 0.02


def test_the_schedule_is_told_of_each_probe_and_what_it_cost() -> None:
    """The moments of probes follow from what the schedule hears: its interval grows while nothing changes."""
    moment = 0.0
    probes: list[float] = []

    def probe() -> Spin:
        probes.append(moment)
        return Spin(0.5, 1.0, cost=0.01)

    schedule = ProbeSchedule(shortest=10.0, longest=40.0, budget=0.001)
    limit = CpuLimit(tuple(sorted(os.sched_getaffinity(0))), float("inf"), None)
    sensor = ProbedCpu(limit=limit, probe=probe, schedule=schedule, clock=lambda: moment)
    sensor._views = lambda *_: {"queue": 0.5, "utilisation": 0.5}  # type: ignore[method-assign]
    for second in range(200):
        moment = float(second)
        sensor.read()
    # The first goes on credit of 0.01 s, earned back in 10 s at 0.001 a second; then nothing changes.
    assert probes == [0.0, 10.0, 30.0, 70.0, 110.0, 150.0, 190.0]


def _endless() -> None:
    while True:
        pass


@pytest.mark.system
def test_an_endless_competitor_on_the_same_processor_leaves_half() -> None:
    """Pinned to one processor with one competitor, the sensor reads what the scheduler gives: about a half."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)})
    try:
        rival = multiprocessing.get_context("fork").Process(target=_endless, daemon=True)
        rival.start()
        try:
            sensor = ProbedCpu()
            time.sleep(2.0)
            assert sensor.read() == pytest.approx(spin(2.0).share, abs=0.15)
        finally:
            rival.terminate()
            rival.join()
    finally:
        os.sched_setaffinity(0, allowed)


def test_processors_are_told_apart_by_their_numbers_and_may_go_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel has accounts of those alone that are online."""
    accounts = {0: (0.0, 0.0), 2: (0.0, 0.0), 4: (0.0, 0.0), 6: (0.0, 0.0)}
    clock = iter([0.0, 10.0, 20.0])

    def times(percpu: bool) -> list[SimpleNamespace]:
        return [SimpleNamespace(pair=pair) for pair in accounts.values()]

    monkeypatch.setattr(cpu, "online_processors", lambda: list(accounts))
    monkeypatch.setattr(cpu.psutil, "cpu_times", times)
    monkeypatch.setattr(cpu, "idle_and_busy", lambda each: each.pair)
    sensor = ProbedCpu(1, limit=CpuLimit((4, 6), float("inf"), None), probing=False, clock=lambda: next(clock))
    accounts |= {0: (0.0, 10.0), 2: (0.0, 10.0), 4: (7.0, 3.0), 6: (9.0, 1.0)}
    assert sensor._passed()[:3] == ([4, 6], [7.0, 9.0], [3.0, 1.0])
    del accounts[4]
    accounts[6] = (10.0, 10.0)
    assert sensor._passed()[:3] == ([6], [1.0], [9.0])
