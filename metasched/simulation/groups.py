"""Groups of identical processes, the messages that they send, and ranks as arithmetic progressions."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from metasched.arrays import Flags, Floats
from metasched.simulation.values import Value, part

#: Most stretches of time that are kept for a picture, of each group.
DRAWN = 2_000


@dataclass
class Group:
    """A group of identical processes of a label.

    Parameters
    ----------
    label, ranks, names : which processes, and their variables.
    at, line : the instruction that comes next, and where it stands in the text.
    clock, link, busy : when they go on, when their links took in the last message, how long they worked (s): numbers,
        or arrays of shape (n,) where they differ. Minus infinity where no message was received.
    ended : whether they have.
    drawn : what the first of them did, with its begin and end (s), for a picture.
    """

    label: str
    ranks: range
    names: dict[str, Value]
    at: int = 0
    clock: Floats | float = 0.0
    link: Floats | float = -math.inf
    busy: Floats | float = 0.0
    line: int = 0
    ended: bool = False
    drawn: list[tuple[str, float, float]] = field(default_factory=list)

    def cut(self, ranks: range) -> Group:
        """The part of the group with some of its ranks."""
        chosen = positions(self.ranks, ranks)
        names = {name: part(value, chosen) for name, value in self.names.items()}
        clock, link, busy = (part(time, chosen) for time in (self.clock, self.link, self.busy))
        return Group(self.label, ranks, names, self.at, clock, link, busy, self.line, self.ended, list(self.drawn))


@dataclass
class Sent:
    """Messages between ranks at a fixed distance, with the arrival time and the transfer time of each (s)."""

    ranks: range
    there: Floats | float
    takes: Floats | float
    line: int

    def cut(self, ranks: range) -> Sent:
        """The part with the messages of some senders."""
        chosen = positions(self.ranks, ranks)
        return Sent(ranks, part(self.there, chosen), part(self.takes, chosen), self.line)


def progressions(ranks: range, chosen: Flags) -> list[range]:
    """Some of the ranks as arithmetic progressions.

    >>> progressions(range(8), np.array([1, 0, 1, 0, 1, 0, 0, 1], dtype=bool))
    [range(0, 5, 2), range(7, 8)]
    """
    places = np.flatnonzero(chosen)
    found, start = [], 0
    while start < places.size:
        step, end = 1, start + 1
        if end < places.size:
            step = int(places[end] - places[start])
            steady = np.diff(places[start:]) == step
            end = start + 1 + (steady.size if steady.all() else int(np.argmin(steady)))
        first, last = (ranks[int(places[each_])] for each_ in (start, end - 1))
        width = ranks.step * step if end > start + 1 else 1
        found.append(range(first, last + 1, width))
        start = end
    return found


def positions(whole: range, ranks: range) -> slice:
    """The slice of a progression that selects some of its ranks."""
    start = (ranks.start - whole.start) // whole.step
    width = ranks.step // whole.step if len(ranks) > 1 else 1
    return slice(start, start + (len(ranks) - 1) * width + 1, width)


def common(one: range, other: range) -> range:
    """The intersection of two progressions with equal steps; empty otherwise."""
    if len(one) == 1 or len(other) == 1:
        few, many = (one, other) if len(one) == 1 else (other, one)
        return few if few.start in many else range(0)
    if one.step == other.step and (one.start - other.start) % one.step == 0:
        return plain(range(max(one.start, other.start), min(one[-1], other[-1]) + 1, one.step))
    return range(0)


def without(whole: range, gone: range) -> list[range]:
    """The parts of a progression before and after a part that is removed."""
    left = range(whole.start, gone.start, whole.step), range(gone[-1] + whole.step, whole[-1] + 1, whole.step)
    return [plain(each_) for each_ in left if len(each_)]


def plain(ranks: range) -> range:
    """The same progression, with step 1 if it has a single rank."""
    return range(ranks.start, ranks.start + 1) if len(ranks) == 1 else ranks
