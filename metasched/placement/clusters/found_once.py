"""Remembers what was found of tuples as long as a hundred thousand names, by the objects that they are.

To hash so many names takes a millisecond, and to find their numbers ten; a daemon asks for those of each partition with
every question.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import Any, TypeVar

Column = TypeVar("Column", bound=tuple[Any, ...])
Value = TypeVar("Value")

#: Entries of the tuples remembered by one function, together; beyond, those asked for longest ago are forgotten.
MOST_ENTRIES = 2_000_000


def found_once(find: Callable[[Column], Value]) -> Callable[[Column], Value]:
    """A function of one tuple that is computed again only for another object.

    >>> length = found_once(lambda names: [len(names)])
    >>> names = ("n0", "n1")
    >>> length(names), length(names) is length(names)
    ([2], True)
    """
    # The tuples are kept, too, so that no other one gets the identity of one of them.
    kept: dict[int, tuple[Column, Value]] = {}
    lock = Lock()

    @wraps(find)
    def found(column: Column) -> Value:
        with lock:
            known = kept.pop(id(column), None)
            if known is not None:
                kept[id(column)] = known
                return known[1]
        value = find(column)
        with lock:
            kept[id(column)] = column, value
            entries = sum(len(each) for each, _ in kept.values())
            while entries > MOST_ENTRIES and len(kept) > 1:
                entries -= len(kept.pop(next(iter(kept)))[0])
        return value

    return found
