"""All clusters side by side: their nodes and domains numbered through, so that one batch covers them all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from metasched.arrays import Floats, Ints
from metasched.placement.clusters.constraints import Constraints, admit
from metasched.placement.clusters.energy import energy_of, power_in_doubt
from metasched.placement.clusters.network import Groups
from metasched.placement.clusters.state import ClusterState
from metasched.placement.search.exact_search import Domains
from metasched.predictors.abilities import under
from metasched.predictors.contract import Predictions, Predictor
from metasched.predictors.load_doubt import predict_many
from metasched.records import DEFAULT_SETTINGS, ResourceSet, Settings


@dataclass(frozen=True, slots=True)
class Layout:
    """The search space: the nodes of all clusters, and the predictor of each cluster.

    Methods take k entries at once: numbers of clusters, processors there, and the least available CPU (a fraction of
    one processor) and bandwidth (Mbit/s) of their nodes, arrays of shape (k,); ``size`` is the problem size N.

    Parameters
    ----------
    clusters : the c clusters with the nodes that satisfy the constraints, as the job would be laid out on them.
    free : of each the processors of its nodes, however the job is laid out.
    predictors : the predictor of each.
    domains : all their domains.
    cluster_of : array of shape (d,), which cluster each domain belongs to.
    first_node : array of shape (c,), number of each cluster's first node.
    optimistic : domains whose minima are upper bounds for those of every set, and their clusters; None if ``domains``
        are exact.
    """

    clusters: tuple[ClusterState, ...]
    free: tuple[Ints, ...]
    predictors: tuple[Predictor, ...]
    domains: Domains
    cluster_of: Ints
    first_node: Ints
    optimistic: tuple[Domains, Ints] | None

    def predict(
        self, size: float, level: float, cluster: Ints, processors: Ints, cpu: Floats, bandwidth: Floats
    ) -> Predictions:
        """Predict a batch, each entry by the predictor of its cluster; arrays of shape (k,).

        The intervals are those of the models alone, which are contained in those with the uncertainty of the loads.
        """
        cpu, bandwidth = self._of_sets(cluster, processors, cpu, bandwidth)
        parts = [
            (mine, predictor.predict_many(size, processors[mine], cpu[mine], bandwidth[mine], level))
            for mine, predictor in self._by_predictor(cluster)
        ]
        time, low, high = (np.empty(cluster.size) for _ in range(3))
        for mine, part in parts:
            time[mine], low[mine], high[mine] = part.execution_time, part.low, part.high
        return Predictions(time, low, high, level)

    def predict_in_doubt(
        self, size: float, level: float, cluster: Ints, processors: Ints, cpu: Floats, bandwidth: Floats
    ) -> Predictions:
        """The same, with the uncertainty of the loads in the intervals."""
        found = self.predict(size, level, cluster, processors, cpu, bandwidth)
        low, high = found.low.copy(), found.high.copy()
        cpu, bandwidth = self._of_sets(cluster, processors, cpu, bandwidth)
        for mine, state, predictor in self._by_cluster(cluster):
            if state.minima is not None:
                wide = predict_many(
                    predictor, size, processors[mine], cpu[mine], bandwidth[mine], level,
                    state.doubt(processors[mine], level),
                )  # fmt: skip
                low[mine], high[mine] = wide.low, wide.high
        return replace(found, low=low, high=high)

    def expect(self, size: float, cluster: Ints, processors: Ints, cpu: Floats, bandwidth: Floats) -> Floats:
        """The execution times of :meth:`predict` without intervals (s), arrays of shape (k,)."""
        cpu, bandwidth = self._of_sets(cluster, processors, cpu, bandwidth)
        parts = [
            (mine, predictor.expect_many(size, processors[mine], cpu[mine], bandwidth[mine]))
            for mine, predictor in self._by_predictor(cluster)
        ]
        if len(parts) == 1:
            return parts[0][1]
        time = np.empty(cluster.size)
        for mine, part in parts:
            time[mine] = part
        return time

    def _by_predictor(self, cluster: Ints) -> Iterator[tuple[Ints | slice, Predictor]]:
        """Each predictor with the entries that it predicts, of clusters of shape (k,)."""
        different = {id(predictor): predictor for predictor in self.predictors}
        if len(different) == 1:
            yield slice(None), self.predictors[0]
            return
        of_cluster: Ints = np.array([list(different).index(id(predictor)) for predictor in self.predictors])
        used = of_cluster.take(cluster)
        for number, predictor in enumerate(different.values()):
            yield np.flatnonzero(used == number), predictor

    def _by_cluster(self, cluster: Ints) -> Iterator[tuple[Ints, ClusterState, Predictor]]:
        """Each cluster with its predictor and the entries that are there, of clusters of shape (k,)."""
        for number in np.flatnonzero(np.bincount(cluster)).tolist():
            yield np.flatnonzero(cluster == number), self.clusters[number], self.predictors[number]

    def _of_sets(self, cluster: Ints, processors: Ints, cpu: Floats, bandwidth: Floats) -> tuple[Floats, Floats]:
        """The expected smallest averages of sets, from the smallest of their nodes; arrays of shape (k,)."""
        for number, state in enumerate(self.clusters):
            if state.minima is not None:
                mine = cluster == number
                of_cpu, of_bandwidth = state.minima.at(processors)
                cpu, bandwidth = np.where(mine, cpu * of_cpu, cpu), np.where(mine, bandwidth * of_bandwidth, bandwidth)
        return cpu, bandwidth

    def wait(self, cluster: Ints, processors: Ints) -> Floats:
        """The queue wait of each entry (s); arrays of shape (k,)."""
        waits = np.zeros(cluster.size)
        for mine, state, _ in self._by_cluster(cluster):
            waits[mine] = state.queue_wait.at(processors[mine])
        return waits

    def taken(self, cluster: Ints, processes: Ints) -> Ints:
        """The processors that some numbers of processes use with their threads; arrays of shape (k,)."""
        threads: Ints = np.array([state.threads for state in self.clusters], dtype=np.int64)
        return processes * threads[cluster]

    def energy(
        self, size: float, cluster: Ints, processors: Ints, cpu: Floats, bandwidth: Floats, time: Floats
    ) -> Floats:
        """The energy of each entry (J) for its time (s), arrays of shape (k,).

        It is learned, else computed from the hardware; 0 if neither is known.
        """
        cpu, bandwidth = self._of_sets(cluster, processors, cpu, bandwidth)
        joules = np.zeros(cluster.size)
        for mine, state, predictor in self._by_cluster(cluster):
            joules[mine] = energy_of(state, predictor, size, processors[mine], cpu[mine], bandwidth[mine], time[mine])
        return joules

    def power_in_doubt(
        self, size: float, cluster: Ints, processors: Ints, cpu: Floats, bandwidth: Floats
    ) -> tuple[Floats, Floats]:
        """Power and its doubt (W) of k entries, see :func:`metasched.placement.clusters.energy.power_in_doubt`."""
        cpu, bandwidth = self._of_sets(cluster, processors, cpu, bandwidth)
        watts, doubt = np.zeros(cluster.size), np.zeros(cluster.size)
        for mine, state, predictor in self._by_cluster(cluster):
            watts[mine], doubt[mine] = power_in_doubt(
                state, predictor, size, processors[mine], cpu[mine], bandwidth[mine]
            )
        return watts, doubt

    def resource_set(self, number: int, nodes: Ints, processors: int) -> ResourceSet:
        """The record of some nodes, numbered within their cluster, shape (n,)."""
        return self.clusters[number].resource_set(nodes, processors)


def lay_out(
    clusters: Sequence[ClusterState],
    predictors: Mapping[str, Predictor] | Predictor,
    constraints: Constraints,
    *,
    avoid_shared: bool,
    settings: Sequence[Settings],
) -> tuple[Layout, dict[str, dict[str, int]]]:
    """Build the search space, and state for each cluster how many nodes each demand excluded.

    Parameters
    ----------
    avoid_shared : add each domain once more without the nodes that have jobs, for where contention counts.
    settings : layouts on nodes to choose from; each cluster is included once with each that differs on its nodes, as
        if these were several clusters.
    """
    left: list[ClusterState] = []
    free: list[Ints] = []
    used: list[Predictor] = []
    ruled_out: dict[str, dict[str, int]] = {}
    # A node has one number in all layouts, so that one set of nodes is known as such.
    first_node: list[int] = []
    numbered = 0
    for cluster in clusters:
        admitted = admit(cluster, constraints)
        ruled_out[cluster.name] = admitted.ruled_out
        predictor = predictors.get(cluster.name) if isinstance(predictors, Mapping) else predictors
        if predictor is None:
            ruled_out[cluster.name] = {"no model of the application there": len(cluster.nodes)}
            continue
        room = int(constraints.laid_out(admitted.cluster).processors.max(initial=0)) if settings else 0
        for each in dict.fromkeys(each.on_nodes_of(room) for each in settings) or (None,):
            clock, hardware = None if each is None else each.frequency, cluster.hardware
            if clock is not None and hardware is not None and not hardware.holds(clock):
                ruled_out[cluster.name][f"{clock:g} MHz, at which its processors cannot be held"] = len(cluster.nodes)
                continue
            left.append(constraints.laid_out(admitted.cluster, each or DEFAULT_SETTINGS))
            free.append(admitted.cluster.processors)
            used.append(predictor if each is None else under(predictor, each))
            first_node.append(numbered)
        numbered += len(admitted.cluster.nodes)
    groups: list[tuple[int, Groups]] = []
    bounds: list[tuple[int, Groups]] = []
    exact = True
    for number, cluster in enumerate(left):
        own, bound = cluster.network.groups(cluster.available_bandwidth)
        exact = exact and bound is None
        groups.append((number, own))
        bounds.append((number, own if bound is None else bound))
        busy = cluster.jobs > 0
        if avoid_shared and busy.any():
            group, node, width = own
            idle = ~busy[node]
            groups.append((number, (group[idle], node[idle], width[idle])))
    domains, cluster_of = _side_by_side(left, groups, first_node)
    optimistic = None if exact else _side_by_side(left, bounds, first_node)
    numbers = np.array(first_node, int)
    return Layout(tuple(left), tuple(free), tuple(used), domains, cluster_of, numbers, optimistic), ruled_out


def _side_by_side(
    clusters: Sequence[ClusterState], groups: Sequence[tuple[int, Groups]], first_node: Sequence[int]
) -> tuple[Domains, Ints]:
    domain, node, processors, cluster_of = ([np.empty(0, np.int64)] for _ in range(4))
    width, speed = ([np.empty(0)] for _ in range(2))
    numbered = 0
    for number, (group, member, bandwidth) in groups:
        cluster = clusters[number]
        count = int(group.max(initial=-1)) + 1
        able = cluster.processors[member] > 0
        group, member, bandwidth = group[able], member[able], bandwidth[able]
        domain.append(group + numbered)
        node.append(member + first_node[number])
        width.append(bandwidth)
        speed.append(cluster.effective_cpu[member])
        processors.append(cluster.processors[member])
        cluster_of.append(np.full(count, number))
        numbered += count
    domains = Domains(
        np.concatenate(domain),
        np.concatenate(node),
        np.concatenate(width),
        np.concatenate(speed),
        np.concatenate(processors),
        _turns(clusters, first_node),
    )
    return domains, np.concatenate(cluster_of)[domains.ids]


def _turns(clusters: Sequence[ClusterState], first_node: Sequence[int]) -> Ints | None:
    """The order of equal nodes by their numbers in all clusters; None if no cluster has one of its own."""
    if all(cluster.turn is None for cluster in clusters):
        return None
    turns = np.arange(max(first + len(each.nodes) for each, first in zip(clusters, first_node, strict=True)))
    for cluster, first in zip(clusters, first_node, strict=True):
        if cluster.turn is not None:
            turns[first : first + cluster.turn.size] = first + cluster.turn
    return turns
