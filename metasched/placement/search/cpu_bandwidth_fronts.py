"""For each number of processors the Pareto front of a cluster's resource sets in CPU and bandwidth.

If a predictor never predicts a longer time for more CPU or more bandwidth, its smallest time is on the front, for any
application and problem size. So the fronts are computed once for a state of the cluster, and each question then costs a
few dozen predictions. They are derived from the same staircases as in the exact search: docs/placement.md.

Below a switch only those nodes are searched whose way up to it is wider than the link to the switch above: any set with
another node is found below that one, too. So in a tree whose uplinks are as wide as the links of nodes, the search is
made once, and not for each switch.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from metasched.arrays import Floats, Ints
from metasched.placement.clusters.constraints import Constraints, admit
from metasched.placement.clusters.state import ClusterState
from metasched.placement.clusters.switch_tree import Topology
from metasched.placement.search.exact_search import Domains, fastest
from metasched.placement.search.needed_nodes import NeededNodes
from metasched.records import ResourceSet

#: Largest number of lists of processor counts whose fronts are cached.
MOST_JOINED = 200


@dataclass(frozen=True, slots=True)
class Front:
    """Sets on the Pareto fronts of their numbers of processors.

    Parameters
    ----------
    processors, domain, step : arrays of shape (k,); ``domain`` is the index into ``Domains.ids``.
    cpu, bandwidth : arrays of shape (k,), the two minima: share of a processor, and Mbit/s.
    """

    processors: Ints
    domain: Ints
    step: Ints
    cpu: Floats
    bandwidth: Floats

    @classmethod
    def empty(cls) -> Front:
        """The front of no number of processors."""
        none = np.empty(0, np.int64)
        return cls(none, none, none, np.empty(0), np.empty(0))

    def joined(self, other: Front) -> Front:
        """Two fronts of different numbers of processors in one, by these numbers."""
        both = Front(
            np.concatenate([self.processors, other.processors]),
            np.concatenate([self.domain, other.domain]),
            np.concatenate([self.step, other.step]),
            np.concatenate([self.cpu, other.cpu]),
            np.concatenate([self.bandwidth, other.bandwidth]),
        )
        return both.take(np.argsort(both.processors, kind="stable"))

    def take(self, places: Ints) -> Front:
        """The sets at some places, shape (k,)."""
        return Front(
            self.processors.take(places),
            self.domain.take(places),
            self.step.take(places),
            self.cpu.take(places),
            self.bandwidth.take(places),
        )


@dataclass(frozen=True, slots=True)
class Ends:
    """For pairs of a domain and a number of processors the two ends of the front: the widest and the fastest set.

    Parameters
    ----------
    processors, which : arrays of shape (k,): the number, and its place among those asked for.
    cpu, bandwidth : arrays of shape (2, k), share of a processor and Mbit/s: of the widest and of the fastest set, the
        first with at least this CPU. No set of the pair has more than the CPU of the fastest, nor more than the
        bandwidth of the widest.
    """

    processors: Ints
    which: Ints
    cpu: Floats
    bandwidth: Floats


class Fronts:
    """The fronts of one cluster, each computed when it is first requested.

    Parameters
    ----------
    cluster : its state.
    constraints : which nodes may be used, and how many processors of each.
    warnings : warnings about the state, for the user.
    needed : finds the nodes that the sets asked for may need; where None, all sets may be asked for.

    Attributes
    ----------
    cluster : the state, as the job would be laid out; in a network that is no tree with the admitted nodes only.
    exact : whether the domains contain the best set of all; this is not certain if the network is not a tree.
    largest : the most processors of a set, at most those that the sets asked for may need.

    Examples
    --------
    >>> state = ClusterState.make("c", ["a", "b", "c"], available_cpu=[0.9, 0.5, 0.4], available_bandwidth=[50, 90, 80])
    >>> front = Fronts(state, Constraints()).of([1, 2])
    >>> front.processors.tolist(), front.cpu.tolist(), front.bandwidth.tolist()
    ([1, 1, 2, 2], [0.5, 0.9, 0.4, 0.5], [90.0, 50.0, 80.0, 50.0])
    """

    def __init__(
        self,
        cluster: ClusterState,
        constraints: Constraints,
        warnings: tuple[str, ...] = (),
        needed: NeededNodes | None = None,
    ) -> None:
        self.warnings = warnings
        tree = cluster.network if isinstance(cluster.network, Topology) else None
        self.cluster = constraints.laid_out(cluster if tree is not None else admit(cluster, constraints).cluster)
        self._offered, self._speed = constraints.offered(self.cluster), self.cluster.effective_cpu
        if self.cluster.minima is not None:
            self.cluster = replace(self.cluster, minima=self.cluster.minima.offered(self._offered))
        (group, node, width), bound = self.cluster.network.groups(self.cluster.available_bandwidth)
        self.exact = bound is None
        self._entries = group, node, width
        if tree is not None:
            wanted = self._offered > 0 if needed is None else needed.of(self.cluster, tree, self._offered)
            kept = np.flatnonzero(wanted.take(node) & tree.narrowed_above(group, width))
            group, node, width = group.take(kept), node.take(kept), width.take(kept)
        processors = self._offered.take(node)
        self.largest = int(np.bincount(group, processors).max(initial=0))
        self._domains = Domains(group, node, width, self._speed.take(node), processors, self.cluster.turn)
        self._found, self._counts = Front.empty(), frozenset[int]()
        self._joined: dict[tuple[int, ...], Front] = {}
        self._sets: dict[tuple[int, int, int], ResourceSet] = {}

    def of(self, counts: Iterable[int]) -> Front:
        """The fronts for these numbers of processors, as far as the cluster has enough, by the number."""
        wanted = tuple(count for count in counts if count <= self.largest)
        found = self._joined.get(wanted)
        if found is None:
            if missing := sorted(set(wanted) - self._counts):
                self._found = self._found.joined(self._find(missing)) if self._counts else self._find(missing)
                self._counts |= frozenset(missing)
            found = (
                self._found
                if self._counts == set(wanted)
                else self._found.take(np.flatnonzero(np.isin(self._found.processors, wanted)))
            )
            if len(self._joined) < MOST_JOINED:
                self._joined[wanted] = found
        return found

    def find_as(self, other: Fronts) -> None:
        """Find what another's :meth:`of` was asked for; what that was may still grow."""
        for counts in tuple(other._joined):
            self.of(counts)

    def ends(self, counts: ArrayLike) -> Ends:
        """The ends of the fronts of :meth:`of`, without the sets in between, which cost the most."""
        domains = self._domains
        index, which = domains.able(counts)
        processors = np.asarray(counts).take(which)
        first, last = domains.first_step(index, processors), domains.last_step(index)
        of_cpu = np.stack([domains.least(index, first), domains.place(index, processors, last)])
        return Ends(processors, which, domains.falling.take(of_cpu), domains.step_width.take(np.stack([first, last])))

    def resource_set(self, front: Front, position: int) -> ResourceSet:
        """The set at a position of a front: as it is, it can only be better than the front says.

        Of the domains that hold it, that with the least number counts.
        """
        which = int(front.processors[position]), int(front.domain[position]), int(front.step[position])
        found = self._sets.get(which)
        if found is None:
            processors, domain, step = which
            nodes, counts = self._members(processors, domain, step, float(front.cpu[position]))
            found = self._sets[which] = self.cluster.resource_set(nodes, int(counts.sum()))
        return found

    def _members(self, processors: int, domain: int, step: int, cpu: float) -> tuple[Ints, Ints]:
        """The nodes of a set on a front, and the processors taken on each."""
        group, node, width = self._entries
        earlier = group < self._domains.ids[domain]
        if earlier.any():
            able = np.flatnonzero(earlier & (self._speed.take(node) >= cpu) & (width >= self._domains.step_width[step]))
            taken = np.bincount(group.take(able), self._offered.take(node.take(able)))
            enough = np.flatnonzero(taken >= processors)
            if enough.size:
                able = able[group.take(able) == enough[0]]
                able = able[self._offered.take(node.take(able)) > 0]
                own = node.take(able)
                turn = own if self.cluster.turn is None else self.cluster.turn.take(own)
                return fastest(own, width.take(able), self._speed.take(own), self._offered.take(own), turn, processors)
        return self._domains.members(domain, processors, step, cpu)

    def _find(self, counts: list[int]) -> Front:
        """The fronts of these numbers of processors, ascending, in one pass over the domains."""
        domains = self._domains
        index, processors = domains.pairs(counts)
        low, high = domains.first_step(index, processors), domains.last_step(index)
        length = high - low + 1
        domain, of_each = np.repeat(index, length), np.repeat(processors, length)
        step = np.arange(length.sum()) + np.repeat(low - np.concatenate([[0], np.cumsum(length)[:-1]]), length)
        cpu = domains.falling[domains.place(domain, of_each, step)]
        width = domains.step_width[step]
        # From the widest on, a set stays that has more CPU than every wider one of as many processors: places in the
        # falling order of all CPUs compare as these do, and the next number of processors begins above the last one's.
        order = np.lexsort((-cpu, -width, of_each))
        _, rank = np.unique(cpu, return_inverse=True)
        best = (of_each * (rank.size + 1) + rank)[order]
        kept = order[best > np.concatenate([[-1], np.maximum.accumulate(best)[:-1]])]
        return Front(of_each, domain, step, cpu, width).take(kept)
