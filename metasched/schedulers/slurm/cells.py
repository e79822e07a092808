"""Single values of the tables that Slurm prints."""

from __future__ import annotations

from metasched.jobs import plain
from metasched.node_names import unfold
from metasched.records import InputError

#: What Slurm prints for an empty value.
NONE = frozenset({"", "0", "N/A", "(null)"})


def nodes_in(cell: str) -> tuple[str, ...]:
    """The names of folded nodes; empty where there are none."""
    try:
        return tuple(unfold(cell, where="nodes"))
    except InputError:
        return ()


def number_in(cell: str) -> float | None:
    """A whole number; None where there is none.

    >>> number_in("100"), number_in("0"), number_in("²"), number_in("N/A")
    (100.0, 0.0, None, None)
    """
    return float(cell) if cell.isascii() and cell.isdecimal() else None


def count_in(cell: str) -> int | None:
    """A whole number of processors, nodes or megabytes; None where there is none, as for UNLIMITED.

    >>> count_in("4"), count_in("UNLIMITED"), count_in("9" * 400)
    (4, None, None)
    """
    return int(cell) if cell.isascii() and cell.isdecimal() and len(cell) < 16 else None


def seconds_in(cell: str) -> float | None:
    """A time in seconds since 1970; None where there is none, for which Slurm also prints 0.

    >>> seconds_in("100"), seconds_in("0"), seconds_in("Unknown")
    (100.0, None, None)
    """
    return number_in(cell) or None


def bytes_in(cell: str) -> bytes:
    """A text as the user gave it, in any encoding."""
    return cell.encode("utf-8", "surrogateescape")


def name_in(cell: str) -> str:
    """The name of a job in the form that hooks report; see :func:`metasched.jobs.plain`."""
    return plain(bytes_in(cell))


def text_in(cell: str) -> str:
    """A text as it is stored: what is not text is replaced, and so is what Slurm prints where there is none."""
    return "" if cell in NONE - {"0"} else bytes_in(cell).decode(errors="replace")
