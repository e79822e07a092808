"""Records the ground truth with SimGrid.

``python -m benchmarks.cloud.record [CLOUD ...]`` writes runs.csv and probe.csv, or only the rows of some clouds.
Each program runs on one server with 2, 4 and 8 processes, as a user would profile it, and then on clusters of 2, 4 and
8 servers with up to 64. The hardware description comes from a probe, as a user's would: messages between two servers.
"""

from __future__ import annotations

import csv
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
SPEED = 1e9
#: Bandwidth and latency of a server's link, and what FLOPS and BYTES are multiplied by there. The model was made while
#: looking at the first; the second, recorded afterwards, showed that a full link must be probed too.
CLOUDS = {"gigabit": ("1Gbps", "30us", 1.0, 1.0), "ten-gigabit": ("10Gbps", "12us", 0.3, 2.0)}
#: FLOPS, BYTES and ITERATIONS of each program; simulating an all-to-all takes long.
PROGRAMS = {
    "ring": (400e6, 150e3, 40),
    "grid": (400e6, 300e3, 40),
    "alltoall": (400e6, 12e6, 8),
    "butterfly": (400e6, 30e3, 40),
    "tree": (400e6, 60e3, 40),
    "scattered": (400e6, 200e3, 40),
    "pipeline": (400e6, 300e3, 40),
}
CORES, SERVERS = (4, 8), (2, 4, 8)
#: Messages under way at once in the probe: one alone, and enough to fill the link.
PAIRS = (1, 8)
#: Speeds of the servers, in turn; the first is the one profiled on.
MIXES = {"equal": (1.0,), "mixed": (1.0, 0.75)}


def platform(cloud: str, servers: int, cores: int, mix: tuple[float, ...]) -> str:
    """A switch with servers around it, full-duplex links, memory for what stays within a server."""
    bandwidth, latency, *_ = CLOUDS[cloud]
    lines = [
        "<?xml version='1.0'?>",
        '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">',
        '<platform version="4.1"><zone id="cloud" routing="Full">',
    ]
    for index in range(servers):
        speed = SPEED * mix[index % len(mix)]
        lines.append(f'<host id="s{index}" speed="{speed:g}f" core="{cores}"/>')
        lines.append(f'<link id="m{index}" bandwidth="4GBps" latency="0.5us" sharing_policy="SHARED"/>')
        lines.append(f'<link id="l{index}" bandwidth="{bandwidth}" latency="{latency}" sharing_policy="SPLITDUPLEX"/>')
    for a in range(servers):
        lines.append(f'<route src="s{a}" dst="s{a}"><link_ctn id="m{a}"/></route>')
        for b in range(a + 1, servers):
            links = f'<link_ctn id="l{a}" direction="UP"/><link_ctn id="l{b}" direction="DOWN"/>'
            lines.append(f'<route src="s{a}" dst="s{b}" symmetrical="NO">{links}</route>')
            links = f'<link_ctn id="l{b}" direction="UP"/><link_ctn id="l{a}" direction="DOWN"/>'
            lines.append(f'<route src="s{b}" dst="s{a}" symmetrical="NO">{links}</route>')
    return "\n".join([*lines, "</zone></platform>"])


def run(binary: Path, cloud: str, servers: int, cores: int, mix: str, processes: int, *arguments: str) -> list[float]:
    """One simulated run; processes fill the servers block by block, as evenly as they can."""
    with tempfile.TemporaryDirectory() as folder:
        description, hosts = Path(folder, "platform.xml"), Path(folder, "hosts")
        description.write_text(platform(cloud, servers, cores, MIXES[mix]))
        blocks = [processes // servers + (index < processes % servers) for index in range(servers)]
        hosts.write_text("".join(f"s{index}\n" * block for index, block in enumerate(blocks)))
        done = subprocess.run(
            [
                *("smpirun", "-np", str(processes), "-platform", str(description), "-hostfile", str(hosts)),
                *("--cfg=smpi/simulate-computation:no", "--cfg=surf/precision:1e-9", "--log=root.thres:critical"),
                *(str(binary), *arguments),
            ],
            capture_output=True,
            text=True,
            check=True,
        )
    return [float(part) for part in done.stdout.split()]


def plan() -> Iterator[dict[str, Any]]:
    """Every run to record."""
    for cloud, application, cores in product(CLOUDS, PROGRAMS, CORES):
        for processes in (2, 4, 8):
            yield _row(cloud, application, "train", "equal", 1, cores, processes)
        for servers, mix, processes in product(SERVERS, MIXES, (8, 16, 32, 64)):
            yield _row(cloud, application, "predict", mix, servers, cores, processes)


def _row(
    cloud: str, application: str, phase: str, mix: str, servers: int, cores: int, processes: int
) -> dict[str, Any]:
    return {
        "cloud": cloud,
        "application": application,
        "phase": phase,
        "mix": mix,
        "servers": servers,
        "cores": cores,
        "processes": processes,
    }


def record(clouds: Sequence[str]) -> None:
    """Compile, run, write the files."""
    with tempfile.TemporaryDirectory() as folder:
        binary = Path(folder, "patterns")
        subprocess.run(["smpicc", "-O2", str(HERE / "patterns.c"), "-o", str(binary), "-lm"], check=True)

        def measure(row: dict[str, Any]) -> dict[str, Any]:
            flops, size, iterations = PROGRAMS[row["application"]]
            _, _, more_flops, more_bytes = CLOUDS[row["cloud"]]
            arguments = f"{flops * more_flops:g}", f"{size * more_bytes:g}", str(iterations)
            place = row["cloud"], row["servers"], row["cores"], row["mix"], row["processes"]
            found = run(binary, *place, row["application"], *arguments)
            names = ("sends", "message_size", "mean_distance", "waiting_time", "exchanges", "execution_time")
            print(row, found[-1], file=sys.stderr)
            return row | {name: f"{value:.6g}" for name, value in zip(names, found, strict=True)}

        with ThreadPoolExecutor(2) as pool:
            rows = list(pool.map(measure, (row for row in plan() if row["cloud"] in clouds)))
        probes = [
            {"cloud": cloud, "pairs": pairs, "bytes": f"{size:g}", "seconds": f"{seconds:.6g}"}
            for cloud, pairs, size in product(clouds, PAIRS, np.geomspace(500, 500e3, 10).round())
            for seconds in run(binary, cloud, 2, 8, "equal", 2 * pairs, "probe", "1", f"{size:g}", "20")
        ]
    if rows:
        _write(HERE / "runs.csv", rows, clouds)
    _write(HERE / "probe.csv", probes, clouds)


def _write(path: Path, rows: list[dict[str, Any]], clouds: Sequence[str]) -> None:
    """Write rows in place of those of the same clouds."""
    if path.exists() and set(clouds) != set(CLOUDS):
        with path.open(encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if row["cloud"] not in clouds] + rows
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    record(sys.argv[1:] or list(CLOUDS))
