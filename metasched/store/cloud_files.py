"""Reads application profiles from CSV and hardware descriptions from TOML; what is wrong ends in one clear line.

A profile file has the columns processes, sends, message_size (bytes), waiting_time (s), execution_time (s), and where
known mean_distance, exchanges, dimensions and servers, the number of servers (the first ones) that the run was spread
over.
"""

from __future__ import annotations

import csv
import io
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from metasched.predictors.cloud.hardware import Hardware, Server
from metasched.predictors.cloud.profile import Profile
from metasched.records import InputError
from metasched.store.files import read_text

_NEEDED = ("processes", "sends", "message_size", "waiting_time", "execution_time")
_OPTIONAL = ("mean_distance", "exchanges", "dimensions")

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=100_000, strict=True)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Server(_Table):
    name: Annotated[str, Field(min_length=1)] = "server"
    cores: Count
    speed: Positive = 1.0
    count: Count = 1


class _Hardware(_Table):
    word_time: Seconds
    startup_time: Seconds = 0.0
    shared_word_time: Seconds | None = None
    server: Annotated[list[_Server], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class ProfiledRun:
    """A profile and the number of servers it ran on."""

    profile: Profile
    servers: int = 1


def read_profiles(path: Path) -> list[ProfiledRun]:
    """Read a CSV of profiled runs."""
    reader = csv.DictReader(io.StringIO(read_text(path)))
    for column in _NEEDED:
        if column not in (reader.fieldnames or ()):
            raise InputError(f"column {column} is missing", where=f"{path}, row 1")
    runs = []
    for line, row in enumerate(reader, start=2):
        where = f"{path}, row {line}"
        values: dict[str, float] = {
            name: _number(row[name], f"{where}, column {name}")
            for name in (*_NEEDED, *_OPTIONAL)
            if name in _NEEDED or row.get(name)
        }
        servers = _number(row["servers"], f"{where}, column servers") if row.get("servers") else 1.0
        if servers < 1 or servers != int(servers):
            raise InputError(f"{servers:g}, expected a whole number of at least 1", where=f"{where}, column servers")
        try:
            runs.append(ProfiledRun(Profile(**values), int(servers)))  # type: ignore[arg-type]
        except InputError as error:
            raise InputError(str(error), where=where) from None
    return runs


def read_hardware(path: Path) -> Hardware:
    """Read a hardware description: the times of the network, and [[server]] with name, cores, speed and count."""
    try:
        document = _Hardware.model_validate(tomllib.loads(read_text(path)))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"is not TOML: {error}", where=str(path)) from None
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part + 1) if isinstance(part, int) else part for part in first["loc"])
        raise InputError(f"{field}: {first['msg'].lower()}", where=str(path)) from None
    servers = [
        Server(f"{group.name}{index}" if group.count > 1 else group.name, group.cores, group.speed)
        for group in document.server
        for index in range(group.count)
    ]
    return Hardware(tuple(servers), document.word_time, document.startup_time, document.shared_word_time)


def _number(text: str | None, where: str) -> float:
    try:
        value = float(text or "")
    except ValueError:
        raise InputError(f"{text!r}, expected a number", where=where) from None
    if not abs(value) < float("inf"):
        raise InputError(f"{text}, expected a finite number", where=where)
    return value
