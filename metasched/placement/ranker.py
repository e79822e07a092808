"""Ranks resource sets: clusters, predictors and constraints in, placements in the order of the objective out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from metasched.placement.candidates import Candidate, Circumstances, weigh
from metasched.placement.cluster import ClusterState
from metasched.placement.constraints import Constraints
from metasched.placement.freshness import tempered
from metasched.placement.layout import Layout, lay_out
from metasched.placement.nature import MORE, against_nature
from metasched.placement.objective import TERMS, Terms
from metasched.placement.order import settle_ties, shuffled
from metasched.placement.pareto import front
from metasched.placement.question import Curve, InfeasibleError, Question, Ranking
from metasched.placement.reasons import Cause, explain_order
from metasched.placement.search import Domains, Found, Scope, search
from metasched.placement.sharing import NoContention
from metasched.predictors.contract import Predictor, expected
from metasched.records import Placement, Request
from monitors.forecasters.fixed_point import solve_horizon

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Rounds at most in which the forecast's horizon and the predicted time find each other, and when they have (a share).
ROUNDS, AGREED = 4, 0.1


def rank(
    clusters: Sequence[ClusterState], predictors: Mapping[str, Predictor] | Predictor, question: Question
) -> Ranking:
    """Rank the resource sets of some clusters for one application and problem size.

    Parameters
    ----------
    clusters : where it could run.
    predictors : the application's predictor on each cluster by name, or one for all.
    question : what is asked.

    Raises
    ------
    InfeasibleError
        When the constraints leave no resource set.
    """
    clusters = clusters if question.rotation is None else [shuffled(each, question.rotation) for each in clusters]
    trusted = [tempered(cluster, question.stale_after) for cluster in clusters]
    warnings = tuple(line for each in trusted for line in each.warnings)
    now = [each.cluster for each in trusted]
    forecast = question.forecast
    if forecast is None:
        ranking = _ranked(now, predictors, question)
    else:
        ranking = solve_horizon(
            lambda found: found.placements[0].completion,
            lambda seconds: _ranked([forecast(cluster, seconds) for cluster in now], predictors, question),
            tolerance=AGREED,
            most_steps=ROUNDS,
        ).forecast
    return replace(ranking, warnings=warnings + ranking.warnings)


def _ranked(
    clusters: Sequence[ClusterState], predictors: Mapping[str, Predictor] | Predictor, question: Question
) -> Ranking:
    alone = isinstance(question.contention, NoContention)
    layout, ruled_out = lay_out(clusters, predictors, question.constraints, avoid_shared=not alone)
    allowed = question.constraints.counts(int(layout.domains.sizes.max(initial=0)))
    if not layout.domains.pairs(allowed)[0].size:
        raise InfeasibleError(_why_none(clusters, layout, question.constraints, ruled_out))
    scope: Scope = "all" if question.pareto else question.scope
    found = _searched(layout, layout.domains, layout.cluster_of, allowed, question, scope)
    order = (
        _undominated(layout, found, question)
        if question.pareto
        else np.lexsort((found.domain, found.processors, found.score))
    )
    order = order[np.isfinite(found.score[order])]
    if not order.size:
        raise InfeasibleError("no model of the application is defined for any of the resource sets")
    around = Circumstances(layout, question.problem_size, question.level, question.objective, question.contention)
    weighed, notes = weigh(around, found, order, question.top)
    settled = settle_ties(weighed, question.tolerance, question.rotation)
    best = least = min(candidate.score for candidate in settled)
    if layout.optimistic is not None:
        domains, cluster_of = layout.optimistic
        least = float(_searched(layout, domains, cluster_of, allowed, question, "top").score.min())
    elif not alone:
        least = float(found.score.min())
    placements, warnings = _told(layout, settled, question, int(found.score.size))
    warnings += tuple(line for line in notes if line not in warnings)
    return Ranking(
        placements,
        tuple(candidate.costs for candidate in settled),
        _curve(layout, found, question),
        int(found.score.size),
        found.evaluations,
        max(0.0, best / least - 1.0),
        ruled_out,
        warnings,
    )


def _searched(
    layout: Layout, domains: Domains, cluster_of: Ints, allowed: Ints, question: Question, scope: Scope
) -> Found:
    index, processors = domains.pairs(allowed)
    cluster = cluster_of[index]
    wait, watts = layout.wait(cluster, processors), layout.watts(cluster)

    def score(pair: Ints, cpu: Floats, bandwidth: Floats) -> Floats:
        count = processors[pair]
        if question.objective.time_alone:
            time = layout.expect(question.problem_size, cluster[pair], count, cpu, bandwidth)
            return question.objective.score_time(wait[pair] + time, count)
        predicted = layout.predict(question.problem_size, question.level, cluster[pair], count, cpu, bandwidth)
        terms = Terms.of(
            predicted.execution_time, predicted.high, processors=count, queue_wait=wait[pair], power=watts[pair]
        )
        return question.objective.score(terms, count)

    return search(domains, allowed, score, scope, question.top)


def _undominated(layout: Layout, found: Found, question: Question) -> Ints:
    """Pairs on the Pareto front of the terms that the objective weighs, ascending in score."""
    cluster = layout.cluster_of[found.domain]
    predicted = layout.predict(
        question.problem_size, question.level, cluster, found.processors, found.cpu, found.bandwidth
    )
    terms = Terms.of(
        predicted.execution_time,
        predicted.high,
        processors=found.processors,
        queue_wait=layout.wait(cluster, found.processors),
        power=layout.watts(cluster),
    )
    weighed = [name for name in TERMS if getattr(question.objective, name)]
    kept = front(np.column_stack([getattr(terms, name) for name in weighed]))
    return kept[np.argsort(found.score[kept], kind="stable")]


def _told(
    layout: Layout, settled: Sequence[Candidate], question: Question, compared: int
) -> tuple[tuple[Placement, ...], tuple[str, ...]]:
    """The placements with the model that each prediction came from, its warnings, and the reason for its place."""
    placements, warnings = [], list[str]()
    for candidate in settled:
        chosen = candidate.placement.resource_set
        # A processor faster than the reference node's offers more than 1; a request of one prediction stops there.
        request = Request(
            question.problem_size, chosen.processors, min(1.0, chosen.available_cpu), chosen.available_bandwidth
        )
        one = layout.predictors[candidate.cluster].predict(request, question.level)
        prediction = replace(candidate.placement.prediction, model=one.model, warnings=one.warnings)
        placements.append(replace(candidate.placement, prediction=prediction))
        warnings += [line for line in one.warnings if line not in warnings]
    warnings += [line for line in _against_nature(layout, settled, question) if line not in warnings]
    known = {layout.clusters[each.cluster].name: layout.predictors[each.cluster] for each in settled}

    def time(cluster: str, processors: int, cpu: float, bandwidth: float) -> float:
        return float(expected(known[cluster], question.problem_size, processors, cpu, bandwidth).item())

    return explain_order(placements, Cause(time), compared), tuple(warnings)


def _against_nature(layout: Layout, settled: Sequence[Candidate], question: Question) -> list[str]:
    """A line for each model that predicts longer times for more CPU or bandwidth: such an order is not proven."""
    lines: list[str] = []
    for number in sorted({candidate.cluster for candidate in settled}):
        sets = [candidate.placement.resource_set for candidate in settled if candidate.cluster == number]
        p = np.array([chosen.processors for chosen in sets])
        cpu = np.array([chosen.available_cpu for chosen in sets])
        bandwidth = np.array([chosen.available_bandwidth for chosen in sets])
        times = (
            expected(layout.predictors[number], question.problem_size, p, c, b)
            for c, b in ((cpu, bandwidth), (MORE * cpu, bandwidth), (cpu, MORE * bandwidth))
        )
        lines += against_nature(layout.clusters[number].name, *times)
    return lines


def _curve(layout: Layout, found: Found, question: Question) -> Curve:
    order = np.lexsort((found.score, found.processors))
    counts, first = np.unique(found.processors[order], return_index=True)
    best = order[first]
    cluster = layout.cluster_of[found.domain[best]]
    predicted = layout.predict(
        question.problem_size, question.level, cluster, counts, found.cpu[best], found.bandwidth[best]
    )
    time = predicted.execution_time
    return Curve(counts, time, predicted.low, predicted.high, layout.wait(cluster, counts) + time)


def _why_none(
    clusters: Sequence[ClusterState],
    layout: Layout,
    constraints: Constraints,
    ruled_out: Mapping[str, Mapping[str, int]],
) -> str:
    largest = int(layout.domains.sizes.max(initial=0))
    parts = []
    for cluster in clusters:
        demands = ", ".join(f"{demand} rules out {count}" for demand, count in ruled_out[cluster.name].items())
        parts.append(f"{cluster.name} ({len(cluster.nodes)} nodes): {demands or 'none ruled out'}")
    wanted = ", ".join(map(str, constraints.processors)) or f"at least {constraints.min_processors}"
    if constraints.max_processors is not None:
        wanted += f" and at most {constraints.max_processors}"
    if constraints.processors and constraints.min_processors > 1:
        wanted += f" and at least {constraints.min_processors}"
    return f"no feasible resource set for {wanted} processors, at most {largest} are left together; {'; '.join(parts)}"
