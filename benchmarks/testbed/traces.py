"""Loads taken from recorded traces in place of the grid generator.

A folder of traces holds files in the form of loads.csv, plain or gzip; every node found in any of them is one trace.
Traces are dealt out to the processors and links of a cluster, each from a random moment on and from its beginning again
at its end; bandwidths are scaled so that the most that a trace ever saw is the link's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.testbed.clusters import ClusterModel
from benchmarks.testbed.loading import FLOOR, Loading
from benchmarks.testbed.timeline import Floats, Series, Timeline
from metasched.records import InputError
from metasched.store.files.loads import read_loads


@dataclass(frozen=True)
class Trace:
    """One node's recorded loads: sample times (s), available CPU, and share of the best bandwidth it ever had."""

    times: Floats
    cpu: Floats
    share: Floats

    def unroll(self, values: Floats, offset: float, horizon: float) -> Series:
        """The trace from ``offset`` on, repeated until ``horizon``; a sample holds until the next one.

        Examples
        --------
        >>> trace = Trace(np.array([0.0, 10.0]), np.array([1.0, 0.5]), np.array([1.0, 1.0]))
        >>> trace.unroll(trace.cpu, offset=15.0, horizon=20.0).at([0.0, 6.0, 16.0]).tolist()
        [0.5, 1.0, 0.5]
        """
        step = float(np.median(np.diff(self.times)))
        span = float(self.times[-1] - self.times[0]) + step
        laps = np.arange(-1, int(np.ceil((horizon + offset) / span)) + 1)
        times = ((self.times - self.times[0])[None, :] + laps[:, None] * span - offset).ravel()
        first = int(np.searchsorted(times, 0.0, side="right")) - 1
        held = np.tile(values, len(laps))[first:]
        return Series(np.maximum(times[first:], 0.0), np.clip(held, FLOOR, 1.0))


def read_traces(folder: Path) -> list[Trace]:
    """Read all traces of a folder, in the order of file and node names."""
    files = sorted([*folder.glob("*.csv"), *folder.glob("*.csv.gz")])
    if not files:
        raise InputError("no *.csv or *.csv.gz in it, expected files in the form of loads.csv", where=str(folder))
    found = []
    for file in files:
        loads = read_loads(file)
        for name in loads.nodes:
            one = loads.of(name)
            if len(one) < 2 or one.available_bandwidth.max() <= 0:
                raise InputError(f"node {name}: expected two samples or more, and some bandwidth", where=str(file))
            found.append(Trace(one.time, one.available_cpu, one.available_bandwidth / one.available_bandwidth.max()))
    return found


def trace_loading(folder: Path) -> Loading:
    """A loading that replays the traces of a folder."""
    traces = read_traces(folder)

    def loading(cluster: ClusterModel, seed: int, horizon: float) -> Timeline:
        rng = np.random.default_rng(np.random.SeedSequence([seed, *b"traces"]))

        def deal(count: int) -> list[tuple[Trace, float]]:
            order = np.resize(rng.permutation(len(traces)), count)
            dealt = [traces[index] for index in order]
            return [(trace, float(rng.uniform(0.0, np.ptp(trace.times)))) for trace in dealt]

        cpu = {
            processor: trace.unroll(trace.cpu, offset, horizon)
            for processor, (trace, offset) in zip(cluster.processors, deal(len(cluster.processors)), strict=True)
        }
        bandwidth = {}
        for node, (trace, offset) in zip(cluster.nodes, deal(cluster.node_count), strict=True):
            share = trace.unroll(trace.share, offset, horizon)
            bandwidth[node] = Series(share.times, share.values * cluster.bandwidth)
        return Timeline(cpu, bandwidth, horizon)

    return loading
