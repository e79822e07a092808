"""Reads SPMD applications from TOML and observed surfaces from CSV; whatever is wrong ends in one clear line.

An application is a ``name`` and a list of ``[[phase]]``, whose keys are the parameters of
:class:`metasched.predictors.analytic.spmd.application.Phase`; ``synchronization = "all"`` stands for all processors.
A surface has the columns processors, disks, and either execution_time (s) or speedup.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from pydantic import TypeAdapter, ValidationError

from metasched.arrays import Floats
from metasched.predictors.analytic.spmd.application import Application, Phase
from metasched.records import InputError, check_above_zero
from metasched.store.files.csv_tables import csv_number, csv_table
from metasched.store.files.whole_files import read_text
from metasched.validation import Located, first_error, parse_toml

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
    """Read an application from TOML; InputError for the first thing wrong with it."""
    document = parse_toml(read_text(path), where=str(path))
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
    """Read an observed surface; InputError for the first thing wrong with it, with the row and the column."""
    header, table = csv_table(path, ("processors", "disks"))
    answers = {"execution_time", "speedup"} & set(header)
    if len(answers) != 1:
        raise InputError("expected one of the columns execution_time and speedup", where=f"{path}, row 1")
    columns = ("processors", "disks", answers.pop())
    rows = []
    for line, row in table:
        cells = dict(zip(header, row, strict=True))
        with Located(f"{path}, row {line}"):
            rows.append([csv_number(cells, name) for name in columns])
            for name, value in zip(columns, rows[-1], strict=True):
                check_above_zero(name, value)
    if not rows:
        raise InputError("has no rows, expected at least one", where=str(path))
    processors, disks, value = np.array(rows).T
    return ObservedSurface(processors, disks, value if columns[2] == "execution_time" else 1.0 / value)


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
        raise InputError(first_error(error), where=where) from None
