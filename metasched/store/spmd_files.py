"""Reads SPMD applications from TOML and observed surfaces from CSV; whatever is wrong ends in one clear line.

An application is a ``name`` and a list of ``[[phase]]``, whose keys are the parameters of
:class:`metasched.predictors.spmd.application.Phase`; ``synchronization = "all"`` stands for all processors. A surface
has the columns processors, disks, and either execution_time (s) or speedup.
"""

from __future__ import annotations

import csv
import io
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from pydantic import TypeAdapter, ValidationError

from metasched.predictors.contract import Floats
from metasched.predictors.spmd.application import Application, Phase
from metasched.records import InputError
from metasched.store.files import read_text

_PHASE = TypeAdapter(Phase)
_KNOWN = tuple(entry.name for entry in fields(Phase))


@dataclass(frozen=True)
class ObservedSurface:
    """What was measured at n points.

    Parameters
    ----------
    processors, disks : arrays of shape (n,).
    time : array of shape (n,), seconds, or multiples of T_1 where speedups were measured.
    """

    processors: Floats
    disks: Floats
    time: Floats


def read_application(path: Path) -> Application:
    """Read an application."""
    try:
        document = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"is not TOML: {error}", where=str(path)) from None
    unknown = set(document) - {"name", "phase"}
    if unknown:
        raise InputError(f"has the key {min(unknown)}, expected name and [[phase]]", where=str(path))
    phases = document.get("phase")
    if not isinstance(phases, list) or not phases:
        raise InputError("has no [[phase]], expected at least one", where=str(path))
    name = document.get("name", path.stem)
    if not isinstance(name, str):
        raise InputError(f"name is {name!r}, expected text", where=str(path))
    read = tuple(_phase(entry, f"{path}, phase {position}") for position, entry in enumerate(phases, start=1))
    return Application(name, read)


def read_surface(path: Path) -> ObservedSurface:
    """Read an observed surface."""
    reader = csv.DictReader(io.StringIO(read_text(path)))
    columns = set(reader.fieldnames or ())
    answers = columns & {"execution_time", "speedup"}
    for column in ("processors", "disks"):
        if column not in columns:
            raise InputError(f"column {column} is missing", where=f"{path}, row 1")
    if len(answers) != 1:
        raise InputError("expected one of the columns execution_time and speedup", where=f"{path}, row 1")
    answer = answers.pop()
    rows = [
        [_number(row[column], f"{path}, row {line}, column {column}") for column in ("processors", "disks", answer)]
        for line, row in enumerate(reader, start=2)
    ]
    if not rows:
        raise InputError("has no rows, expected at least one", where=str(path))
    processors, disks, value = np.array(rows).T
    return ObservedSurface(processors, disks, value if answer == "execution_time" else 1.0 / value)


def _phase(entry: object, where: str) -> Phase:
    if not isinstance(entry, dict):
        raise InputError(f"is {entry!r}, expected keys and values", where=where)
    unknown = sorted(set(entry) - set(_KNOWN))
    if unknown:
        raise InputError(f"has the key {unknown[0]}, expected one of {', '.join(_KNOWN)}", where=where)
    if entry.get("synchronization") == "all":
        entry = entry | {"synchronization": None}
    try:
        return _PHASE.validate_python(entry)
    except ValidationError as error:
        first = error.errors()[0]
        if first["type"] == "value_error":
            raise InputError(str(first["ctx"]["error"]), where=where) from None
        name = str(first["loc"][0])
        if first["type"] == "missing":
            raise InputError(f"{name} is missing", where=where) from None
        raise InputError(f"{name} is {first['input']!r}: {first['msg'].lower()}", where=where) from None


def _number(text: str | None, where: str) -> float:
    try:
        value = float(text or "")
    except ValueError:
        raise InputError(f"{text!r}, expected a number", where=where) from None
    if not 0 < value < float("inf"):
        raise InputError(f"{text}, expected a finite number above 0", where=where)
    return value
