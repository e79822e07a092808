"""A discrete-event simulation of SPMD applications, process by process, to judge the analytic models by.

It follows the queueing networks of Cremonesi and Gennaro (Figs. 7-9) event by event and shares nothing with their
solution. Each answer comes with the half width of its 99 % confidence interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import simpy
from scipy import stats

from metasched.predictors.analytic.spmd.application import Phase
from metasched.predictors.analytic.spmd.bursts import bursts

Draw = Callable[[float], float]


@dataclass(frozen=True, slots=True)
class Simulated:
    """Mean time of a cycle (s) and half the width of its 99 % confidence interval."""

    cycle_time: float
    half_width: float

    def holds(self, value: float) -> bool:
        """Whether a value lies in the interval."""
        return abs(value - self.cycle_time) <= self.half_width


class System:
    """One application on p processors and d disks.

    Parameters
    ----------
    phase : what runs.
    processors, disks : p and d.
    seed : of the random numbers.
    service : ``"exponential"``, as the models assume, or ``"deterministic"``.
    merged : draw the whole delay z of a burst as one exponential, as (16) assumes, instead of its parts.
    """

    def __init__(
        self,
        phase: Phase,
        processors: int,
        disks: int,
        seed: int,
        *,
        service: str = "exponential",
        merged: bool = False,
    ) -> None:
        self.phase, self.disks, self.merged = phase, disks, merged
        self.random = np.random.default_rng(seed)
        self.draw: Draw = (lambda mean: mean) if service == "deterministic" else self._exponential
        at = bursts(phase, np.array([processors]), np.array([disks]))
        self.groups, self.level = int(at.groups[0]), processors // int(at.groups[0])
        self.delay, self.at_network, self.at_disk = float(at.delay[0]), float(at.network[0]), float(at.io[0])
        self.cpu = phase.parallel_computation / processors + phase.serial_computation
        self.env = simpy.Environment()
        self.network = simpy.Resource(self.env)

    def synchronous(self, cycles: int) -> Simulated:
        """SIO: every cycle begins when the last group has done its part, and cycles are independent."""
        times: list[float] = []

        def program() -> Iterator[Any]:
            for _ in range(cycles):
                start = self.env.now
                yield self.env.all_of([self.env.process(self._computation()) for _ in range(self.groups)])
                yield self.env.timeout(self.draw(self.at_disk))
                times.append(self.env.now - start)

        self.env.run(self.env.process(program()))
        return _interval(np.array(times), 1.0)

    def asynchronous(self, cycles: int, batches: int = 40) -> Simulated:
        """BUS-AIO or CLU-AIO: groups go round on their own; batch means of the rate at which they finish cycles."""
        disks = [simpy.Resource(self.env) for _ in range(self.disks if self.phase.io == "clustered" else 1)]
        ends: list[float] = []

        def group(disk: simpy.Resource) -> Iterator[Any]:
            while True:
                yield from self._computation()
                yield from self._served(disk, self.at_disk)
                ends.append(self.env.now)

        for index in range(self.groups):
            self.env.process(group(disks[index % len(disks)]))
        wanted = int(cycles * self.groups * 1.1)
        while len(ends) < wanted:
            self.env.step()
        settled = np.array(ends[wanted // 11 :: (wanted - wanted // 11) // batches][: batches + 1])
        per_batch = (wanted - wanted // 11) // batches
        return _interval(np.diff(settled) / per_batch, float(self.groups))

    def _computation(self) -> Iterator[Any]:
        """As many computation bursts as happen to lie between two I/O bursts."""
        for _ in range(self.random.geometric(1.0 / self.phase.computation_bursts)):
            yield self.env.timeout(self._burst())
            if self.at_network > 0:
                yield from self._served(self.network, self.at_network)

    def _burst(self) -> float:
        if self.merged:
            return self._exponential(self.delay)
        slowest = max(self.draw(self.cpu) for _ in range(self.level))
        mean_of_slowest = self.cpu * sum(1.0 / i for i in range(1, self.level + 1))
        return slowest + self.draw(self.delay - mean_of_slowest)

    def _served(self, station: simpy.Resource, mean: float) -> Iterator[Any]:
        with station.request() as turn:
            yield turn
            yield self.env.timeout(self.draw(mean))

    def _exponential(self, mean: float) -> float:
        return float(self.random.exponential(mean)) if mean > 0 else 0.0


def _interval(samples: np.ndarray[Any, np.dtype[np.float64]], factor: float) -> Simulated:
    half = stats.t.ppf(0.995, samples.size - 1) * samples.std(ddof=1) / math.sqrt(samples.size)
    return Simulated(factor * float(samples.mean()), factor * float(half))
