"""The grid of the stream: three clusters under recorded loads, seven applications whose true times only it knows.

This is an event simulation that replays load timelines of the testbed (``benchmarks.testbed.loading``): it does not
run SimGrid for each job. A job that started on some nodes progresses at every moment at the rate 1/T, where T is the
application's time under the least CPU and the narrowest link of that moment; its time is the integral's end. So what
the monitors average over a run and what the run really met differ, as they do on machines.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from benchmarks.testbed.clusters import ClusterModel
from benchmarks.testbed.loading import Loading
from benchmarks.testbed.timeline import Series, lowest
from metasched.placement.clusters.state import ClusterState
from metasched.placement.loads.forecast import RecordedLoads
from metasched.predictors.columns import ByColumns, Columns
from metasched.predictors.contract import Predictions
from metasched.records import Run

Floats = NDArray[np.float64]
#: The loads are drawn this far (s), and monitors report the averages of the last minute at every minute.
HORIZON, TICK = 90_000.0, 60.0
#: The loads of so many seconds from the start are tried first (s).
NEAR = 2000.0
#: Run-to-run variation of the same job under the same loads (spread of the logarithm).
NOISE = 0.03


@dataclass(frozen=True)
class Application:
    """An application: seconds at its middle size on one reference processor, and how it scales.

    Parameters
    ----------
    name, middle : name, and the N in the middle of its range.
    work, growth : computation at the middle size (s), and its exponent in N.
    serial : part of the computation that every process does.
    volume, sent : data through each link at the middle size (Mbit), and the exponent in N.
    spread : exponent of P in the data through each link: 0 for halo rows, -1 for a part of P, 1 for gathers.
    messages : messages on the critical path for each doubling of P; 0.2 ms each.
    """

    name: str
    middle: float
    work: float
    growth: float
    serial: float
    volume: float
    sent: float
    spread: float
    messages: float

    def time(self, n: ArrayLike, p: ArrayLike, cpu: ArrayLike, bandwidth: ArrayLike) -> Floats:
        """Seconds under conditions that hold all the while (CPU, and Mbit/s)."""
        x, p = np.asarray(n, dtype=np.float64) / self.middle, np.asarray(p, dtype=np.float64)
        computation = self.work * x**self.growth * (self.serial + (1.0 - self.serial) / p) / np.asarray(cpu)
        sends = p > 1
        data = self.volume * x**self.sent * p**self.spread * sends / np.asarray(bandwidth)
        return np.asarray(computation + data + 2e-4 * self.messages * np.log2(p))


APPLICATIONS = {
    application.name: application
    for application in (
        Application("eigen", 2000, 900.0, 3.0, 0.01, 4000.0, 2.0, -0.5, 30_000),
        Application("fft", 8e6, 300.0, 1.1, 0.005, 9000.0, 1.0, -1.0, 500),
        Application("cg", 6000, 500.0, 2.0, 0.005, 900.0, 1.0, 0.5, 20_000),
        Application("md", 6000, 800.0, 2.0, 0.01, 500.0, 1.0, 0.0, 4000),
        Application("poisson", 4000, 600.0, 2.0, 0.002, 600.0, 1.0, 0.0, 10_000),
        Application("is", 2e7, 200.0, 1.0, 0.01, 8000.0, 1.0, -1.0, 400),
        Application("ssor", 5000, 700.0, 2.0, 0.02, 1500.0, 1.0, 0.3, 15_000),
    )
}


@dataclass(frozen=True)
class Truth(ByColumns):
    """What really happens, with the contract of a predictor: only the oracle may ask it."""

    application: Application
    speed: float
    name: str = "truth"

    def _predicted(self, columns: Columns, level: float) -> Predictions:
        n, p, cpu, bandwidth = columns
        time = self.application.time(n, p, cpu * self.speed, bandwidth)
        return Predictions(time, time, time, level)

    def fit(self, runs: Iterable[Run]) -> Truth:
        """Nothing is left to learn."""
        return self

    def learn(self, run: Run) -> None:
        """Nothing is left to learn."""


@dataclass(frozen=True)
class Site:
    """A cluster with its loads: one processor to a node, all nodes on one switch."""

    model: ClusterModel
    cpu: tuple[Series, ...]
    link: tuple[Series, ...]

    @property
    def name(self) -> str:
        """The cluster's name."""
        return self.model.name

    @property
    def size(self) -> int:
        """How many nodes it has."""
        return len(self.cpu)

    @property
    def speed(self) -> float:
        """Speed relative to 1 GFlop/s."""
        return self.model.speed / 1e9

    def measured(self, now: float) -> ClusterState:
        """What the monitors last reported: averages of the minute before the last full minute."""
        end = max(TICK, TICK * np.floor(now / TICK))
        return self.expected(end - TICK, end)

    @cached_property
    def recorded(self) -> tuple[Floats, Floats, Floats]:
        """All that the monitors will report: ends of minutes (t,), average CPU and bandwidth (t, nodes)."""
        end = np.arange(TICK, HORIZON, TICK)
        cpu, link = (np.column_stack([each.mean(end - TICK, end) for each in every]) for every in (self.cpu, self.link))
        return end, np.clip(cpu, 0.01, 1.0), link

    def outlook(self, now: float) -> RecordedLoads:
        """Forecasts from what was reported until now."""
        end, cpu, link = self.recorded
        return RecordedLoads(end, self.nodes, cpu, link, now)

    def expected(self, start: float, end: float) -> ClusterState:
        """The averages over an interval, whether past or to come."""
        return ClusterState.make(
            self.name,
            self.nodes,
            available_cpu=np.clip([float(each.mean(start, end)) for each in self.cpu], 0.01, 1.0),
            available_bandwidth=[float(each.mean(start, end)) for each in self.link],
        )

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """Names of the nodes, unique on the grid."""
        return tuple(f"{self.name}-{node}" for node in self.model.nodes)

    def finish(self, application: Application, n: float, nodes: Sequence[int], start: float, noise: float) -> float:
        """When a job that starts on some nodes is done (s)."""
        span = NEAR
        while (end := self._end(application, n, nodes, (start, start + span), noise)) > start + span:
            span *= 8.0
        return end

    def _end(
        self, application: Application, n: float, nodes: Sequence[int], span: tuple[float, float], noise: float
    ) -> float:
        """When the job is done, right if that is within the span (s) from its start on."""
        cpu, link = (lowest([every[node].between(*span) for node in nodes]) for every in (self.cpu, self.link))
        inside = np.union1d(cpu.times, link.times)
        moments = np.append(span[0], inside[inside > span[0]])
        time = noise * application.time(n, len(nodes), cpu.at(moments) * self.speed, link.at(moments))
        done = np.concatenate(([0.0], np.cumsum(np.diff(moments) / time[:-1])))
        last = int(np.searchsorted(done, 1.0, side="right")) - 1
        return float(moments[last] + (1.0 - done[last]) * time[last])

    def run(self, application: str, n: float, nodes: Sequence[int], start: float, end: float) -> Run:
        """What the monitors say of a finished job."""
        return Run(
            application,
            self.name,
            n,
            len(nodes),
            float(np.clip(min(float(self.cpu[node].mean(start, end)) for node in nodes), 0.01, 1.0)),
            min(float(self.link[node].mean(start, end)) for node in nodes),
            end - start,
            start,
            tuple(self.nodes[node] for node in nodes),
        )


def sites(seed: int, loading: Loading) -> tuple[Site, ...]:
    """Three clusters under one kind of loads: large and slow with a slow network, middling, small and fast."""
    described = (
        ClusterModel("large", 24, 1, 100.0, speed=0.8e9, cache=1e6, balance=0.3),
        ClusterModel("middle", 16, 1, 1000.0, speed=1.0e9, cache=1e6, balance=0.3),
        ClusterModel("small", 8, 1, 1000.0, speed=1.4e9, cache=1e6, balance=0.3),
    )
    made = []
    for index, model in enumerate(described):
        timeline = loading(model, seed + index, HORIZON)
        made.append(Site(model, tuple(timeline.cpu.values()), tuple(timeline.bandwidth.values())))
    return tuple(made)
