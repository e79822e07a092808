"""``phases.csv``: what each process did in each phase of the runs in the ``runs.csv`` beside it."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace

from metasched.records import InputError, PhaseMark, Run
from metasched.store.files.csv_tables import csv_number, csv_table
from metasched.store.files.whole_files import read_text, write_text_atomically
from metasched.validation import Located

#: ``run`` counts the rows of runs.csv from 0; further columns are left out.
PHASE_COLUMNS = ("run", "phase", "process", "avg_avail_cpu", "avg_avail_bw", "execution_time")


def with_marks(runs: Iterable[Run], path: str | os.PathLike[str]) -> tuple[Run, ...]:
    """The runs with the marks that a phases file has for them.

    Raises
    ------
    InputError : for the first thing wrong with the file, with the row (line of the file) and the column.
    """
    runs = tuple(runs)
    header, rows = csv_table(path, PHASE_COLUMNS)
    marks: list[dict[tuple[str, int], PhaseMark]] = [{} for _ in runs]
    for line, row in rows:
        cells = dict(zip(header, row, strict=True))
        with Located(f"{path}, row {line}"):
            index = csv_number(cells, "run")
            if not (index.is_integer() and 0 <= index < len(runs)):
                raise InputError(f"run is {cells['run']}, expected the number of one of {len(runs)} runs, from 0")
            mark = _mark(cells)
            own = marks[int(index)]
            if mark.process >= runs[int(index)].processors:
                count = runs[int(index)].processors
                raise InputError(f"process is {mark.process}, expected one of the {count} of run {int(index)}, from 0")
            if (mark.phase, mark.process) in own:
                raise InputError(f"process {mark.process} already has a mark in phase {mark.phase} of run {int(index)}")
        own[mark.phase, mark.process] = mark
    return tuple(replace(run, marks=tuple(own.values())) for run, own in zip(runs, marks, strict=True))


def add_marks(path: str | os.PathLike[str], run: int, marks: Sequence[PhaseMark]) -> None:
    """Add the marks of a run, which has none yet, to a phases file that may not exist yet; all of them or nothing.

    Parameters
    ----------
    run : the row of runs.csv, from 0.
    marks : of its processes.

    Raises
    ------
    InputError : when the file has other columns than :data:`PHASE_COLUMNS`.
    """
    before = read_text(path) if os.path.exists(path) else ",".join(PHASE_COLUMNS) + "\n"
    header = next(iter(before.splitlines()), "")
    if tuple(header.split(",")) != PHASE_COLUMNS:
        raise InputError(f"has the columns {header[:80]}, expected {','.join(PHASE_COLUMNS)}", where=f"{path}, row 1")
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    for mark in marks:
        rows.writerow((run, mark.phase, mark.process, mark.avg_avail_cpu, mark.avg_avail_bw, mark.execution_time))
    write_text_atomically(path, before.rstrip("\n") + "\n" + text.getvalue())


def _mark(cells: dict[str, str]) -> PhaseMark:
    process = csv_number(cells, "process")
    if not process.is_integer():
        raise InputError(f"process is {cells['process']}, expected a whole number of at least 0")
    return PhaseMark(
        cells["phase"],
        int(process),
        csv_number(cells, "avg_avail_cpu"),
        csv_number(cells, "avg_avail_bw"),
        csv_number(cells, "execution_time"),
    )
