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


def seconds_in(cell: str) -> float | None:
    """A time (s); None where there is none.

    Examples
    --------
    >>> seconds_in("100"), seconds_in("Unknown")
    (100.0, None)
    """
    return float(cell) if cell.isdecimal() else None


def bytes_in(cell: str) -> bytes:
    """A text as the user gave it, in any encoding."""
    return cell.encode("utf-8", "surrogateescape")


def name_in(cell: str) -> str:
    """The name of a job in the form that hooks report; see :func:`metasched.jobs.plain`."""
    return plain(bytes_in(cell))


def comment_in(cell: str) -> str:
    """A comment as it is stored: what is not text is replaced, and so is what Slurm prints where there is none."""
    return "" if cell == "(null)" else bytes_in(cell).decode(errors="replace")
