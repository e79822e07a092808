"""The clusters with a batch scheduler that the configuration names."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pydantic import BaseModel

from metasched.placement.clusters.description import hardware_of
from metasched.schedulers.commands import TIMEOUT
from metasched.schedulers.contract import Source
from metasched.schedulers.flux.source import FluxSource
from metasched.schedulers.grid_engine.source import GridEngineSource
from metasched.schedulers.htcondor.source import HTCondorSource
from metasched.schedulers.oar.source import OarSource
from metasched.schedulers.pbs.source import PbsSource
from metasched.schedulers.slurm.source import SlurmSource
from metasched.service.configuration import Configuration
from metasched.store.files.hardware import read_entry


def sources(settings: Configuration, *, timeout: float = TIMEOUT, powered: bool = True) -> list[Source]:
    """One source for each table of a batch scheduler.

    Parameters
    ----------
    settings : the configuration.
    timeout : how long a command of a scheduler may take (s).
    powered : whether the files that describe the nodes' power are read.

    Raises
    ------
    InputError : when such a file cannot be read.
    """
    found: list[Source] = [
        SlurmSource(
            each.name,
            each.partitions,
            platform=each.platform,
            configuration=each.configuration,
            hardware=hardware_of(each, read_entry, f"slurm {each.name}") if powered else None,
            timeout=timeout,
        )
        for each in settings.slurm
    ]
    listed: tuple[tuple[Sequence[BaseModel], Callable[..., Source]], ...] = (
        (settings.grid_engine, GridEngineSource),
        (settings.pbs, PbsSource),
        (settings.htcondor, HTCondorSource),
        (settings.flux, FluxSource),
        (settings.oar, OarSource),
    )
    return found + [
        source(**each.model_dump(exclude={"prefix"}), timeout=timeout) for tables, source in listed for each in tables
    ]
