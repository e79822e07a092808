"""Run files, ``runs.csv``: one run a row, checked cell by cell.

The first bad cell is named by file, row (the line in the file) and column.
"""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from metasched.records import PARAMETER, SETTING_COLUMNS, InputError, Run, has_words
from metasched.store.files.csv_tables import csv_count, csv_number, csv_table
from metasched.store.files.whole_files import write_text_atomically
from metasched.validation import Located

RUN_REQUIRED = (
    "application",
    "cluster",
    "problem_size",
    "processors",
    "min_avg_avail_cpu",
    "min_avg_avail_bw",
    "execution_time",
)
#: The columns that a table of runs must have; others may be missing together, see :func:`read_runs`.
RUN_LEAST = ("problem_size", "processors", "execution_time")
#: Columns of which a table has all or none.
_TOGETHER = (("application", "cluster"), ("min_avg_avail_cpu", "min_avg_avail_bw"))
#: Every column of the contract but for those of parameters.
_CONTRACT = frozenset(
    (*RUN_REQUIRED, *SETTING_COLUMNS, "phase", "start_time", "nodes", "user", "energy", "energy_covers")
)
#: The platform of runs in a table that names none.
UNNAMED = "cluster"
#: The columns of the contract, in the order in which they are written.
RUN_COLUMNS = ("phase", "application", "cluster", "start_time", "nodes", *RUN_REQUIRED[2:])
#: The arguments of a prediction, in the order of :meth:`Predictor.predict_many`.
REQUEST_COLUMNS = RUN_REQUIRED[2:-1]


def read_runs(path: str | os.PathLike[str]) -> tuple[Run, ...]:
    """Read ``runs.csv``: one run a row, columns in any order, further columns kept in ``Run.extra``.

    An empty minimum of CPU or bandwidth was not measured and becomes NaN; so are both where the table has no columns of
    them. A table without application and cluster holds runs of one application, which is called as the file is (as its
    folder is where it is called ``runs.csv``), on one platform, called :data:`UNNAMED`.

    Raises
    ------
    InputError : for the first thing wrong with the file, with the row (line of the file) and the column.
    """
    header, rows = csv_table(path, RUN_LEAST)
    place = Path(path).resolve()
    named = place.parent if place.name.startswith("runs.csv") else place
    with Located(f"{path}, row 1"):
        assumed = assumed_cells(header, named.name.partition(".")[0])
    seen: dict[tuple[str, ...], int] = {}
    lines, runs = [], []
    for line, cells in rows:
        where = f"{path}, row {line}"
        with Located(where):
            run = run_from_cells(assumed | dict(zip(header, cells, strict=True)))
            # Two runs differ in their start, or in the loads of shared nodes; on idle nodes they may take equally long.
            distinct = run.start_time is not None or run.min_avg_avail_cpu < 1.0
            if distinct and seen.setdefault(cells, line) != line:
                raise InputError(f"is the same run as row {seen[cells]}")
        lines.append(line)
        runs.append(run)
    if not runs:
        raise InputError("holds a header and no runs", where=str(path))
    _check_words(runs, lines, path)
    return tuple(runs)


def assumed_cells(header: Collection[str], application: str = "") -> dict[str, str]:
    """The cells, by column, of what the columns of a table of runs leave out.

    Parameters
    ----------
    header : names of the columns, among them those of :data:`RUN_LEAST`.
    application : its name, where the table does not tell it.

    Raises
    ------
    InputError : of two columns that belong together the table has one, or one of the contract is spelt in capitals: it
        would be passed over.
    """
    for name in map(str, header):
        kind, colon, parameter = name.partition(":")
        expected = kind.lower() + colon + parameter
        if (expected in _CONTRACT or expected.startswith(PARAMETER)) and expected not in header:
            raise InputError(f"column {name[:80]} is unknown, expected {expected[:80]}")
    for group in _TOGETHER:
        if any(name in header for name in group) and (missing := [name for name in group if name not in header]):
            raise InputError(f"column {missing[0]} missing")
    return {"application": application or "application", "cluster": UNNAMED} | dict.fromkeys(_TOGETHER[1], "")


def _check_words(runs: Sequence[Run], lines: Sequence[int], path: str | os.PathLike[str]) -> None:
    """Refuse a word as a parameter that has numbers in most runs of its application, by its row."""
    for place, name, word in _words_among_numbers(runs):
        why = f"{PARAMETER}{name} is {word!r}, expected a number, as in other rows"
        raise InputError(why, where=f"{path}, row {lines[place]}")


def _words_among_numbers(runs: Sequence[Run]) -> Iterator[tuple[int, str, str]]:
    """The words of parameters that have numbers in most runs of their application: place of the run, name, word."""
    values: dict[tuple[str, str], list[tuple[float | str, int]]] = {}
    for place, run in enumerate(runs):
        for name, value in run.settings.parameters:
            values.setdefault((run.application, name), []).append((value, place))
    for (_, name), found in values.items():
        if not has_words([value for value, _ in found]):
            yield from ((place, name, value) for value, place in found if isinstance(value, str))


def without_slips(runs: Sequence[Run]) -> tuple[list[Run], list[str]]:
    """Runs without the words that models do not count, since their parameters have numbers in most runs.

    :func:`read_runs` reads a table of them, which it would refuse for such a word.

    Parameters
    ----------
    runs : of any applications.

    Returns
    -------
    runs, slips : what was left out of them, each a line for the user.

    Examples
    --------
    >>> runs = [Run("cg", "c8", 9.0, 2, 1.0, 90.0, 5.0, extra={"parameter:steps": n}) for n in ("7", "9", "1O")]
    >>> kept, (slip,) = without_slips(runs)
    >>> [dict(run.extra) for run in kept], slip[:26]
    ([{'parameter:steps': '7'}, {'parameter:steps': '9'}, {}], 'a run of cg states steps=1')
    """
    kept, slips = list(runs), []
    for place, name, word in _words_among_numbers(runs):
        run = kept[place]
        extra = {column: cell for column, cell in run.extra.items() if column != PARAMETER + name}
        kept[place] = replace(run, extra=MappingProxyType(extra))
        started = "" if run.start_time is None else f" that started at {run.start_time:.0f}"
        slips.append(
            f"a run of {run.application}{started} states {name}={word}, expected a number, as in the other runs: "
            "written without it, as models learn it"
        )
    return kept, slips


def write_runs(path: str | os.PathLike[str], runs: Iterable[Run]) -> None:
    """Write ``runs.csv`` such that :func:`read_runs` gives back the same runs; atomically.

    Parameters
    ----------
    path : of the file, replaced where it exists.
    runs : in the order in which they are written.

    Raises
    ------
    InputError : when the file cannot be written.
    """
    rows = [run_to_cells(run) for run in runs]
    text = io.StringIO()
    columns = dict.fromkeys([*RUN_COLUMNS, *(name for row in rows for name in row)])
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text_atomically(path, text.getvalue())


def run_to_cells(run: Run) -> dict[str, str]:
    """A run as a row of a table: the cells of :data:`RUN_COLUMNS`, empty where unknown, and the further ones."""
    return {
        "phase": run.phase or "",
        "application": run.application,
        "cluster": run.cluster,
        "start_time": "" if run.start_time is None else _number(run.start_time),
        "nodes": " ".join(run.nodes),
        "processors": str(run.processors),
        **{name: _number(getattr(run, name)) for name in RUN_REQUIRED[2:] if name != "processors"},
        **run.extra,
    }


def run_from_cells(cells: Mapping[str, str]) -> Run:
    """The run in one row of a table: its cells by column, empty where nothing is known.

    Raises
    ------
    InputError : for the first cell that no run can have.
    """
    for name in ("application", "cluster"):
        if not cells[name]:
            raise InputError(f"{name} is empty, expected a name")
    processors = csv_count(cells, "processors")
    return Run(
        application=cells["application"],
        cluster=cells["cluster"],
        problem_size=csv_number(cells, "problem_size"),
        processors=processors,
        min_avg_avail_cpu=_minimum(cells, "min_avg_avail_cpu"),
        min_avg_avail_bw=_minimum(cells, "min_avg_avail_bw"),
        execution_time=csv_number(cells, "execution_time"),
        start_time=csv_number(cells, "start_time") if cells.get("start_time") else None,
        nodes=tuple(cells.get("nodes", "").split()),
        phase=cells.get("phase") or None,
        extra=MappingProxyType({name: cell for name, cell in cells.items() if name not in RUN_COLUMNS and cell}),
    )


def _minimum(cells: Mapping[str, str], name: str) -> float:
    """A minimum of loads, NaN where its cell is empty since it was not measured."""
    if not cells[name]:
        return math.nan
    if math.isnan(value := csv_number(cells, name)):
        raise InputError(f"{name} is {cells[name]}, expected a number, or an empty cell where it was not measured")
    return value


def _number(value: float) -> str:
    """The shortest spelling that reads back as the same number; none where it was not measured."""
    return "" if math.isnan(value) else repr(float(value)).removesuffix(".0")
