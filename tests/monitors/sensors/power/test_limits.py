"""Meters at their limits: what is just believed and what is not, what goes first, and how long an answer holds."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from monitors.sensors.power import found, ipmi
from monitors.sensors.power.cray import PmCounters
from monitors.sensors.power.found import find_meter, fixed_clock
from monitors.sensors.power.hwmon import Hwmon
from monitors.sensors.power.ipmi import Ipmi
from monitors.sensors.power.powercap import Powercap


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / "sys" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    return root


def zone(name: str, number: str, counted: int = 1, most: str = "1000000000000") -> dict[str, str]:
    folder = f"class/powercap/intel-rapl:{number}"
    return {f"{folder}/name": name, f"{folder}/energy_uj": f"{counted}", f"{folder}/max_energy_range_uj": most}


@pytest.mark.parametrize(
    ("grown", "seconds", "watts"),
    [
        (5_000_000_000, 1.0, 5000.0), (5_000_000_001, 1.0, None), (2_500_000_000, 0.5, 5000.0), (3_000_000, 2.0, 1.5),
        (0, 2.0, math.nan), (-1_000_000, 1.0, None), (5_000_000, 0.0, math.nan), (5_000_000, -1.0, math.nan),
    ],
)  # fmt: skip
def test_a_package_draws_at_most_five_kilowatts(
    grown: int, seconds: float, watts: float | None, tmp_path: Path
) -> None:
    moments = iter([100.0, 100.0 + seconds])
    start = 10_000_000
    meter = Powercap(tree(tmp_path, zone("package-0", "0", start)), lambda: next(moments))
    tree(tmp_path, zone("package-0", "0", start + grown))
    if watts is None:  # what goes back has gone around the whole range of 10^12 uJ
        with pytest.raises(ValueError, match="energy_uj grew by"):
            meter.read()
    else:
        assert meter.read() == pytest.approx(watts, nan_ok=True)


@pytest.mark.parametrize(
    ("zones", "covers", "joules"),
    [
        ([("package-0", "0"), ("package-1", "1")], "package", 3.0),
        ([("package-0", "0"), ("dram", "0:0")], "package+memory", 3.0),
        ([("package-0", "0"), ("dram", "0:0"), ("package-1", "1")], "package", 4.0),
        ([("package-0", "0"), ("package-1", "1"), ("dram", "0:0"), ("dram", "1:0")], "package+memory", 10.0),
        ([("package-0", "0"), ("psys", "1"), ("core", "0:0"), ("uncore", "0:1")], "package", 1.0),
    ],
)
def test_memory_counts_where_every_package_has_its_own(
    zones: list[tuple[str, str]], covers: str, joules: float, tmp_path: Path
) -> None:
    """Of zones that have counted 1, 2, 3, ... joules in the order given."""
    moments = iter([0.0, 1.0])
    for name, number in zones:
        tree(tmp_path, zone(name, number))
    meter = Powercap(tmp_path, lambda: next(moments))
    for place, (name, number) in enumerate(zones, 1):
        tree(tmp_path, zone(name, number, 1 + 1_000_000 * place))
    assert (meter.covers, meter.read()) == (covers, pytest.approx(joules))


@pytest.mark.parametrize("kind", ["average", "input"])
def test_the_nodes_power_is_its_average_or_else_that_of_now(kind: str, tmp_path: Path) -> None:
    tree(tmp_path, {"class/hwmon/hwmon0/name": "coretemp", "class/hwmon/hwmon0/power1_average": "1000000"})
    with pytest.raises(FileNotFoundError, match=r"^hwmon reports no power of the node$"):
        Hwmon(tmp_path)
    tree(tmp_path, {"class/hwmon/hwmon1/name": "power_meter", f"class/hwmon/hwmon1/power1_{kind}": "2500000"})
    assert Hwmon(tmp_path).read() == 2.5
    tree(tmp_path, {"class/hwmon/hwmon1/power1_input": "7000000"})
    assert Hwmon(tmp_path).read() == (2.5 if kind == "average" else 7.0)
    tree(tmp_path, {"class/hwmon/hwmon1/power1_average": "-1", "class/hwmon/hwmon1/power1_input": "-1"})
    with pytest.raises(ValueError, match="tells -1e-06 W"):
        Hwmon(tmp_path)


@pytest.mark.parametrize(
    ("counted", "watts"),
    [
        ("100 J 3000000 us", 0.0), ("101 J 3000000 us", 1.0), ("150 J 2500000 us", 100.0),
        ("150 J 2000000 us", math.nan),
        ("99 J 3000000 us", None), ("150 J 1999999 us", None), ("150 J", None), ("-150 J 3000000 us", None),
    ],
)  # fmt: skip
def test_joules_of_a_node_count_over_the_time_of_their_own_counter(
    counted: str, watts: float | None, tmp_path: Path
) -> None:
    meter = PmCounters(tree(tmp_path, {"cray/pm_counters/energy": "100 J 2000000 us"}))
    tree(tmp_path, {"cray/pm_counters/energy": counted})
    if watts is None:
        with pytest.raises(ValueError, match=r"energy (went back|holds)"):
            meter.read()
    else:
        assert meter.read() == pytest.approx(watts, nan_ok=True)


def test_an_answer_of_ipmitool_holds_for_ten_seconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "ipmitool"
    tool.write_text("#!/bin/sh\necho 7 >>$0.asked\necho 'Instantaneous power reading:   '$(wc -l <$0.asked)' Watts'\n")
    tool.chmod(0o755)
    monkeypatch.setattr(ipmi, "TIMEOUT", 60.0)  # of a busy host
    now = [50.0]
    meter = Ipmi(str(tool), lambda: now[0])
    seen = []
    for now[0] in (50.0, 59.9, 60.0, 69.9, 70.1):
        seen.append(meter.read())
    assert seen == [1.0, 1.0, 2.0, 2.0, 3.0]
    tool.write_text("#!/bin/sh\nexec sleep 60\n")
    with monkeypatch.context() as patched:
        patched.setattr(ipmi, "TIMEOUT", 0.1)
        with pytest.raises(OSError, match=r"^ipmitool did not answer in 0.1 s$"):
            Ipmi(str(tool))
    tool.write_text("#!/bin/sh\necho \"$(head -c 300 /dev/zero | tr '\\0' x)\" >&2\n")
    with pytest.raises(OSError, match=r"^ipmitool reports no power \(x{200}\)$"):
        Ipmi(str(tool))


def test_what_sees_the_whole_node_goes_first_and_ipmitool_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow:
        def __init__(self) -> None:
            pass

    monkeypatch.setattr(found, "Ipmi", Slow)
    kinds = [type(find_meter(tmp_path))]
    tree(tmp_path, zone("package-0", "0"))
    kinds.append(type(find_meter(tmp_path)))
    tree(tmp_path, {"class/hwmon/hwmon0/name": "power_meter", "class/hwmon/hwmon0/power1_input": "7"})
    kinds.append(type(find_meter(tmp_path)))
    tree(tmp_path, {"cray/pm_counters/energy": "7 J 7 us"})
    kinds.append(type(find_meter(tmp_path)))
    assert kinds == [Slow, Powercap, Hwmon, PmCounters]
    # One that tells nonsense is passed over.
    tree(tmp_path, {"cray/pm_counters/energy": "7 W"})
    assert type(find_meter(tmp_path)) is Hwmon

    def none() -> None:
        raise FileNotFoundError

    monkeypatch.setattr(found, "Ipmi", none)
    assert find_meter(tmp_path / "none") is None


@pytest.mark.parametrize(
    ("limits", "clock"),
    [
        ([("1800000", "1800000")] * 2, 1800.0), ([("1800000", "1800000"), ("1800000", "1800001")], None),
        ([("1800000", "1800000"), ("1800000", "")], None), ([("1800500", "1800500")], 1800.5), ([], None),
    ],
)  # fmt: skip
def test_a_clock_is_fixed_where_all_limits_are_the_same(
    limits: list[tuple[str, str]], clock: float | None, tmp_path: Path
) -> None:
    for number, ends in enumerate(limits):
        folder = f"devices/system/cpu/cpu{number}/cpufreq"
        tree(tmp_path, {f"{folder}/scaling_{name}_freq": end for name, end in zip(("min", "max"), ends, strict=True)})
    tree(tmp_path, {"devices/system/cpu/cpuidle/cpufreq/scaling_min_freq": "7"})
    assert fixed_clock(tmp_path) == clock
