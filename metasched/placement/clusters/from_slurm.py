"""Clusters from Slurm: its own list of the nodes, and ``topology.conf`` for the switches.

Slurm knows which processors and how much memory are allocated, not how busy they are, and its ``cpu_load`` is the whole
host's. So free processors and memory come from here, and the loads on them from the monitors.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, Field, ValidationError, field_validator

from metasched.node_names import unfold
from metasched.placement.clusters.state import ClusterState
from metasched.placement.clusters.switch_tree import Topology
from metasched.placement.clusters.switches import Switch, tree
from metasched.records import InputError
from metasched.validation import first_error
from monitors.validated_fields import LenientFields

#: States and flags of nodes that no job may be sent to, as releases up to 25.11 spell them; jobs that name a
#: reservation are not placed. Nodes are blocked by jobs that have a block or a switch to themselves.
NOT_UP = frozenset(
    {"DOWN", "DRAIN", "DRAINING", "DRAINED", "FAIL", "FAILING", "ERROR", "UNKNOWN", "FUTURE", "MAINT", "MAINTENANCE",
     "RESERVED", "NOT_RESPONDING", "POWER_DOWN", "POWER_DRAIN", "POWERING_DOWN", "POWERED_DOWN", "POWER_UP",
     "POWERING_UP", "REBOOT_ISSUED", "REBOOT_REQUESTED", "PLANNED_DOWN", "INVAL", "INVALID", "INVALID_REG",
     "DYNAMIC_FUTURE", "PERFCTRS", "BLOCKED"}
)  # fmt: skip
#: The switch that joins the blocks of ``topology/block``; no configuration can spell it.
BLOCKS = "all blocks"
#: Those of nodes that are switched off; one that is down without them may draw power.
OFF = frozenset({"POWERED_DOWN", "POWERING_DOWN", "FUTURE"})


def processors_for_jobs(cpus: int, tres: object) -> int:
    """The processors of a node that jobs may have: not those that it keeps for the system (``CoreSpecCount``).

    Parameters
    ----------
    cpus : all processors.
    tres : what the node has for jobs, as Slurm prints it, or anything else where that is not known.

    Examples
    --------
    >>> processors_for_jobs(4, "cpu=3,mem=1000M,billing=3"), processors_for_jobs(4, "")
    (3, 4)
    """
    counted = re.search(r"(?:^|,)cpu=(\d{1,7})(?:,|$)", str(tres))
    return min(cpus, int(counted[1])) if counted else cpus


def processors_of_node(node: Mapping[str, Any]) -> int:
    """The processors for jobs of a node as JSON has it."""
    return processors_for_jobs(int(node["cpus"]), node.get("tres"))


class _Node(LenientFields, BaseModel):
    """The fields that are used of a node, in the spelling of 22.05 and of the releases after it."""

    name: Annotated[str, Field(min_length=1)]
    cpus: Annotated[int, Field(ge=0, le=1_000_000)]
    #: What jobs may have in all: fewer processors where some are kept for the system.
    tres: object = None
    alloc_cpus: Annotated[int, Field(ge=0)] = 0
    real_memory: Annotated[float, Field(ge=0)] = 0
    #: Zero where memory is not counted; later releases name what is kept for the system as well.
    alloc_memory: Annotated[float, Field(ge=0)] = 0
    specialized_memory: Annotated[float, Field(ge=0)] = 0
    state: list[str]
    state_flags: list[str] = []
    features: Annotated[list[str], Field(validation_alias=AliasChoices("active_features", "features"))] = []
    partitions: list[str] = []

    @property
    def allocatable_memory(self) -> float:
        """What jobs may be given (MB); NaN where that is unknown."""
        free = max(0.0, self.real_memory - self.specialized_memory - self.alloc_memory)
        return free if self.real_memory else math.nan

    @property
    def free_processors(self) -> int:
        """Processors that jobs may be given: none of a node whose memory is all given away."""
        if self.allocatable_memory == 0.0:
            return 0
        return max(0, processors_for_jobs(self.cpus, self.tres) - self.alloc_cpus)

    @field_validator("state", mode="before")
    @classmethod
    def _one_state_is_a_list(cls, value: object) -> object:
        return [value] if isinstance(value, str) else value

    @field_validator("features", mode="before")
    @classmethod
    def _words_between_commas_are_a_list(cls, value: object) -> object:
        return [word for word in value.split(",") if word] if isinstance(value, str) else value


class _Sinfo(LenientFields, BaseModel):
    nodes: list[_Node]


def cluster_from_slurm(
    name: str,
    sinfo: object,
    topology: str | None = None,
    *,
    partition: str | None = None,
    uplinks: Mapping[str, float] | None = None,
    where: str = "sinfo",
) -> ClusterState:
    """The state of a Slurm cluster.

    Parameters
    ----------
    name : name of the cluster.
    sinfo : the document that ``scontrol show nodes --json`` prints, or ``sinfo --json`` of 22.05.
    topology : content of ``topology.conf``; all nodes are on one switch without it.
    partition : take its nodes only.
    uplinks : bandwidth that the links above some switches have to spare (Mbit/s); the others never limit.
    where : put in front of error messages.

    Raises
    ------
    InputError : when the document is another one, or the topology does not fit the nodes.
    """
    try:
        every = _Sinfo.model_validate(sinfo).nodes
    except ValidationError as error:
        why = "it has no single nodes" if isinstance(sinfo, dict) and "sinfo" in sinfo else first_error(error)
        raise InputError(f"is not what scontrol show nodes --json prints: {why}", where=where) from None
    nodes = [node for node in every if partition is None or partition in node.partitions]
    if not nodes:
        known = sorted({name for node in every for name in node.partitions})
        raise InputError(f"no node in partition {partition}, expected one of {', '.join(known)}", where=where)
    names = [node.name for node in nodes]
    states = [{word.upper() for word in node.state + node.state_flags} for node in nodes]
    return ClusterState.make(
        name,
        names,
        processors=[node.free_processors for node in nodes],
        memory=[node.allocatable_memory for node in nodes],
        jobs=[int(node.alloc_cpus > 0) for node in nodes],
        up=[not NOT_UP & state for state in states],
        powered=[not OFF & state for state in states],
        features=[frozenset(node.features) for node in nodes],
        network=None if topology is None else _topology(topology, names, [node.name for node in every], uplinks or {}),
    )


def _topology(text: str, names: Sequence[str], every: Sequence[str], uplinks: Mapping[str, float]) -> Topology:
    """The switches of ``topology/tree``, or the blocks of ``topology/block`` (from release 23.11 on), each a switch."""
    where = "topology.conf"
    switches, blocks = list[Switch](), list[str]()
    for number, line in enumerate(re.sub(r"\\\n", " ", text).splitlines(), start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        fields = {key.lower(): value for key, _, value in (word.partition("=") for word in words)}
        if fields.keys() & {"blocksizes", "blocklevels"}:  # what jobs may ask for
            continue
        called = fields.get("switchname") or fields.get("blockname")
        if not called:
            raise InputError(f"{line.strip()!r} has no SwitchName=", where=f"{where}: line {number}")
        if fields.get("blockname"):
            blocks.append(called)
        unknown = set(fields) - {"switchname", "blockname", "nodes", "switches", "linkspeed"}
        if unknown:
            raise InputError(f"{min(unknown)} is not a known key", where=f"{where}: line {number}")
        below: dict[str, Any] = {
            key: unfold(fields[key], where=f"{where}: line {number}") if fields.get(key) else ()
            for key in ("nodes", "switches")
        }
        switches.append(Switch(called, uplink=uplinks.get(called, float("inf")), **below))
    if blocks:
        within = {node for switch in switches for node in switch.nodes}
        switches.append(Switch(BLOCKS, [name for name in every if name not in within], blocks))
    for name in uplinks:
        if name not in {switch.name for switch in switches}:
            raise InputError(f"an uplink is given for switch {name}, which does not exist", where=where)
    wanted = set(names)
    return tree(switches, names, where=where, elsewhere={name for name in every if name not in wanted})
