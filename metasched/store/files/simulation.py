"""Reads system models (TOML) and applications (the language of :mod:`metasched.simulation.language`)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictInt

from metasched.blocks.entry import Entry
from metasched.records import InputError
from metasched.simulation.application import Application
from metasched.simulation.language import parse
from metasched.simulation.system import MOST, Network, Nodes, System
from metasched.store.files.hardware import read_entry
from metasched.store.files.whole_files import read_text
from metasched.validation import Located, toml_as
from monitors.validated_fields import StrictFields

_Name = Annotated[str, Field(min_length=1, max_length=200)]
_Count = Annotated[StrictInt, Field(ge=1, le=MOST)]


class _Strict(StrictFields, BaseModel):
    model_config = ConfigDict(populate_by_name=True)


class _Network(_Strict):
    name: _Name
    entry: _Name
    within: str = ""


class _Nodes(_Strict):
    name: _Name
    count: _Count
    network: _Name
    device: _Name
    slots: dict[_Name, _Count]
    bus: str = ""
    disk: str = ""
    failure_rate: Annotated[float | None, Field(alias="lambda", ge=0, allow_inf_nan=False)] = None


class _System(_Strict):
    name: str = ""
    waiting: bool = True
    processes: dict[_Name, _Count] = {}
    network: Annotated[list[_Network], Field(min_length=1)]
    node: Annotated[list[_Nodes], Field(min_length=1)]


def read_system(path: Path, *, other_files: bool = True) -> System:
    """Read a system model; InputError for the first thing wrong with it.

    Parameters
    ----------
    path : the file.
    other_files : whether entries that end in ``.toml`` are read, from files beside it; else they are refused.
    """
    where = str(path)
    document = toml_as(_System, read_text(path), where=where)
    with Located(where):
        return _made(document, path, other_files)


def _made(document: _System, path: Path, other_files: bool) -> System:
    def entry(name: str) -> Entry:
        if not other_files and (name.endswith(".toml") or "/" in name):
            raise InputError(f"{name[:80]!r} is a file, expected an entry of the hardware database")
        return read_entry(str(path.parent / name) if name.endswith(".toml") else name)

    networks = tuple(Network(each.name, entry(each.entry), each.within) for each in document.network)
    nodes = tuple(
        Nodes(
            each.name,
            each.count,
            each.network,
            entry(each.device),
            dict(each.slots),
            entry(each.bus) if each.bus else None,
            entry(each.disk) if each.disk else None,
            each.failure_rate,
        )
        for each in document.node
    )
    return System(document.name or path.stem, networks, nodes, dict(document.processes), document.waiting)


def read_application(path: Path) -> Application:
    """Read an application; InputError for the first thing that is not of the language, with its line."""
    return parse(read_text(path), path.name)


def checked(system: System, application: Application, processes: dict[str, Any]) -> dict[str, int]:
    """How many processes of each label: what is asked for, else what the system says, else one for each slot.

    Raises
    ------
    InputError : when a label has no code or no slots.
    """
    named = {**system.processes, **processes}
    for label in named:
        if label not in application.code:
            raise InputError(f"label {label} has no code, expected one of {', '.join(application.code)}")
    for label in application.code:
        if not system.slots(label):
            raise InputError(f"label {label} has no slots in {system.name}")
    return {label: named.get(label, system.slots(label)) for label in application.code}
