"""The limits of control groups by made trees of the kernel's files, of versions 1 and 2 and of both at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from monitors.sensors import limits
from monitors.sensors.limits import cpu_limit, cpu_seconds, online_processors

INFINITE = float("inf")


def tree(root: Path, groups: str, files: dict[str, str]) -> tuple[Path, Path]:
    for name, text in {"proc/self/cgroup": groups, **{f"mount/{name}": text for name, text in files.items()}}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root / "proc", root / "mount"


def version_1(folder: str, quota: int, period: int = 100_000) -> dict[str, str]:
    return {f"{folder}/cpu.cfs_quota_us": f"{quota}\n", f"{folder}/cpu.cfs_period_us": f"{period}\n"}


@pytest.mark.parametrize(
    ("groups", "files", "quota", "usage"),
    [
        # Version 2: the tightest on the way up to the root, with the account of that group.
        ("0::/a/b\n", {"a/b/cpu.max": "200000 100000", "a/cpu.max": "50000 100000", "a/cpu.stat": "usage_usec 1\n"},
         0.5, "a/cpu.stat"),
        ("0::/a\n", {"cpu.max": "300000 200000", "cpu.stat": "usage_usec 1\n", "a/cpu.max": "max 100000"},
         1.5, "cpu.stat"),
        ("0::/a\n", {"a/cpu.max": "max 100000"}, INFINITE, None),
        ("0::/a\n", {"b/cpu.max": "100000 100000"}, INFINITE, None),
        ("0::/a\n", {"a/cpu.max": "no quota"}, INFINITE, None),
        # A quota without an account.
        ("0::/a\n", {"a/cpu.max": "50000 100000", "a/cpu.stat": "nr_periods 1\n"}, 0.5, None),
        # A container that hides the path, or whose group lies elsewhere, sees the mount alone.
        ("0::/../other\n", {"cpu.max": "50000 100000", "cpu.stat": "usage_usec 1\n"}, 0.5, "cpu.stat"),
        ("0::/gone/with/all\n", {"cpu.max": "50000 100000", "cpu.stat": "usage_usec 1\n"}, 0.5, "cpu.stat"),
        # Both at once: version 2 below "unified".
        ("1:name=systemd:/x\n0::/a\n", {"unified/a/cpu.max": "50000 100000", "unified/a/cpu.stat": "usage_usec 1\n"},
         0.5, "unified/a/cpu.stat"),
        # Version 1: quota and account by one controller, or by two.
        ("4:cpu,cpuacct:/a\n", {**version_1("cpu,cpuacct/a", 25_000, 50_000), "cpu,cpuacct/a/cpuacct.usage": "1\n"},
         0.5, "cpu,cpuacct/a/cpuacct.usage"),
        ("4:cpu:/a\n", {**version_1("cpu/a", 150_000), "cpuacct/a/cpuacct.usage": "1\n"},
         1.5, "cpuacct/a/cpuacct.usage"),
        ("4:cpuset,cpu:/a\n", {**version_1("cpu", 50_000), "cpuacct/cpuacct.usage": "1\n", "cpu/a/tasks": ""},
         0.5, "cpuacct/cpuacct.usage"),
        ("4:cpu:/a\n", version_1("cpu/a", -1), INFINITE, None),
        ("4:cpu:/a\n", version_1("cpu/a", 0), INFINITE, None),
        ("4:memory:/a\n", version_1("cpu/a", 50_000), INFINITE, None),
        # A name of a group may hold colons.
        ("0::/a:b\n", {"a:b/cpu.max": "50000 100000"}, 0.5, None),
    ],
)  # fmt: skip
def test_the_tightest_quota_on_the_way_up_counts_with_its_account(
    groups: str, files: dict[str, str], quota: float, usage: str | None, tmp_path: Path
) -> None:
    proc, mount = tree(tmp_path, groups, files)
    limit = cpu_limit(proc, mount)
    assert (limit.quota, limit.usage) == (quota, usage and mount / usage)
    assert limit.processors == tuple(sorted(os.sched_getaffinity(0)))


@pytest.mark.parametrize(
    ("groups", "files", "quota"),
    [
        ("0::/system/agent\n", {"system/agent/cpu.max": "20000 100000", "system/cpu.max": "max 100000"}, INFINITE),
        ("0::/system/agent\n", {"system/agent/cpu.max": "20000 100000", "system/cpu.max": "50000 100000"}, 0.5),
        ("4:cpu:/agent\n", {**version_1("cpu/agent", 20_000), **version_1("cpu", 150_000)}, 1.5),
        # The root of a container, whose jobs are in it too.
        ("0::/\n", {"cpu.max": "50000 100000"}, 0.5),
        ("0::/hidden/by/it\n", {"cpu.max": "50000 100000"}, 0.5),
    ],
)
def test_the_quota_of_a_service_may_be_left_out_since_jobs_of_other_groups_do_not_have_it(
    groups: str, files: dict[str, str], quota: float, tmp_path: Path
) -> None:
    assert cpu_limit(*tree(tmp_path, groups, files), own=False).quota == quota


def test_without_control_groups_there_is_no_quota(tmp_path: Path) -> None:
    assert cpu_limit(tmp_path / "none", tmp_path / "none").quota == INFINITE


def test_the_time_of_a_group_is_in_microseconds_or_in_nanoseconds(tmp_path: Path) -> None:
    (tmp_path / "cpu.stat").write_text("user_usec 9\nusage_usec 2500000\nodd line of words\n\n")
    (tmp_path / "cpuacct.usage").write_text("2500000000\n")
    assert [cpu_seconds(tmp_path / name) for name in ("cpu.stat", "cpuacct.usage")] == [2.5, 2.5]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("0\n", [0]), ("0-3\n", [0, 1, 2, 3]), ("1,3-4,8\n", [1, 3, 4, 8]), ("", [0, 1, 2]), ("x\n", [0, 1, 2])],
)
def test_processors_that_are_online_are_listed_and_else_counted(
    text: str, numbers: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits.os, "cpu_count", lambda: 3)
    (tmp_path / "online").write_text(text)
    assert online_processors(tmp_path / "online") == numbers
    assert online_processors(tmp_path / "none") == [0, 1, 2]
    monkeypatch.setattr(limits.os, "cpu_count", lambda: None)
    assert online_processors(tmp_path / "none") == [0]
