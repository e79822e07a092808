"""Turns ranked resource sets into the placements of an answer: with interval, model, reason and warnings.

The ranker and the fast path answer by this file alone. All times that it needs of one cluster are asked for at once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from metasched.blocks.failures import FailureRate
from metasched.placement.clusters.energy import energy_of, power_in_doubt, tells_energy
from metasched.placement.clusters.state import ClusterState
from metasched.placement.ranking.monotonicity import MORE, non_monotone
from metasched.placement.ranking.reasons import Cause, explain_order
from metasched.predictors.abilities import energy_predictor, expect_few
from metasched.predictors.contract import Predictor
from metasched.predictors.load_doubt import predict_one
from metasched.records import Interval, Place, Placement, Prediction, ResourceSet

#: Processors, available CPU and bandwidth.
Point = tuple[int, float, float]


def rendered(
    ordered: Sequence[Placement],
    clusters: Mapping[Place, ClusterState],
    predictors: Mapping[Place, Predictor],
    problem_size: float,
    level: float,
    compared: int,
    shown: int | None = None,
) -> tuple[tuple[Placement, ...], tuple[str, ...]]:
    """The placements of an answer, and warnings about their predictions.

    Parameters
    ----------
    ordered : the best first, with their predicted times.
    clusters, predictors : by cluster and layout.
    problem_size, level : of the question.
    compared : number of resource sets that were compared.
    shown : how many are answered, all where None; the others are only what these are compared with.
    """
    answered, first = ordered[:shown], ordered[0].resource_set
    sets = [each.resource_set for each in answered]
    predictions = [_predicted(each, predictors[each.place], problem_size, level, clusters[each.place]) for each in sets]
    times: dict[Place, dict[Point, float]] = {}
    # The first is compared with the second, whether that is answered or not.
    for place in dict.fromkeys(each.resource_set.place for each in (*answered, *ordered[1:2])):
        points = [point for each in sets if each.place == place for point in _monotone(each)]
        if place == first.place:
            points += [point for other in ordered[1:] for point in _instead(first, other.resource_set)]
        else:
            points.append(_monotone(first)[0])
        points = list(dict.fromkeys(points))
        times[place] = dict(zip(points, expect_few(predictors[place], problem_size, points), strict=True))
    # Each placement has its own warnings; of the ranking are those of the best one on each cluster.
    best: dict[str, Prediction] = {}
    for each, prediction in zip(sets, predictions, strict=True):
        best.setdefault(each.cluster, prediction)
    warnings = dict.fromkeys(line for prediction in best.values() for line in prediction.warnings)
    for place in sorted({each.place for each in sets}, key=lambda place: place[0]):
        columns = zip(
            *([times[place][point] for point in _monotone(each)] for each in sets if each.place == place), strict=True
        )
        warnings |= dict.fromkeys(non_monotone(place[0], *columns))
    reasons = explain_order(ordered, Cause(lambda place, *point: times[place][point]), compared, shown)
    placements = tuple(
        _with_energy(
            _at_rate_of(
                replace(placement, prediction=prediction, reason=reason), clusters[placement.resource_set.place]
            ),
            clusters[placement.resource_set.place],
            predictors[placement.resource_set.place],
            problem_size,
        )
        for placement, prediction, reason in zip(answered, predictions, reasons, strict=True)
    )
    return placements, tuple(warnings)


def _with_energy(placement: Placement, state: ClusterState, predictor: Predictor, problem_size: float) -> Placement:
    """The placement with its energy and power limit, as far as they are known."""
    chosen = placement.resource_set
    if not tells_energy(state, predictor):
        return placement
    cpu, bandwidth = np.array([chosen.available_cpu]), np.array([chosen.available_bandwidth])
    time = placement.slowdown * placement.prediction.execution_time
    joules = energy_of(state, predictor, problem_size, np.array([chosen.processors]), cpu, bandwidth, np.array([time]))
    watts, doubt = power_in_doubt(state, predictor, problem_size, np.array([chosen.processors]), cpu, bandwidth)
    return replace(
        placement,
        energy=float(joules[0]) or None,
        power_limit=float(watts[0] + doubt[0]) or None,
        power_doubt=float(doubt[0]) if energy_predictor(predictor) is not None else None,
    )


def with_success(placement: Placement, rate: FailureRate) -> Placement:
    """The placement with the probability that none of its nodes fails, and its interval where the rate is in doubt.

    Parameters
    ----------
    placement : with its prediction.
    rate : at which a node fails.
    """
    nodes, time = len({*placement.resource_set.nodes}), placement.slowdown * placement.prediction.execution_time
    level = placement.prediction.interval.level
    doubt = None if math.isinf(rate.shape) else Interval(*rate.success_between(time, nodes, level), level)
    return replace(placement, success=rate.success(time, nodes), success_interval=doubt)


def _at_rate_of(placement: Placement, state: ClusterState) -> Placement:
    """The same by the rate of a cluster: as records of failures tell it, else as the hardware does, 0 for never."""
    if state.failures is not None:
        return with_success(placement, state.failures)
    rate = None if state.hardware is None else state.hardware.get("lambda")
    if rate == 0.0:
        return replace(placement, success=1.0)
    return placement if rate is None else with_success(placement, FailureRate(rate))


def _predicted(
    chosen: ResourceSet, predictor: Predictor, problem_size: float, level: float, state: ClusterState
) -> Prediction:
    p, cpu, bandwidth = chosen.processors, chosen.available_cpu, chosen.available_bandwidth
    return predict_one(predictor, problem_size, p, cpu, bandwidth, level, state.doubt(p, level))


def _monotone(chosen: ResourceSet) -> list[Point]:
    """A set's own point, and those with more CPU and with more bandwidth."""
    p, cpu, bandwidth = chosen.processors, chosen.available_cpu, chosen.available_bandwidth
    return [(p, cpu, bandwidth), (p, MORE * cpu, bandwidth), (p, cpu, MORE * bandwidth)]


def _instead(ours: ResourceSet, theirs: ResourceSet) -> list[Point]:
    """The best set's point with another's processors, CPU and bandwidth, one at a time: what its reason asks."""
    return [
        (theirs.processors, ours.available_cpu, ours.available_bandwidth),
        (ours.processors, theirs.available_cpu, ours.available_bandwidth),
        (ours.processors, ours.available_cpu, theirs.available_bandwidth),
    ]
