"""How a run is laid out on its nodes, and the parameters of its application."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from metasched.records.errors import InputError, check_count

#: Columns that tell how a run was laid out, and what parameters by name begin with.
LAYOUT_COLUMNS, PARAMETER = ("processes_per_node", "threads"), "parameter:"
#: Columns of settings that have a name of their own.
SETTING_COLUMNS = (*LAYOUT_COLUMNS, "frequency")
#: Clocks (MHz) that processors may have: outside, the unit is another.
SLOWEST, FASTEST = 10.0, 100_000.0
#: Parameters that a run without them has all the same: it ran on no GPUs, and had no other generic resources.
WITHOUT: Mapping[str, str] = MappingProxyType({"gpu": "none", "gres": "none"})
_NAME = re.compile(r"[^\s=,]{1,64}")
#: Parameters of one run, and characters of a word, at most.
MOST_PARAMETERS, LONGEST_WORD = 32, 64


@dataclass(frozen=True, slots=True)
class Settings:
    """How a run is laid out on its nodes, and what its application is asked besides the problem size.

    Parameters
    ----------
    processes_per_node : most processes that share a node; None where not known.
    threads : of each process; each process then takes as many processors.
    parameters : pairs of a name and a number or a word, sorted by name.
    frequency : clock of the processors (MHz); None where not known.

    Examples
    --------
    >>> settings = Settings.of_cells({"threads": "2", "parameter:steps": "100", "parameter:solver": "amg", "user": "a"})
    >>> settings.parameters
    (('solver', 'amg'), ('steps', 100.0))
    >>> settings.cells
    {'threads': '2', 'parameter:solver': 'amg', 'parameter:steps': '100'}
    >>> Settings(threads=0)
    Traceback (most recent call last):
    metasched.records.errors.InputError: threads is 0, expected a whole number of at least 1
    """

    processes_per_node: int | None = None
    threads: int = 1
    parameters: tuple[tuple[str, float | str], ...] = ()
    frequency: float | None = None

    def __post_init__(self) -> None:
        if self.frequency is not None and not SLOWEST <= self.frequency <= FASTEST:
            raise InputError(f"frequency is {self.frequency:g}, expected MHz from {SLOWEST:g} to {FASTEST:g}")
        if self.processes_per_node is not None:
            check_count("processes_per_node", self.processes_per_node)
        check_count("threads", self.threads)
        if len(self.parameters) > MOST_PARAMETERS:
            raise InputError(f"there are {len(self.parameters)} parameters, expected at most {MOST_PARAMETERS}")
        for name, value in self.parameters:
            if not _NAME.fullmatch(name):
                raise InputError(
                    f"a parameter is called {name[:80]!r}, expected at most 64 characters, no space, = or ,"
                )
            sound = (
                0 < len(value) <= LONGEST_WORD and value.isprintable()
                if isinstance(value, str)
                else math.isfinite(value)
            )
            if not sound:
                shown = repr(value[:80]) if isinstance(value, str) else value
                raise InputError(f"{PARAMETER}{name} is {shown}, expected a finite number or a word")

    @property
    def laid_out(self) -> bool:
        """Whether they say how processes are laid out on nodes."""
        return self.processes_per_node is not None or self.threads != 1

    def on_nodes_of(self, processors: int) -> Settings:
        """The same on nodes that have room for so many processors at most: no more processes on one than fit.

        >>> Settings(16, threads=2).on_nodes_of(8)
        Settings(processes_per_node=4, threads=2, parameters=(), frequency=None)
        """
        most = max(processors // self.threads, 1)
        if self.processes_per_node is None or self.processes_per_node <= most:
            return self
        return replace(self, processes_per_node=most)

    @classmethod
    def of(
        cls,
        processes_per_node: int | None = None,
        threads: int | None = None,
        parameters: Mapping[str, float | str] = MappingProxyType({}),
        frequency: float | None = None,
    ) -> Settings:
        """Settings from what is known; parameters in any order, words that are numbers read as such."""
        if processes_per_node is None and threads in (None, 1) and not parameters and frequency is None:
            return DEFAULT_SETTINGS
        pairs = (
            (name, _value(value) if isinstance(value, str) else float(value)) for name, value in parameters.items()
        )
        return cls(processes_per_node, threads or 1, tuple(sorted(pairs)), frequency)

    @classmethod
    def of_cells(cls, cells: Mapping[str, str]) -> Settings:
        """The settings in the cells of a row by column; empty ones and other columns tell nothing."""
        if not any(name in SETTING_COLUMNS or name.startswith(PARAMETER) for name in cells):
            return DEFAULT_SETTINGS
        layout = {name: _whole(name, cells[name]) for name in LAYOUT_COLUMNS if cells.get(name)}
        named = {name[len(PARAMETER) :]: cell for name, cell in cells.items() if name.startswith(PARAMETER) and cell}
        return cls(
            layout.get("processes_per_node"),
            layout.get("threads", 1),
            tuple(sorted((name, _value(cell)) for name, cell in named.items())),
            number_in("frequency", cells["frequency"]) if cells.get("frequency") else None,
        )

    @property
    def cells(self) -> dict[str, str]:
        """The cells that :meth:`of_cells` reads; none for what is not known."""
        layout = {} if self.processes_per_node is None else {"processes_per_node": str(self.processes_per_node)}
        if self.threads != 1:
            layout["threads"] = str(self.threads)
        if self.frequency is not None:
            layout["frequency"] = _cell(self.frequency)
        return layout | {f"{PARAMETER}{name}": _cell(value) for name, value in self.parameters}

    def as_dict(self) -> dict[str, Any]:
        """The settings as JSON contracts spell them; the frequency only where it is known."""
        return {
            "processes_per_node": self.processes_per_node,
            "threads": self.threads,
            "parameters": dict(self.parameters),
        } | ({} if self.frequency is None else {"frequency": self.frequency})

    @property
    def text(self) -> str:
        """The settings as messages name them, such as ``processes_per_node 4, steps 100``."""
        return ", ".join(f"{name.removeprefix(PARAMETER)} {cell}" for name, cell in self.cells.items())

    def within(self, processors: int) -> Settings:
        """The same, with no more processes on a node than there are: a limit of more is one that is never met."""
        if self.processes_per_node is None or self.processes_per_node <= processors:
            return self
        return replace(self, processes_per_node=processors)

    def check(self, processors: int) -> None:
        """Refuse, by InputError, more processes on a node than there are."""
        if self.processes_per_node is not None and self.processes_per_node > processors:
            raise InputError(
                f"processes_per_node is {self.processes_per_node}, "
                f"expected at most the number of processors, {processors}"
            )


DEFAULT_SETTINGS = Settings()


def parsed(cell: str) -> float:
    """Read a number; ValueError where there is none."""
    # Python reads 1_000 as a number; in a table it is more likely a slip, and as a parameter a word, such as a grid's.
    return float(cell.replace("_", "x"))


def _value(cell: str) -> float | str:
    """A number where a cell holds one, else the word."""
    try:
        return parsed(cell)
    except ValueError:
        return cell


def number_in(name: str, cell: str) -> float:
    """The number in the cell of a column; InputError names the column where it holds a word."""
    value = _value(cell)
    if isinstance(value, str):
        raise InputError(f"{name} is {value[:80]!r}, expected a number")
    return value


def _whole(name: str, cell: str) -> int:
    value = number_in(name, cell)
    check_count(name, value)
    return int(value)


def _cell(value: float | str) -> str:
    return value if isinstance(value, str) else repr(value).removesuffix(".0")


def has_words(values: Sequence[float | str]) -> bool:
    """Whether a parameter with such values has words, as at least half of them are; others are slips among numbers.

    >>> has_words(["amg", "cg", 7.0]), has_words([100.0, 200.0, "many"])
    (True, False)
    """
    return 2 * sum(isinstance(value, str) for value in values) >= max(len(values), 1)
