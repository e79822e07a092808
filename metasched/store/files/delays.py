"""Reads delays measured between nodes: CSV with the columns from, to and delay."""

from __future__ import annotations

import os

from metasched.records import InputError
from metasched.store.files.csv_tables import csv_number, csv_table
from metasched.validation import Located

#: Measurements of one file at most.
MOST_DELAYS = 100_000
#: Delays that can be, in any unit; their reciprocals are weights.
LEAST_DELAY = 1e-30


def read_delays(path: str | os.PathLike[str]) -> tuple[list[tuple[str, str]], list[float]]:
    """The pairs of nodes and the delay of each, in the file's unit.

    Raises
    ------
    InputError : with the file, the row and what was expected.
    """
    header, rows = csv_table(path, ("from", "to", "delay"))
    pairs: list[tuple[str, str]] = []
    delays: list[float] = []
    for line, values in rows:
        cells = dict(zip(header, values, strict=True))
        with Located(f"{path}, row {line}"):
            delay = csv_number(cells, "delay")
            if not LEAST_DELAY <= delay <= 1.0 / LEAST_DELAY:
                ends = f"from {LEAST_DELAY:g} to {1.0 / LEAST_DELAY:g}"
                raise InputError(f"delay is {cells['delay'][:80]}, expected a number {ends}")
        pairs.append((cells["from"], cells["to"]))
        delays.append(delay)
        if len(pairs) > MOST_DELAYS:
            raise InputError(f"has more than {MOST_DELAYS} rows", where=str(path))
    if not pairs:
        raise InputError("has no row, expected one for each measurement", where=str(path))
    return pairs, delays
