"""Campaigns: the folder that holds ``runs.csv``, and perhaps loads and phases."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from metasched.records import InputError, Run
from metasched.store.files.loads import Loads, read_loads
from metasched.store.files.phases import with_marks
from metasched.store.files.runs import read_runs


@dataclass(frozen=True, slots=True)
class Campaign:
    """A recorded sequence of runs, in the order of the file, and the loads they met where those were recorded."""

    runs: tuple[Run, ...]
    loads: Loads | None
    path: Path


def read_campaign(path: str | os.PathLike[str]) -> Campaign:
    """Read a campaign: a folder with ``runs.csv``, perhaps ``loads.csv[.gz]`` and ``phases.csv[.gz]``, or runs alone.

    Raises
    ------
    InputError
        When there is no ``runs.csv``, or whatever :func:`read_runs`, :func:`read_loads` and :func:`with_marks` refuse.
    """
    path = Path(path)
    if not path.is_dir():
        return Campaign(read_runs(path), None, path)
    if not (path / "runs.csv").is_file():
        raise InputError("holds no runs.csv", where=str(path))
    loads = next((path / name for name in ("loads.csv", "loads.csv.gz") if (path / name).exists()), None)
    phases = next((path / name for name in ("phases.csv", "phases.csv.gz") if (path / name).exists()), None)
    runs = read_runs(path / "runs.csv")
    return Campaign(with_marks(runs, phases) if phases else runs, read_loads(loads) if loads else None, path)
