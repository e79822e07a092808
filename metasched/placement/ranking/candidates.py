"""Turns what the search found into placements: the sets themselves, contention, and what each costs.

Contention depends on the very nodes of a set, so it cannot be searched by minima; the doubt about the loads to come is
costly to predict. But both only ever add: a candidate's score without them is a lower bound. So candidates are weighed
in the order of that bound until the next bound is no better than the worst one to be shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice

import numpy as np

from metasched.placement.clusters.energy import energy_of
from metasched.placement.ranking.contention import Contention, Share
from metasched.placement.ranking.efficiency import ADVISED_UP_TO, put_beyond
from metasched.placement.ranking.objective import TERMS, Objective, Terms
from metasched.placement.ranking.slowdown import Latest, least_of_nodes
from metasched.placement.search.exact_search import Found
from metasched.placement.search.joined_clusters import Layout
from metasched.predictors.load_doubt import predict_many
from metasched.records import Interval, Placement, Prediction, ResourceSet

#: Sets weighed in the first batch, each next one being twice as large, and at most: beyond these the gap says what
#: may be missed.
BATCH, MOST_SETS = 8, 500


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What all candidates of one ranking have in common; ``limit`` are the latest completions, None for any."""

    layout: Layout
    problem_size: float
    level: float
    objective: Objective
    contention: Contention
    limit: Latest | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A placement, the cluster's number, its costs by term, its score, and what it takes of the cluster."""

    placement: Placement
    cluster: int
    costs: dict[str, float]
    score: float
    share: Share


def weigh(
    around: Circumstances, found: Found, order: Iterable[int], top: int, besides: Sequence[Candidate] = ()
) -> tuple[list[Candidate], tuple[str, ...]]:
    """The best candidates with contention, best first, and what the user should know of it.

    Of the same nodes with several layouts or clocks the best is one. Those that contention makes too late are left out.

    Parameters
    ----------
    around : what the candidates have in common.
    found : what the search found.
    order : numbers of the pairs to weigh, ascending in their score.
    top : how many are wanted.
    besides : candidates for something else that are weighed, too.
    """
    sets = chain(((each.cluster, each.share, -np.inf) for each in besides), _distinct(around.layout, found, order))
    best: dict[tuple[tuple[int, int], ...], Candidate] = {}
    weighed: list[Candidate] = []
    notes: dict[str, None] = {}
    tried, size = 0, max(top, BATCH)
    while batch := list(islice(sets, size)):
        for candidates, lines in _weighed(around, [(cluster, share) for cluster, share, _ in batch]):
            for each in candidates:
                same = _taken(each.share, int(around.layout.first_node[each.cluster]))
                if each.score < ADVISED_UP_TO and (same not in best or each.score < best[same].score):
                    best[same] = each
            notes |= dict.fromkeys(lines)
        weighed = sorted(best.values(), key=lambda candidate: candidate.score)
        tried += len(batch)
        # Sets were scored by what their group promises: as they are they can only be better, but for rounding.
        bound = batch[-1][2] * (1.0 + 1e-12)
        if (len(weighed) >= top and weighed[top - 1].score <= bound) or tried >= MOST_SETS:
            break
        size = min(2 * size, MOST_SETS - tried)
    return weighed[:top], tuple(notes)


def _taken(share: Share, first_node: int) -> tuple[tuple[int, int], ...]:
    """What a share takes of which nodes, numbered through all clusters."""
    return tuple(sorted(zip((share.nodes + first_node).tolist(), share.processors.tolist(), strict=True)))


def _distinct(layout: Layout, found: Found, order: Iterable[int]) -> Iterator[tuple[int, Share, float]]:
    """Sets that differ from each other in nodes, layout or clock, with their scores without contention.

    A set that lies in one rack is found both for the rack and for the switches above it.
    """
    seen: set[tuple[int, tuple[tuple[int, int], ...]]] = set()
    for pair in order:
        domain = int(found.domain[pair])
        nodes, counts = layout.domains.members(
            domain, int(found.processors[pair]), int(found.step[pair]), float(found.cpu[pair])
        )
        number = int(layout.cluster_of[domain])
        share = Share(nodes - layout.first_node[number], counts)
        same = number, _taken(share, 0)
        if same not in seen:
            seen.add(same)
            yield number, share, float(found.score[pair])


def _weighed(around: Circumstances, sets: list[tuple[int, Share]]) -> Iterator[tuple[list[Candidate], tuple[str, ...]]]:
    for number in sorted({number for number, _ in sets}):
        yield _in_one_cluster(around, number, [share for where, share in sets if where == number])


def _in_one_cluster(around: Circumstances, number: int, shares: list[Share]) -> tuple[list[Candidate], tuple[str, ...]]:
    layout, level = around.layout, around.level
    cluster = layout.clusters[number]
    chosen = [layout.resource_set(number, share.nodes, int(share.processors.sum())) for share in shares]
    processors = np.array([each.processors for each in chosen])
    cpu, bandwidth = np.array([(each.available_cpu, each.available_bandwidth) for each in chosen]).T
    predictor, size = layout.predictors[number], around.problem_size
    predicted = predict_many(predictor, size, processors, cpu, bandwidth, level, cluster.doubt(processors, level))
    # Others run on all that is there, however this job is laid out.
    there = replace(cluster, processors=layout.free[number])
    shared = around.contention.effects(there, predictor, shares, predicted.execution_time)
    slowdown = shared.slowdown
    wait = cluster.queue_wait.at(processors)
    terms = Terms.of(
        slowdown * predicted.execution_time,
        slowdown * predicted.high,
        processors=processors * cluster.threads,
        queue_wait=wait,
        energy=slowdown * energy_of(cluster, predictor, size, processors, cpu, bandwidth, predicted.execution_time),
        harm=shared.harm,
    )
    scores = around.objective.score(terms, processors)
    if around.limit is not None:
        own = least_of_nodes(cluster, processors, cpu, bandwidth)
        put_beyond(scores, around.limit.passed(terms.time, np.full(len(shares), number), processors, *own))
    candidates = [
        Candidate(
            _placement(
                chosen[k], predicted.execution_time[k], predicted.low[k], predicted.high[k], level, wait[k], slowdown[k]
            ),
            number,
            {name: float(getattr(terms, name)[k]) for name in TERMS},
            float(scores[k]),
            shares[k],
        )
        for k in range(len(shares))
    ]
    return candidates, shared.notes


def _placement(
    chosen: ResourceSet, time: float, low: float, high: float, level: float, wait: float, slowdown: float
) -> Placement:
    prediction = Prediction(float(time), Interval(float(low), float(high), level), model="")
    return Placement(chosen, prediction, float(wait), float(slowdown))
