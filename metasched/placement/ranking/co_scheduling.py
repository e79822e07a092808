"""Contention with the jobs already there, by the closed queueing networks of :mod:`metasched.contention`.

A job's two terms say what it asks of processors and of links: its time with boundless bandwidth is computation, the
rest communication. The nodes that the running jobs and a candidate touch, with the links above them, are what they
share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from metasched.arrays import Floats, Ints
from metasched.contention.effort import Effort, EffortError
from metasched.contention.equal_shares import equal_shares
from metasched.contention.shared_cluster import SharedCluster, Work
from metasched.contention.slowdown import Effects, effects
from metasched.placement.clusters.own_load import SETTLING
from metasched.placement.clusters.running_jobs import BOUNDLESS, LEAST_WIDTH, RunningJob
from metasched.placement.clusters.state import ClusterState, places
from metasched.placement.clusters.switch_tree import Topology
from metasched.placement.ranking.contention import Share, Shared
from metasched.predictors.abilities import computing_share
from metasched.predictors.contract import Predictor
from metasched.queueing.solution import PrecisionError

#: Numbers that may be computed for one batch of placements, in a second or less.
EFFORT = 3e8
#: The largest part of a link or of a processor's time that is taken to be a visible job's own.
MOST_OWN = 0.9
#: Processors and available CPU of the place that stands for nodes outside the cluster.
_OUTSIDE = 1_000_000


@dataclass(frozen=True)
class Coscheduled:
    """The contention between a job and those that run: a :class:`metasched.placement.ranking.contention.Contention`.

    Parameters
    ----------
    running : for each cluster the jobs already there.
    problem_size : N of the job to place.
    clusters : the whole clusters by name, with the nodes that the job may not take; those it may take, where not given.
    notes : what the user should know of the running jobs.
    effort : numbers that may be computed for each batch of placements; beyond, they are answered by equal shares.
    harm : whether the seconds that the others lose are wanted: with many jobs they take most of the time.

    Examples
    --------
    A job that only computes would halve itself and another on their one processor.

    >>> there = {"c": (RunningJob(("n0",), (1,), 100.0, 0.0),)}
    >>> shared = Coscheduled(there, 1.0)
    >>> cluster = ClusterState.make("c", ["n0", "n1"])
    >>> found = shared.among(cluster, [Share(np.array([0]), np.array([1]))], np.array([50.0]), np.array([0.0]))
    >>> found.slowdown.round(6).tolist(), found.harm.round(6).tolist()
    ([2.0], [50.0])
    """

    running: Mapping[str, Sequence[RunningJob]]
    problem_size: float
    clusters: Mapping[str, ClusterState] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    effort: float = EFFORT
    harm: bool = True

    def effects(
        self, cluster: ClusterState, predictor: Predictor, shares: Sequence[Share], execution_time: Floats
    ) -> Shared:
        """Slowdown of the job, and seconds that the others lose together, for each of its shares."""
        if not self.running.get(cluster.name):
            return Shared.nothing(len(shares), self.notes)
        whole, restored, shares = self._whole(cluster, shares)
        sets = [share.nodes for share in shares]
        processes = np.array([share.processors.sum() for share in shares])
        # As much of the loads is expected of a set as where the others are counted with.
        of_cpu, of_bandwidth = (1.0, 1.0) if cluster.minima is None else cluster.minima.at(processes)
        cpu, width = restored.effective_cpu, restored.available_bandwidth
        least = of_cpu * np.array([cpu[nodes].min() for nodes in sets])
        bandwidth = of_bandwidth * np.array([restored.network.bandwidth(width, nodes) for nodes in sets])
        asked = self.problem_size, processes, least, np.clip(bandwidth, LEAST_WIDTH, BOUNDLESS)
        # Loads measured while the others ran hold them against the job once already.
        alone = execution_time if restored is whole else np.minimum(predictor.expect_many(*asked), execution_time)
        computation = alone * computing_share(predictor, *asked)
        taken = [Share(share.nodes, share.processors * cluster.threads) for share in shares]
        found = self.among(restored, taken, computation, alone - computation)
        return replace(found, slowdown=np.maximum(found.slowdown * alone / execution_time, 1.0))

    def among(
        self, cluster: ClusterState, shares: Sequence[Share], computation: Floats, communication: Floats
    ) -> Shared:
        """The same for a job with these two terms on each of its shares: arrays of shape (k,), seconds.

        Parameters
        ----------
        cluster : with the jobs that run there.
        shares : alternatives of nodes and processors, k of them.
        computation, communication : seconds of the job alone on each, shape (k,).
        """
        number = places(cluster.nodes)
        jobs = [job for job in self.running[cluster.name] if any(name in number for name in job.nodes)]
        asked = [dict(zip(share.nodes.tolist(), share.processors.tolist(), strict=True)) for share in shares]
        there = [_taken(job, number) for job in jobs]
        if not jobs:
            return Shared.nothing(len(shares), self.notes)
        nodes = np.array(sorted({node for taken in (*there, *asked) for node in taken} - {-1}), dtype=np.int64)
        column = {place: number for number, place in enumerate([*nodes.tolist(), -1])}
        processes = _processes(there, column)
        dedicated = np.array([job.dedicated for job in jobs])
        shared = _shared(cluster, nodes, processes[dedicated, :-1].sum(axis=0).astype(np.int64))
        running = Work.of(
            shared,
            processes,
            np.array([job.computation for job in jobs]),
            np.array([job.communication for job in jobs]),
        )
        candidates = Work.of(shared, _processes(asked, column), computation, communication)
        found, notes = self._solved(shared, running, candidates)
        return Shared(found.slowdown, found.lost.sum(axis=1), self.notes + notes)

    def _solved(self, shared: SharedCluster, running: Work, candidates: Work) -> tuple[Effects, tuple[str, ...]]:
        try:
            return effects(shared, running, candidates, effort=Effort(self.effort), lost=self.harm), ()
        except (EffortError, PrecisionError) as error:
            # A network too large, or without an equilibrium that is found in time.
            note = f"contention with {running.remaining.size} running jobs is that of equal shares: {error}"
            return effects(shared, running, candidates, stretched=equal_shares, lost=self.harm), (note,)

    def _whole(
        self, cluster: ClusterState, shares: Sequence[Share]
    ) -> tuple[ClusterState, ClusterState, Sequence[Share]]:
        """The whole cluster with the loads of the part that the shares are of, and the shares in its numbers.

        Between the two the same cluster without the loads that the running jobs make.
        """
        whole = self.clusters.get(cluster.name, cluster)
        number = places(whole.nodes)
        if whole.nodes is cluster.nodes:  # no node is ruled out
            cpu, width = cluster.available_cpu, cluster.available_bandwidth
            whole = replace(whole, available_cpu=cpu, available_bandwidth=width)
        elif all(name in number for name in cluster.nodes):
            position = np.array([number[name] for name in cluster.nodes], dtype=np.int64)
            cpu, width = whole.available_cpu.copy(), whole.available_bandwidth.copy()
            cpu[position], width[position] = cluster.available_cpu, cluster.available_bandwidth
            whole = replace(whole, available_cpu=cpu, available_bandwidth=width)
            shares = [Share(position[share.nodes], share.processors) for share in shares]
        else:
            whole = cluster
        return whole, _without(whole, self.running[cluster.name]), shares


def _without(cluster: ClusterState, jobs: Sequence[RunningJob]) -> ClusterState:
    """The cluster's loads without what jobs make that were there when they were measured; itself where none was.

    A job takes of a processor and of its link what its terms say: the part of its time in which it uses them.
    """
    number = places(cluster.nodes)
    crowd, sent = np.zeros(len(cluster.nodes)), np.zeros(len(cluster.nodes))
    for job in jobs:
        total = job.computation + job.communication
        several = len(job.nodes) > 1
        for name, count in zip(job.nodes, job.processors, strict=True):
            index = number.get(name)
            if index is None or job.running_for - np.nan_to_num(cluster.age[index]) < SETTLING:
                continue
            if not job.dedicated:
                crowd[index] += count * job.computation / total / max(int(cluster.processors[index]), 1)
            sent[index] += several * job.communication / total
    if not (crowd.any() or sent.any()):
        return cluster
    # The inverse of a shadow: 1/a = 1/before + crowd; and a link has to spare what is left of its time.
    busy = 1.0 / cluster.available_cpu
    return replace(
        cluster,
        available_cpu=1.0 / np.maximum(busy - crowd, 1.0),
        available_bandwidth=cluster.available_bandwidth / (1.0 - np.minimum(sent, MOST_OWN)),
    )


def _taken(job: RunningJob, number: Mapping[str, int]) -> dict[int, int]:
    """Processes of a job on each node by its number, and on nodes outside the cluster by -1."""
    taken: dict[int, int] = {}
    for name, count in zip(job.nodes, job.processors, strict=True):
        node = number.get(name, -1)
        taken[node] = taken.get(node, 0) + count
    return taken


def _processes(taken: Sequence[Mapping[int, int]], column: Mapping[int, int]) -> Floats:
    """Processes of each job at each place, of which ``column`` tells the number: array of shape (jobs, places)."""
    found = np.zeros((len(taken), len(column)))
    for row, job in zip(found, taken, strict=True):
        row[[column[place] for place in job]] = list(job.values())
    return found


def _shared(cluster: ClusterState, nodes: Ints, dedicated: Ints) -> SharedCluster:
    """Some nodes of a cluster, the links above them, and last a place that stands for all nodes outside it.

    Only the nodes' own links where the network is no tree. ``dedicated`` are the processors of each node that jobs
    have of their own.
    """
    count = nodes.size
    own = np.append(np.minimum(cluster.available_bandwidth[nodes], BOUNDLESS), BOUNDLESS)
    processors = np.append(np.maximum(cluster.processors[nodes] + dedicated, 1), _OUTSIDE)
    cpu = np.append(cluster.effective_cpu[nodes], float(_OUTSIDE))
    network = cluster.network
    if not isinstance(network, Topology):
        return SharedCluster.star(processors, own, cpu)
    # A node's link leads to the uplink of its switch, and that to the next; a root has none.
    above = np.where(network.parent >= 0, np.arange(network.parent.size) + count + 1, -1)
    return SharedCluster(
        processors,
        cpu,
        np.arange(count + 1),
        np.concatenate([own, np.minimum(network.uplink, BOUNDLESS)]),
        np.concatenate([above[network.leaf[nodes]], [-1], np.where(network.parent >= 0, above[network.parent], -1)]),
    )
