"""What sensors would have seen: samples of the loads with their errors, and averages over a run made from them.

A sample at time t is the average over the period that ends there. A run's average weighs the samples by the part of
their period that lies in the run; so runs.csv says nothing that could not be worked out from loads.csv.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.testbed.clusters import ClusterModel, node_of
from benchmarks.testbed.timeline import Floats, Series, Timeline

SENSOR_ERROR = 0.02  # standard deviation of a sample, relative
LEAST_CPU = 0.01
ROUNDING = 1e-9  # of integrals


@dataclass(frozen=True)
class Samples:
    """What the monitors recorded.

    Parameters
    ----------
    period : seconds between two samples.
    digits : decimals that bandwidths are recorded with.
    times : array of shape (n,), ends of the sampled periods (s).
    cpu : for each processor an array of shape (n,).
    bandwidth : for each node an array of shape (n,), Mbit/s.
    """

    period: float
    digits: int
    times: Floats
    cpu: Mapping[str, Floats]
    bandwidth: Mapping[str, Floats]

    def average(self, samples: Floats, start: float, end: float) -> float:
        """Average of a recorded quantity over a run."""
        first = max(int(start // self.period), 0)
        last = min(int(np.ceil(end / self.period)), len(samples))
        bounds = np.clip(np.arange(first, last + 1) * self.period, start, end)
        return float(np.average(samples[first:last], weights=np.diff(bounds)))

    def minima(self, processors: tuple[str, ...], start: float, end: float) -> tuple[float, float]:
        """min_avg_avail_cpu and min_avg_avail_bw of a run: averages for each processor and link, then the smallest."""
        cpu = min(self.average(self.cpu[name], start, end) for name in processors)
        nodes = dict.fromkeys(map(node_of, processors))
        return cpu, min(self.average(self.bandwidth[node], start, end) for node in nodes)


def watch(cluster: ClusterModel, timeline: Timeline, until: float, rng: np.random.Generator) -> Samples:
    """Sample the loads up to a moment, with the sensors' errors, in the precision they are recorded with."""
    count = int(np.ceil(until / cluster.sample_period))
    ends: Floats = np.arange(1.0, count + 1.0) * cluster.sample_period

    def sample(series: Series, most: float, least: float, digits: int) -> Floats:
        true = series.mean(ends - cluster.sample_period, ends)
        seen = true * (1.0 + rng.normal(0.0, SENSOR_ERROR, len(ends)))
        idle = true >= most * (1.0 - ROUNDING)  # an unloaded resource reads as such: nothing disturbs the measurement
        return np.round(np.clip(np.where(idle, most, seen), least, most), digits)

    cpu = {name: sample(series, 1.0, LEAST_CPU, 3) for name, series in timeline.cpu.items()}
    digits = 2 if cluster.bandwidth <= 100.0 else 1
    bandwidth = {
        node: sample(series, cluster.bandwidth, 10.0**-digits, digits) for node, series in timeline.bandwidth.items()
    }
    return Samples(cluster.sample_period, digits, ends, cpu, bandwidth)


def write_loads(samples: Samples, path: Path) -> None:
    """Write loads.csv.gz: time, node, available_cpu, available_bandwidth; a row for each processor and sample."""
    rows = ["time,node,available_cpu,available_bandwidth"]
    for index, time in enumerate(samples.times):
        rows.extend(
            f"{time:g},{name},{cpu[index]:.3f},{samples.bandwidth[node_of(name)][index]:.{samples.digits}f}"
            for name, cpu in samples.cpu.items()
        )
    with path.open("wb") as raw, gzip.GzipFile("", "wb", compresslevel=9, fileobj=raw, mtime=0) as file:
        file.write(("\n".join(rows) + "\n").encode())
