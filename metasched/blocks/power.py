"""Power drawn by the nodes of a job: by the power formula of their hardware, or a constant for each processor."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from metasched.blocks.entry import TABLE_1, Block, Entry, Kind, Quantity
from metasched.blocks.formulas import answer
from metasched.records import InputError

Floats = NDArray[np.float64]


def of_processors(watts: float) -> Entry:
    """An entry for hardware of which only the power of one busy processor (W) is known.

    Examples
    --------
    >>> drawn(of_processors(95.0), [1, 8]).tolist()
    [95.0, 760.0]
    """
    values = {"P_low": 1.0, "KW_low": watts, "PW_max": watts, "cores": 1.0}
    named = {name: values.get(name, 0.0) for name in (*TABLE_1[Block.power], "cores")}
    units = {name: "1" if name in ("P_low", "P_hi", "cores") else "W" for name in named}
    quantities = {name: Quantity(value, units[name], "stated") for name, value in named.items()}
    return Entry("watts", Kind.cluster, f"{watts:g} W a processor", quantities)


def cores_of(entry: Entry) -> int:
    """Processors of a node: its cores, else the threads at which the first piece of its power ends; at least 1."""
    return max(int(entry.get("cores") or entry.get("P_low") or 1.0), 1)


def knows_power(entry: Entry) -> bool:
    """Whether an entry has the power of its nodes."""
    return Block.power in entry.blocks or all(name in entry.values for name in TABLE_1[Block.power])


def idle_power(entry: Entry | None) -> float:
    """The idle power of a node (W); 0 if it is unknown."""
    return (entry.get("idle_power") if entry is not None else None) or 0.0


def drawn(entry: Entry, processors: ArrayLike) -> Floats:
    """Power (W), shape (n,), of the fewest nodes that have the given numbers of processors, all of them busy.

    Raises
    ------
    InputError
        When the entry gives no power.
    """
    if not knows_power(entry):
        raise InputError(f"{entry.name} gives no power, expected {', '.join(TABLE_1[Block.power])}")
    counts, place = np.unique(np.asarray(processors, dtype=np.int64), return_inverse=True)
    return np.array([_of_count(entry, int(count)) for count in counts])[place.ravel()]


def _of_count(entry: Entry, processors: int) -> float:
    full, rest = divmod(processors, cores_of(entry))
    whole = full * answer(entry, Block.power, threads=cores_of(entry)).value if full else 0.0
    return whole + (answer(entry, Block.power, threads=rest).value if rest else 0.0)
