"""Reads measured blocks from CSV; whatever is wrong ends in one clear line."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from metasched.blocks.calibration.measurements import Measurements
from metasched.blocks.entry import Block
from metasched.blocks.formulas import LARGEST, NEEDS
from metasched.records import InputError
from metasched.store.files.csv_tables import csv_number, csv_table
from metasched.validation import Located

#: Most measurements that are read.
MOST = 1_000_000
_ASKED = ("data_size", "nodes", "threads", "instructions")


def read_measurements(path: Path) -> dict[Block, Measurements]:
    """Read measurements by block: columns block, value (s or W) and what the block is asked with.

    Raises
    ------
    InputError : for the first thing wrong, with its row.
    """
    header, table = csv_table(path, ("block", "value"))
    rows: dict[Block, list[list[float]]] = {}
    for line, cells in table:
        where = f"{path}, row {line}"
        row = dict(zip(header, cells, strict=True))
        if row["block"] not in [*Block] or row["block"] == Block.success:
            known = ", ".join(block for block in Block if block != Block.success)
            raise InputError(f"block is {row['block']!r}, expected one of {known}", where=where)
        block = Block(row["block"])
        if line > MOST:
            raise InputError(f"expected at most {MOST} measurements", where=where)
        with Located(where):
            rows.setdefault(block, []).append(_measured(block, row))
    if not rows:
        raise InputError("has no rows, expected measurements", where=str(path))
    return {block: Measurements(*np.array(each).T) for block, each in rows.items()}


def _measured(block: Block, row: dict[str, str]) -> list[float]:
    value = csv_number(row, "value")
    if not 1.0 / LARGEST < value < LARGEST:
        raise InputError(f"value is {value:g}, expected a number above {1.0 / LARGEST:g} and below {LARGEST:g}")
    asked = dict.fromkeys(_ASKED, 1.0) | {"data_size": 0.0}
    for name in NEEDS[block]:
        if block == Block.compute and name == "threads" and not row.get(name):
            continue
        if not row.get(name):
            raise InputError(f"{name} is missing, which {block} needs")
        asked[name] = csv_number(row, name)
        least = float(name in ("nodes", "instructions") or (name == "threads" and block == Block.compute))
        if not least <= asked[name] <= LARGEST:
            raise InputError(f"{name} is {asked[name]:g}, expected a number from {least:g} to {LARGEST:g}")
        if name == "data_size" and 0.0 < asked[name] < 1.0:
            raise InputError(f"data_size is {asked[name]:g}, expected 0 or a number from 1 to {LARGEST:g}")
        if name in ("nodes", "threads") and not asked[name].is_integer():
            raise InputError(f"{name} is {asked[name]:g}, expected a whole number")
    return [value / asked["instructions"], asked["data_size"], asked["nodes"], asked["threads"]]
