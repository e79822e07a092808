"""Turns ranked resource sets into the placements of an answer: with interval, model, reason and warnings.

The ranker and the fast path answer by this file alone. All times that it needs of one cluster are asked for at once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from metasched.placement.clusters.energy import energy_of, power_in_doubt, tells_energy
from metasched.placement.clusters.state import ClusterState
from metasched.placement.ranking.monotonicity import MORE, non_monotone
from metasched.placement.ranking.reasons import Cause, explain_order
from metasched.predictors.contract import Predictor
from metasched.predictors.load_doubt import widen_one
from metasched.records import Interval, Place, Placement, Prediction, Request, ResourceSet

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
    sets = [_Set(each, clusters[each.resource_set.place], level) for each in answered]
    times: dict[Place, dict[Point, float]] = {}
    for place in dict.fromkeys(each.place for each in sets):
        points = [point for each in sets if each.place == place for point in each.points]
        if place == first.place:
            points += [point for other in ordered[1:] for point in _instead(first, other.resource_set)]
        elif place[0] == first.cluster:
            points.append(sets[0].own)
        points = list(dict.fromkeys(points))
        found = predictors[place].expect_many(problem_size, *np.array(points, dtype=np.float64).T)
        times[place] = dict(zip(points, found.tolist(), strict=True))
    predictions = [each.predicted(predictors[each.place], problem_size, level, times[each.place]) for each in sets]
    # Each placement has its own warnings; of the ranking are those of the best one on each cluster.
    best: dict[str, Prediction] = {}
    for each, prediction in zip(sets, predictions, strict=True):
        best.setdefault(each.place[0], prediction)
    warnings = dict.fromkeys(line for prediction in best.values() for line in prediction.warnings)
    for place in sorted(times, key=lambda place: place[0]):
        columns = zip(
            *([times[place][point] for point in each.monotone] for each in sets if each.place == place), strict=True
        )
        warnings |= dict.fromkeys(non_monotone(place[0], *columns))
    reasons = explain_order(ordered, Cause(lambda place, *point: times[place][point]), compared, shown)
    placements = tuple(
        _with_energy(
            replace(placement, prediction=prediction, reason=reason),
            clusters[placement.resource_set.place],
            predictors[placement.resource_set.place],
            problem_size,
        )
        for placement, prediction, reason in zip(answered, predictions, reasons, strict=True)
    )
    return placements, tuple(warnings)


def _with_energy(placement: Placement, state: ClusterState, predictor: Predictor, problem_size: float) -> Placement:
    """The placement with its energy, power limit and probability of success, as far as they are known."""
    chosen = placement.resource_set
    if state.hardware is None and not tells_energy(state, predictor):
        return placement
    cpu, bandwidth = np.array([chosen.available_cpu]), np.array([chosen.available_bandwidth])
    time = placement.slowdown * placement.prediction.execution_time
    joules = energy_of(state, predictor, problem_size, np.array([chosen.processors]), cpu, bandwidth, np.array([time]))
    watts, doubt = power_in_doubt(state, predictor, problem_size, np.array([chosen.processors]), cpu, bandwidth)
    rate = None if state.hardware is None else state.hardware.get("lambda")
    return replace(
        placement,
        energy=float(joules[0]) or None,
        power_limit=float(watts[0] + doubt[0]) or None,
        power_doubt=float(doubt[0]),
        success=None if rate is None else math.exp(-rate * len(chosen.nodes) * time),
    )


class _Set:
    """A resource set of the answer, and the conditions for which its model predicts."""

    def __init__(self, placement: Placement, state: ClusterState, level: float) -> None:
        chosen = placement.resource_set
        self.place = chosen.place
        self.own: Point = (chosen.processors, chosen.available_cpu, chosen.available_bandwidth)
        p, cpu, bandwidth = self.own
        self.monotone: list[Point] = [self.own, (p, MORE * cpu, bandwidth), (p, cpu, MORE * bandwidth)]
        doubt = state.doubt(p, level)
        ends = () if doubt is None else zip(*(each.tolist() for each in doubt.ends(cpu, bandwidth)), strict=True)
        self.ends: list[Point] = [(p, *end) for end in ends]
        self.points = self.monotone + self.ends

    def predicted(
        self, predictor: Predictor, problem_size: float, level: float, times: Mapping[Point, float]
    ) -> Prediction:
        """The prediction with the model's own interval, and the uncertainty of the loads.

        A processor faster than the reference node's has an available CPU above 1; a request of one prediction stops
        there.
        """
        p, cpu, bandwidth = self.own
        found = predictor.predict(Request(problem_size, p, min(1.0, cpu), bandwidth), level)
        if cpu > 1.0:
            many = predictor.predict_many(problem_size, p, cpu, bandwidth, level)
            found = replace(found, interval=Interval(many.low.item(), many.high.item(), level))
        found = replace(found, execution_time=times[self.own])
        return widen_one(found, np.array([times[point] for point in self.ends])) if self.ends else found


def _instead(ours: ResourceSet, theirs: ResourceSet) -> list[Point]:
    """The best set's point with another's processors, CPU and bandwidth, one at a time: what its reason asks."""
    return [
        (theirs.processors, ours.available_cpu, ours.available_bandwidth),
        (ours.processors, theirs.available_cpu, ours.available_bandwidth),
        (ours.processors, ours.available_cpu, theirs.available_bandwidth),
    ]
