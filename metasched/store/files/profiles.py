"""Reads application profiles of any kind: by its ending a file is a CSV, or else a report of mpiP."""

from __future__ import annotations

from pathlib import Path

from metasched.store.files.cloud import ProfiledRun, read_profiles
from metasched.store.files.mpip import read_mpip


def read_any_profiles(path: Path) -> list[ProfiledRun]:
    """Read the profiled runs of a file."""
    return read_profiles(path) if path.suffix == ".csv" else [read_mpip(path)]
