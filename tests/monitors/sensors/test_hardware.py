"""What a host is made of, read from a made tree and from this host."""

from __future__ import annotations

import shutil
from pathlib import Path

import psutil
import pytest

from monitors.sensors.hardware import detect


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return root


def test_clocks_limits_memory_and_links_are_read_from_the_kernels_files(tmp_path: Path) -> None:
    powercap, net = "sys/class/powercap", "sys/class/net"
    root = tree(
        tmp_path,
        {
            "proc/meminfo": "MemTotal:       16384 kB\nMemFree: 1 kB",
            "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq": "4000000",
            "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_min_freq": "800500",
            "sys/devices/system/cpu/cpu0/cpufreq/base_frequency": "2100000",
            f"{powercap}/intel-rapl:0/name": "package-0",
            f"{powercap}/intel-rapl:0/constraint_0_power_limit_uw": "125000000",
            f"{powercap}/intel-rapl:1/name": "package-1",
            f"{powercap}/intel-rapl:1/constraint_0_power_limit_uw": "125000000",
            f"{powercap}/intel-rapl:1:0/name": "dram",
            f"{powercap}/intel-rapl:2/name": "psys",
            f"{powercap}/intel-rapl:2/constraint_0_power_limit_uw": "900000000",
            f"{net}/eth0/speed": "10000",
            f"{net}/eth0/device/vendor": "x",
            f"{net}/eth1/speed": "-1",
            f"{net}/eth1/device/vendor": "x",
            f"{net}/bond0/speed": "40000",
        },
    )
    _, found = detect(root)
    assert {each.name: (each.value, each.unit) for each in found} == {
        "clock": (2100.0, "MHz"),
        "clock_max": (4000.0, "MHz"),
        "clock_min": (800.5, "MHz"),
        "memory": (16384.0 * 1024, "B"),
        "tdp": (250.0, "W"),
        "bandwidth": (10000.0, "Mbit/s"),
    }
    assert all(each.source for each in found)


def test_an_empty_tree_tells_nothing(tmp_path: Path) -> None:
    assert detect(tmp_path)[1] == []


@pytest.mark.skipif(shutil.which("lscpu") is None, reason="needs lscpu")
def test_this_host_tells_its_threads() -> None:
    _, found = detect()
    assert {each.name: each.value for each in found}["threads"] == psutil.cpu_count()
