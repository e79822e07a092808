"""Times of collective operations on more processes than they were measured on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import scipy

from metasched.arrays import Floats
from metasched.signature.traces.actions import WITHOUT_DATA, ActionTable, some_of
from metasched.signature.traces.exchanges import RECEIVES, SENDS

#: Operations that are measured, in the order of their numbers in the program.
MEASURED = (
    "barrier", "bcast", "reduce", "allreduce", "gather", "scatter", "allgather", "alltoall", "reducescatter", "scan",
)  # fmt: skip
#: Operations whose buffers hold the bytes of every process.
OF_EACH = ("gather", "scatter", "allgather", "alltoall", "reducescatter")
#: Operations whose volume is that of all processes together.
TOGETHER = ("gatherv", "scatterv", "allgatherv", "alltoallv", "reducescatter")


class Collective(NamedTuple):
    """An operation of :data:`MEASURED`, and bytes: of each process where its buffer holds those of all."""

    name: str
    size: float

    def buffer(self, processes: int) -> float:
        """Bytes of the largest buffer of any process."""
        return self.size * (processes if self.name in OF_EACH else 1)


def collective_named(name: str, volume: float, count: int) -> Collective:
    """What is measured for an operation of ``count`` processes by its volume.

    >>> collective_named("alltoallv", 800.0, 8), collective_named("exscan", 8.0, 8)
    (Collective(name='alltoall', size=100.0), Collective(name='scan', size=8.0))
    """
    plain = {"exscan": "scan"}.get(name, name if name in MEASURED else name.removesuffix("v"))
    size = volume / count if name in TOGETHER else volume
    return Collective(plain if plain in MEASURED else "allreduce", 0.0 if name == "barrier" else float(round(size)))


def collective_of(table: ActionTable, action: int, count: int) -> Collective | None:
    """The collective operation that an action is, of ``count`` processes or of some of them, if it is one."""
    name = table.shapes[table.shape[action]].name.lower()
    some = some_of(name, table.numbers[action])
    if some is not None:
        name, count = some
    other = name in SENDS or name in RECEIVES or name == "sendrecv"
    if other or (name in WITHOUT_DATA and name != "barrier"):
        return None
    return collective_named(name.removeprefix("i"), table.together(action, count), count)


def grown(processes: Sequence[int], seconds: Sequence[float], count: int) -> float:
    """Seconds on ``count`` processes: a constant, a share for each round of a tree, one for each other process.

    No share is below zero; relative errors are least.

    >>> round(grown([2, 4, 8, 16], [1e-6, 2e-6, 3e-6, 4e-6], 1024) * 1e6, 3)
    10.0
    """
    terms = _terms(np.asarray(processes, dtype=np.float64))
    times = np.maximum(np.asarray(seconds, dtype=np.float64), 1e-12)
    shares, _ = scipy.optimize.nnls(terms / times[:, None], np.ones(times.size))
    return float((_terms(np.array([float(count)])) @ shares)[0])


def _terms(processes: Floats) -> Floats:
    return np.column_stack([np.ones(processes.size), np.ceil(np.log2(processes)), processes - 1.0])


def times_by_size(measured: Mapping[Collective, Mapping[int, float]], count: int) -> dict[str, tuple[Floats, Floats]]:
    """Of each operation the sizes that were measured, ascending, and its seconds on ``count`` processes.

    They are those measured on as many, or else what grows from those on fewer.
    """
    found: dict[str, list[tuple[float, float]]] = {}
    for each, seconds in sorted(measured.items()):
        took = seconds[count] if count in seconds else grown([*seconds], [*seconds.values()], count)
        found.setdefault(each.name, []).append((each.size, took))
    return {name: (np.array([s for s, _ in rows]), np.array([t for _, t in rows])) for name, rows in found.items()}
