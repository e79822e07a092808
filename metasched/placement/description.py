"""Reads the TOML file that describes clusters; everything that can be wrong with it ends in one clear line.

A file holds a list of ``[[cluster]]``, each with groups of nodes, and optionally with the switches between them. Names
are folded as ClusterShell folds them: ``n[1-16]`` is sixteen nodes. A value of a group holds for each of its nodes,
or is a list with one value for each. docs/placement.md shows a whole file.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from metasched.placement.cluster import ClusterState
from metasched.placement.topology import Topology
from metasched.records import InputError

#: A folded name can stand for very many nodes: beyond so many it is a slip of the pen or an attack.
MOST_NODES = 2_000_000

Fraction = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=1_000_000, strict=True)]
Number = Annotated[int, Field(ge=0, le=1_000_000, strict=True)]


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
    features: list[str] = []


class _Switch(_Table):
    name: Annotated[str, Field(min_length=1)]
    nodes: str = ""
    switches: str = ""
    uplink: Positive | None = None


class _Cluster(_Table):
    name: Annotated[str, Field(min_length=1)]
    queue_wait: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    nodes: Annotated[list[_Nodes], Field(min_length=1)]
    switches: list[_Switch] = []


class _File(_Table):
    cluster: Annotated[list[_Cluster], Field(min_length=1)]


def read_clusters(path: str | Path) -> list[ClusterState]:
    """Read the clusters that a TOML file describes.

    Raises
    ------
    InputError
        With the file, the field, its value and what was expected.
    """
    where = str(path)
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=where) from None
    except UnicodeDecodeError:
        raise InputError("is not text in UTF-8, expected a TOML file", where=where) from None
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"is not valid TOML: {error}", where=where) from None
    return parse_clusters(document, where=where)


def parse_clusters(document: dict[str, Any], *, where: str = "clusters") -> list[ClusterState]:
    """Check a description and make the clusters of it.

    Parameters
    ----------
    document : what the TOML file holds.
    where : put in front of complaints.

    Examples
    --------
    >>> [east] = parse_clusters({"cluster": [{"name": "east", "nodes": [{"names": "e[1-3]", "available_cpu": 0.5}]}]})
    >>> east.nodes, east.available_cpu.tolist()
    (('e1', 'e2', 'e3'), [0.5, 0.5, 0.5])
    >>> parse_clusters({"cluster": [{"name": "east", "nodes": [{"names": "e1", "cpu": 0.5}]}]})
    Traceback (most recent call last):
    metasched.records.InputError: clusters: cluster[0].nodes[0].cpu is not a key known here
    """
    try:
        described = _File.model_validate(document)
    except ValidationError as error:
        raise InputError(_first_complaint(error), where=where) from None
    clusters = [_state(cluster, f"{where}: cluster {cluster.name}") for cluster in described.cluster]
    twice = _first_twice([cluster.name for cluster in clusters])
    if twice is not None:
        raise InputError(f"cluster {twice} stands there twice", where=where)
    return clusters


def unfold(names: str, *, where: str) -> list[str]:
    """Node names that a folded name stands for: in the order of its commas, ascending inside brackets."""
    parts = re.split(r",(?![^\[]*\])", names)
    if sum(_how_many(part) for part in parts) > MOST_NODES:
        raise InputError(f"{names!r} is more than {MOST_NODES} nodes", where=where)
    try:
        # No group resolver: a group's name would run whatever command the site configured for it.
        unfolded = [str(name) for part in parts for name in NodeSet(part, resolver=RESOLVER_NOGROUP)]
    except NodeSetException as error:
        raise InputError(f"{names!r} is not a set of node names: {error}", where=where) from None
    if not unfolded:
        raise InputError(f"{names!r} names no node", where=where)
    return unfolded


def _how_many(part: str) -> int:
    """An upper bound of the nodes that a folded name stands for, found without unfolding it."""
    return math.prod(
        sum(
            abs(int(last or first) - int(first)) + 1
            for first, last in re.findall(r"(\d+)(?:-(\d+))?", re.sub(r"/\d+", "", bracket))
        )
        for bracket in re.findall(r"\[([^\]]*)\]", part)
    )


def _state(cluster: _Cluster, where: str) -> ClusterState:
    groups = [unfold(group.names, where=where) for group in cluster.nodes]
    names = [name for group in groups for name in group]
    twice = _first_twice(names)
    if twice is not None:
        raise InputError(f"node {twice} stands there twice", where=where)

    def column(field: str, dtype: type) -> NDArray[Any]:
        parts = [
            _spread(getattr(group, field), field, group.names, len(unfolded), dtype, where)
            for group, unfolded in zip(cluster.nodes, groups, strict=True)
        ]
        return np.concatenate(parts)

    return ClusterState(
        name=cluster.name,
        nodes=tuple(names),
        processors=column("processors", np.int64),
        available_cpu=column("available_cpu", np.float64),
        available_bandwidth=column("available_bandwidth", np.float64),
        speed=column("speed", np.float64),
        memory=column("memory", np.float64),
        jobs=column("jobs", np.int64),
        features=tuple(
            features
            for group, unfolded in zip(cluster.nodes, groups, strict=True)
            for features in [frozenset(group.features)] * len(unfolded)
        ),
        topology=_topology(cluster, names, where),
        queue_wait=cluster.queue_wait,
    )


def _spread(value: Any, field: str, names: str, size: int, dtype: type, where: str) -> NDArray[Any]:
    if isinstance(value, list):
        if len(value) != size:
            raise InputError(f"{field} of {names} has {len(value)} values, expected one or {size}", where=where)
        return np.array(value, dtype=dtype)
    return np.full(size, np.nan if value is None else value, dtype=dtype)


def _topology(cluster: _Cluster, names: Sequence[str], where: str) -> Topology:
    if not cluster.switches:
        return Topology.star(cluster.name, len(names))
    switches = [switch.name for switch in cluster.switches]
    twice = _first_twice(switches)
    if twice is not None:
        raise InputError(f"switch {twice} stands there twice", where=where)
    parent = _links_up(
        [switch.switches for switch in cluster.switches], switches, "switch", switches, f"{where}: switches"
    )
    leaf = _links_up([switch.nodes for switch in cluster.switches], names, "node", switches, f"{where}: switches")
    hanging = np.flatnonzero(leaf < 0)
    if hanging.size:
        raise InputError(f"node {names[int(hanging[0])]} is on no switch, expected every node on one", where=where)
    uplink = np.array([np.inf if switch.uplink is None else switch.uplink for switch in cluster.switches])
    try:
        return Topology(tuple(switches), parent, uplink, leaf)
    except InputError as error:
        raise InputError(str(error), where=where) from None


def _links_up(
    below: Sequence[str], names: Sequence[str], kind: str, switches: Sequence[str], where: str
) -> NDArray[np.int64]:
    """For each name the switch that lists it, -1 where none does."""
    number = {name: index for index, name in enumerate(names)}
    above = np.full(len(names), -1, dtype=np.int64)
    for index, folded in enumerate(below):
        for name in unfold(folded, where=where) if folded else ():
            if name not in number:
                raise InputError(f"{switches[index]} lists {kind} {name}, which is not described", where=where)
            if above[number[name]] >= 0:
                first = switches[int(above[number[name]])]
                raise InputError(f"{kind} {name} is on both {first} and {switches[index]}", where=where)
            above[number[name]] = index
    return above


def _first_twice(names: Sequence[str]) -> str | None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def _first_complaint(error: ValidationError) -> str:
    """One line of a pydantic error: the path to the field, its value, what was expected."""
    complaints = error.errors(include_url=False)
    # A field that may be one value or a list complains once for each: the deeper complaint is about what was written.
    field = [step for step in complaints[0]["loc"] if not _is_branch(step)]
    complaint = max(
        (
            other
            for other in complaints
            if [step for step in other["loc"] if not _is_branch(step)][: len(field)] == field
        ),
        key=lambda other: len(other["loc"]),
    )
    path = ""
    for step in complaint["loc"]:
        if not _is_branch(step):
            path += f"[{step}]" if isinstance(step, int) else f".{step}" if path else step
    if complaint["type"] == "extra_forbidden":
        return f"{path} is not a key known here"
    if complaint["type"] == "missing":
        return f"{path} is missing"
    if complaint["type"] == "too_short":
        return f"{path} is empty, expected at least one"
    return f"{path} is {complaint['input']!r}, expected {complaint['msg'].removeprefix('Input should be ')}"


def _is_branch(step: int | str) -> bool:
    """Whether a step of a complaint's path names a branch of a union rather than a key or a place in a list."""
    return isinstance(step, str) and ("[" in step or step in ("float", "int", "constrained-float", "constrained-int"))
