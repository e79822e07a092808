"""Ranks resource sets: clusters, predictors and constraints in, placements in the order of the objective out."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from metasched.arrays import Ints
from metasched.placement.clusters.constraints import Constraints, admit
from metasched.placement.clusters.energy import tells_energy
from metasched.placement.clusters.power_draw import Draw, draw_of
from metasched.placement.clusters.state import ClusterState
from metasched.placement.loads.counted import expected, with_recent
from metasched.placement.loads.recent_placements import as_running
from metasched.placement.ranking.candidates import Candidate, Circumstances, weigh
from metasched.placement.ranking.contention import ALONE, NoContention
from metasched.placement.ranking.efficiency import ADVISED_UP_TO
from metasched.placement.ranking.objective import EARLIEST, TERMS, Terms
from metasched.placement.ranking.pareto_front import front
from metasched.placement.ranking.preparation import at_its_own_horizon, rotated
from metasched.placement.ranking.query import Curve, InfeasibleError, Question, Ranking
from metasched.placement.ranking.rendering import rendered
from metasched.placement.ranking.scoring import Scoring
from metasched.placement.ranking.slowdown import latest
from metasched.placement.ranking.ties import settle_ties
from metasched.placement.search.exact_search import Found
from metasched.placement.search.joined_clusters import Layout, lay_out
from metasched.plain_numbers import number_of
from metasched.predictors.abilities import energy_predictor
from metasched.predictors.contract import Predictor
from metasched.records import InputError, Placement

#: Number of pairs that are sorted at first; the order of the others rarely matters.
FIRST_SORTED = 256
#: Numbers of processors that a curve lists, but for a few: whoever reads it validates each.
MOST_LISTED = 2000
#: The curve where none is asked for.
NO_CURVE = Curve(np.empty(0, np.int64), *(np.empty(0) for _ in range(4)))


def rank(
    clusters: Sequence[ClusterState], predictors: Mapping[str, Predictor] | Predictor, question: Question
) -> Ranking:
    """Rank the resource sets of some clusters, at several clocks where asked, for one application and problem size.

    Where jobs that were placed just now have the processors that it would need, the wait for them counts.

    Parameters
    ----------
    clusters : where it could run.
    predictors : the application's predictor on each cluster by name, or one for all.
    question : what is asked.

    Raises
    ------
    InfeasibleError : when the constraints leave no resource set.
    InputError : when energy alone or a power cap counts, and the energy of runs on a cluster is unknown.
    """
    rotation = question.rotation
    known: list[tuple[list[ClusterState], Ranking]] = []

    def at(horizon: float | None) -> Ranking:
        """The same ranking where the same loads are expected: horizons near each other may share a forecast."""
        before = [expected(cluster, question.loads, horizon) for cluster in clusters]
        for states, ranking in known:
            if all(map(operator.is_, states, (state for state, _ in before))):
                return ranking
        known.append(([state for state, _ in before], of(before)))
        return known[-1][1]

    def of(before: Sequence[tuple[ClusterState, tuple[str, ...]]]) -> Ranking:
        turned = [(rotated(state, rotation), warnings) for state, warnings in before]
        states = [with_recent(*each, question.loads) for each in turned]
        ranking = _ranked([state for state, _ in states], predictors, question)
        lines = tuple(line for _, warnings in states for line in warnings)
        return replace(ranking, warnings=lines + ranking.warnings)

    try:
        return at_its_own_horizon(question.loads, at, lambda found: found.placements[0].completion)
    except InfeasibleError:
        if question.loads.waiting or not any(job.dedicated for job in question.loads.recent):
            raise
    # It is unknown which jobs will share its nodes once the recently placed ones have ended.
    loads = replace(question.loads, waiting=True)
    return rank(clusters, predictors, replace(question, loads=loads, contention=ALONE))


def _ranked(
    clusters: Sequence[ClusterState], predictors: Mapping[str, Predictor] | Predictor, question: Question
) -> Ranking:
    alone = isinstance(question.contention, NoContention)
    layout, ruled_out = lay_out(
        clusters, predictors, question.constraints, avoid_shared=not alone, settings=question.settings
    )
    allowed = question.constraints.counts(int(layout.domains.sizes.max(initial=0)))
    if not layout.domains.pairs(allowed)[0].size:
        for_now = _fits_when_free(clusters, predictors, question)
        raise InfeasibleError(_why_none(clusters, layout, question.constraints, ruled_out), for_now=for_now)
    _check_energy(layout, question)
    draws = _draws(clusters, layout, question)
    scoring = Scoring(layout, question, allowed, draws)
    around = Circumstances(layout, question.problem_size, question.level, question.objective, question.contention)
    besides: tuple[Candidate, ...] = ()
    if question.max_slowdown is not None:
        # The fastest placement with the same loads is needed first: it determines which are too slow.
        soonest = scoring.best(EARLIEST, question.scope, 1, None)
        (fastest,), _ = _weighed(replace(around, objective=EARLIEST), soonest, _ascending(soonest), 1, draws, question)
        limit = latest(layout, fastest.placement, question.max_slowdown, question.problem_size)
        around, besides = replace(around, limit=limit), () if alone else (fastest,)
    found = scoring.best(question.objective, "all" if question.pareto else question.scope, question.top, around.limit)
    order = _undominated(layout, found, question) if question.pareto else _ascending(found)
    weighed, notes = _weighed(around, found, order, question.top, draws, question, besides)
    settled = settle_ties(weighed, question.tolerance, question.rotation)
    places = [cluster.place for cluster in layout.clusters]
    placements, warnings = rendered(
        [candidate.placement for candidate in settled],
        dict(zip(places, layout.clusters, strict=True)),
        dict(zip(places, layout.predictors, strict=True)),
        question.problem_size,
        question.level,
        int(found.score.size),
    )
    of_name, known = {cluster.name: cluster for cluster in clusters}, {cluster.name for cluster in layout.clusters}
    return Ranking(
        placements,
        tuple(candidate.costs for candidate in settled),
        _curve(layout, found, question, placements) if question.curve else NO_CURVE,
        int(found.score.size),
        scoring.evaluations,
        _gap(min(candidate.score for candidate in settled), found, scoring, around),
        ruled_out,
        {name: admit(cluster, question.constraints).cluster for name, cluster in of_name.items() if name in known},
        warnings + tuple(line for line in notes if line not in warnings),
    )


def _check_energy(layout: Layout, question: Question) -> None:
    """Refuse, by InputError, to compare energies that are not known."""
    if question.power_cap is None and not question.objective.energy_alone:
        return
    for state, predictor in zip(layout.clusters, layout.predictors, strict=True):
        if state.nodes and not tells_energy(state, predictor):
            raise InputError(
                f"the energy of runs on {state.name} is unknown, expected learned runs with measured energy, or "
                "watts or hardware of the cluster"
            )


def _weighed(
    around: Circumstances,
    found: Found,
    order: Iterable[int],
    top: int,
    draws: Sequence[Draw],
    question: Question,
    besides: Sequence[Candidate] = (),
) -> tuple[list[Candidate], tuple[str, ...]]:
    """The best candidates, see :func:`metasched.placement.ranking.candidates.weigh`; InfeasibleError without any."""
    weighed, notes = weigh(around, found, order, top, besides)
    if weighed:
        return weighed, notes
    if question.power_cap is not None:
        busy = any(draw.running for draw in draws)
        raise InfeasibleError(_why_too_much_power(around.layout, draws, question.power_cap), for_now=busy)
    raise InfeasibleError("no model of the application is defined for any of the resource sets", for_now=True)


def _gap(best: float, found: Found, scoring: Scoring, around: Circumstances) -> float:
    """By what share the best score is at most above the least that any set can have; infinite above 0."""
    layout, least = around.layout, best
    if layout.optimistic is not None:
        least = scoring.least(*layout.optimistic, around.objective, around.limit)
    elif not isinstance(around.contention, NoContention) or (
        around.objective.risk and any(each.minima is not None for each in layout.clusters)
    ):
        least = float(found.score.min())
    if best <= least:
        return 0.0
    return best / least - 1.0 if least > 0.0 else math.inf


def _draws(clusters: Sequence[ClusterState], layout: Layout, question: Question) -> tuple[Draw, ...]:
    """The power of each cluster without the job, on all its nodes; empty without a power cap."""
    if question.power_cap is None:
        return ()
    found = {
        each.name: draw_of(each, [*question.running.get(each.name, ()), *as_running(question.loads.recent, each)])
        for each in clusters
    }
    return tuple(
        replace(found[each.name], whole=energy_predictor(predictor) is None)
        for each, predictor in zip(layout.clusters, layout.predictors, strict=True)
    )


def _why_too_much_power(layout: Layout, draws: Sequence[Draw], cap: float) -> str:
    """The reason why no resource set satisfies a power cap; clusters without admitted nodes are none of it."""
    able = [(state, draw) for state, draw in zip(layout.clusters, draws, strict=True) if state.nodes]
    state, draw = min(able, key=lambda each: each[1].alone)
    if draw.alone >= cap:
        return (
            f"the power cap of {cap:g} W is below what {state.name} draws without the job: {draw.at_most:g} W by jobs "
            f"that run and {draw.idle * draw.unused:g} W by {draw.unused:.4g} idle nodes"
        )
    more = f", {draw.alone:g} W of which are drawn without the job" if draw.alone else ""
    return f"every resource set draws more than the power cap of {cap:g} W{more}"


def _ascending(found: Found) -> Iterator[int]:
    """The admissible pairs, ascending in score; those far down are sorted on demand."""
    left, some = np.flatnonzero(found.score < ADVISED_UP_TO), FIRST_SORTED
    while left.size:
        score = found.score[left]
        near = score <= np.partition(score, some - 1)[some - 1] if some < left.size else np.full(left.size, True)
        now, left, some = left[near], left[~near], 8 * some
        yield from now[np.lexsort((found.domain[now], found.processors[now], found.score[now]))].tolist()


def _undominated(layout: Layout, found: Found, question: Question) -> Ints:
    """Pairs on the Pareto front of what the objective weighs, ascending in score, of those to be advised."""
    advised = np.flatnonzero(found.score < ADVISED_UP_TO)
    cluster, processors = layout.cluster_of[found.domain[advised]], found.processors[advised]
    loads = found.cpu[advised], found.bandwidth[advised]
    predicted = layout.predict_in_doubt(question.problem_size, question.level, cluster, processors, *loads)
    terms = Terms.of(
        predicted.execution_time,
        predicted.high,
        processors=layout.taken(cluster, processors),
        queue_wait=layout.wait(cluster, processors),
        energy=layout.energy(question.problem_size, cluster, processors, *loads, predicted.execution_time),
    )
    weighed = [getattr(terms, name) for name in TERMS if getattr(question.objective, name)]
    # Where more processors must save something, fewer are worth something.
    costs = [*weighed, processors] if question.objective.saving else weighed
    kept = advised[front(np.column_stack(costs))]
    return kept[np.argsort(found.score[kept], kind="stable")]


def _curve(layout: Layout, found: Found, question: Question, placements: Iterable[Placement]) -> Curve:
    least = np.full(int(found.processors.max()) + 1, np.inf)
    np.fmin.at(least, found.processors, found.score)
    best = np.flatnonzero(found.score == least[found.processors])
    counts, first = np.unique(found.processors[best], return_index=True)
    best = best[first]
    if counts.size > MOST_LISTED:
        cluster, loads = layout.cluster_of[found.domain[best]], (found.cpu[best], found.bandwidth[best])
        completion = layout.wait(cluster, counts) + layout.expect(question.problem_size, cluster, counts, *loads)
        listed = counts & (counts - 1) == 0
        listed[np.geomspace(1, counts.size, MOST_LISTED).astype(np.int64) - 1] = True
        listed |= np.isin(counts, [each.resource_set.processors for each in placements])
        listed[[0, -1, np.nanargmin(completion)]] = True
        counts, best = counts[listed], best[listed]
    cluster = layout.cluster_of[found.domain[best]]
    predicted = layout.predict_in_doubt(
        question.problem_size, question.level, cluster, counts, found.cpu[best], found.bandwidth[best]
    )
    time = predicted.execution_time
    return Curve(counts, time, predicted.low, predicted.high, layout.wait(cluster, counts) + time)


def _fits_when_free(
    clusters: Sequence[ClusterState], predictors: Mapping[str, Predictor] | Predictor, question: Question
) -> bool:
    """Whether there would be a resource set, were all nodes up, free and without jobs."""
    free = [
        replace(
            each,
            up=np.full(len(each.nodes), True),
            jobs=np.zeros_like(each.jobs),
            processors=np.where(each.processors > 0, each.processors, each.processors.max(initial=1)),
        )
        for each in clusters
    ]
    layout, _ = lay_out(free, predictors, question.constraints, avoid_shared=False, settings=question.settings)
    return bool(question.constraints.counts(int(layout.domains.sizes.max(initial=0))).size)


def _why_none(
    clusters: Sequence[ClusterState],
    layout: Layout,
    constraints: Constraints,
    ruled_out: Mapping[str, Mapping[str, int]],
) -> str:
    largest = int(layout.domains.sizes.max(initial=0))
    parts = []
    for cluster in clusters:
        demands = ", ".join(f"{count} ruled out ({demand})" for demand, count in ruled_out[cluster.name].items())
        parts.append(f"{cluster.name} ({number_of(len(cluster.nodes), 'node')}): {demands or 'none ruled out'}")
    wanted = ", ".join(map(str, constraints.processors)) or f"at least {constraints.min_processors}"
    if constraints.max_processors is not None:
        wanted += f" and at most {constraints.max_processors}"
    if constraints.processors and constraints.min_processors > 1:
        wanted += f" and at least {constraints.min_processors}"
    return f"no feasible resource set for {wanted} processors, at most {largest} are left together; {'; '.join(parts)}"
