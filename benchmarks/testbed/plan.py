"""What a campaign will run, where and when, before anything has run under load.

A run's start must not depend on how long the runs before it turned out, or they could not be simulated side by side.
So each run is given a slot that it cannot outgrow: were all its processors and links at every moment as slow as the
slowest of them, work that takes T on idle machines would be done when the integral of that lowest share reaches T.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.testbed.applications import ApplicationModel
from benchmarks.testbed.clusters import ClusterModel, node_of
from benchmarks.testbed.loading import Loading
from benchmarks.testbed.timeline import Series, Timeline, lowest

#: Section 3: runs on 1, 2, 4 and 8 processors that the model is trained on.
TRAINING = {1: 20, 2: 20, 4: 10, 8: 10}
PREDICTIONS = 160
INSIDE, BELOW = 0.5, 0.15  # shares of the predictions inside and below the training range; the rest lies above
BELOW_FACTOR, ABOVE_FACTOR = 1.5, 2.0
WARM_UP = 600.0  # seconds that monitors watch before the first run
PAUSE = 20.0  # mean seconds between two runs
SLACK = 1.25  # sharing between unequal links is not quite fair, so runs may do a little worse than that


@dataclass(frozen=True)
class Request:
    """A run that is wanted: size and processors."""

    phase: str
    problem_size: int
    processors: tuple[str, ...]
    processes_per_node: int | None = None


def processor_counts(cluster: ClusterModel) -> list[int]:
    """Processor counts that predictions are asked for: those of training and up to the whole cluster.

    Examples
    --------
    >>> from benchmarks.testbed.clusters import CLUSTERS
    >>> processor_counts(CLUSTERS["woodcrest"])
    [2, 4, 6, 8, 12, 16, 24]
    """
    return [count for count in (2, 4, 6, 8, 12, 16, 24, 32) if count <= len(cluster.processors)]


def place(cluster: ClusterModel, count: int, rng: np.random.Generator) -> tuple[str, ...]:
    """Draw processors for a job: nodes at random, one process on each before any takes a second.

    Returns
    -------
    Names of ``count`` processors, that of rank 0 first.
    """
    order = rng.permutation(cluster.node_count)
    rounds = [
        cluster.processors[first : first + cluster.node_count]
        for first in range(0, len(cluster.processors), cluster.node_count)
    ]
    return tuple(names[index] for names in rounds for index in order)[:count]


def requests(
    application: ApplicationModel, cluster: ClusterModel, rng: np.random.Generator, predictions: int = PREDICTIONS
) -> list[Request]:
    """Draw the runs of a campaign, training first; problem sizes are uniform in their logarithm."""

    def size(low: float, high: float) -> int:
        return round(float(np.exp(rng.uniform(np.log(low), np.log(high)))))

    small, large = application.smallest, application.largest
    wanted = [
        Request("train", size(small, large), place(cluster, count, rng))
        for count, times in TRAINING.items()
        for _ in range(times)
    ]
    ranges = [(small, large), (small / BELOW_FACTOR, small), (large, large * ABOVE_FACTOR)]
    for _ in range(predictions):
        where = ranges[rng.choice(3, p=(INSIDE, BELOW, 1.0 - INSIDE - BELOW))]
        count = int(rng.choice(processor_counts(cluster)))
        wanted.append(Request("predict", size(*where), place(cluster, count, rng)))
    return wanted


def layouts(cluster: ClusterModel) -> list[tuple[int, int]]:
    """Processes and processes per node, powers of two, as far as nodes and processors go.

    Examples
    --------
    >>> from benchmarks.testbed.clusters import MULTICORE
    >>> len(layouts(MULTICORE["quad"])), layouts(MULTICORE["quad"])[-1]
    (12, (32, 4))
    """
    powers = [2**step for step in range(10)]
    return [
        (count, per_node)
        for count in powers
        for per_node in powers
        if per_node <= min(count, cluster.processors_per_node) and count // per_node <= cluster.node_count
    ]


def laid_out(cluster: ClusterModel, count: int, per_node: int, rng: np.random.Generator) -> tuple[str, ...]:
    """Draw nodes at random and fill each with ``per_node`` processes of consecutive ranks."""
    nodes = rng.permutation(cluster.node_count)[: count // per_node]
    return tuple(f"{cluster.nodes[node]}.{core}" for node in nodes for core in range(per_node))


def laid_out_requests(
    application: ApplicationModel, cluster: ClusterModel, rng: np.random.Generator, predictions: int
) -> list[Request]:
    """Draw the runs of a campaign whose layouts are drawn too; as many to train as in the paper, on half of it."""
    small, large = application.smallest, application.largest
    every = layouts(cluster)
    few = [layout for layout in every if layout[0] <= len(cluster.processors) // 2]
    wanted = []
    for number in range(sum(TRAINING.values()) + predictions):
        training = number < sum(TRAINING.values())
        shrink, grow = (1.0, 1.0) if training or rng.random() < INSIDE else (BELOW_FACTOR, ABOVE_FACTOR)
        size = round(float(np.exp(rng.uniform(np.log(small / shrink), np.log(large * grow)))))
        known = few if training else every
        count, per_node = known[rng.integers(len(known))]
        chosen = laid_out(cluster, count, per_node, rng)
        wanted.append(Request("train" if training else "predict", size, chosen, per_node))
    return wanted


def lowest_share(cluster: ClusterModel, timeline: Timeline, processors: tuple[str, ...]) -> Series:
    """Smallest share, at every moment, of what the processors and their links have when idle."""
    links = [timeline.bandwidth[node] for node in dict.fromkeys(map(node_of, processors))]
    relative = [Series(link.times, link.values / cluster.bandwidth) for link in links]
    return lowest([*(timeline.cpu[name] for name in processors), *relative])


def latest_end(share: Series, start: float, work: float) -> float:
    """Moment at which the integral of ``share`` from ``start`` on reaches ``work`` seconds.

    Examples
    --------
    >>> latest_end(Series(np.array([0.0, 10.0]), np.array([1.0, 0.5])), start=5.0, work=10.0)
    20.0
    """
    target = share.integral(start) + work
    areas = share.integral(share.times)
    place = int(np.searchsorted(areas, target, side="right")) - 1
    return float(share.times[place] + (target - areas[place]) / share.values[place])


@dataclass(frozen=True)
class Slot:
    """What has to be done before the next run may start: processors taken, and seconds of work on idle machines."""

    processors: tuple[str, ...]
    work: float


def schedule(
    cluster: ClusterModel, generator: Loading, load_seed: int, slots: list[Slot], rng: np.random.Generator
) -> tuple[Timeline, list[float]]:
    """Draw the loads, and start times one after the other, each run in a slot that it cannot outgrow.

    Returns
    -------
    The timeline, which goes past the end of the last run, and the start times (s).
    """
    pauses = 1.0 + rng.exponential(PAUSE, len(slots))
    horizon = WARM_UP + 3.0 * sum(slot.work for slot in slots)
    while True:
        timeline = generator(cluster, load_seed, horizon)
        moments, time = [], WARM_UP
        for slot, pause in zip(slots, pauses, strict=True):
            moments.append(round(time, 3))
            end = latest_end(lowest_share(cluster, timeline, slot.processors), time, SLACK * slot.work)
            time = end + float(pause)
        if time < horizon:
            return timeline, moments
        horizon *= 1.5
