"""Errors of the store with valid input, such as an unreachable database."""

from __future__ import annotations


class StoreError(RuntimeError):
    """The database cannot be read or written now: stopped, locked, full, absent or damaged.

    Never the fault of whoever asked: the same request may succeed later. The message is one line that names the
    database.
    """

    def __init__(self, message: str, *, where: str = "") -> None:
        super().__init__(f"{where}: {message}" if where else message)
