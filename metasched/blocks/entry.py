"""An entry of the hardware database: values with units, uncertainties and sources, and the parameters of formulas."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from metasched.blocks.terms import Term
from metasched.blocks.units import converted
from metasched.records import InputError


class Kind(StrEnum):
    """The kinds of hardware that an entry can describe."""

    cluster = "cluster"
    cpu = "cpu"
    gpu = "gpu"
    link = "link"
    bus = "bus"
    disk = "disk"


class Block(StrEnum):
    """The kinds of application blocks whose times Table 1 of the paper gives."""

    compute = "compute"
    p2p = "p2p"
    bcast = "bcast"
    scatter = "scatter"
    gather = "gather"
    alltoall = "alltoall"
    barrier = "barrier"
    read = "read"
    write = "write"
    power = "power"
    success = "success"


#: The parameters of Table 3 by block, with the paper's names; ``lambda`` is per second and node.
TABLE_1 = {
    Block.compute: ("P_low", "P_hi", "T_min", "T_low", "T_hi", "K_hi"),
    Block.p2p: ("D_tu", "T_p2p", "K_p2p"),
    Block.bcast: ("D_tu", "T_bcast", "K_bcast"),
    Block.scatter: ("D_tu", "T_scatter", "K_scatter"),
    Block.gather: ("D_tu", "T_gather", "K_gather"),
    Block.alltoall: ("D_tu", "T_alltoall", "K_alltoall"),
    Block.barrier: ("T_barrier", "K_barrier"),
    Block.read: ("D_tu", "T_read", "K_read"),
    Block.write: ("D_tu", "T_write", "K_write"),
    Block.power: ("P_low", "P_hi", "PW_low", "KW_low", "PW_hi", "KW_hi", "PW_max"),
    Block.success: ("lambda",),
}


def _measure(name: str) -> str:
    if name.startswith("K_") and name not in ("K_hi", "K_barrier"):
        return "s/B"
    first = name.partition("_")[0]
    return {"P": "1", "D": "B", "PW": "W", "KW": "W", "lambda": "1/s"}.get(first, "s")


#: Every value that an entry may hold, with the unit used inside.
MEASURES = {name: _measure(name) for names in TABLE_1.values() for name in names} | {
    "nodes": "1",
    "sockets": "1",
    "cores": "1",
    "threads": "1",
    "processors": "1",
    "clock": "Hz",
    "clock_max": "Hz",
    "clock_min": "Hz",
    "clock_held_max": "Hz",
    "clock_held_min": "Hz",
    "peak_single": "flop/s",
    "peak_double": "flop/s",
    "speed": "flop/s",
    "balance": "flop/B",
    "cache": "B",
    "memory": "B",
    "capacity": "B",
    "bandwidth": "B/s",
    "latency": "s",
    "tdp": "W",
    "idle_power": "W",
    "node_offset": "W",
    "node_factor": "1",
}

#: Values that may be negative, as fitted constants and slopes may; and those that may be 0.
_SIGNED = ("T", "K", "PW", "KW", "node")
_MAY_BE_ZERO = ("P_low", "P_hi", "lambda", "latency", "idle_power", "tdp")

#: Between these, in internal units, lie all values: their products and quotients are numbers.
_LEAST, _MOST = 1e-100, 1e100

#: Clocks that differ by no more than this part are the same.
NEAR = 1e-3


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value as written, with its unit, its source and, where it was fitted, its standard uncertainty."""

    value: float
    unit: str
    source: str
    uncertainty: float | None = None


@dataclass(frozen=True)
class Entry:
    """A piece of hardware.

    Parameters
    ----------
    name, kind, title : what it is.
    values : by name of :data:`MEASURES`; what is not known is not there.
    log_base : base of the logarithms of Table 1.
    published : whether the values are somebody else's, who answers for their oddities.
    blocks : terms that stand in the place of Table 1's formula.
    notes : what a reader of the values has to know.

    Examples
    --------
    >>> entry = Entry("x", Kind.cluster, "", {"T_p2p": Quantity(3.7, "us", "measured")})
    >>> entry["T_p2p"], entry.get("lambda")
    (3.7e-06, None)
    """

    name: str
    kind: Kind
    title: str = ""
    values: Mapping[str, Quantity] = field(default_factory=dict)
    log_base: float = 2.0
    published: bool = False
    blocks: Mapping[Block, tuple[Term, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 1 < self.log_base < math.inf:
            raise InputError(f"log_base is {self.log_base}, expected a number above 1")
        for block, terms in self.blocks.items():
            if block == Block.success:
                raise InputError(f"blocks.{block} is not known, expected {TABLE_1[block][0]} in values")
            if not terms:
                raise InputError(f"blocks.{block} has no term, expected at least one")
        for name, quantity in self.values.items():
            if name not in MEASURES:
                raise InputError(f"values.{name} is not known, expected one of {', '.join(MEASURES)}")
            if not math.isfinite(quantity.value):
                raise InputError(f"values.{name} is {quantity.value}, expected a finite number")
            if name.partition("_")[0] not in _SIGNED:
                fits = quantity.value >= 0 if name in _MAY_BE_ZERO else quantity.value > 0
                least = "of at least 0" if name in _MAY_BE_ZERO else "above 0"
                if not fits:
                    raise InputError(f"values.{name} is {quantity.value:g}, expected a number {least}")
            try:
                value = converted(quantity.value, quantity.unit, MEASURES[name])
            except InputError as error:
                raise InputError(f"values.{name}: {error}") from None
            if quantity.value and not _LEAST <= abs(value) <= _MOST:
                raise InputError(f"values.{name} is {quantity.value:g} {quantity.unit}, which no hardware has")

    def get(self, name: str) -> float | None:
        """A value in internal units (:mod:`metasched.blocks.units`), or None if it is unknown."""
        quantity = self.values.get(name)
        return None if quantity is None else converted(quantity.value, quantity.unit, MEASURES[name])

    def holds(self, megahertz: float) -> bool:
        """Whether the processors can be fixed at a clock (MHz); true if the entry does not say.

        >>> held = {"clock_held_min": Quantity(1.2, "GHz", ""), "clock_held_max": Quantity(2100.0, "MHz", "")}
        >>> [Entry("n", Kind.cpu, "", held).holds(each) for each in (1000.0, 1200.0, 2100.0, 2400.0)]
        [False, True, True, False]
        """
        least, most = (self.get(f"clock_held_{end}") for end in ("min", "max"))
        hertz = 1e6 * megahertz
        return (least is None or hertz >= least * (1.0 - NEAR)) and (most is None or hertz <= most * (1.0 + NEAR))

    @property
    def not_known(self) -> list[str]:
        """The parameters of Table 1 that the entry of a cluster lacks; empty for other kinds."""
        if self.kind != Kind.cluster:
            return []
        known = {name for block in self.blocks for name in TABLE_1[block]} | set(self.values)
        needed = {name for names in TABLE_1.values() for name in names}
        return [name for name in MEASURES if name in needed - known]

    def __getitem__(self, name: str) -> float:
        value = self.get(name)
        if value is None:
            raise InputError(f"{self.name} has no {name}")
        return value
