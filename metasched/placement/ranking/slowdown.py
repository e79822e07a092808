"""The latest acceptable completion: later than the fastest by a given share, as far as clocks and loads are known.

What was learned of the clock leaves open how much slower a placement is than the fastest at another clock; whatever
else makes a model err makes it err in both. What is expected of the loads leaves open whether a slower placement keeps
to that share. On the nodes of the fastest both meet the same loads, and only the time by which it is slower is in
doubt. Other nodes meet loads of their own, so all of both times is. With as many processors elsewhere the limit is
therefore narrower than on the same nodes; sets with more or fewer processors in the same cluster mostly hold the same
nodes, and count as these. On the logarithm of the time both doubts are independent: their reaches add up as squares.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from metasched.arrays import Flags, Floats, Ints
from metasched.placement.clusters.state import ClusterState
from metasched.placement.search.joined_clusters import Layout
from metasched.predictors.abilities import clock_spread
from metasched.records import Placement

#: Level of the intervals of the times whose upper ends count, each passed by one run in three. On three design seeds of
#: ``benchmarks.energy_stream`` as much energy was saved as when only the loads were doubted, at a level of 0.5, and 17
#: jobs of 1500 were slower by more than 7 % where 5 % was allowed, instead of 26; at 0.5 a twelfth less was saved.
LEVEL = 1.0 / 3.0
#: Relative differences of loads and of times that are rounding errors.
ROUNDED = 1e-9


@dataclass(frozen=True, slots=True)
class Latest:
    """The latest completions that are acceptable.

    Parameters
    ----------
    here : array of shape (c,), which clusters of the layout are that of the fastest placement, at any clock.
    processors, cpu, bandwidth : of the fastest, with the loads of its nodes: share of a processor, and Mbit/s.
    own, other : on its nodes, and on others, by cluster of the layout, arrays of shape (c,) (s).
    """

    here: Flags
    processors: int
    cpu: float
    bandwidth: float
    own: Floats
    other: Floats

    def of(self, cluster: Ints, processors: Ints, cpu: Floats, bandwidth: Floats) -> Floats:
        """The latest completion (s) of sets by their clusters, processors and loads, arrays of shape (k,).

        No set with more to spare is slower than the fastest at its clock; so it counts as the same nodes, and the limit
        never falls where loads get better, as the search needs it.

        Parameters
        ----------
        cluster : number of each set's cluster in the layout.
        processors : of each set.
        cpu : least available CPU of each one's nodes, a share of one processor.
        bandwidth : least available bandwidth of each one's links (Mbit/s).
        """
        least = 1.0 - ROUNDED
        same = (processors != self.processors) | ((cpu >= least * self.cpu) & (bandwidth >= least * self.bandwidth))
        return np.where(self.here[cluster] & same, self.own[cluster], self.other[cluster])

    def passed(self, completion: Floats, cluster: Ints, processors: Ints, cpu: Floats, bandwidth: Floats) -> Flags:
        """Which sets, as for :meth:`of`, complete (s) too late by more than rounding; shape (k,)."""
        return np.asarray((1.0 - ROUNDED) * completion > self.of(cluster, processors, cpu, bandwidth))


def least_of_nodes(state: ClusterState, processors: Ints, cpu: Floats, bandwidth: Floats) -> tuple[Floats, Floats]:
    """The least CPU and bandwidth of the nodes of sets, from what is expected of the sets, arrays of shape (k,).

    Parameters
    ----------
    state : the sets' cluster.
    processors : of each set.
    cpu, bandwidth : that the sets are expected to have: share of a processor, and Mbit/s.
    """
    if state.minima is None:
        return cpu, bandwidth
    of_cpu, of_bandwidth = state.minima.at(processors)
    return cpu / of_cpu, bandwidth / of_bandwidth


def latest(layout: Layout, fastest: Placement, share: float, size: float) -> Latest:
    """The latest completions of placements that may be slower than the fastest by at most a given share."""
    chosen = fastest.resource_set
    number = [cluster.place for cluster in layout.clusters].index(chosen.place)
    state, predictor = layout.clusters[number], layout.predictors[number]
    cpu, bandwidth, reach = chosen.available_cpu, chosen.available_bandwidth, 0.0
    doubt = state.doubt(chosen.processors, LEVEL)
    if doubt is not None:
        less_cpu, less_bandwidth = (ends[2:] for ends in doubt.ends(cpu, bandwidth))
        points = np.append(less_cpu, cpu), np.append(less_bandwidth, bandwidth)
        times = predictor.expect_many(size, np.full(3, chosen.processors), *points)
        longer = np.log(np.maximum(times[:2] / times[2], 1.0))
        reach = float(np.linalg.norm(longer)) if np.isfinite(longer).all() else 0.0
    here = np.array([cluster.name == chosen.cluster for cluster in layout.clusters])
    asked = size, chosen.processors, cpu, bandwidth
    by_clock = np.array([float(clock_spread(each, chosen.frequency, *asked)[0]) for each in layout.predictors])
    by_clock = np.where(here, scipy.special.ndtri(0.5 + 0.5 * LEVEL) * by_clock, 0.0)
    of_extra = np.log((1.0 + share) / (1.0 + share * np.exp(-reach)))
    (cpu,), (bandwidth,) = least_of_nodes(state, np.array([chosen.processors]), np.array([cpu]), np.array([bandwidth]))
    # A placement with the same expected time is not slower.
    own, other = (
        fastest.completion * np.maximum((1.0 + share) * np.exp(-np.hypot(each, by_clock)), 1.0)
        for each in (of_extra, np.sqrt(2.0) * reach)
    )
    return Latest(here, chosen.processors, float(cpu), float(bandwidth), own, other)
