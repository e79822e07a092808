"""The best placement from fronts found beforehand, in a few predictions, for a daemon that is asked all the time.

It answers as :func:`metasched.placement.ranker.rank` does for the earliest completion without contention, which is what
most questions ask for; for any other it says so, and the ranker has to be asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from metasched.placement.constraints import Constraints
from metasched.placement.fronts import Front, Fronts
from metasched.placement.nature import MORE, against_nature
from metasched.placement.reasons import Cause, why_best
from metasched.predictors.contract import Floats, Predictor, expected
from metasched.records import Interval, Placement, Prediction, Request

Ints = NDArray[np.int64]

#: Numbers of processors that are compared at most: beyond, the ranker's search is quicker than so many fronts.
MOST_COUNTS = 64


@dataclass(frozen=True, slots=True)
class Quickest:
    """The best placement, and what the user should know."""

    placement: Placement
    warnings: tuple[str, ...]


def quickest(
    fronts: Sequence[Fronts], predictors: Mapping[str, Predictor], problem_size: float, constraints: Constraints,
    level: float,
) -> Quickest | None:  # fmt: skip
    """The placement with the earliest completion; None where the ranker has to be asked.

    Parameters
    ----------
    fronts : of each cluster, made with the same constraints.
    predictors : by name of the cluster.
    problem_size : N.
    constraints : what is demanded.
    level : of the prediction interval.

    Examples
    --------
    >>> from metasched.placement.cluster import ClusterState
    >>> from metasched.predictors.published import PublishedPredictor
    >>> from metasched.records import Run
    >>> conditions = [(n, p, cpu) for n in range(100, 900, 100) for p in (1, 2, 4) for cpu in (0.25, 0.5, 1.0)]
    >>> runs = [Run("a", "c", n, p, cpu, 90.0, 0.01 * n / cpu / p) for n, p, cpu in conditions]
    >>> model = PublishedPredictor("a", "c").fit(runs)
    >>> state = ClusterState.make("c", ["n0", "n1", "n2"], available_cpu=[1.0, 0.5, 0.25], available_bandwidth=90.0)
    >>> at_most = Constraints(max_processors=2)
    >>> found = quickest([Fronts(state, at_most)], {"c": model}, 400, at_most, 0.9)
    >>> found.placement.resource_set.nodes, round(found.placement.prediction.execution_time, 3)
    (('n0',), 4.0)
    """
    counts = constraints.counts(max((each.largest for each in fronts), default=0))
    if not 0 < counts.size <= MOST_COUNTS or not all(each.exact for each in fronts):
        return None
    able = [(each, front) for each in fronts if (front := each.of(counts.tolist())).processors.size]
    if not able:
        return None
    times = [_on(predictors[each.cluster.name], problem_size, front) for each, front in able]
    waits = [each.cluster.queue_wait.at(front.processors) for each, front in able]
    completion = np.concatenate([time + wait for time, wait in zip(times, waits, strict=True)])
    order = np.argsort(completion, kind="stable")
    if not np.isfinite(completion[order[0]]):
        return None
    bounds = np.cumsum([0, *(front.processors.size for _, front in able)])

    def placed(position: int) -> tuple[Placement, Predictor]:
        number = int(np.searchsorted(bounds, position, side="right")) - 1
        own, front = able[number]
        local = position - int(bounds[number])
        chosen = own.resource_set(front, local)
        time, wait = float(times[number][local]), float(waits[number][local])
        prediction = Prediction(time, Interval(time, time, level), "")
        return Placement(chosen, prediction, wait), predictors[chosen.cluster]

    best, predictor = placed(int(order[0]))
    second = next(
        (other for position in order[1:3] if _differ(other := placed(int(position))[0], best)), None
    )  # a set that lies in one rack is found for the rack and for the switches above it
    return _told(best, second, predictor, problem_size, level)


def _told(
    best: Placement, second: Placement | None, predictor: Predictor, problem_size: float, level: float
) -> Quickest:
    """The best placement with its interval, its model and its reason."""
    chosen = best.resource_set
    request = Request(problem_size, chosen.processors, min(1.0, chosen.available_cpu), chosen.available_bandwidth)
    p, cpu, bandwidth = own = chosen.processors, chosen.available_cpu, chosen.available_bandwidth
    points = [own, (p, MORE * cpu, bandwidth), (p, cpu, MORE * bandwidth)]
    if second is not None:  # all that the reason for the placement will ask
        other = second.resource_set
        points += [
            (other.processors, cpu, bandwidth),
            (p, other.available_cpu, bandwidth),
            (p, cpu, other.available_bandwidth),
        ]
    prediction, asked = _beside(predictor, request, np.array(points, dtype=np.float64).T, level)
    times = dict(zip(points, asked.tolist(), strict=True))
    if chosen.available_cpu > 1.0:  # a processor faster than the reference node's: one request stops at 1
        many = predictor.predict_many(
            problem_size, chosen.processors, chosen.available_cpu, chosen.available_bandwidth, level
        )
        interval = Interval(many.low.item(), many.high.item(), level)
        prediction = replace(prediction, execution_time=many.execution_time.item(), interval=interval)
    best = replace(best, prediction=prediction)
    reason = "the only resource set"
    if second is not None:
        reason = why_best(best, second, Cause(lambda _, *point: times[point]))
    unnatural = against_nature(chosen.cluster, *(times[point] for point in points[:3]))
    return Quickest(replace(best, reason=reason), (*prediction.warnings, *unnatural))


def _differ(one: Placement, other: Placement) -> bool:
    first, second = one.resource_set, other.resource_set
    return (first.cluster, first.nodes, first.processors) != (second.cluster, second.nodes, second.processors)


def _on(predictor: Predictor, problem_size: float, front: Front) -> Floats:
    return expected(predictor, problem_size, front.processors, front.cpu, front.bandwidth)


def _beside(predictor: Predictor, request: Request, others: Floats, level: float) -> tuple[Prediction, Floats]:
    """A prediction, and the times of other (processors, CPU, bandwidth), in one evaluation where that is possible."""
    among = getattr(predictor, "predict_among", None)
    if among is not None:
        told: tuple[Prediction, Floats] = among(request, others, level)
        return told
    return predictor.predict(request, level), expected(predictor, request.problem_size, *others)
