"""A stream of jobs through the grid: arrivals, first-come-first-served queues, starts and ends, under one policy."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from benchmarks.placement.grid import APPLICATIONS, NOISE, Site
from metasched.records import Run


@dataclass(frozen=True)
class Job:
    """A job as it is submitted; its noise is what makes two runs of it differ."""

    number: int
    application: str
    problem_size: float
    arrival: float
    noise: float


@dataclass(frozen=True)
class Choice:
    """Where a job should go; nodes where it can start at once, and how long it is thought to take (s)."""

    site: int
    processors: int
    nodes: tuple[int, ...] = ()
    thought: float = 0.0


@dataclass(frozen=True)
class Running:
    """A job that runs."""

    job: Job
    nodes: tuple[int, ...]
    start: float
    end: float
    thought: float


@dataclass
class Queue:
    """One cluster: free nodes, running jobs, and those that wait in the order they came."""

    site: Site
    free: set[int]
    running: list[Running] = field(default_factory=list)
    waiting: list[tuple[Job, Choice]] = field(default_factory=list)


class Policy(Protocol):
    """Chooses for each job, picks nodes when a waiting job starts, and may learn from those that ended."""

    def choose(self, job: Job, queues: Sequence[Queue], now: float) -> Choice:
        """Where a job goes that was just submitted."""
        ...

    def pick(self, job: Job, queue: Queue, processors: int, now: float) -> tuple[int, ...]:
        """The free nodes that a job takes that waited until now."""
        ...

    def ended(self, job: Job, run: Run, wait: float) -> None:
        """A job ended."""
        ...


def jobs(count: int, seed: int, interval: float) -> list[Job]:
    """A random stream: applications alike often, sizes from half to twice the middle, Poisson arrivals."""
    random = np.random.default_rng(seed)
    names = list(APPLICATIONS)
    arrivals = 3600.0 + np.cumsum(random.exponential(interval, count))
    return [
        Job(
            number,
            (name := names[int(random.integers(len(names)))]),
            float(round(APPLICATIONS[name].middle * 2.0 ** random.uniform(-1, 1))),
            float(arrival),
            float(random.lognormal(0.0, NOISE)),
        )
        for number, arrival in enumerate(arrivals)
    ]


def simulate(stream: Sequence[Job], grid: Sequence[Site], policy: Policy) -> np.ndarray:
    """Completion (wait plus execution time) of each job: array of shape (jobs,)."""
    queues = [Queue(site, set(range(site.size))) for site in grid]
    completion = np.empty(len(stream))
    ends: list[tuple[float, int, int, Running]] = []

    def start(job: Job, number: int, nodes: tuple[int, ...], now: float, thought: float) -> None:
        queue = queues[number]
        end = queue.site.finish(APPLICATIONS[job.application], job.problem_size, nodes, now, job.noise)
        running = Running(job, nodes, now, end, thought)
        queue.free -= set(nodes)
        queue.running.append(running)
        heapq.heappush(ends, (end, job.number, number, running))

    def end_one() -> None:
        now, _, number, running = heapq.heappop(ends)
        queue, job = queues[number], running.job
        queue.running.remove(running)
        queue.free |= set(running.nodes)
        completion[job.number] = now - job.arrival
        run = queue.site.run(job.application, job.problem_size, running.nodes, running.start, now)
        policy.ended(job, run, running.start - job.arrival)
        while queue.waiting and queue.waiting[0][1].processors <= len(queue.free):
            first, choice = queue.waiting.pop(0)
            start(first, number, policy.pick(first, queue, choice.processors, now), now, choice.thought)

    for job in stream:
        while ends and ends[0][0] <= job.arrival:
            end_one()
        choice = policy.choose(job, queues, job.arrival)
        queue = queues[choice.site]
        if not queue.waiting and choice.processors <= len(queue.free):
            nodes = choice.nodes or policy.pick(job, queue, choice.processors, job.arrival)
            start(job, choice.site, nodes, job.arrival, choice.thought)
        else:
            queue.waiting.append((job, choice))
    while ends:
        end_one()
    return completion
