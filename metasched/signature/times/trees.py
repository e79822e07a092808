"""Broadcasts and reductions along binomial trees: when each process goes on, from when each has entered.

A message is under way once its sender can send it and its receiver has entered, as SMPI simulates it. MPI libraries may
send small ones before, so that one who comes late has them by one message's time earlier.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from metasched.arrays import Flags, Floats, Ints

#: From how many bytes on a send waits for its receiver, as in SimGrid and near what MPI libraries do.
RENDEZVOUS = 65_536.0
#: Seconds that no clock reaches.
_NEVER = 1e300


def broadcast(clock: Floats, root: int, size: float, late: float, busy: float) -> Floats:
    """Times when processes have what a root sends to all.

    Each sends to the larger half of its subtree first, once it has it. Small messages leave together and share the link
    of their sender; of large ones each waits for the one before, and so does the process.

    Parameters
    ----------
    clock : when each process enters (s), an array of shape (processes,).
    root, size : who sends, and how many bytes.
    late, busy : seconds that a message takes beside occupying a link, and occupying it.

    >>> broadcast(np.zeros(4), 0, 8.0, 1.0, 0.5).tolist()  # 0 sends to 2 and 1, 2 to 3
    [0.0, 2.0, 2.0, 3.5]
    >>> broadcast(np.zeros(4), 0, RENDEZVOUS, 1.0, 0.5).tolist()
    [3.0, 3.0, 3.0, 3.0]
    """
    entered = np.roll(clock, -root)
    free = entered.copy()
    if size < RENDEZVOUS:
        for parents, children, known in _families(clock.size):
            start = np.where(known, entered[np.where(known, children, 0)], np.inf)
            there = ends_on_shared_links(np.maximum(start, free[parents][:, None]), busy) + late
            free[children[known]] = there[known]
    else:
        for parents, children in reversed(_pairs(clock.size)):
            free[children] = free[parents] = np.maximum(free[parents], entered[children]) + busy + late
    return np.roll(free, root)


def reduction(clock: Floats, root: int, size: float, takes: float) -> Floats:
    """Times when processes go on from a reduction to a root; each receives from one child after another.

    Parameters
    ----------
    clock, root, size : as of :func:`broadcast`.
    takes : seconds of a message.

    >>> reduction(np.zeros(4), 0, 8.0, 1.5).tolist()
    [3.0, 0.0, 1.5, 0.0]
    """
    free = np.roll(clock, -root)
    for parents, children in _pairs(clock.size):
        free[parents] = np.maximum(free[parents], free[children]) + takes
        if size >= RENDEZVOUS:
            free[children] = free[parents]
    return np.roll(free, root)


def ends_on_shared_links(starts: Floats, busy: float) -> Floats:
    """When messages of one length end that share a link fairly, each row of them a link of its own.

    Parameters
    ----------
    starts : when each message begins (s), an array of shape (links, messages); infinite where there is none.
    busy : seconds that a message would occupy the link alone.

    >>> ends_on_shared_links(np.array([[0.0, 0.0], [0.0, 1.0], [0.0, np.inf]]), 2.0).tolist()
    [[4.0, 4.0], [3.0, 4.0], [2.0, inf]]
    """
    links, many = starts.shape
    if np.all(starts == starts[:, :1]):
        return np.asarray(starts + many * busy)
    order = np.argsort(starts, axis=1)
    begins = np.minimum(np.take_along_axis(starts, order, axis=1), _NEVER)
    # Served: for how long a message that was always active would have had the link to itself. Each ends when that has
    # grown by what it needs since it began, so those of one length end in the order in which they began.
    ends, until, served = np.full((links, many), np.inf), np.full((links, many), busy), np.zeros((links, 1))
    for begun in range(1, many + 1):
        now = begins[:, begun - 1 : begun]
        following = begins[:, begun : begun + 1] if begun < many else np.full((links, 1), np.inf)
        # As if no other began, and as far as none does.
        active = np.arange(begun, 0, -1)
        steps = np.maximum(until[:, :begun], served)
        steps[:, 1:] -= steps[:, :-1].copy()
        steps[:, :1] -= served
        done = now + np.cumsum(steps * active, axis=1)
        ends[:, :begun] = np.minimum(ends[:, :begun], np.where(done <= following, done, np.inf))
        if begun < many:
            went = np.minimum(done, following)
            went[:, 1:] -= went[:, :-1].copy()
            went[:, :1] -= now
            served = served + (went / active).sum(axis=1, keepdims=True)
            until[:, begun] = served[:, 0] + busy
    found = np.empty_like(ends)
    np.put_along_axis(found, order, ends, axis=1)
    return np.where(np.isinf(starts), np.inf, found)


def messages_sent(count: int, root: int) -> Floats:
    """How many messages each process sends in a broadcast.

    >>> messages_sent(6, 0).tolist()
    [3.0, 0.0, 1.0, 0.0, 1.0, 0.0]
    """
    sends = np.zeros(count)
    for parents, _, known in _families(count):
        sends[parents] = np.count_nonzero(known, axis=1)
    return np.roll(sends, root)


def _rounds(count: int) -> int:
    return math.ceil(math.log2(max(count, 1)))


def _pairs(count: int) -> list[tuple[Ints, Ints]]:
    """Parents and children of each round, by their places from the root on; leaves are in the first one."""
    children = [np.arange(1 << bit, count, 2 << bit) for bit in range(_rounds(count))]
    return [(each - (1 << bit), each) for bit, each in enumerate(children)]


@lru_cache(maxsize=8)
def _families(count: int) -> list[tuple[Ints, Ints, Flags]]:
    """Senders of a tree from the root on, those with as many children together.

    Returns
    -------
    The senders of each such group; their children, one row each; and which of these there are.
    """
    found = []
    for many in reversed(range(1, _rounds(count) + 1)):
        parents = np.arange(1 << many, count, 2 << many) if many < _rounds(count) else np.zeros(1, int)
        children = parents[:, None] + (1 << np.arange(many))[None, :]
        found.append((parents, children, children < count))
    return found
