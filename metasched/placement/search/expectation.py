"""Expected times of very many resource sets, of which the search repeatedly requests the same pairs.

If the predictors' times are sums of powers of the loads, each power is computed once: for the numbers of processors,
for the speed of every node, and for the width of every step. A time is then a few products.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from metasched.arrays import Floats, Ints
from metasched.placement.search.exact_search import Domains
from metasched.placement.search.joined_clusters import Layout
from metasched.predictors.abilities import power_terms

#: Times (s) of (pair, place of the CPU in ``Domains.falling``, step): arrays of shape (k,) in, shape (k,) out.
Expectation = Callable[[Ints, Ints, Ints], Floats]


@dataclass(frozen=True, slots=True)
class Pairs:
    """Domains of a layout with numbers of processors, p of them in the order of the domains.

    Parameters
    ----------
    processors : array of shape (p,).
    cluster : array of shape (p,), number of the cluster, ascending.
    of_domain : array of shape (d,), the cluster of each domain.
    """

    processors: Ints
    cluster: Ints
    of_domain: Ints

    @classmethod
    def of(cls, domains: Domains, cluster_of: Ints, allowed: Ints) -> Pairs:
        """All pairs of the domains of some clusters with the numbers of processors that are allowed.

        Parameters
        ----------
        domains : of all clusters.
        cluster_of : the number of each domain's cluster, shape (d,).
        allowed : numbers of processors, ascending, shape (a,).
        """
        index, processors = domains.pairs(allowed)
        return cls(processors, cluster_of.take(index), cluster_of)


def expectation(layout: Layout, size: float, domains: Domains, pairs: Pairs) -> Expectation:
    """A faster function for the execution times of ``layout.expect``.

    Parameters
    ----------
    layout : clusters and predictors.
    size : problem size N.
    domains : those of the layout, or the optimistic ones.
    pairs : of these domains.
    """
    powers = _powers(layout, size, domains, pairs)

    def by_value(pair: Ints, place: Ints, step: Ints) -> Floats:
        cpu, bandwidth = domains.falling.take(place), domains.step_width.take(step)
        return layout.expect(size, pairs.cluster.take(pair), pairs.processors.take(pair), cpu, bandwidth)

    def by_power(pair: Ints, place: Ints, step: Ints) -> Floats:
        total = np.zeros(pair.size)
        for of_pair, of_place, of_step in powers:
            term = of_pair.take(pair)
            term *= of_place.take(place)
            if of_step is not None:
                term *= of_step.take(step)
            total += term
        return total

    return by_power if powers else by_value


def _powers(layout: Layout, size: float, domains: Domains, pairs: Pairs) -> list[tuple[Floats, Floats, Floats | None]]:
    """The factors of each term for pairs, places and steps; empty if a predictor has no terms, or another number."""
    place_of = pairs.of_domain.take(domains.index)
    step_of = place_of.take(domains.step_end - 1)
    log_speed, log_width = np.log(domains.falling), np.log(domains.step_width)
    made: list[tuple[Floats, Floats, Floats]] = []
    for number, (state, predictor) in enumerate(zip(layout.clusters, layout.predictors, strict=True)):
        # Clusters lie one behind the other.
        pair, place, step = (
            slice(*np.searchsorted(each, [number, number + 1])) for each in (pairs.cluster, place_of, step_of)
        )
        terms = power_terms(predictor, size, pairs.processors[pair])
        made = made or [
            (np.empty(pairs.cluster.size), np.empty(place_of.size), np.empty(step_of.size)) for _ in terms or ()
        ]
        if terms is None or len(terms) != len(made):
            return []
        for term, (of_pair, of_place, of_step) in zip(terms, made, strict=True):
            of_pair[pair] = term.factor
            if state.minima is not None:
                of_cpu, of_bandwidth = state.minima.at(pairs.processors[pair])
                of_pair[pair] *= of_cpu**term.cpu * of_bandwidth**term.bandwidth
            of_place[place] = np.exp(term.cpu * log_speed[place])
            of_step[step] = np.exp(term.bandwidth * log_width[step]) if term.bandwidth else 1.0
    if not all(np.isfinite(each).all() for factors in made for each in factors):
        return []  # where the numbers overflow the order of the factors counts
    return [(of_pair, of_place, None if (of_step == 1.0).all() else of_step) for of_pair, of_place, of_step in made]
