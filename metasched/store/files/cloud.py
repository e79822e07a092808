"""Reads application profiles from CSV and hardware descriptions from TOML; errors are reported in one line.

A profile file has the columns processes, sends, message_size (bytes), waiting_time (s), execution_time (s), and where
known mean_distance, exchanges, dimensions and servers, the number of servers (the first ones) that the run was spread
over.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

from metasched.predictors.analytic.cloud.hardware import Hardware, Server
from metasched.predictors.analytic.cloud.profile import Profile
from metasched.store.files.csv_tables import csv_count, csv_number, csv_table
from metasched.store.files.whole_files import read_text
from metasched.validation import Located, toml_as
from monitors.validated_fields import NotNegative, Positive, StrictFields

_NEEDED = ("processes", "sends", "message_size", "waiting_time", "execution_time")
_OPTIONAL = ("mean_distance", "exchanges", "dimensions")

Seconds = NotNegative
Count = Annotated[int, Field(ge=1, le=100_000, strict=True)]


class _Server(StrictFields, BaseModel):
    name: Annotated[str, Field(min_length=1)] = "server"
    cores: Count
    speed: Positive = 1.0
    count: Count = 1


class _Hardware(StrictFields, BaseModel):
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
    """Read a CSV of profiled runs; InputError for the first thing wrong with it, with the row and the column."""
    header, rows = csv_table(path, _NEEDED)
    runs = []
    for line, row in rows:
        cells = {name: cell for name, cell in zip(header, row, strict=True) if cell or name in _NEEDED}
        with Located(f"{path}, row {line}"):
            values = {name: csv_number(cells, name) for name in (*_NEEDED, *_OPTIONAL) if name in cells}
            servers = csv_count(cells, "servers") if "servers" in cells else 1
            runs.append(ProfiledRun(Profile(**values), servers))  # type: ignore[arg-type]
    return runs


def read_hardware(path: Path) -> Hardware:
    """Read a hardware description: the times of the network, and [[server]] with name, cores, speed and count."""
    document = toml_as(_Hardware, read_text(path), where=str(path))
    servers = [
        Server(f"{group.name}{index}" if group.count > 1 else group.name, group.cores, group.speed)
        for group in document.server
        for index in range(group.count)
    ]
    return Hardware(tuple(servers), document.word_time, document.startup_time, document.shared_word_time)
