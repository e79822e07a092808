"""How clusters with a batch scheduler are configured: a table of the daemon's configuration for each scheduler."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field, model_validator

from monitors.relative_paths import FileOrEntry, PathText
from monitors.validated_fields import NotNegative, StrictFields


class Scheduled(StrictFields, BaseModel):
    """Settings of every cluster with a scheduler; models are stored by ``platform``, or by the name if empty.

    Loads of its nodes are reported under their names with ``prefix`` before them.
    """

    name: Annotated[str, Field(min_length=1)]
    partitions: list[str] = []
    platform: str = ""
    prefix: Annotated[str, Field(pattern=r"^[\w.-]{0,64}$")] = ""


class SlurmCluster(Scheduled):
    """A Slurm cluster whose partitions jobs may be sent to, all where none is named.

    ``watts``, ``hardware`` and ``idle_watts`` of its nodes are as in a description of clusters.
    """

    configuration: PathText = ""
    watts: NotNegative | None = None
    hardware: FileOrEntry | None = None
    idle_watts: NotNegative = 0.0

    @model_validator(mode="after")
    def _one_power(self) -> SlurmCluster:
        if self.watts is not None and self.hardware is not None:
            raise ValueError(f"cluster {self.name} has both watts and hardware, expected one of them")
        return self


class GridEngineCell(Scheduled):
    """A cell of Grid Engine whose cluster queues jobs may be sent to, all where none is named.

    ``root`` and ``cell`` are SGE_ROOT and SGE_CELL, where they are not the environment's or the usual ones.
    """

    root: str = ""
    cell: str = ""


class PbsServer(Scheduled):
    """A server of OpenPBS whose queues jobs may be sent to, all where none is named.

    ``server`` is PBS_SERVER, where it is not that of the usual pbs.conf.
    """

    server: str = ""


class HTCondorPool(Scheduled):
    """A pool of HTCondor whose partitions jobs may be sent to, all where none is named.

    ``pool`` is the host of its collector, where it is not that of the usual configuration.
    """

    pool: str = ""


class FluxInstance(Scheduled):
    """An instance of Flux whose queues jobs may be sent to, all where none is named.

    ``uri`` is FLUX_URI, where it is not that of the system's instance.
    """

    uri: str = ""


class OarServer(Scheduled):
    """A server of OAR whose partitions jobs may be sent to, all where none is named.

    ``property`` of its resources tells partitions apart; where it is empty, all resources are one partition.
    """

    property: Annotated[str, Field(pattern=r"^[A-Za-z_]?\w{0,62}$")] = ""
