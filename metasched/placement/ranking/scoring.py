"""Scores the sets that a question admits by their minima, and finds the best of them.

The scores hold nothing that depends on the very nodes of a set: no contention, and no doubt about the loads to come.
Sets that are not to be advised come behind all others: those below the floor of efficiency, too late, or above a power
cap.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from metasched.arrays import Floats, Ints
from metasched.placement.clusters.power_draw import Draw
from metasched.placement.ranking.efficiency import longest, put_beyond
from metasched.placement.ranking.objective import Objective, Terms
from metasched.placement.ranking.query import Question
from metasched.placement.ranking.slowdown import Latest
from metasched.placement.search.exact_search import Domains, Found, Scope, Score, search
from metasched.placement.search.expectation import Expectation, Pairs, expectation
from metasched.placement.search.joined_clusters import Layout


class Scoring:
    """The scores of the sets of a layout for one question.

    Parameters
    ----------
    layout : the search space.
    question : what is asked.
    allowed : numbers of processors, ascending, shape (a,).
    draws : the power of each cluster of the layout without the job; empty without a power cap.

    Attributes
    ----------
    evaluations : how many predictions the searches for sets made until now.
    """

    def __init__(self, layout: Layout, question: Question, allowed: Ints, draws: Sequence[Draw]) -> None:
        self._layout, self._question, self._allowed, self._draws = layout, question, allowed, draws
        self.evaluations = 0
        self._own = self._pairs_of(layout.domains, layout.cluster_of)
        self._of_fewest = self._found_of_fewest()

    def best(self, objective: Objective, scope: Scope, top: int, limit: Latest | None) -> Found:
        """The best set of each pair of a domain and a number of processors, as far as the scope wants them exact.

        Parameters
        ----------
        objective : what is to be small.
        scope : see :func:`metasched.placement.search.exact_search.search`.
        top : how many sets must be the best of all; one set may be found in several domains.
        limit : the latest completions; None for any.
        """
        domains = self._layout.domains
        score = self._score(domains, *self._own, objective, limit)
        found = search(domains, self._allowed, score, scope, top * domains.overlap)
        self.evaluations += found.evaluations
        return found

    def least(self, domains: Domains, cluster_of: Ints, objective: Objective, limit: Latest | None) -> float:
        """The least score of all sets of some domains.

        Parameters
        ----------
        domains, cluster_of : of the clusters of the layout, and the number of each one's cluster.
        objective, limit : see :meth:`best`.
        """
        score = self._score(domains, *self._pairs_of(domains, cluster_of), objective, limit)
        return float(search(domains, self._allowed, score, "top", 1).score.min())

    def _pairs_of(self, domains: Domains, cluster_of: Ints) -> tuple[Pairs, Expectation]:
        pairs = Pairs.of(domains, cluster_of, self._allowed)
        return pairs, expectation(self._layout, self._question.problem_size, domains, pairs)

    def _found_of_fewest(self) -> Floats:
        """P0 T0 of each cluster (s), see :mod:`metasched.placement.ranking.efficiency`."""
        least, fewest = np.full(len(self._layout.clusters), np.inf), int(self._allowed[0])
        if not self._question.constraints.least_efficiency:
            return least
        pairs, expected = self._own
        own = np.flatnonzero(pairs.processors == fewest)
        found = search(self._layout.domains, [fewest], lambda pair, *where: expected(own.take(pair), *where))
        np.fmin.at(least, pairs.cluster[own], fewest * found.score)
        self.evaluations += found.evaluations
        return least

    def _score(
        self, domains: Domains, pairs: Pairs, expected: Expectation, objective: Objective, limit: Latest | None
    ) -> Score:
        layout, asked, draws = self._layout, self._question, self._draws
        cluster, processors = pairs.cluster, pairs.processors
        wait, taken = layout.wait(cluster, processors), layout.taken(cluster, processors)
        longest_time = longest(processors, self._of_fewest[cluster], asked.constraints.least_efficiency)

        def loads(place: Ints, step: Ints) -> tuple[Floats, Floats]:
            return domains.falling.take(place), domains.step_width.take(step)

        def score(pair: Ints, place: Ints, step: Ints) -> Floats:
            count, time = processors.take(pair), expected(pair, place, step)
            completion = wait.take(pair) + time
            if objective.time_alone:
                scores = objective.score_time(completion, count)
            else:
                # Terms without weight are not computed.
                where = cluster.take(pair)
                high: Floats | float = 0.0
                if objective.risk:
                    predicted = layout.predict(asked.problem_size, asked.level, where, count, *loads(place, step))
                    time, high = predicted.execution_time, predicted.high
                joules: Floats | float = 0.0
                if objective.energy:
                    joules = layout.energy(asked.problem_size, where, count, *loads(place, step), time)
                terms = Terms.of(time, high, processors=taken.take(pair), queue_wait=wait.take(pair), energy=joules)
                scores = objective.score(terms, count)
            put_beyond(scores, np.flatnonzero(time > longest_time.take(pair)))
            if limit is not None:
                put_beyond(scores, limit.passed(completion, cluster.take(pair), count, *loads(place, step)))
            if asked.power_cap is not None:
                where = cluster.take(pair)
                watts, doubt = layout.power_in_doubt(asked.problem_size, where, count, *loads(place, step))
                for number, draw in enumerate(draws):
                    mine = np.flatnonzero(where == number)
                    whole = draw.most(taken[pair[mine]], watts[mine], doubt[mine])
                    put_beyond(scores, mine[whole > asked.power_cap])
            return scores

        return score
