"""The processor limits of the control groups of this process: :func:`cpu_limit`, for versions 1 and 2.

A container sees the whole host's counters but may use less: a quota caps its processor time, a cpuset its processors.
Every group up to the root can hold a tighter limit than the one below it, so all of them are read.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
ONLINE = Path("/sys/devices/system/cpu/online")
MOUNT = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class CpuLimit:
    """The limits of this process.

    Parameters
    ----------
    processors : numbers of the processors it may run on.
    quota : processors' worth of time for all of its group together; infinite where there is none.
    usage : file with the group's processor time so far, of the group whose quota is the tightest; None without quota.
    """

    processors: tuple[int, ...]
    quota: float
    usage: Path | None


def cpu_limit(proc: Path = PROC, mount: Path = MOUNT, *, own: bool = True) -> CpuLimit:
    """Read the limits that hold for this process.

    Parameters
    ----------
    proc, mount : where the kernel's process files and the control groups are mounted.
    own : whether the quota of the group that this process is in counts. It holds for its children; but one of a service
        holds for this service alone, and not for the jobs of the node. The root of a container always counts.
    """
    groups = _groups(proc)
    pairs = [(folder, folder) for root in (mount, mount / "unified") for folder in _upwards(root, groups.get(""), own)]
    accounts = next((mount / name for name in ("cpu,cpuacct", "cpuacct") if (mount / name).is_dir()), mount)
    for name in ("cpu,cpuacct", "cpu"):
        folders = _upwards(mount / name, groups.get("cpu"), own)
        pairs += [(folder, accounts / folder.relative_to(mount / name)) for folder in folders]
    limits = [(quota, account) for folder, account in pairs if (quota := _quota(folder)) is not None]
    quota, account = min(limits, default=(float("inf"), None), key=lambda limit: limit[0])
    return CpuLimit(tuple(sorted(os.sched_getaffinity(0))), quota, _usage_file(account) if account else None)


def online_processors(online: Path = ONLINE) -> list[int]:
    r"""Numbers of the host's processors that are online, of which alone the kernel has accounts, in their order.

    Parameters
    ----------
    online : the file in which the kernel lists them.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "online").write_text("0-2,5\n")
    ...     online_processors(Path(folder, "online"))
    [0, 1, 2, 5]
    """
    try:
        parts = [part.split("-") for part in online.read_text(encoding="ascii").strip().split(",")]
        return [number for part in parts for number in range(int(part[0]), int(part[-1]) + 1)]
    except (OSError, ValueError):
        return list(range(os.cpu_count() or 1))


def cpu_seconds(usage: Path) -> float:
    """Processor time a group has used so far (s), from its ``cpu.stat`` (v2) or ``cpuacct.usage`` (v1)."""
    text = usage.read_text(encoding="ascii")
    if usage.name == "cpuacct.usage":
        return int(text) / 1e9
    fields = dict(line.split() for line in text.splitlines() if len(line.split()) == 2)
    return int(fields["usage_usec"]) / 1e6


def _groups(proc: Path) -> dict[str, str]:
    """Path of this process's group by controller; the empty name is version 2."""
    try:
        lines = (proc / "self" / "cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    parts = (line.split(":", 2) for line in lines if line.count(":") >= 2)
    return {name: path for _, names, path in parts for name in names.split(",")}


def _upwards(mount: Path, group: str | None, own: bool) -> list[Path]:
    """The group's own folder and all above it up to the mount; the mount alone where a container hides the path."""
    if group is None or not mount.is_dir():
        return []
    relative = Path(group.lstrip("/"))
    if ".." in relative.parts:
        return [mount]
    parts = (relative, *relative.parents) if own or not relative.parts else relative.parents
    return [path for part in parts if (path := mount / part).is_dir()]


def _quota(folder: Path) -> float | None:
    """Processors' worth of time, or None where the folder sets no limit."""
    try:
        if (folder / "cpu.max").exists():
            allowed, period = (folder / "cpu.max").read_text(encoding="ascii").split()
            return None if allowed == "max" else int(allowed) / int(period)
        allowed = (folder / "cpu.cfs_quota_us").read_text(encoding="ascii")
        period = (folder / "cpu.cfs_period_us").read_text(encoding="ascii")
        return int(allowed) / int(period) if int(allowed) > 0 else None
    except (OSError, ValueError):
        return None


def _usage_file(account: Path) -> Path | None:
    for path in (account / "cpu.stat", account / "cpuacct.usage"):
        try:
            cpu_seconds(path)
        except (OSError, KeyError, ValueError):  # version 1 has a cpu.stat too, without the time used
            continue
        return path
    return None
