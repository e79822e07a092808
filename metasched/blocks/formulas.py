"""Table 1: execution time, power and probability of correct execution of a block, by the parameters of an entry."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from metasched.blocks.entry import TABLE_1, Block, Entry
from metasched.blocks.terms import evaluate
from metasched.records import InputError

#: Largest number that a question may hold.
LARGEST = 1e18

#: What a block is asked with.
NEEDS = {
    Block.compute: ("instructions", "threads"),
    Block.power: ("threads",),
    Block.success: ("nodes", "duration"),
    Block.barrier: ("nodes",),
    **dict.fromkeys((Block.p2p, Block.read, Block.write), ("data_size",)),
    **dict.fromkeys((Block.bcast, Block.scatter, Block.gather, Block.alltoall), ("data_size", "nodes")),
}

#: Constant and slope of the three pieces over the threads of a node, up to P_low, up to P_hi, and beyond.
_PIECES = {
    Block.compute: (("T_min",), ("T_low",), ("T_hi", "K_hi")),
    Block.power: (("PW_low", "KW_low"), ("PW_hi", "KW_hi"), ("PW_max",)),
}


@dataclass(frozen=True)
class Answer:
    """The result of a formula: seconds, watts or a probability, with warnings about implausible parameters."""

    quantity: str
    value: float
    warnings: tuple[str, ...] = field(default=())

    def as_dict(self) -> dict[str, Any]:
        """The result as a document, with the value under the name of its quantity."""
        return {self.quantity: self.value, "warnings": list(self.warnings)}


def quantity_of(block: Block) -> str:
    """``power`` (W), ``probability`` or ``time`` (s)."""
    return {Block.power: "power", Block.success: "probability"}.get(block, "time")


def answer(entry: Entry, block: Block, **asked: float | None) -> Answer:
    """Evaluate the formula of Table 1 for one block.

    Parameters
    ----------
    entry : whose parameters count.
    block : which formula of Table 1.
    asked : what :data:`NEEDS` names: instructions, threads (active ones of a node; 1 where computation says nothing),
        data_size (bytes), nodes, duration (s).

    Raises
    ------
    InputError : when something is missing, negative or not finite, or the entry lacks a parameter of the formula.

    Examples
    --------
    >>> from metasched.blocks.entry import Kind, Quantity
    >>> entry = Entry("x", Kind.cluster, "", {"lambda": Quantity(1e-9, "1/s", "measured")})
    >>> round(answer(entry, Block.success, nodes=100, duration=86400).value, 5)
    0.9914
    """
    given = _checked(block, asked)
    if block in entry.blocks:
        x = np.array([given.get("threads", given.get("data_size", 0.0))])
        value = float(evaluate(entry.blocks[block], x, np.array([given.get("nodes", 1.0)]))[0])
        return Answer(quantity_of(block), value * given.get("instructions", 1.0))
    missing = [name for name in needed(entry, block, given.get("threads", 1.0)) if name not in entry.values]
    if missing:
        raise InputError(f"{entry.name} has no {', '.join(missing)}, which {block} needs")
    value = as_printed(entry, block, **given)
    warnings = _oddities(entry, block, given) if entry.published else []
    if value < 0:
        given_as = f"{value:g} W" if block == Block.power else f"{value * 1e6:g} us"
        floored = f"{entry.name}: the formula of {block} gives {given_as}, answered as 0"
        return Answer(quantity_of(block), 0.0, (floored, *warnings))
    return Answer(quantity_of(block), value, tuple(warnings))


def as_printed(entry: Entry, block: Block, **given: float) -> float:
    """The formula of Table 1 with an entry's parameters, unbounded: it is negative if the parameters make it so."""
    if block in _PIECES:
        constant, slope = ([entry[name] for name in _piece(entry, block, given["threads"])] + [0.0])[:2]
        return (constant + slope * given["threads"]) * given.get("instructions", 1.0)
    if block == Block.success:
        return math.exp(-entry["lambda"] * given["duration"] * given["nodes"])
    nodes = given.get("nodes", 1.0)
    log = math.log2(nodes) / math.log2(entry.log_base)
    if block == Block.barrier:
        return entry["T_barrier"] + entry["K_barrier"] * log
    factor = {Block.bcast: log, Block.scatter: log / nodes, Block.gather: log / nodes, Block.alltoall: nodes}
    size = transferred(given["data_size"], entry["D_tu"])
    return entry[f"T_{block}"] + entry[f"K_{block}"] * size * factor.get(block, 1.0)


def transferred(data_size: float, unit: float) -> float:
    """Bytes in whole transfer units.

    Parameters
    ----------
    data_size : bytes to send.
    unit : bytes of a transfer unit.

    Examples
    --------
    >>> transferred(1, 2048.0), transferred(4096, 2048.0)
    (2048.0, 4096.0)
    """
    return math.ceil(data_size / unit) * unit


def _checked(block: Block, asked: dict[str, float | None]) -> dict[str, float]:
    given = {name: float(value) for name, value in asked.items() if value is not None}
    if block == Block.compute:
        given.setdefault("threads", 1.0)
    for name in NEEDS[block]:
        if name not in given:
            raise InputError(f"{block} needs --{name.replace('_', '-')}")
        value, least = given[name], float(name == "nodes" or (block == Block.compute and name == "threads"))
        if not least <= value <= LARGEST:
            raise InputError(f"{name.replace('_', ' ')} is {value:g}, expected a number from {least:g} to {LARGEST:g}")
    return {name: given[name] for name in NEEDS[block]}


def needed(entry: Entry, block: Block, threads: float = 1.0) -> tuple[str, ...]:
    """The parameters that a formula needs; of one in pieces, those of the piece that ``threads`` threads are in.

    >>> from metasched.blocks.entry import Kind, Quantity
    >>> entry = Entry("x", Kind.cluster, "", {"P_low": Quantity(8, "1", "counted")})
    >>> needed(entry, Block.power, 9), needed(entry, Block.barrier)
    (('P_low', 'PW_max'), ('T_barrier', 'K_barrier'))
    """
    return ("P_low", *_piece(entry, block, threads)) if block in _PIECES else TABLE_1[block]


def _piece(entry: Entry, block: Block, threads: float) -> tuple[str, ...]:
    """Constant and slope over the threads. Without P_hi there is no middle piece."""
    low = entry.get("P_low")
    if low is None or threads <= low:
        return _PIECES[block][0]
    # p_th = P_hi belongs to the middle piece; as printed, to none.
    return _PIECES[block][1 if threads <= (entry.get("P_hi") or low) else 2]


def _oddities(entry: Entry, block: Block, given: dict[str, float]) -> list[str]:
    """Warnings about parameters that no hardware can have, such as power that falls with more threads."""
    if block == Block.power:
        now = as_printed(entry, block, **given)
        ends = [
            end
            for end in (entry.get("P_low"), entry.get("P_hi"))
            if end is not None and end < given["threads"] and entry.values.keys() >= {*needed(entry, block, end)}
        ]
        most, at = max(((as_printed(entry, block, threads=end), end) for end in ends), default=(0.0, 0.0))
        if most > now:
            fewer = f"{most:g} W at {at:g} threads"
            return [f"{entry.name}: printed power falls from {fewer} to {now:g} W at {given['threads']:g}"]
    if block in (Block.scatter, Block.gather) and entry.get("K_p2p") is not None:
        log = math.log2(given["nodes"]) / math.log2(entry.log_base)
        # The root itself keeps one part of P.
        if entry[f"K_{block}"] * log < entry["K_p2p"] * (given["nodes"] - 1):
            return [
                f"{entry.name}: the printed {block} of d bytes over {given['nodes']:g} nodes is faster than its "
                "point-to-point bandwidth allows"
            ]
    return []
