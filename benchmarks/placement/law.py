"""What can be reached without knowing the loads to come: a policy that knows the law by which random loads are drawn.

It sees which loads are there and since when, better than any monitor does, and draws futures from the true law: loads
that end, and new ones. Sets of nodes are judged by the mean time of the true model over these futures, moment by moment
as the simulation goes. Nobody can know more but the future itself, so how far it stays behind the oracle is what no
forecast can bring back; only the choice of sets (the first P of three orders of the nodes) is not exhaustive.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.placement.grid import APPLICATIONS, HORIZON, Floats, Site, sites
from benchmarks.placement.policies import Ranked, oracle
from benchmarks.placement.stream import Choice, Job, Queue, jobs, simulate
from benchmarks.testbed import loading
from metasched.records import Run

#: Futures drawn, their steps and how long one is (s), and the steps over which nodes are put in order.
FUTURES, STEPS, STEP, ORDERS = 64, 160, 15.0, (4, 20, 80)
COUNT, INTERVAL, SEEDS = 200, 90.0, (1, 2, 3, 4, 5, 6)


class Futures:
    """Draws what nodes will have to spare: arrays of shape (futures, nodes, steps).

    Parameters
    ----------
    loads : of each node: (start, end, share); ends to come do not count.
    rate : new loads of a node in a second.
    share : between which shares they take.
    """

    def __init__(self, loads: loading.Loads, rate: float, share: tuple[float, float], seed: int) -> None:
        self._loads = [np.array(each).reshape(-1, 3) for each in loads]
        self._rate, self._share = rate, share
        self._random = np.random.default_rng(seed)

    def draw(self, now: float) -> Floats:
        """Futures from a moment on."""
        random, (least, most) = self._random, np.log(loading.STAY)
        moment = STEP * (np.arange(STEPS) + 0.5)
        demand = np.zeros((FUTURES, len(self._loads), STEPS))
        rivals = np.zeros_like(demand)
        for node, loads in enumerate(self._loads):
            for start, _, share in loads[(loads[:, 0] <= now) & (loads[:, 1] > now)]:
                low = np.log(max(now - start, loading.STAY[0]))
                there = moment < start + np.exp(random.uniform(low, most, FUTURES))[:, None] - now
                demand[:, node] += share * there
                rivals[:, node] += there
        count = random.poisson(self._rate * STEP * STEPS, demand.shape[:2])
        for future, node in np.argwhere(count > 0):
            for _ in range(count[future, node]):
                start, stay = random.uniform(0, STEP * STEPS), np.exp(random.uniform(least, most))
                there = slice(int(start / STEP), int(min((start + stay) / STEP, STEPS)))
                demand[future, node, there] += random.uniform(*self._share)
                rivals[future, node, there] += 1
        return np.where(rivals > 0, np.maximum(1.0 - demand, 1.0 / (1.0 + rivals)), 1.0)


class Lawful(Ranked):
    """The least mean completion over futures drawn from the true law."""

    def __init__(self, grid: Sequence[Site], seed: int) -> None:
        super().__init__(oracle(grid).predictors)
        self._sites = list(grid)
        self._futures = []
        for index, site in enumerate(grid):
            cpu, network = loading.random_loads(site.model, seed + index, HORIZON)
            self._futures.append(
                (
                    Futures(cpu, loading.CPU_SET / loading.EPOCH, loading.CPU_SHARE, seed),
                    Futures(network, 2.0 * loading.PAIR_SET / loading.EPOCH, loading.NETWORK_SHARE, seed),
                )
            )
        self._drawn: tuple[float, dict[int, tuple[Floats, Floats]]] = (-1.0, {})

    def choose(self, job: Job, queues: Sequence[Queue], now: float) -> Choice:
        """The best of starting at once on free nodes and of waiting for more, on every cluster."""
        found: list[tuple[float, Choice]] = []
        for number, queue in enumerate(queues):
            if queue.free and not queue.waiting:
                waits = np.zeros(len(queue.free))
                for p, (time, nodes) in self._judged(job, number, sorted(queue.free), waits, now).items():
                    found.append((time, Choice(number, p, nodes, time)))
            if queue.running:
                waits = self._wait(queue, now).at(np.arange(1, queue.site.size + 1))
                for p, (time, _) in self._judged(job, number, list(range(queue.site.size)), waits, now).items():
                    found.append((float(waits[p - 1]) + time, Choice(number, p, (), time)))
        return min(found, key=lambda each: each[0])[1]

    def pick(self, job: Job, queue: Queue, processors: int, now: float) -> tuple[int, ...]:
        """The best free nodes for the number of processors chosen before."""
        number, nodes = self._sites.index(queue.site), sorted(queue.free)
        return self._judged(job, number, nodes, np.zeros(len(nodes)), now)[processors][1]

    def ended(self, job: Job, run: Run, wait: float) -> None:
        """Nothing is left to learn."""

    def _judged(
        self, job: Job, number: int, nodes: list[int], waits: Floats, now: float
    ) -> dict[int, tuple[float, tuple[int, ...]]]:
        """For each number of processors the least mean time and its nodes, when it starts after that number's wait."""
        if self._drawn[0] != now:
            self._drawn = now, {}
        if number not in self._drawn[1]:
            cpu, network = (each.draw(now) for each in self._futures[number])
            self._drawn[1][number] = cpu, network * self._sites[number].model.bandwidth
        cpu, link = (each[:, nodes] for each in self._drawn[1][number])
        first = np.minimum((np.round(waits / 60.0) * 60.0 / STEP).astype(int), STEPS - 1)
        best: dict[int, tuple[float, tuple[int, ...]]] = {}
        for begin in np.unique(first).tolist():
            for steps in ORDERS:
                order = np.argsort(-cpu[:, :, begin : begin + steps].mean(axis=(0, 2)), kind="stable")
                least, narrowest = (np.minimum.accumulate(each[:, order, begin:], axis=1) for each in (cpu, link))
                for p in (np.flatnonzero(first == begin) + 1).tolist():
                    time = self._mean_time(job, number, p, least[:, p - 1], narrowest[:, p - 1])
                    if p not in best or time < best[p][0]:
                        best[p] = time, tuple(nodes[index] for index in order[:p].tolist())
        return best

    def _mean_time(self, job: Job, number: int, processors: int, cpu: Floats, link: Floats) -> float:
        """Mean over futures of the time until the work is done; arrays of shape (futures, steps)."""
        application, speed = APPLICATIONS[job.application], self._sites[number].speed
        time = application.time(job.problem_size, processors, cpu * speed, link)
        done = np.cumsum(STEP / time, axis=1)
        over, every = done >= 1.0, np.arange(len(done))
        last = np.where(over.any(axis=1), over.argmax(axis=1), done.shape[1] - 1)
        before = np.where(over.any(axis=1), done[every, last] - STEP / time[every, last], done[:, -1])
        begun = np.where(over.any(axis=1), last, done.shape[1]) * STEP
        return float((begun + (1.0 - before) * time[every, last]).mean())


def main(console: Console) -> None:
    """Print how far behind the oracle those stay that do not know the loads to come, with the true model."""
    table = Table(title=f"{COUNT} jobs under random loads, true model: mean completion over the oracle's")
    for heading in ("seed", "knows the law of the loads", "forecasts", "measured loads"):
        table.add_column(heading, justify="right")
    every = []
    for seed in SEEDS:
        grid = sites(seed, loading.LOADINGS["random"])
        stream, truth = jobs(COUNT, seed, INTERVAL), oracle(grid)
        ideal = simulate(stream, grid, truth).mean()
        policies = (
            Lawful(grid, seed),
            Ranked(truth.predictors, lambda site, now: site.outlook(now)),
            Ranked(truth.predictors),
        )
        every.append([simulate(stream, grid, policy).mean() / ideal - 1.0 for policy in policies])
        table.add_row(str(seed), *(f"{each:+.1%}" for each in every[-1]))
    table.add_row("mean", *(f"{each:+.1%}" for each in np.mean(every, axis=0)))
    console.print(table)


if __name__ == "__main__":
    main(Console(width=120))
