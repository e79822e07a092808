"""CSV tables as they come from users: a checked header, rows with their line in the file, cells with numbers."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Mapping

from metasched.records import InputError, check_count
from metasched.records.settings import number_in
from metasched.store.files.whole_files import MOST_BYTES, read_text


def csv_table(
    path: str | os.PathLike[str], required: tuple[str, ...]
) -> tuple[list[str], Iterator[tuple[int, tuple[str, ...]]]]:
    """Split a CSV file into its header and its rows, each with its line in the file; blank lines are left out.

    Parameters
    ----------
    path : of the file; gzip where it ends in ``.gz``.
    required : columns that must be there.
    """
    csv.field_size_limit(MOST_BYTES)  # a file's own: the names of many nodes stand in one cell
    reader = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)

    def records() -> Iterator[tuple[int, tuple[str, ...]]]:
        line = 1
        try:
            for cells in reader:
                if any(cells):
                    yield line, tuple(cell.strip() for cell in cells)
                line = reader.line_num + 1
        except csv.Error as error:
            raise InputError(f"is not CSV ({error})", where=f"{path}, row {line}") from None

    def rows() -> Iterator[tuple[int, tuple[str, ...]]]:
        for line, cells in table:
            if len(cells) != len(header):
                raise InputError(f"has {len(cells)} cells, expected {len(header)}", where=f"{path}, row {line}")
            yield line, cells

    table = records()
    _, first = next(table, (1, ()))
    if not first:
        raise InputError(f"is empty, expected a header with {', '.join(required)}", where=str(path))
    header = list(first)
    if missing := [name for name in required if name not in header]:
        plural = "column" if len(missing) == 1 else "columns"
        raise InputError(
            f"{plural} {', '.join(missing)} missing, found {', '.join(header)}; expected {', '.join(required)}",
            where=f"{path}, row 1",
        )
    if twice := [name for name in header if header.count(name) > 1]:
        raise InputError(f"column {twice[0]} is given twice", where=f"{path}, row 1")
    return header, rows()


def csv_number(cells: Mapping[str, str], name: str) -> float:
    """The number in a named cell."""
    return number_in(name, cells[name])


def csv_count(cells: Mapping[str, str], name: str) -> int:
    """The whole number of at least 1 in a named cell."""
    value = csv_number(cells, name)
    check_count(name, value)
    return int(value)
