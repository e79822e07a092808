"""Meters of power, on made trees that count, wrap around and go wrong, and on this host where it has any."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from metasched.schedulers import host_monitors, local
from monitors.sensors.power.cray import PmCounters
from monitors.sensors.power.found import find_meter, fixed_clock
from monitors.sensors.power.hwmon import Hwmon
from monitors.sensors.power.ipmi import SELDOM, Ipmi
from monitors.sensors.power.powercap import Powercap


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Tree:
    """A made powercap: zones by name, with joules that can be put on."""

    def __init__(self, root: Path, zones: dict[str, str], most: float = 1000.0) -> None:
        self.root, self.most = root, most
        for zone, name in zones.items():
            self.write(zone, "name", name)
            self.write(zone, "max_energy_range_uj", str(int(most * 1e6)))
            self.write(zone, "energy_uj", "1")

    def write(self, zone: str, file: str, text: str) -> None:
        path = self.root / "sys/class/powercap" / zone / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")

    def add(self, zone: str, joules: float) -> None:
        path = self.root / "sys/class/powercap" / zone / "energy_uj"
        path.write_text(f"{int((int(path.read_text()) + joules * 1e6) % (self.most * 1e6))}\n")


def test_packages_and_their_memory_are_added_and_the_platform_never_is(tmp_path: Path) -> None:
    zones = {
        "intel-rapl:0": "package-0", "intel-rapl:0:0": "core", "intel-rapl:0:1": "dram",
        "intel-rapl:1": "package-1", "intel-rapl:1:0": "dram", "intel-rapl:2": "psys",
    }  # fmt: skip
    tree, clock = Tree(tmp_path, zones), Clock()
    meter = Powercap(tmp_path, clock)
    assert meter.covers == "package+memory"
    for zone, joules in zip(zones, (80.0, 50.0, 12.0, 70.0, 8.0, 400.0), strict=True):
        tree.add(zone, joules)
    clock.now += 2.0
    assert meter.read() == pytest.approx((80.0 + 12.0 + 70.0 + 8.0) / 2.0)
    assert math.isnan(meter.read())


def test_a_counter_that_wraps_around_goes_on_counting(tmp_path: Path) -> None:
    tree, clock = Tree(tmp_path, {"amd-rapl:0": "package-0"}, most=262.0), Clock()
    meter = Powercap(tmp_path, clock)
    assert meter.covers == "package"
    joules = 0.0
    for _ in range(20):
        tree.add("amd-rapl:0", 90.0)
        clock.now += 1.0
        joules += meter.read()
    assert joules == pytest.approx(20 * 90.0)


def test_memory_of_only_some_packages_is_left_out(tmp_path: Path) -> None:
    Tree(tmp_path, {"intel-rapl:0": "package-0", "intel-rapl:0:0": "dram", "intel-rapl:1": "package-1"})
    assert Powercap(tmp_path).covers == "package"


def test_memory_that_reads_0_is_not_counted_and_so_left_out(tmp_path: Path) -> None:
    tree = Tree(tmp_path, {"intel-rapl:0": "package-0", "intel-rapl:0:0": "dram"})
    assert Powercap(tmp_path).covers == "package+memory"
    tree.write("intel-rapl:0:0", "energy_uj", "0")
    assert Powercap(tmp_path).covers == "package"


@pytest.mark.parametrize("reads", ["0", "5000000"])
def test_a_package_that_counts_nothing_is_not_taken_for_one_that_draws_nothing(tmp_path: Path, reads: str) -> None:
    tree, clock = Tree(tmp_path, {"intel-rapl:0": "package-0", "intel-rapl:1": "package-1"}), Clock()
    tree.write("intel-rapl:1", "energy_uj", reads)
    meter = Powercap(tmp_path, clock)
    for _ in range(4):
        clock.now += 0.5
        tree.add("intel-rapl:0", 40.0)
        assert math.isnan(meter.read())
    clock.now += 0.5
    with pytest.raises(ValueError, match=r"intel-rapl:1/energy_uj has counted nothing for 2.5 s"):
        meter.read()


def test_counters_that_are_renewed_seldom_lose_no_energy(tmp_path: Path) -> None:
    tree, clock = Tree(tmp_path, {"intel-rapl:0": "package-0", "intel-rapl:1": "package-1"}), Clock()
    meter = Powercap(tmp_path, clock)
    watts = []
    for step in range(12):
        clock.now += 0.5
        if step % 3 == 2:
            tree.add("intel-rapl:0", 90.0)
            tree.add("intel-rapl:1", 60.0)
        watts.append(meter.read())
    assert [each for each in watts if not math.isnan(each)] == pytest.approx([100.0] * 4)


def test_a_counter_that_jumps_is_not_believed(tmp_path: Path) -> None:
    tree, clock = Tree(tmp_path, {"intel-rapl:0": "package-0"}, most=1e6), Clock()
    meter = Powercap(tmp_path, clock)
    tree.add("intel-rapl:0", 60_000.0)
    clock.now += 1.0
    with pytest.raises(ValueError, match=r"energy_uj grew by 60000 J in 1 s"):
        meter.read()
    tree.add("intel-rapl:0", 100.0)
    clock.now += 1.0
    assert meter.read() == pytest.approx(100.0)
    tree.write("intel-rapl:0", "max_energy_range_uj", "0")
    blind = Powercap(tmp_path, clock)
    tree.write("intel-rapl:0", "energy_uj", "5")
    clock.now += 1.0
    with pytest.raises(ValueError, match="went back"):
        blind.read()


def test_a_counter_that_jumps_leaves_no_energy_of_another_for_the_next_reading(tmp_path: Path) -> None:
    tree, clock = Tree(tmp_path, {"intel-rapl:0": "package-0", "intel-rapl:1": "package-1"}, most=1e6), Clock()
    tree.write("intel-rapl:0", "max_energy_range_uj", "0")
    tree.add("intel-rapl:0", 10.0)
    meter = Powercap(tmp_path, clock)
    for first, second in ((-5.0, 50.0), (1.0, 70.0)):
        tree.add("intel-rapl:0", first)
        tree.add("intel-rapl:1", second)
        clock.now += 1.0
        if first < 0:
            with pytest.raises(ValueError, match="went back"):
                meter.read()
    assert meter.read() == pytest.approx(71.0)


@pytest.mark.parametrize("unread", ["", "-", None])
def test_readings_that_fail_lose_neither_time_nor_energy(tmp_path: Path, unread: str | None) -> None:
    tree, clock = Tree(tmp_path, {"intel-rapl:0": "package-0", "intel-rapl:1": "package-1"}, most=1e6), Clock()
    meter = Powercap(tmp_path, clock)
    counter, whole = tmp_path / "sys/class/powercap/intel-rapl:1/energy_uj", ""
    for step in range(8):
        clock.now += 10.0
        tree.add("intel-rapl:0", 600.0)
        tree.add("intel-rapl:1", 400.0)
        if 2 <= step < 5:
            whole = counter.read_text()
            counter.unlink()
            if unread is not None:
                counter.write_text(unread)
            with pytest.raises((OSError, ValueError)):
                meter.read()
            counter.write_text(whole)
        else:
            assert meter.read() == pytest.approx(100.0)


def test_the_nodes_meter_is_taken_before_that_of_its_packages(tmp_path: Path) -> None:
    Tree(tmp_path, {"intel-rapl:0": "package-0"})
    found = find_meter(tmp_path)
    assert found is not None
    assert found.covers == "package"
    for chip, name, watts in (("hwmon0", "coretemp", ""), ("hwmon1", "power_meter", "166000000")):
        folder = tmp_path / "sys/class/hwmon" / chip
        folder.mkdir(parents=True)
        (folder / "name").write_text(f"{name}\n")
        if watts:
            (folder / "power1_average").write_text(f"{watts}\n")
    found = find_meter(tmp_path)
    assert found is not None
    assert (found.covers, found.read()) == ("node", 166.0)
    (tmp_path / "sys/class/hwmon/hwmon1/power1_average").write_text("0\n")
    with pytest.raises(ValueError, match="tells 0 W"):
        Hwmon(tmp_path)


def test_ipmitool_is_asked_seldom_and_without_a_shell(tmp_path: Path) -> None:
    tool, asked, clock = tmp_path / "ipmitool", tmp_path / "asked", Clock()
    tool.write_text(
        f'#!/bin/sh\necho "$@" >> {asked}\necho "    Instantaneous power reading:                   166 Watts"\n'
    )
    tool.chmod(0o755)
    meter = Ipmi(str(tool), clock)
    assert [meter.read() for _ in range(3)] == [166.0] * 3
    clock.now += SELDOM
    assert meter.read() == 166.0
    assert asked.read_text().splitlines() == ["dcmi power reading"] * 2
    tool.write_text('#!/bin/sh\necho "Could not open device" >&2\n')
    with pytest.raises(OSError, match="Could not open device"):
        Ipmi(str(tool))
    with pytest.raises(FileNotFoundError, match="is not installed"):
        Ipmi(str(tmp_path / "nothing"))


def test_a_controller_that_does_not_answer_is_asked_as_seldom_and_its_old_answer_holds_no_longer(
    tmp_path: Path,
) -> None:
    tool, asked, answer, clock = tmp_path / "ipmitool", tmp_path / "asked", tmp_path / "answer", Clock()
    tool.write_text(f"#!/bin/sh\necho x >> {asked}\ncat {answer}\n")
    tool.chmod(0o755)
    answer.write_text("Instantaneous power reading: 166 Watts\n")
    meter = Ipmi(str(tool), clock)
    answer.write_text("")
    for _ in range(3):
        clock.now += SELDOM
        with pytest.raises(OSError, match="reports no power"):
            meter.read()
        clock.now += 0.9 * SELDOM
        assert math.isnan(meter.read())
        clock.now -= 0.9 * SELDOM
    assert len(asked.read_text().split()) == 4
    answer.write_text("Instantaneous power reading: 170 Watts\n")
    clock.now += SELDOM
    assert meter.read() == meter.read() == 170.0


def test_the_clock_is_told_where_it_is_fixed(tmp_path: Path) -> None:
    def bounds(cpu: int, least: int, most: int) -> None:
        folder = tmp_path / f"sys/devices/system/cpu/cpu{cpu}/cpufreq"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "scaling_min_freq").write_text(f"{least}\n")
        (folder / "scaling_max_freq").write_text(f"{most}\n")

    assert fixed_clock(tmp_path) is None
    bounds(0, 1800000, 1800000)
    bounds(1, 1800000, 1800000)
    assert fixed_clock(tmp_path) == 1800.0
    bounds(1, 800000, 2400000)
    assert fixed_clock(tmp_path) is None


class Constant:
    covers = "node"

    def read(self) -> float:
        return 50.0


def test_a_run_is_stored_with_its_energy_and_its_clock_where_they_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_monitors, "find_meter", lambda: Constant())
    monkeypatch.setattr(local, "fixed_clock", lambda: 1800.0)
    readings = iter((10.0, 30.0))
    monkeypatch.setattr(host_monitors, "busy_seconds", lambda: next(readings))
    own = iter((1.0, 6.0))
    monkeypatch.setattr(host_monitors, "seconds_of_children", lambda: next(own))
    monkeypatch.setattr(host_monitors.psutil, "cpu_count", lambda: 8)
    asked = {"application": "a", "problem_size": 1, "processors": 2, "interval": 0.02}
    run = local.run(["sleep", "0.1"], idle_watts=20.0, **asked).record.run
    assert run.energy == pytest.approx((20.0 * 2 / 8 + 30.0 * 5 / 20) * run.execution_time, rel=1e-6)
    assert (run.energy_covers, run.settings.frequency) == ("node", 1800.0)
    monkeypatch.setattr(host_monitors, "find_meter", lambda: None)
    monkeypatch.setattr(local, "fixed_clock", lambda: None)
    plain = local.run(["true"], application="a", problem_size=1, processors=1, interval=0.02).record.run
    assert (plain.energy, plain.energy_covers, plain.settings.frequency) == (None, "", None)


def test_a_run_has_no_energy_where_the_kernel_does_not_tell_who_worked(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> float:
        raise OSError("/proc/stat is hidden")

    monkeypatch.setattr(host_monitors, "find_meter", lambda: Constant())
    monkeypatch.setattr(host_monitors, "busy_seconds", fail)
    finished = local.run(["sleep", "0.05"], application="a", problem_size=1, processors=1, interval=0.02)
    assert (finished.record.run.energy, finished.record.exit_status) == (None, 0)
    assert "the energy of the run is unknown: the kernel does not report how busy it was" in finished.warnings


def test_the_kernels_own_counters_are_read_where_there_are_any() -> None:
    found = find_meter()
    if found is None:
        pytest.skip("this host has no meter that may be read")
    assert not found.read() < 0.0


def test_a_cray_tells_the_joules_of_the_node_with_their_time(tmp_path: Path) -> None:
    folder = tmp_path / "sys/cray/pm_counters"
    folder.mkdir(parents=True)
    with pytest.raises(OSError, match="energy"):
        PmCounters(tmp_path)
    (folder / "energy").write_text("5843192 J 1604937236 us\n")
    meter = find_meter(tmp_path)
    assert isinstance(meter, PmCounters)
    assert (meter.covers, math.isnan(meter.read())) == ("node", True)
    (folder / "energy").write_text("5843892 J 1606937236 us\n")
    assert meter.read() == pytest.approx(350.0)
    (folder / "energy").write_text("17 J 1608937236 us\n")
    with pytest.raises(ValueError, match="went back from 5843892 J to 17 J"):
        meter.read()
    (folder / "energy").write_text("100 W\n")
    with pytest.raises(ValueError, match="expected joules and microseconds"):
        meter.read()


def test_meters_without_a_reading_say_so(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"^powercap reports no package's energy$"):
        Powercap(tmp_path)
    tool = tmp_path / "ipmitool"
    readings = (f"echo 'Instantaneous power reading: {watts} Watts'" for watts in (0, 65_535))
    for printed in ("echo no sensor >&2", *readings):
        tool.write_text(f"#!/bin/sh\n{printed}\n")
        tool.chmod(0o755)
        with pytest.raises(OSError, match=r"^ipmitool reports no power \((no sensor|no reading)\)$"):
            Ipmi(str(tool), Clock())
