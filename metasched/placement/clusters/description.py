"""Reads the TOML document that describes clusters; every error in it is reported in one line.

It holds a list of ``[[cluster]]``. Its nodes come in groups, from a host list, or from Slurm; between them there
are switches or a measured matrix of bandwidths. Names are folded as ClusterShell folds them: ``n[1-16]`` is sixteen
nodes. A value of a group holds for each of its nodes, or is a list with one value for each. docs/placement.md shows
whole files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from metasched.blocks.entry import Entry, Kind, Quantity
from metasched.blocks.power import of_processors
from metasched.node_names import first_twice, unfold
from metasched.placement.clusters.bandwidth_matrix import BandwidthMatrix
from metasched.placement.clusters.constraints import Constraints
from metasched.placement.clusters.description_tables import (
    ApplicationTable,
    ClusterTable,
    FileTable,
    NodesTable,
    SlurmTable,
)
from metasched.placement.clusters.from_hosts import cluster_from_hosts
from metasched.placement.clusters.from_slurm import cluster_from_slurm
from metasched.placement.clusters.network import Network
from metasched.placement.clusters.queue_wait import QueueWait
from metasched.placement.clusters.running_jobs import RunningJob, StartedJob
from metasched.placement.clusters.state import ClusterState
from metasched.placement.clusters.switches import Switch, tree
from metasched.records import InputError
from metasched.validation import Located, validated
from monitors.sources.settings import SourceTable


@dataclass(frozen=True, slots=True)
class Description:
    """What a file describes: clusters, constraints of applications by name, and jobs that run by cluster.

    ``links`` holds the speed of the own link of each node for which one is given (Mbit/s), ``sources`` where live loads
    come from.
    """

    clusters: tuple[ClusterState, ...]
    constraints: Mapping[str, Constraints]
    running: Mapping[str, tuple[RunningJob | StartedJob, ...]]
    links: Mapping[str, float]
    sources: tuple[SourceTable, ...]


#: Available bandwidth of a node's link if none is given (Mbit/s).
BANDWIDTH = 1000.0

#: Gives the text of a file that the description names.
ReadText = Callable[[str], str]
#: Gives an entry of the hardware database.
ReadEntry = Callable[[str], Entry]


class TellsPower(Protocol):
    """A table that may give the power of nodes: of a busy processor or by an entry, and of an idle node (W)."""

    @property
    def watts(self) -> float | None:
        """Power (W) of one busy processor, 0 where it is not given."""

    @property
    def hardware(self) -> str | None:
        """The name of the entry that describes the nodes; empty where there is none."""

    @property
    def idle_watts(self) -> float:
        """Of an idle node, 0 where it is not given."""


def build_description(
    document: Mapping[str, Any], *, where: str, read: ReadText, entry: ReadEntry, folder: Path
) -> Description:
    """Check a document and make clusters of it.

    Parameters
    ----------
    document : as TOML has it.
    where : put in front of error messages.
    read : reads the files that it names.
    entry : reads the hardware that it names.
    folder : where relative paths of its sources start.

    Raises
    ------
    InputError : with the place, the field, its value and what was expected.
    """
    described = validated(FileTable, document, where=where, folder=folder)
    for kind, names in (
        ("cluster", [cluster.name for cluster in described.cluster]),
        ("application", [application.name for application in described.application]),
    ):
        twice = first_twice(names)
        if twice is not None:
            raise InputError(f"{kind} {twice} is given twice", where=where)
    return Description(
        tuple(_state(cluster, f"{where}: cluster {cluster.name}", read, entry) for cluster in described.cluster),
        {
            application.name: _constraints(application, described.cluster, f"{where}: application {application.name}")
            for application in described.application
        },
        {cluster.name: _running(cluster, f"{where}: cluster {cluster.name}") for cluster in described.cluster},
        _links(described.cluster, where),
        tuple(described.source),
    )


def _constraints(application: ApplicationTable, clusters: list[ClusterTable], where: str) -> Constraints:
    known = {cluster.name for cluster in clusters}
    for name in sorted(application.clusters):
        if name not in known:
            raise InputError(f"cluster {name} is not described", where=where)
    return Constraints(**{field: getattr(application, field) for field in Constraints.model_fields})


def _state(cluster: ClusterTable, where: str, read: ReadText, entry: ReadEntry) -> ClusterState:
    if cluster.nodes is not None:
        state = _from_groups(cluster.name, cluster.nodes, where)
    elif cluster.slurm is not None:
        state = _from_slurm(cluster.name, cluster.slurm, read)
    else:
        hosts = cluster.hosts or ""
        state = cluster_from_hosts(cluster.name, read(hosts), where=hosts)
    network = _network(cluster, state.nodes, where) or state.network
    number = {name: index for index, name in enumerate(state.nodes)}
    jobs = state.jobs.copy()
    for job in _running(cluster, where):
        for name in job.nodes:
            if name not in number:
                raise InputError(f"a job runs on node {name}, which is not described", where=where)
            jobs[number[name]] += 1
    return replace(
        state, network=network, jobs=jobs, queue_wait=_wait(cluster, where), hardware=hardware_of(cluster, entry, where)
    )


def hardware_of(cluster: TellsPower, entry: ReadEntry, where: str) -> Entry | None:
    """The entry of a cluster's nodes, with the power of an idle one as it is given; None where nothing is.

    Raises
    ------
    InputError : when there is no such entry.
    """
    found = _busy(cluster, entry, where)
    if not cluster.idle_watts:
        return found
    known = found or Entry("idle_watts", Kind.cluster, f"{cluster.idle_watts:g} W an idle node", {})
    idle = Quantity(cluster.idle_watts, "W", "stated")
    return replace(known, values={**known.values, "idle_power": idle})


def _busy(cluster: TellsPower, entry: ReadEntry, where: str) -> Entry | None:
    if cluster.watts is not None:
        return of_processors(cluster.watts) if cluster.watts else None
    if cluster.hardware is None:
        return None
    try:
        return entry(cluster.hardware)
    except InputError as error:
        raise InputError(f"hardware: {error}", where=where) from None


def _running(cluster: ClusterTable, where: str) -> tuple[RunningJob | StartedJob, ...]:
    found: list[RunningJob | StartedJob] = []
    for job in cluster.running:
        nodes = tuple(unfold(job.nodes, where=f"{where}: running"))
        twice = first_twice(nodes)
        if twice is not None:
            raise InputError(f"node {twice} is given twice for one job", where=f"{where}: running")
        taken = nodes, (job.processors,) * len(nodes)
        if job.computation is not None:
            found.append(RunningJob(*taken, job.computation, job.communication, job.dedicated, job.running_for))
        else:
            given = job.application or "", job.problem_size or 1.0
            found.append(StartedJob(*taken, job.running_for, *given, job.dedicated))
    return tuple(found)


def _from_slurm(name: str, slurm: SlurmTable, read: ReadText) -> ClusterState:
    try:
        document = json.loads(read(slurm.sinfo))
    except (json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"is not valid JSON: {error}", where=slurm.sinfo) from None
    topology = None if slurm.topology is None else read(slurm.topology)
    return cluster_from_slurm(
        name, document, topology, partition=slurm.partition, uplinks=slurm.uplinks, where=slurm.sinfo
    )


def _from_groups(name: str, groups: list[NodesTable], where: str) -> ClusterState:
    unfolded = [unfold(group.names, where=where) for group in groups]
    names = [node for nodes in unfolded for node in nodes]
    twice = first_twice(names)
    if twice is not None:
        raise InputError(f"node {twice} is given twice", where=where)

    def column(field: str) -> NDArray[Any]:
        return np.concatenate(
            [
                _spread(getattr(group, field), f"{field} of {group.names}", len(nodes), where)
                for group, nodes in zip(groups, unfolded, strict=True)
            ]
        )

    return ClusterState.make(
        name,
        names,
        processors=column("processors"),
        available_cpu=column("available_cpu"),
        available_bandwidth=np.concatenate(
            [_available_bandwidth(group, len(nodes), where) for group, nodes in zip(groups, unfolded, strict=True)]
        ),
        speed=column("speed"),
        memory=column("memory"),
        jobs=column("jobs"),
        age=column("age"),
        up=~column("drained"),
        features=[
            features
            for group, nodes in zip(groups, unfolded, strict=True)
            for features in [frozenset(group.features)] * len(nodes)
        ],
    )


def _available_bandwidth(group: NodesTable, size: int, where: str) -> NDArray[Any]:
    """The given bandwidths, else those of the links, else ``BANDWIDTH``; never more than the links."""
    link = _spread(group.link, f"link of {group.names}", size, where).astype(np.float64)
    given = group.available_bandwidth
    if given is None:
        return np.where(np.isnan(link), BANDWIDTH, link)
    available = _spread(given, f"available_bandwidth of {group.names}", size, where)
    above = np.flatnonzero(available > link)
    if len(above):
        first = above[0]
        raise InputError(
            f"available_bandwidth of {group.names} is {available[first]:g}, expected at most the link, {link[first]:g}",
            where=where,
        )
    return available


def _links(clusters: list[ClusterTable], where: str) -> dict[str, float]:
    """Links by node; of a node in several clusters the fastest."""
    links: dict[str, float] = {}
    for cluster in clusters:
        for group in cluster.nodes or ():
            if group.link is not None:
                names = unfold(group.names, where=where)
                for node, link in zip(names, _spread(group.link, "link", len(names), where), strict=True):
                    links[node] = max(float(link), links.get(node, 0.0))
    return links


def _spread(value: Any, field: str, size: int, where: str) -> NDArray[Any]:
    if isinstance(value, list):
        if len(value) != size:
            raise InputError(f"{field} has {len(value)} values, expected one or {size}", where=where)
        return np.array(value)
    return np.full(size, np.nan if value is None else value)


def _network(cluster: ClusterTable, nodes: tuple[str, ...], where: str) -> Network | None:
    if cluster.bandwidth is not None:
        if [len(row) for row in cluster.bandwidth] != [len(nodes)] * len(nodes):
            raise InputError(f"bandwidth is not a matrix of {len(nodes)} rows and columns", where=where)
        with Located(where):
            return BandwidthMatrix(np.array(cluster.bandwidth))
    if not cluster.switches:
        return None
    place = f"{where}: switches"
    switches = [
        Switch(
            switch.name,
            unfold(switch.nodes, where=place) if switch.nodes else (),
            unfold(switch.switches, where=place) if switch.switches else (),
            np.inf if switch.uplink is None else switch.uplink,
        )
        for switch in cluster.switches
    ]
    return tree(switches, nodes, where=place)


def _wait(cluster: ClusterTable, where: str) -> QueueWait:
    if not isinstance(cluster.queue_wait, list):
        return QueueWait.always(cluster.queue_wait)
    try:
        steps = cluster.queue_wait
        return QueueWait(np.array([step.processors for step in steps]), np.array([step.seconds for step in steps]))
    except InputError as error:
        raise InputError(f"queue_wait: {error}", where=where) from None
