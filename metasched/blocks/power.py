"""Power drawn by the nodes of a job: by the power formula of their hardware, or a constant for each processor."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from metasched.arrays import Floats
from metasched.blocks.entry import TABLE_1, Block, Entry, Kind
from metasched.blocks.formulas import answer, needed
from metasched.blocks.terms import Term
from metasched.records import InputError


def of_processors(watts: float) -> Entry:
    """An entry for hardware of which only the power of one busy processor (W) is known.

    >>> drawn(of_processors(95.0), [1, 8]).tolist()
    [95.0, 760.0]
    """
    return Entry("watts", Kind.cluster, f"{watts:g} W a processor", blocks={Block.power: (Term(watts, above=0.0),)})


def knows_power(entry: Entry, per_node: int | None = None) -> bool:
    """Whether an entry has the power of its nodes, for any number of busy processors of a node.

    Parameters
    ----------
    entry : of the hardware.
    per_node : processors of a node; its cores where None.
    """
    if Block.power in entry.blocks:
        return True
    most = per_node or entry.get("cores") or 1.0
    counts = (1.0, min(entry.get("P_hi") or most, most), most)
    return all(name in entry.values for count in counts for name in needed(entry, Block.power, count))


def idle_power(entry: Entry | None) -> float:
    """The idle power of a node (W); 0 if it is unknown."""
    return (entry.get("idle_power") if entry is not None else None) or 0.0


def of_node(entry: Entry, processors: ArrayLike) -> Floats:
    """Power (W), shape (n,), of a node with the given numbers of busy processors.

    Raises
    ------
    InputError : when the entry does not give it.
    """
    counts, place = np.unique(np.asarray(processors, dtype=np.int64), return_inverse=True)
    return np.array([answer(entry, Block.power, threads=count).value for count in counts.tolist()])[place.ravel()]


def drawn(entry: Entry, processors: ArrayLike, per_node: int | None = None) -> Floats:
    """Power (W), shape (n,), of the fewest nodes that have the given numbers of processors, all of them busy.

    Parameters
    ----------
    entry : of the hardware.
    processors : how many are busy, shape (n,).
    per_node : processors of a node; the cores of the entry where None, and one node has all where it gives none.

    Raises
    ------
    InputError : when the entry gives no power.
    """
    if not knows_power(entry, per_node):
        raise InputError(f"{entry.name} gives no power, expected {', '.join(TABLE_1[Block.power])}")
    processors = np.asarray(processors, dtype=np.int64)
    of_whole = per_node or int(entry.get("cores") or processors.max(initial=1))
    whole, rest = np.divmod(processors, of_whole)
    return np.where(rest > 0, of_node(entry, rest), 0.0) + np.where(whole > 0, whole * of_node(entry, [of_whole]), 0.0)
