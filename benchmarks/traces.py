"""Real traces of hosts and links as benchmarks read them: a folder with ``host-load/`` and ``network/`` in it.

Nothing of the traces is kept in the project. Each reader gives a list of series in [0, 1] (available CPU) or Mbit/s.
"""

from __future__ import annotations

import csv
import gzip
import tarfile
from collections import defaultdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: Seed of the order of PlanetLab's series, and which of that order design and which judge.
ORDER, DESIGN, JUDGED = 11, range(2000), range(2000, 3000)


def places(total: int, which: range) -> NDArray[np.intp]:
    """The places of some of ``total`` series: those of two ranges that have nothing in common are different series."""
    return np.sort(np.random.default_rng(ORDER).permutation(total)[which.start : which.stop])


def planetlab(folder: Path, which: range) -> list[Floats]:
    """Some of the virtual machines of 2011, in an order drawn at random: one day, a sample in 5 minutes."""
    with tarfile.open(folder / "host-load" / "planetlab-cpu-2011.tar.gz") as archive:
        members = sorted((member for member in archive if member.isfile()), key=lambda member: member.name)
        texts = (archive.extractfile(members[index]) for index in places(len(members), which))
        return [1 - np.array(text.read().split(), dtype=float) / 100 for text in texts if text is not None]


def ec2(folder: Path) -> list[Floats]:
    """Cloud servers: 14 days, a sample in 5 minutes."""
    series = []
    for path in sorted((folder / "host-load").glob("ec2_cpu_utilization_*.csv")):
        with path.open(encoding="utf-8") as file:
            series.append(1 - np.array([float(row["value"]) for row in csv.DictReader(file)]) / 100)
    return series


def workstation(folder: Path) -> list[Floats]:
    """The eight cores of a workstation: 70 minutes, a sample a second."""
    lines = (folder / "host-load" / "workstation-1hz.txt").read_text(encoding="utf-8").splitlines()
    loads = [line.split("load:")[1].split() for line in lines if "load:" in line]
    return list(1 - np.array(loads, dtype=float).T)


def regions(folder: Path, least: int = 300) -> list[Floats]:
    """Throughput between pairs of cloud regions, a sample a second; pairs with at least ``least`` samples."""
    pairs: dict[tuple[str, str], list[float]] = defaultdict(list)
    path = folder / "network" / "cloudpilot_iperf3_baseline_1s.csv.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["warmup_omitted"] != "1":
                pairs[row["src"], row["dst"]].append(float(row["sent_bps"]) / 1e6)
    return [np.array(values) for values in pairs.values() if len(values) >= least]


def everything(folder: Path, which: range) -> dict[str, list[Floats]]:
    """All four sets by name, of PlanetLab only some."""
    return {
        "PlanetLab 2011": planetlab(folder, which),
        "EC2": ec2(folder),
        "workstation 1 Hz": workstation(folder),
        "cloud regions": regions(folder),
    }
