"""Shows the terms of a placement's completion: wait, the model's two terms, its corrections, contention.

The parts add up to the completion. What holds the job back is named beside them: the node with the least available CPU
and the narrowest link.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from metasched.arrays import Ints
from metasched.placement.clusters.state import ClusterState
from metasched.plain_numbers import plain
from metasched.predictors.contract import Predictor, Term
from metasched.records import InputError, Placement, Request, ResourceSet

#: Predictions that differ by less than this part are the same model's.
AGREES = 1e-6


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of a placement.

    Parameters
    ----------
    placement : what is explained.
    parts : that its completion is the sum of.
    least_cpu, narrowest : what holds it back, in words.
    notes : what else there is to know, such as how loads to come were counted.
    """

    placement: Placement
    parts: tuple[Term, ...]
    least_cpu: str
    narrowest: str
    notes: tuple[str, ...]


def explained(placement: Placement, predictor: Predictor, problem_size: float, cluster: ClusterState) -> Explanation:
    """Explain a placement.

    Parameters
    ----------
    placement : as the ranker answered it.
    predictor : that predicted it.
    problem_size : N.
    cluster : where it is, with the loads that were measured last when it was ranked.

    Examples
    --------
    >>> from metasched.predictors.formulas.published import PublishedPredictor
    >>> from metasched.records import Interval, Prediction, Run
    >>> conditions = [(n, p, cpu) for n in range(100, 900, 100) for p in (1, 2, 4, 8) for cpu in (0.5, 1.0)]
    >>> runs = [Run("a", "c", n, p, cpu, 90.0, 0.01 * n / (cpu * p)) for n, p, cpu in conditions]
    >>> model = PublishedPredictor("a", "c").fit(runs)
    >>> taken = ResourceSet("c", ("n0",), 1, 0.8, 90.0)
    >>> cluster = ClusterState.make("c", ["n0"], available_cpu=1.0, available_bandwidth=90.0)
    >>> found = explained(Placement(taken, Prediction(12.5, Interval(9.0, 15.0, 0.9), "")), model, 1000.0, cluster)
    >>> print(*found.notes[0].split('; '), sep=chr(10))
    measured last were CPU 1 and 90 Mbit/s, for which it would run 10 s
    forecasts and jobs just placed change this by +2.5 s
    """
    least, narrowest = held_back_by(placement.resource_set, cluster)
    parts = breakdown(placement, predictor, problem_size)
    note = _to_come(placement.resource_set, predictor, problem_size, cluster)
    return Explanation(placement, parts, least, narrowest, (note,) if note else ())


def _to_come(chosen: ResourceSet, predictor: Predictor, problem_size: float, cluster: ClusterState) -> str:
    """What it makes that other loads were counted with than those measured last; empty where they are the same."""
    number = {name: index for index, name in enumerate(cluster.nodes)}
    nodes = np.array([number[name] for name in chosen.nodes])
    cpu = float(cluster.effective_cpu[nodes].min())
    bandwidth = cluster.network.bandwidth(cluster.available_bandwidth, nodes)
    counted = chosen.available_cpu, chosen.available_bandwidth
    if np.allclose((cpu, bandwidth), counted, rtol=1e-6):
        return ""
    with_measured, with_counted = (
        float(predictor.expect_many(problem_size, chosen.processors, *loads)[0])
        for loads in ((cpu, bandwidth), counted)
    )
    return (
        f"measured last were CPU {cpu:.3g} and {plain(bandwidth)} Mbit/s, for which it would run "
        f"{plain(with_measured)} s; forecasts and jobs just placed change this by {with_counted - with_measured:+.4g} s"
    )


def breakdown(placement: Placement, predictor: Predictor, problem_size: float) -> tuple[Term, ...]:
    """The parts whose sum is a placement's completion.

    >>> from metasched.predictors.formulas.published import PublishedPredictor
    >>> from metasched.records import Interval, Prediction, Run
    >>> conditions = [(n, p, cpu) for n in range(100, 900, 100) for p in (1, 2, 4, 8) for cpu in (0.5, 1.0)]
    >>> runs = [Run("a", "c", n, p, cpu, 90.0, 0.01 * n / (cpu * p)) for n, p, cpu in conditions]
    >>> model = PublishedPredictor("a", "c").fit(runs)
    >>> taken = ResourceSet("c", ("n0", "n1"), 2, 1.0, 90.0)
    >>> parts = breakdown(Placement(taken, Prediction(5.0, Interval(4.0, 6.0, 0.9), ""), 7.0), model, 1000.0)
    >>> [(part.name, abs(round(part.seconds, 6))) for part in parts]
    [('wait', 7.0), ('computation', 5.0), ('communication', 0.0)]
    """
    chosen = placement.resource_set
    where = chosen.processors, chosen.available_cpu, chosen.available_bandwidth
    request = Request(problem_size, chosen.processors, min(chosen.available_cpu, 1.0), chosen.available_bandwidth)
    parts = [Term("wait", "until it starts", placement.queue_wait), *predictor.breakdown(request)]
    if chosen.available_cpu > 1.0:
        gained = float(predictor.expect_many(problem_size, *where)[0]) - sum(part.seconds for part in parts[1:])
        how = f"the slowest node has {chosen.available_cpu:.3g} times a free processor of the reference node"
        parts.append(Term("faster processors", how, gained))
    time, predicted = sum(part.seconds for part in parts[1:]), placement.prediction.execution_time
    if abs(time - predicted) > AGREES * predicted:
        parts.append(
            Term("model then", f"the model has learned since then, and now predicts {plain(time)}", predicted - time)
        )
        time = predicted
    if placement.slowdown != 1.0:
        how = f"stretched {placement.slowdown:.3g} times by jobs already running"
        parts.append(Term("contention", how, (placement.slowdown - 1.0) * time))
    return tuple(parts)


def held_back_by(chosen: ResourceSet, cluster: ClusterState) -> tuple[str, str]:
    """The node with the least available CPU and the narrowest link of a resource set, in words.

    >>> cluster = ClusterState.make("c", ["n0", "n1"], available_cpu=[1.0, 0.4], available_bandwidth=[90.0, 95.0])
    >>> held_back_by(ResourceSet("c", ("n0", "n1"), 2, 0.4, 90.0), cluster)
    ('node n1', 'link of n0')
    """
    number = {name: index for index, name in enumerate(cluster.nodes)}
    missing = [name for name in chosen.nodes if name not in number]
    if missing:
        raise InputError(f"node {missing[0]} is not described in cluster {cluster.name}")
    nodes = np.array([number[name] for name in chosen.nodes])
    slowest = cluster.nodes[nodes[int(cluster.effective_cpu[nodes].argmin())]]
    links = cluster.available_bandwidth
    narrowest = cluster.network.bandwidth(links, nodes)
    for node in nodes:
        if links[node] <= narrowest:
            return f"node {slowest}", f"link of {cluster.nodes[node]}"

    def narrow(some: Ints) -> bool:
        return cluster.network.bandwidth(links, some) <= narrowest

    # A set is as narrow as its narrowest pair: the node that makes the first ones so, and the first that it does so to.
    last = bisect_left(range(nodes.size), True, key=lambda place: narrow(nodes[: place + 1]))
    first = bisect_left(range(last), True, key=lambda place: narrow(np.append(nodes[: place + 1], nodes[last])))
    return f"node {slowest}", f"path between {cluster.nodes[nodes[first]]} and {cluster.nodes[nodes[last]]}"
