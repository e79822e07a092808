"""What a host is made of, read from a made tree and from this host."""

from __future__ import annotations

import json
import os
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


def says(folder: Path, printed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let lscpu print a text."""
    (folder / "printed").write_text(printed)
    (folder / "lscpu").write_text(f"#!/bin/sh\necho $LC_ALL $@ >{folder}/asked\nexec /bin/cat {folder}/printed\n")
    (folder / "lscpu").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)


@pytest.mark.parametrize("nested", [False, True])
def test_processors_and_their_cache_are_those_of_lscpu(
    nested: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Newer releases nest what belongs together."""
    fields = {"Socket(s):": "2", "Core(s) per socket:": "24", "Thread(s) per core:": "2", "L3 cache:": "33554432"}
    rows: list[dict[str, object]] = [{"field": name, "data": value} for name, value in fields.items()]
    if nested:
        rows = [{"field": "Caches:", "data": None, "children": [{"field": "NUMA:", "data": "1", "children": rows}]}]
    says(tmp_path, json.dumps({"lscpu": [{"field": "Model name:", "data": "A Model"}, *rows]}), monkeypatch)
    model, found = detect(tmp_path / "root")
    assert (tmp_path / "asked").read_text() == f"C --json --bytes --sysroot {tmp_path}/root\n"
    assert model == "A Model"
    assert [(each.name, each.value, each.unit, each.source) for each in found] == [
        ("sockets", 2.0, "1", "lscpu"),
        ("cores", 48.0, "1", "lscpu"),
        ("threads", 96.0, "1", "lscpu"),
        ("cache", 33554432.0, "B", "lscpu, L3"),
    ]


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"Socket(s)": "1", "Core(s) per socket": "4"}, {"sockets": 1.0, "cores": 4.0, "threads": 4.0}),
        ({"Socket(s)": "1"}, {}),
        ({"Core(s) per socket": "4", "Thread(s) per core": "2"}, {}),
        ({"Socket(s)": "-", "Core(s) per socket": "4", "L3 cache": ""}, {}),
    ],
)
def test_what_lscpu_does_not_know_is_left_out(
    fields: dict[str, str], found: dict[str, float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"field": name, "data": value} for name, value in fields.items()]
    says(tmp_path, json.dumps({"lscpu": rows}), monkeypatch)
    model, facts = detect(tmp_path / "root")
    assert (model, {each.name: each.value for each in facts}) == ("", found)


@pytest.mark.parametrize("printed", ["", "{}", "[", '{"lscpu": []}'])
def test_an_lscpu_that_prints_nothing_of_use_tells_nothing(
    printed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    says(tmp_path, printed, monkeypatch)
    assert detect(tmp_path / "root") == ("", [])


def test_without_lscpu_the_kernels_files_tell_what_they_know(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    zone = "sys/class/powercap/intel-rapl:0"
    files = {"proc/meminfo": "MemFree: 1 kB\nMemTotal: 2 kB", f"{zone}/name": "package-0"}
    assert [(each.name, each.value) for each in detect(tree(tmp_path, files))[1]] == [("memory", 2048.0)]
    # A package without a limit leaves the sum unknown; a link without a speed, or one that is down, is none.
    files = {f"{zone}/constraint_0_power_limit_uw": "5500000", "sys/class/net/eth0/device/vendor": "x"}
    found = detect(tree(tmp_path, files))[1]
    assert [(each.name, each.value) for each in found] == [("memory", 2048.0), ("tdp", 5.5)]
    tree(tmp_path, {"sys/class/powercap/intel-rapl:1/name": "package-1", "sys/class/net/eth0/speed": "1"})
    found = detect(tmp_path)[1]
    assert [(each.name, each.value) for each in found] == [("memory", 2048.0), ("bandwidth", 1.0)]
