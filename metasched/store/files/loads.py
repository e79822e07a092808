"""Load files, ``loads.csv`` and ``loads.csv.gz``: the loads of nodes as columns, as there may be many thousands.

All cells are checked, and the first bad one is named by file, row (the line in the file) and column.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from metasched.arrays import Flags, Floats
from metasched.records import InputError, Load
from metasched.records.settings import parsed
from metasched.store.files.csv_tables import csv_number, csv_table
from metasched.validation import Located

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
        InputError : when there are none.
        """
        if node not in self.nodes:
            raise InputError(f"there are no loads of node {node}")
        k = self.nodes.index(node)
        part = slice(self.offsets[k], self.offsets[k + 1])
        size = np.array([0, self.offsets[k + 1] - self.offsets[k]])
        return Loads((node,), size, self.time[part], self.available_cpu[part], self.available_bandwidth[part])

    def newest(self, until: float = math.inf) -> tuple[Load, ...]:
        """The newest load of each node that has one up to a time (s), that time included.

        >>> loads = Loads.sort(["b", "a", "a"], [7.0, 5.0, 0.0], [1.0, 0.5, 0.75], [90.0, 80.0, 70.0])
        >>> loads.newest(5.0)
        (Load(time=5.0, node='a', available_cpu=0.5, available_bandwidth=80.0),)
        """
        found = []
        for node, first, end in zip(self.nodes, self.offsets[:-1].tolist(), self.offsets[1:].tolist(), strict=True):
            at = first + int(self.time[first:end].searchsorted(until, side="right")) - 1
            if at >= first:
                values = self.available_cpu[at], self.available_bandwidth[at]
                found.append(Load(float(self.time[at]), node, *map(float, values)))
        return tuple(found)

    def grid(self) -> tuple[Floats, Floats, Floats]:
        """The samples side by side: times of shape (t,), available CPU and bandwidth of shape (t, nodes).

        Where a node has no sample at a time that others have, NaN stands. Of nodes that were not sampled together, as
        by agents, each row holds the newest samples of one usual step (median): else there would be a row for each
        sample of any node, and a thousand rows would be a moment.

        >>> agents = Loads.sort("aabb", [0.0, 10.0, 3.0, 13.0], [0.1, 0.2, 0.3, 0.4], [90.0] * 4)
        >>> time, cpu, _ = agents.grid()
        >>> time.tolist(), cpu.tolist()
        ([3.0, 13.0], [[0.1, 0.3], [0.2, 0.4]])
        """
        counts = np.diff(self.offsets)
        column = np.repeat(np.arange(len(self.nodes)), counts)
        times, row = np.unique(self.time, return_inverse=True)
        if len(times) > counts.max(initial=0):
            within = np.diff(self.time)[np.diff(column) == 0]
            step = float(np.median(within)) if within.size else 1.0
            steps, row = np.unique(np.ceil((self.time - times[-1]) / step - 1e-6), return_inverse=True)
            times = times[-1] + steps * step
        cpu, bandwidth = np.full((2, len(times), len(self.nodes)), np.nan)
        cpu[row, column], bandwidth[row, column] = self.available_cpu, self.available_bandwidth  # the last one stays
        return times, cpu, bandwidth


def read_loads(path: str | os.PathLike[str]) -> Loads:
    """Read ``loads.csv`` or ``loads.csv.gz``: one sample a row, in any order; further columns are left out.

    Raises
    ------
    InputError : for the first thing wrong with the file, with the row (line of the file) and the column.
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
    bad: Flags, values: Floats, name: str, expected: str, lines: NDArray[np.intp], path: str | os.PathLike[str]
) -> None:
    """Raise for the first sample marked bad, if there is one."""
    if bad.any():
        k = int(np.argmax(bad))
        raise InputError(f"{name} is {values[k]}, expected {expected}", where=f"{path}, row {lines[k]}")
