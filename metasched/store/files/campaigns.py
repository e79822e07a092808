"""Campaign files: ``runs.csv``, ``loads.csv`` and ``loads.csv.gz``, and the folder that holds them.

Runs become a tuple of :class:`Run`; loads, of which there may be hundreds of thousands, become columns. Both are
checked cell by cell, and the first bad cell is named by file, row (the line in the file) and column.
"""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from metasched.records import PARAMETER, InputError, Run, check_count, has_words
from metasched.store.files.csv_tables import csv_number, csv_table, parsed
from metasched.store.files.phases import with_marks
from metasched.store.files.whole_files import write_text_atomically
from metasched.validation import Located

Floats = NDArray[np.float64]

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
_LEAST = ("problem_size", "processors", "execution_time")
#: Columns of which a table has all or none.
_TOGETHER = (("application", "cluster"), ("min_avg_avail_cpu", "min_avg_avail_bw"))
#: The platform of runs in a table that names none.
UNNAMED = "cluster"
#: The columns of the contract, in the order in which they are written.
RUN_COLUMNS = ("phase", "application", "cluster", "start_time", "nodes", *RUN_REQUIRED[2:])
#: The arguments of a prediction, in the order of :meth:`Predictor.predict_many`.
REQUEST_COLUMNS = RUN_REQUIRED[2:-1]
LOAD_COLUMNS = ("time", "node", "available_cpu", "available_bandwidth")


@dataclass(frozen=True, slots=True)
class Loads:
    """The loads of nodes in columns, sorted by node and then by time.

    Parameters
    ----------
    nodes : names of the nodes, sorted.
    offsets : array of shape (len(nodes) + 1,); the samples of node ``k`` are ``offsets[k]:offsets[k + 1]``.
    time : array of shape (n,), seconds; strictly increasing within a node.
    available_cpu : array of shape (n,), fractions of one processor, in [0, 1].
    available_bandwidth : array of shape (n,), Mbit/s, at least 0.

    Examples
    --------
    >>> loads = Loads.sort(["b", "a", "a"], [0.0, 5.0, 0.0], [1.0, 0.5, 0.75], [90.0, 80.0, 70.0])
    >>> loads.nodes, len(loads)
    (('a', 'b'), 3)
    >>> loads.of("a").available_cpu
    array([0.75, 0.5 ])
    """

    nodes: tuple[str, ...]
    offsets: NDArray[np.intp]
    time: Floats
    available_cpu: Floats
    available_bandwidth: Floats

    @classmethod
    def sort(
        cls,
        node: Iterable[str],
        time: Iterable[float],
        available_cpu: Iterable[float],
        available_bandwidth: Iterable[float],
    ) -> Loads:
        """Bring samples in any order, four columns of one length, into the order of this class.

        Parameters
        ----------
        node : name of each sample's node.
        time : of each sample, seconds since 1970 or since the start of the campaign.
        available_cpu : share of one processor.
        available_bandwidth : Mbit/s.
        """
        names, which = _coded(node)
        columns = [np.asarray([*column], dtype=float) for column in (time, available_cpu, available_bandwidth)]
        order = np.lexsort((columns[0], which))
        offsets = np.concatenate(([0], np.cumsum(np.bincount(which, minlength=len(names)))))
        return cls(names, offsets, *(column[order] for column in columns))

    def __len__(self) -> int:
        return len(self.time)

    def of(self, node: str) -> Loads:
        """The samples of one node.

        Raises
        ------
        InputError
            When there are none.
        """
        if node not in self.nodes:
            raise InputError(f"there are no loads of node {node}")
        k = self.nodes.index(node)
        part = slice(self.offsets[k], self.offsets[k + 1])
        size = np.array([0, self.offsets[k + 1] - self.offsets[k]])
        return Loads((node,), size, self.time[part], self.available_cpu[part], self.available_bandwidth[part])

    def grid(self) -> tuple[Floats, Floats, Floats]:
        """The samples side by side: times of shape (t,), available CPU and bandwidth of shape (t, nodes).

        Where a node has no sample at a time that others have, NaN stands.
        """
        times, row = np.unique(self.time, return_inverse=True)
        column = np.repeat(np.arange(len(self.nodes)), np.diff(self.offsets))
        cpu, bandwidth = np.full((2, len(times), len(self.nodes)), np.nan)
        cpu[row, column], bandwidth[row, column] = self.available_cpu, self.available_bandwidth
        return times, cpu, bandwidth


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


def read_runs(path: str | os.PathLike[str]) -> tuple[Run, ...]:
    """Read ``runs.csv``: one run a row, columns in any order, further columns kept in ``Run.extra``.

    An empty minimum of CPU or bandwidth was not measured and becomes NaN; so are both where the table has no columns of
    them. A table without application and cluster holds runs of one application, which is called as the file is (as its
    folder is where it is called ``runs.csv``), on one platform, called :data:`UNNAMED`.

    Raises
    ------
    InputError
        For the first thing wrong with the file, with the row (line of the file) and the column.
    """
    header, rows = csv_table(path, _LEAST)
    for group in _TOGETHER:
        if any(name in header for name in group) and (missing := [name for name in group if name not in header]):
            raise InputError(f"column {missing[0]} missing", where=f"{path}, row 1")
    place = Path(path).resolve()
    named = place.parent if place.name.startswith("runs.csv") else place
    assumed = {"application": named.name.partition(".")[0] or "application", "cluster": UNNAMED}
    assumed |= dict.fromkeys(_TOGETHER[1], "")
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


def _check_words(runs: Sequence[Run], lines: Sequence[int], path: str | os.PathLike[str]) -> None:
    """Refuse a word as a parameter that has numbers in most runs of its application, by its row."""
    values: dict[tuple[str, str], list[tuple[float | str, int]]] = {}
    for run, line in zip(runs, lines, strict=True):
        for name, value in run.settings.parameters:
            values.setdefault((run.application, name), []).append((value, line))
    for (_, name), found in values.items():
        if not has_words([value for value, _ in found]):
            for value, line in found:
                if isinstance(value, str):
                    raise InputError(
                        f"{PARAMETER}{name} is {value!r}, expected a number, as in other rows",
                        where=f"{path}, row {line}",
                    )


def write_runs(path: str | os.PathLike[str], runs: Iterable[Run]) -> None:
    """Write ``runs.csv`` such that :func:`read_runs` gives back the same runs; atomically.

    Parameters
    ----------
    path : of the file, replaced where it exists.
    runs : in the order in which they are written.

    Raises
    ------
    InputError
        When the file cannot be written.
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


def read_loads(path: str | os.PathLike[str]) -> Loads:
    """Read ``loads.csv`` or ``loads.csv.gz``: one sample a row, in any order; further columns are left out.

    Raises
    ------
    InputError
        For the first thing wrong with the file, with the row (line of the file) and the column.
    """
    header, rows = csv_table(path, LOAD_COLUMNS)
    table = list(rows)
    if not table:
        raise InputError("holds a header and no loads", where=str(path))
    lines = np.array([line for line, _ in table])
    cells = {name: [row[k] for _, row in table] for k, name in enumerate(header) if name in LOAD_COLUMNS}
    columns = {name: _floats(cells[name], name, lines, path) for name in LOAD_COLUMNS if name != "node"}
    time, cpu, bandwidth = (columns[name] for name in ("time", "available_cpu", "available_bandwidth"))
    names, which = _coded(cells["node"])

    if "" in names:
        raise InputError("node is empty, expected a name", where=f"{path}, row {lines[int(np.argmin(which))]}")
    _refuse(~np.isfinite(time), time, "time", "a finite number of seconds", lines, path)
    _refuse(~((cpu >= 0) & (cpu <= 1)), cpu, "available_cpu", "a fraction in [0, 1]", lines, path)
    bad = ~(np.isfinite(bandwidth) & (bandwidth >= 0))
    _refuse(bad, bandwidth, "available_bandwidth", "a finite number of at least 0", lines, path)

    order = np.lexsort((lines, time, which))
    again = np.flatnonzero((np.diff(which[order]) == 0) & (np.diff(time[order]) == 0))
    if again.size:
        first, second = lines[order[again[0]]], lines[order[again[0] + 1]]
        raise InputError(f"has the node and the time of row {first}", where=f"{path}, row {second}")
    return Loads.sort(cells["node"], time, cpu, bandwidth)


def run_from_cells(cells: Mapping[str, str]) -> Run:
    """The run in one row of a table: its cells by column, empty where nothing is known.

    Raises
    ------
    InputError
        For the first cell that no run can have.
    """
    for name in ("application", "cluster"):
        if not cells[name]:
            raise InputError(f"{name} is empty, expected a name")
    processors = _count(cells, "processors")
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


def _count(cells: Mapping[str, str], name: str) -> int:
    value = csv_number(cells, name)
    check_count(name, value)
    return int(value)


def _minimum(cells: Mapping[str, str], name: str) -> float:
    """A minimum of loads, NaN where its cell is empty since it was not measured."""
    if not cells[name]:
        return math.nan
    if math.isnan(value := csv_number(cells, name)):
        raise InputError(f"{name} is {cells[name]}, expected a number, or an empty cell where it was not measured")
    return value


def _floats(cells: list[str], name: str, lines: NDArray[np.intp], path: str | os.PathLike[str]) -> Floats:
    try:
        return np.fromiter(map(parsed, cells), dtype=float, count=len(cells))
    except ValueError:
        for line, cell in zip(lines, cells, strict=True):
            with Located(f"{path}, row {line}"):
                csv_number({name: cell}, name)
        raise


def _coded(names: Iterable[str]) -> tuple[tuple[str, ...], NDArray[np.intp]]:
    """The distinct names, sorted, and for each given name its place among them.

    Not ``numpy.unique``: an array of strings is as wide as its longest, and one hostile cell would fill the memory.
    """
    names = list(names)
    distinct = sorted(dict.fromkeys(names))  # in the order in which they come, so that sorted ones are sorted at once
    place = {name: k for k, name in enumerate(distinct)}
    return tuple(distinct), np.fromiter(map(place.__getitem__, names), dtype=np.intp, count=len(names))


def _refuse(
    bad: NDArray[np.bool_],
    values: Floats,
    name: str,
    expected: str,
    lines: NDArray[np.intp],
    path: str | os.PathLike[str],
) -> None:
    """Raise for the first sample marked bad, if there is one."""
    if bad.any():
        k = int(np.argmax(bad))
        raise InputError(f"{name} is {values[k]}, expected {expected}", where=f"{path}, row {lines[k]}")


def _number(value: float) -> str:
    """The shortest spelling that reads back as the same number; none where it was not measured."""
    return "" if math.isnan(value) else repr(float(value)).removesuffix(".0")
