"""The hardware of this host: processors by ``lscpu``, clocks by cpufreq, power limits by powercap, speeds of links."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from monitors.sensors.clocks import read_clocks
from monitors.sensors.kernel_files import number_in, number_of, text_of


class Found(NamedTuple):
    """A fact about this host: its name, value and unit, and where it was read."""

    name: str
    value: float
    unit: str
    source: str


def detect(root: Path = Path("/")) -> tuple[str, list[Found]]:
    """The processor's model and the known properties of the host; unknown ones are left out.

    >>> model, found = detect()
    >>> {"cores", "threads"} <= {each.name for each in found} if model else True
    True
    """
    fields = _lscpu(root)
    found = []
    sockets, cores = number_in(fields.get("Socket(s)")), number_in(fields.get("Core(s) per socket"))
    if sockets and cores:
        per_core = number_in(fields.get("Thread(s) per core")) or 1
        found += [Found("sockets", sockets, "1", "lscpu"), Found("cores", sockets * cores, "1", "lscpu")]
        found += [Found("threads", sockets * cores * per_core, "1", "lscpu")]
    cpufreq = root / "sys/devices/system/cpu/cpu0/cpufreq"
    for name, file in (
        ("clock", "base_frequency"),
        ("clock_max", "cpuinfo_max_freq"),
        ("clock_min", "cpuinfo_min_freq"),
    ):
        kilohertz = number_of(cpufreq / file)
        if kilohertz:
            found.append(Found(name, kilohertz / 1000, "MHz", f"cpufreq, {file}"))
    clocks = read_clocks(root)
    if clocks is not None and clocks.holding:
        source = f"cpufreq, {clocks.driver or 'unknown driver'}"
        found.append(Found("clock_held_max", clocks.holding[-1], "MHz", source))
        found.append(Found("clock_held_min", clocks.holding[0], "MHz", source))
    cache = number_in(fields.get("L3 cache"))
    if cache:
        found.append(Found("cache", cache, "B", "lscpu, L3"))
    memory = _read_memory(root / "proc/meminfo")
    if memory:
        found.append(Found("memory", memory, "B", "/proc/meminfo"))
    limits = [
        number_of(zone / "constraint_0_power_limit_uw")
        for zone in sorted((root / "sys/class/powercap").glob("*-rapl:*"))
        if text_of(zone / "name").startswith("package")
    ]
    if limits and all(limits):
        found.append(Found("tdp", sum(limits) / 1e6, "W", "powercap, long-term limits of all packages"))
    speeds = [number_of(link / "speed") for link in (root / "sys/class/net").glob("*") if (link / "device").exists()]
    if max(speeds, default=0) > 0:
        found.append(Found("bandwidth", max(speeds), "Mbit/s", "/sys/class/net, the fastest link"))
    return fields.get("Model name", ""), found


def _lscpu(root: Path) -> dict[str, str]:
    program = shutil.which("lscpu")
    if program is None:
        return {}
    command = [program, "--json", "--bytes", "--sysroot", str(root)]
    done = subprocess.run(  # noqa: S603
        command, capture_output=True, text=True, errors="replace", check=False, env={"LC_ALL": "C"}
    )
    try:
        rows = [*json.loads(done.stdout)["lscpu"]]
    except (ValueError, KeyError):
        return {}
    fields = {}
    while rows:  # newer releases nest what belongs together
        row = rows.pop(0)
        fields[str(row["field"]).rstrip(":")] = str(row.get("data") or "")
        rows += row.get("children", [])
    return fields


def _read_memory(path: Path) -> float:
    rows = [line.split() for line in text_of(path).splitlines()]
    return next((1024 * number_in(row[1]) for row in rows if row[0] == "MemTotal:"), 0.0)
