"""The best placement from precomputed fronts, in a few predictions, for a daemon with many requests.

It answers as :func:`metasched.placement.ranking.ranker.rank` does for the earliest completion without contention,
which is what most questions ask for; for any other it says so, and the ranker has to be asked. Loads, horizon and the
placement as it is answered are made by the same functions as the ranker's.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from metasched.arrays import Flags, Floats, Ints
from metasched.placement.clusters.state import ClusterState
from metasched.placement.loads.counted import with_recent
from metasched.placement.ranking.contention import NoContention
from metasched.placement.ranking.efficiency import longest
from metasched.placement.ranking.objective import EARLIEST
from metasched.placement.ranking.preparation import at_its_own_horizon
from metasched.placement.ranking.query import Question
from metasched.placement.ranking.rendering import rendered
from metasched.placement.search.cpu_bandwidth_fronts import Fronts
from metasched.placement.search.needed_nodes import NeededNodes
from metasched.predictors.contract import Predictor
from metasched.records import Interval, Placement, Prediction

#: Numbers of processors that are compared at most: beyond, the ranker's search is quicker than that many fronts.
MOST_COUNTS = 64
#: Numbers of processors that are compared without first excluding those that cannot be the best.
FEW_COUNTS = 3
#: Gives the fronts of each cluster with the loads counted over a horizon (s), None for those of now.
FrontsAt = Callable[[float | None], Sequence[Fronts]]


class SlowError(Exception):
    """The question needs the complete ranker."""


@dataclass(frozen=True, slots=True)
class Quickest:
    """The best placement, the clusters with the loads that count by name, and warnings for the user."""

    placement: Placement
    clusters: Mapping[str, ClusterState]
    warnings: tuple[str, ...]


def fronts_of(
    before: tuple[ClusterState, tuple[str, ...]], question: Question, needed: NeededNodes | None = None
) -> Fronts:
    """The fronts of a cluster with the loads that a question counts with.

    Parameters
    ----------
    before : what :func:`metasched.placement.loads.counted.expected` gave for the cluster and the horizon, its nodes in
        the rotation of the question; it may be kept while placements are added.
    question : what is asked.
    needed : finds the nodes that the question may need; fronts for other questions, too, need all.
    """
    state, warnings = with_recent(*before, question.loads)
    return Fronts(state, question.constraints, warnings, needed)


def quickest(fronts_at: FrontsAt, predictors: Mapping[str, Predictor], question: Question) -> Quickest | None:
    """The placement with the earliest completion; None where the ranker has to be asked.

    Parameters
    ----------
    fronts_at : gives what :func:`fronts_of` does for each cluster, perhaps kept from before.
    predictors : by name of the cluster.
    question : what is asked.

    Examples
    --------
    >>> from metasched.placement.clusters.constraints import Constraints
    >>> from metasched.placement.loads.counted import expected
    >>> from metasched.predictors.formulas.published import PublishedPredictor
    >>> from metasched.records import Run
    >>> conditions = [(n, p, cpu) for n in range(100, 900, 100) for p in (1, 2, 4) for cpu in (0.25, 0.5, 1.0)]
    >>> runs = [Run("a", "c", n, p, cpu, 90.0, 0.01 * n / cpu / p) for n, p, cpu in conditions]
    >>> model = PublishedPredictor("a", "c").fit(runs)
    >>> state = ClusterState.make("c", ["n0", "n1", "n2"], available_cpu=[1.0, 0.5, 0.25], available_bandwidth=90.0)
    >>> question = Question(400, Constraints(max_processors=2))
    >>> def fronts_at(horizon):
    ...     return [fronts_of(expected(state, question.loads, horizon), question)]
    >>> found = quickest(fronts_at, {"c": model}, question)
    >>> found.placement.resource_set.nodes, round(found.placement.prediction.execution_time, 3)
    (('n0',), 4.0)
    """
    if question.objective != EARLIEST or question.pareto or question.settings:
        return None
    if not isinstance(question.contention, NoContention):
        return None
    if question.max_slowdown is not None or question.power_cap is not None:
        return None
    known: list[_Compared] = []

    def compared(horizon: float | None) -> _Compared:
        """The same one where the same fronts are found again: horizons near each other share a forecast."""
        fronts = fronts_at(horizon)
        for each in known:
            if len(each.fronts) == len(fronts) and all(map(operator.is_, each.fronts, fronts)):
                return each
        known.append(_Compared(fronts, predictors, question))
        return known[-1]

    try:
        found = at_its_own_horizon(question.loads, compared, lambda compared: compared.least)
    except SlowError:
        return None
    clusters = {each.cluster.name: each.cluster for each, _ in found.able}
    placements, warnings = rendered(
        found.best_two(),
        {state.place: state for state in clusters.values()},
        {state.place: predictors[name] for name, state in clusters.items()},
        question.problem_size,
        question.level,
        found.completion.size,
        shown=1,
    )
    return Quickest(
        placements[0], clusters, (*found.warnings, *(line for line in warnings if line not in found.warnings))
    )


class _Compared:
    """The completions on the fronts of some clusters.

    Raises
    ------
    SlowError : when there is no set, none with a finite time, or too many to compare.
    """

    def __init__(self, fronts: Sequence[Fronts], predictors: Mapping[str, Predictor], question: Question) -> None:
        self.fronts = fronts
        counts = question.constraints.counts(max((each.largest for each in fronts), default=0))
        if not 0 < counts.size <= MOST_COUNTS or not all(each.exact for each in fronts):
            raise SlowError
        fewest = int(counts[0])
        if question.loads.recent and counts.size > FEW_COUNTS:  # these fronts are for this question alone
            counts = _promising(fronts, counts, predictors, question)
        self.able = [(each, front) for each in fronts if (front := each.of(counts.tolist())).processors.size]
        if not self.able:
            raise SlowError
        self.warnings = tuple(dict.fromkeys(line for each in fronts for line in each.warnings))
        self._level = question.level
        self._times = [
            _times(
                predictors[each.cluster.name],
                question.problem_size,
                each.cluster,
                front.processors,
                front.cpu,
                front.bandwidth,
            )
            for each, front in self.able
        ]
        self._waits = [each.cluster.queue_wait.at(front.processors) for each, front in self.able]
        self.completion = np.concatenate([time + wait for time, wait in zip(self._times, self._waits, strict=True)])
        self.completion[self._below_floor(fewest, question.constraints.least_efficiency)] = np.inf
        # Of equal completions that on the fewest processors is first, as in the ranker.
        processors = np.concatenate([front.processors for _, front in self.able])
        self._order = np.lexsort((processors, self.completion))
        self.least = float(self.completion[self._order[0]])
        if not np.isfinite(self.least):
            raise SlowError

    def _below_floor(self, fewest: int, least_efficiency: float) -> Flags:
        """The sets that are below the floor, see :mod:`metasched.placement.ranking.efficiency`."""
        found = []
        for (_, front), time in zip(self.able, self._times, strict=True):
            of_fewest = fewest * np.fmin.reduce(time[front.processors == fewest], initial=np.inf)
            found.append(time > longest(front.processors, of_fewest, least_efficiency))
        return np.concatenate(found)

    def best_two(self) -> list[Placement]:
        """The best placement, and the next that differs: one set may be found for a rack and for the switches above."""
        best = self._placed(int(self._order[0]))
        others = (
            self._placed(int(position)) for position in self._order[1:3] if np.isfinite(self.completion[position])
        )
        second = next((other for other in others if _differ(other, best)), None)
        return [best] if second is None else [best, second]

    def _placed(self, position: int) -> Placement:
        number, local = 0, position
        while local >= self._times[number].size:
            local -= self._times[number].size
            number += 1
        own, front = self.able[number]
        time, wait = float(self._times[number][local]), float(self._waits[number][local])
        prediction = Prediction(time, Interval(time, time, self._level), "")
        return Placement(own.resource_set(front, local), prediction, wait)


def _promising(fronts: Sequence[Fronts], counts: Ints, predictors: Mapping[str, Predictor], question: Question) -> Ints:
    """The numbers of processors that may be among the three with the earliest completions, and the fewest.

    No set has more CPU than the fastest of as many processors, nor more bandwidth than the widest: with both it would
    complete at the earliest. Where even that is later than one of the two is with three other numbers of processors,
    the sets between them need not be found.
    """
    earliest, attained = np.full((2, counts.size), np.inf)
    for each in fronts:
        ends = each.ends(counts)
        if not ends.processors.size:
            continue
        cpu, bandwidth = (
            np.concatenate([ends.cpu.ravel(), ends.cpu[1]]),
            np.concatenate([ends.bandwidth.ravel(), ends.bandwidth[0]]),
        )
        times = _times(
            predictors[each.cluster.name],
            question.problem_size,
            each.cluster,
            np.concatenate([ends.processors] * 3),
            cpu,
            bandwidth,
        ).reshape(3, -1)
        times = np.where(np.isnan(times), np.inf, times)
        fewest = ends.processors == counts[0]
        # A floor under the efficiency admits least where the time of the fewest is shortest.
        of_fewest = counts[0] * times[2, fewest].min(initial=np.inf)
        sets, wait = times[:2], each.cluster.queue_wait.at(ends.processors)
        sets[sets > longest(ends.processors, of_fewest, question.constraints.least_efficiency)] = np.inf
        np.minimum.at(earliest, ends.which, times[2] + wait)
        np.minimum.at(attained, ends.which, sets.min(axis=0) + wait)
    third = np.partition(attained, 2)[2]
    promising: Ints = counts[(earliest <= third) | (counts == counts[0])]
    return promising


def _times(
    predictor: Predictor, problem_size: float, cluster: ClusterState, processors: Ints, cpu: Floats, bandwidth: Floats
) -> Floats:
    if cluster.minima is not None:
        of_cpu, of_bandwidth = cluster.minima.at(processors)
        cpu, bandwidth = cpu * of_cpu, bandwidth * of_bandwidth
    return predictor.expect_many(problem_size, processors, cpu, bandwidth)


def _differ(one: Placement, other: Placement) -> bool:
    first, second = one.resource_set, other.resource_set
    return (first.cluster, first.nodes, first.processors) != (second.cluster, second.nodes, second.processors)
