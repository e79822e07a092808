"""The tables of a description file, with the valid keys and the ranges of their values."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field, model_validator

from metasched.placement.clusters.constraints import Constraints
from monitors.sources.settings import SourceTable
from monitors.validated_fields import NotNegative, Positive, StrictFields

Fraction = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=1_000_000, strict=True)]
Number = Annotated[int, Field(ge=0, le=1_000_000, strict=True)]
Name = Annotated[str, Field(min_length=1)]


class Table(StrictFields, BaseModel):
    """A table of the file; keys that are not known here are refused."""


class NodesTable(Table):
    """A group of nodes; ``link`` is the speed of each node's own link (Mbit/s), of which all may be available."""

    names: str
    processors: Count | list[Count] = 1
    available_cpu: Fraction | list[Fraction] = 1.0
    available_bandwidth: Positive | list[Positive] | None = None
    link: Positive | list[Positive] | None = None
    speed: Positive | list[Positive] = 1.0
    memory: Positive | list[Positive] | None = None
    jobs: Number | list[Number] = 0
    age: NotNegative | list[NotNegative] = 0.0
    drained: bool = False
    features: list[str] = []


class SwitchTable(Table):
    """A switch with its nodes and the switches below it."""

    name: Name
    nodes: str = ""
    switches: str = ""
    uplink: Positive | None = None


class SlurmTable(Table):
    """Files with the output of Slurm's commands, and the partition that counts."""

    sinfo: Name
    topology: Name | None = None
    partition: Name | None = None
    uplinks: dict[str, Positive] = {}


class RunningTable(Table):
    """A running job, with its remaining work."""

    nodes: str
    processors: Count = 1
    computation: Positive | None = None
    communication: NotNegative = 0.0
    application: Name | None = None
    problem_size: Positive | None = None
    dedicated: bool = False
    running_for: NotNegative = 0.0

    @model_validator(mode="after")
    def _terms_or_application(self) -> RunningTable:
        if (self.computation is None) == (self.application is None):
            raise ValueError(f"a job on {self.nodes} must have one of computation (s) and application")
        if (self.application is None) != (self.problem_size is None):
            raise ValueError(f"a job on {self.nodes} must have both application and problem_size, or none of them")
        if self.application is not None and self.communication:
            raise ValueError(f"a job on {self.nodes} has an application and communication, expected one of them")
        return self


class StepTable(Table):
    """The wait from a number of processors on."""

    processors: Count
    seconds: NotNegative


class ClusterTable(Table):
    """A cluster: nodes from one source, and the network between them."""

    name: Name
    nodes: Annotated[list[NodesTable], Field(min_length=1)] | None = None
    hosts: Name | None = None
    slurm: SlurmTable | None = None
    switches: list[SwitchTable] = []
    bandwidth: list[list[NotNegative]] | None = None
    running: list[RunningTable] = []
    queue_wait: NotNegative | list[StepTable] = 0.0
    watts: NotNegative | None = None
    hardware: Name | None = None
    idle_watts: NotNegative = 0.0

    @model_validator(mode="after")
    def _one_source(self) -> ClusterTable:
        if sum(source is not None for source in (self.nodes, self.hosts, self.slurm)) != 1:
            raise ValueError(f"cluster {self.name} must have one of nodes, hosts and slurm")
        if self.watts is not None and self.hardware is not None:
            raise ValueError(f"cluster {self.name} has both watts and hardware, expected one of them")
        if self.slurm is not None and self.switches:
            raise ValueError(f"cluster {self.name} has switches, expected those of slurm.topology only")
        if self.bandwidth is not None and (self.switches or (self.slurm is not None and self.slurm.topology)):
            raise ValueError(f"cluster {self.name} has both switches and a bandwidth matrix, expected one of them")
        return self


class ApplicationTable(Constraints):
    """The constraints of an application on nodes and processors, as ``[application.NAME]`` spells them."""

    name: Name


class FileTable(Table):
    """The whole file: clusters, constraints of applications, sources of loads."""

    cluster: Annotated[list[ClusterTable], Field(min_length=1)]
    application: list[ApplicationTable] = []
    source: list[SourceTable] = []
