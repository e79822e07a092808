"""Ranks resource sets: clusters, predictors and constraints in, placements in the order of the objective out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from metasched.placement.cluster import ClusterState
from metasched.placement.constraints import Constraints, admit
from metasched.placement.objective import Objective, Terms
from metasched.placement.reasons import Cause, explain_order
from metasched.placement.search import Domains, Found, Scope, search
from metasched.predictors.contract import Predictions, Predictor
from metasched.records import InputError, Interval, Placement, Prediction, Request, ResourceSet

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Curve:
    """The best placement for each number of processors; arrays of shape (p,), ascending in processors.

    Parameters
    ----------
    processors : P.
    execution_time, low, high : predicted, with its interval (s).
    completion : queue wait plus execution time (s).
    """

    processors: Ints
    execution_time: Floats
    low: Floats
    high: Floats
    completion: Floats


@dataclass(frozen=True, slots=True)
class Ranking:
    """Placements, best first, and what was looked at to find them.

    Parameters
    ----------
    placements : the best, each the optimum of its (switch, processors).
    curve : the best for each number of processors, over all clusters.
    compared : number of (switch, processors) compared.
    evaluations : number of predictions made.
    ruled_out : for each cluster and each demand, how many nodes it ruled out.
    warnings : what the user should know.
    """

    placements: tuple[Placement, ...]
    curve: Curve
    compared: int
    evaluations: int
    ruled_out: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


class InfeasibleError(RuntimeError):
    """No resource set satisfies the constraints; the message says which demand ruled out how many nodes."""


@dataclass(frozen=True, slots=True)
class _Field:
    """All clusters side by side: nodes and switches numbered through."""

    clusters: tuple[ClusterState, ...]
    predictors: tuple[Predictor, ...]
    domains: Domains
    cluster_of_domain: Ints
    first_node: Ints


def rank(
    clusters: Sequence[ClusterState],
    predictors: Mapping[str, Predictor] | Predictor,
    problem_size: float,
    *,
    constraints: Constraints | None = None,
    objective: Objective | None = None,
    top: int = 10,
    scope: Scope = "top",
    level: float = 0.9,
) -> Ranking:
    """Rank the resource sets of some clusters for one application and problem size.

    Parameters
    ----------
    clusters : where it could run.
    predictors : the application's predictor on each cluster by name, or one for all.
    problem_size : N.
    constraints, objective : see there.
    top : how many placements to return.
    scope : how far the search is exact, see :func:`metasched.placement.search.search`.
    level : of the prediction intervals.

    Raises
    ------
    InfeasibleError
        When the constraints leave no resource set.
    """
    constraints, objective = constraints or Constraints(), objective or Objective()
    if not (np.isfinite(problem_size) and problem_size > 0):
        raise InputError(f"problem_size is {problem_size:g}, expected a finite number above 0")
    if top < 1:
        raise InputError(f"top is {top}, expected a whole number of at least 1")
    field_, ruled_out = _lay_out(clusters, predictors, constraints)
    allowed = constraints.counts(int(field_.domains.sizes.max(initial=0)))
    index, processors = field_.domains.pairs(allowed)
    if not index.size:
        raise InfeasibleError(_why_none(clusters, field_, constraints, ruled_out))

    def score(pair: Ints, cpu: Floats, bandwidth: Floats) -> Floats:
        return _score(field_, objective, problem_size, level, index[pair], processors[pair], cpu, bandwidth)

    found = search(field_.domains, allowed, score, scope, top)
    order = np.lexsort((found.domain, found.processors, found.score))
    chosen = _distinct_sets(field_, found, order, top)
    placements, warnings = _placements(field_, chosen, objective, problem_size, level)
    curve = _curve(field_, found, order, problem_size, level)
    return Ranking(placements, curve, int(index.size), found.evaluations, ruled_out, warnings)


def _lay_out(
    clusters: Sequence[ClusterState], predictors: Mapping[str, Predictor] | Predictor, constraints: Constraints
) -> tuple[_Field, dict[str, dict[str, int]]]:
    columns: dict[str, list[NDArray[np.generic]]] = {
        name: [] for name in ("domain", "node", "width", "speed", "processors", "cluster")
    }
    left: list[ClusterState] = []
    used: list[Predictor] = []
    first_node: list[int] = []
    ruled_out: dict[str, dict[str, int]] = {}
    nodes = switches = 0
    for cluster in clusters:
        admitted = admit(cluster, constraints)
        ruled_out[cluster.name] = admitted.ruled_out
        cluster = admitted.cluster
        predictor = predictors.get(cluster.name) if isinstance(predictors, Mapping) else predictors
        if predictor is None:
            ruled_out[cluster.name] = {"no model of the application there": len(cluster.nodes)}
            continue
        switch, node, width = cluster.topology.domains(cluster.available_bandwidth)
        capacity = (
            cluster.processors if constraints.per_node is None else np.minimum(cluster.processors, constraints.per_node)
        )
        columns["domain"].append(switches + switch)
        columns["node"].append(nodes + node)
        columns["width"].append(width)
        columns["speed"].append(cluster.effective_cpu[node])
        columns["processors"].append(capacity[node])
        columns["cluster"].append(np.full(len(cluster.topology.switches), len(left)))
        left.append(cluster)
        used.append(predictor)
        first_node.append(nodes)
        nodes += len(cluster.nodes)
        switches += len(cluster.topology.switches)
    joined = {name: np.concatenate(parts) if parts else np.empty(0) for name, parts in columns.items()}
    cluster_of_switch = joined.pop("cluster").astype(np.int64)
    domains = Domains(**joined)
    return (
        _Field(tuple(left), tuple(used), domains, cluster_of_switch[domains.ids], np.array(first_node, np.int64)),
        ruled_out,
    )


def _predict(
    field_: _Field, size: float, level: float, cluster: Ints, processors: Ints, cpu: Floats, bandwidth: Floats
) -> Predictions:
    """Predict a batch, each with its own cluster's predictor."""
    groups: dict[int, list[int]] = {}
    for number, predictor in enumerate(field_.predictors):
        groups.setdefault(id(predictor), []).append(number)
    if len(groups) == 1:
        return field_.predictors[0].predict_many(size, processors, cpu, bandwidth, level)
    time, low, high = (np.empty(cluster.size) for _ in range(3))
    for numbers in groups.values():
        mine = np.flatnonzero(np.isin(cluster, numbers))
        part = field_.predictors[numbers[0]].predict_many(size, processors[mine], cpu[mine], bandwidth[mine], level)
        time[mine], low[mine], high[mine] = part.execution_time, part.low, part.high
    return Predictions(time, low, high, level)


def _score(
    field_: _Field,
    objective: Objective,
    size: float,
    level: float,
    domain: Ints,
    processors: Ints,
    cpu: Floats,
    bandwidth: Floats,
) -> Floats:
    cluster = field_.cluster_of_domain[domain]
    predicted = _predict(field_, size, level, cluster, processors, cpu, bandwidth)
    wait = np.array([each.queue_wait for each in field_.clusters])[cluster]
    terms = Terms.of(predicted.execution_time, predicted.high, processors=processors, queue_wait=wait)
    return objective.score(terms, processors)


def _distinct_sets(field_: _Field, found: Found, order: Ints, top: int) -> list[tuple[int, ResourceSet]]:
    """The first resource sets of an order that differ from each other, with their clusters' numbers.

    A set that lies in one rack is found both for the rack and for the switches above it.
    """
    chosen: list[tuple[int, ResourceSet]] = []
    seen: set[tuple[int, tuple[tuple[int, int], ...]]] = set()
    for pair in order:
        nodes, counts = field_.domains.members(
            int(found.domain[pair]), int(found.processors[pair]), int(found.step[pair])
        )
        number = int(field_.cluster_of_domain[found.domain[pair]])
        same = (number, tuple(sorted(zip(nodes.tolist(), counts.tolist(), strict=True))))
        if same in seen:
            continue
        seen.add(same)
        chosen.append((number, _resource_set(field_, number, nodes - field_.first_node[number], int(counts.sum()))))
        if len(chosen) == top:
            break
    return chosen


def _resource_set(field_: _Field, number: int, nodes: Ints, processors: int) -> ResourceSet:
    cluster = field_.clusters[number]
    return ResourceSet(
        cluster=cluster.name,
        nodes=tuple(cluster.nodes[index] for index in nodes),
        processors=processors,
        available_cpu=float(cluster.effective_cpu[nodes].min()),
        available_bandwidth=cluster.topology.bandwidth(cluster.available_bandwidth, nodes),
    )


def _placements(
    field_: _Field, chosen: Sequence[tuple[int, ResourceSet]], objective: Objective, size: float, level: float
) -> tuple[tuple[Placement, ...], tuple[str, ...]]:
    """Predict the chosen sets once more as they are, and say why they stand in this order."""
    placements: list[Placement] = []
    warnings: list[str] = []
    for number, chosen_set in chosen:
        predictor = field_.predictors[number]
        many = predictor.predict_many(
            size, chosen_set.processors, chosen_set.available_cpu, chosen_set.available_bandwidth, level
        )
        # A processor faster than the reference node's offers more than 1; a request of one prediction stops there.
        one = predictor.predict(
            Request(size, chosen_set.processors, min(1.0, chosen_set.available_cpu), chosen_set.available_bandwidth),
            level,
        )
        interval = Interval(float(many.low.item()), float(many.high.item()), level)
        prediction = Prediction(float(many.execution_time.item()), interval, one.model, one.warnings)
        placements.append(Placement(chosen_set, prediction, field_.clusters[number].queue_wait))
        warnings.extend(line for line in one.warnings if line not in warnings)
    scores = objective.score(
        Terms.of(
            [each.prediction.execution_time for each in placements],
            [each.prediction.interval.high for each in placements],
            processors=[each.resource_set.processors for each in placements],
            queue_wait=[each.queue_wait for each in placements],
        ),
        [each.resource_set.processors for each in placements],
    )
    cause = Cause({field_.clusters[number].name: field_.predictors[number] for number, _ in chosen}, size, level)
    ranked = [placements[index] for index in np.argsort(scores, kind="stable")]
    return explain_order(ranked, cause), tuple(warnings)


def _curve(field_: _Field, found: Found, order: Ints, size: float, level: float) -> Curve:
    counts, first = np.unique(found.processors[order], return_index=True)
    best = order[first]
    cluster = field_.cluster_of_domain[found.domain[best]]
    predicted = _predict(field_, size, level, cluster, counts, found.cpu[best], found.bandwidth[best])
    wait = np.array([each.queue_wait for each in field_.clusters])[cluster]
    return Curve(counts, predicted.execution_time, predicted.low, predicted.high, wait + predicted.execution_time)


def _why_none(
    clusters: Sequence[ClusterState],
    field_: _Field,
    constraints: Constraints,
    ruled_out: Mapping[str, Mapping[str, int]],
) -> str:
    largest = int(field_.domains.sizes.max(initial=0))
    parts = [
        f"{cluster.name} ({len(cluster.nodes)} nodes): "
        + (
            ", ".join(f"{demand} rules out {count}" for demand, count in ruled_out[cluster.name].items())
            or "none ruled out"
        )
        for cluster in clusters
    ]
    wanted = constraints.processors or (f"at least {constraints.min_processors}",)
    asked = ", ".join(map(str, wanted))
    return f"no feasible resource set for {asked} processors, at most {largest} are left together; {'; '.join(parts)}"
