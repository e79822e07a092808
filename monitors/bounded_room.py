"""Room for some at a time, of which no one peer has all."""

from __future__ import annotations

import threading
from collections import Counter


class BoundedRoom:
    """Room for some at a time, and for fewer of one peer; thread-safe.

    Parameters
    ----------
    most, most_of_one : how many at a time, of all peers and of one.

    Examples
    --------
    >>> room = BoundedRoom(most=3, most_of_one=2)
    >>> [room.take(peer) for peer in ("a", "a", "a", "b", "c")]
    [True, True, False, True, False]
    >>> room.leave("a")
    >>> room.take("c")
    True
    """

    def __init__(self, most: int, most_of_one: int) -> None:
        self._most, self._most_of_one = most, most_of_one
        self._taken: Counter[str] = Counter()
        self._counting = threading.Lock()

    def take(self, peer: str) -> bool:
        """Take a place; return whether there was one."""
        with self._counting:
            free = self._taken.total() < self._most and self._taken[peer] < self._most_of_one
            if free:
                self._taken[peer] += 1
            return free

    def leave(self, peer: str) -> None:
        """Give a place back that was taken."""
        with self._counting:
            self._taken[peer] -= 1
            if not self._taken[peer]:
                del self._taken[peer]
