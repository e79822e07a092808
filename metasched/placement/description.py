"""Reads the TOML text that describes clusters; everything that can be wrong with it ends in one clear line.

It holds a list of ``[[cluster]]``. Its nodes come in groups, from a host list, or from Slurm; between them there
are switches or a measured matrix of bandwidths. Names are folded as ClusterShell folds them: ``n[1-16]`` is sixteen
nodes. A value of a group holds for each of its nodes, or is a list with one value for each. docs/placement.md shows
whole files.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from metasched.placement.cluster import ClusterState
from metasched.placement.complaints import first_complaint
from metasched.placement.constraints import Constraints
from metasched.placement.hostlist import cluster_from_hosts
from metasched.placement.matrix import BandwidthMatrix
from metasched.placement.names import first_twice, unfold
from metasched.placement.network import Network
from metasched.placement.slurm import cluster_from_slurm
from metasched.placement.switches import Switch, tree
from metasched.placement.waits import QueueWait
from metasched.records import InputError

Fraction = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=1_000_000, strict=True)]
Number = Annotated[int, Field(ge=0, le=1_000_000, strict=True)]
Name = Annotated[str, Field(min_length=1)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Nodes(_Table):
    names: str
    processors: Count | list[Count] = 1
    available_cpu: Fraction | list[Fraction] = 1.0
    available_bandwidth: Positive | list[Positive] = 1000.0
    speed: Positive | list[Positive] = 1.0
    memory: Positive | list[Positive] | None = None
    jobs: Number | list[Number] = 0
    age: NotNegative | list[NotNegative] = 0.0
    drained: bool = False
    features: list[str] = []


class _Switch(_Table):
    name: Name
    nodes: str = ""
    switches: str = ""
    uplink: Positive | None = None


class _Slurm(_Table):
    sinfo: Name
    topology: Name | None = None
    partition: Name | None = None
    uplinks: dict[str, Positive] = {}


class _Step(_Table):
    processors: Count
    seconds: NotNegative


class _Cluster(_Table):
    name: Name
    nodes: Annotated[list[_Nodes], Field(min_length=1)] | None = None
    hosts: Name | None = None
    slurm: _Slurm | None = None
    switches: list[_Switch] = []
    bandwidth: list[list[NotNegative]] | None = None
    queue_wait: NotNegative | list[_Step] = 0.0
    watts: NotNegative = 0.0

    @model_validator(mode="after")
    def _one_source(self) -> _Cluster:
        if sum(source is not None for source in (self.nodes, self.hosts, self.slurm)) != 1:
            raise ValueError(f"cluster {self.name} must have one of nodes, hosts and slurm")
        if self.slurm is not None and self.switches:
            raise ValueError(f"cluster {self.name} has switches, expected those of slurm.topology only")
        if self.bandwidth is not None and (self.switches or (self.slurm is not None and self.slurm.topology)):
            raise ValueError(f"cluster {self.name} has both switches and a bandwidth matrix, expected one of them")
        return self


class _Application(_Table):
    name: Name
    processors: list[Count] = []
    min_processors: Count = 1
    max_processors: Count | None = None
    per_node: Count | None = None
    memory: Positive | None = None
    features: list[str] = []
    exclusive: bool = False
    clusters: list[Name] = []
    exclude: str = ""


class _File(_Table):
    cluster: Annotated[list[_Cluster], Field(min_length=1)]
    application: list[_Application] = []


@dataclass(frozen=True, slots=True)
class Description:
    """What a file describes: clusters, and the constraints of applications by their names."""

    clusters: tuple[ClusterState, ...]
    constraints: Mapping[str, Constraints]


#: Gives the text of a file that the description names.
ReadText = Callable[[str], str]


def parse_description(text: str, *, where: str = "clusters", read: ReadText | None = None) -> Description:
    """Read what a TOML text describes.

    Parameters
    ----------
    text : the text.
    where : put in front of complaints.
    read : for the files that it names; a description that names one is refused without it.

    Raises
    ------
    InputError
        With the place, the field, its value and what was expected.

    Examples
    --------
    >>> [east] = parse_description('''
    ... [[cluster]]
    ... name = "east"
    ... nodes = [{names = "e[1-3]", available_cpu = 0.5}]
    ... ''').clusters
    >>> east.nodes, east.available_cpu.tolist()
    (('e1', 'e2', 'e3'), [0.5, 0.5, 0.5])
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"is not valid TOML: {error}", where=where) from None
    return build_description(document, where=where, read=read)


def build_description(
    document: Mapping[str, Any], *, where: str = "clusters", read: ReadText | None = None
) -> Description:
    """Check a document and make clusters of it; see :func:`parse_description`.

    Examples
    --------
    >>> build_description({"cluster": [{"name": "east", "nodes": [{"names": "e1", "cpu": 0.5}]}]})
    Traceback (most recent call last):
    metasched.records.InputError: clusters: cluster[0].nodes[0].cpu is not a key known here
    """
    try:
        described = _File.model_validate(document)
    except ValidationError as error:
        raise InputError(first_complaint(error), where=where) from None
    for kind, names in (
        ("cluster", [cluster.name for cluster in described.cluster]),
        ("application", [application.name for application in described.application]),
    ):
        twice = first_twice(names)
        if twice is not None:
            raise InputError(f"{kind} {twice} stands there twice", where=where)
    return Description(
        tuple(_state(cluster, f"{where}: cluster {cluster.name}", read) for cluster in described.cluster),
        {
            application.name: _constraints(application, described.cluster, f"{where}: application {application.name}")
            for application in described.application
        },
    )


def _constraints(application: _Application, clusters: list[_Cluster], where: str) -> Constraints:
    known = {cluster.name for cluster in clusters}
    for name in application.clusters:
        if name not in known:
            raise InputError(f"cluster {name} is not described", where=where)
    try:
        return Constraints(
            processors=tuple(application.processors),
            min_processors=application.min_processors,
            max_processors=application.max_processors,
            per_node=application.per_node,
            memory=application.memory,
            features=frozenset(application.features),
            exclusive=application.exclusive,
            clusters=frozenset(application.clusters),
            exclude=frozenset(unfold(application.exclude, where=where) if application.exclude else ()),
        )
    except InputError as error:
        raise error if str(error).startswith(where) else InputError(str(error), where=where) from None


def _state(cluster: _Cluster, where: str, read: ReadText | None) -> ClusterState:
    if cluster.nodes is not None:
        state = _from_groups(cluster.name, cluster.nodes, where)
    elif read is None:
        raise InputError("names further files, expected groups of nodes only", where=where)
    elif cluster.slurm is not None:
        state = _from_slurm(cluster.name, cluster.slurm, read)
    else:
        hosts = cluster.hosts or ""
        state = cluster_from_hosts(cluster.name, read(hosts), where=hosts)
    network = _network(cluster, state.nodes, where) or state.network
    return replace(state, network=network, queue_wait=_wait(cluster, where), watts=cluster.watts)


def _from_slurm(name: str, slurm: _Slurm, read: ReadText) -> ClusterState:
    try:
        document = json.loads(read(slurm.sinfo))
    except (json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"is not valid JSON: {error}", where=slurm.sinfo) from None
    topology = None if slurm.topology is None else read(slurm.topology)
    return cluster_from_slurm(
        name, document, topology, partition=slurm.partition, uplinks=slurm.uplinks, where=slurm.sinfo
    )


def _from_groups(name: str, groups: list[_Nodes], where: str) -> ClusterState:
    unfolded = [unfold(group.names, where=where) for group in groups]
    names = [node for nodes in unfolded for node in nodes]
    twice = first_twice(names)
    if twice is not None:
        raise InputError(f"node {twice} stands there twice", where=where)

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
        available_bandwidth=column("available_bandwidth"),
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


def _spread(value: Any, field: str, size: int, where: str) -> NDArray[Any]:
    if isinstance(value, list):
        if len(value) != size:
            raise InputError(f"{field} has {len(value)} values, expected one or {size}", where=where)
        return np.array(value)
    return np.full(size, np.nan if value is None else value)


def _network(cluster: _Cluster, nodes: tuple[str, ...], where: str) -> Network | None:
    if cluster.bandwidth is not None:
        if [len(row) for row in cluster.bandwidth] != [len(nodes)] * len(nodes):
            raise InputError(f"bandwidth is not a matrix of {len(nodes)} rows and columns", where=where)
        try:
            return BandwidthMatrix(np.array(cluster.bandwidth))
        except InputError as error:
            raise InputError(str(error), where=where) from None
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


def _wait(cluster: _Cluster, where: str) -> QueueWait:
    if not isinstance(cluster.queue_wait, list):
        return QueueWait.always(cluster.queue_wait)
    try:
        steps = cluster.queue_wait
        return QueueWait(np.array([step.processors for step in steps]), np.array([step.seconds for step in steps]))
    except InputError as error:
        raise InputError(f"queue_wait: {error}", where=where) from None
