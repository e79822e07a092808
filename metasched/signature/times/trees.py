"""Broadcasts and reductions along binomial trees: when each process goes on, from when each has entered.

A message is under way once its sender can send it and its receiver has entered, as SMPI simulates it. MPI libraries may
send small ones before, so that one who comes late has them by one message's time earlier.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from metasched.arrays import Floats, Ints

#: From how many bytes on a send waits for its receiver, as in SimGrid and near what MPI libraries do.
RENDEZVOUS = 65_536.0


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
    rank = (np.arange(clock.size) + root) % clock.size
    entered, free = clock[rank], clock[rank]
    if size < RENDEZVOUS:
        for parents, children in _families(clock.size):
            start = np.where(children < clock.size, entered[np.minimum(children, clock.size - 1)], np.inf)
            there = ends_on_shared_links(np.maximum(start, free[parents][:, None]), busy) + late
            known = children < clock.size
            free[children[known]] = there[known]
    else:
        for bit in reversed(range(_rounds(clock.size))):
            children = np.arange(1 << bit, clock.size, 2 << bit)
            parents = children - (1 << bit)
            free[children] = free[parents] = np.maximum(free[parents], entered[children]) + busy + late
    ends = np.empty(clock.size)
    ends[rank] = free
    return ends


def reduction(clock: Floats, root: int, size: float, takes: float) -> Floats:
    """Times when processes go on from a reduction to a root; each receives from one child after another.

    Parameters
    ----------
    clock, root, size : as of :func:`broadcast`.
    takes : seconds of a message.

    >>> reduction(np.zeros(4), 0, 8.0, 1.5).tolist()
    [3.0, 0.0, 1.5, 0.0]
    """
    rank = (np.arange(clock.size) + root) % clock.size
    free = clock[rank]
    for bit in range(_rounds(clock.size)):
        children = np.arange(1 << bit, clock.size, 2 << bit)
        parents = children - (1 << bit)
        free[parents] = np.maximum(free[parents], free[children]) + takes
        if size >= RENDEZVOUS:
            free[children] = free[parents]
    ends = np.empty(clock.size)
    ends[rank] = free
    return ends


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
    if many == 0 or np.all(starts == starts[:, :1]):
        return np.asarray(starts + many * busy)
    order = np.argsort(starts, axis=1)
    begins = np.concatenate([np.take_along_axis(starts, order, axis=1), np.full((links, 1), np.inf)], axis=1)
    ends = np.full((links, many), np.inf)
    # Served: for how long a message that was always active would have had the link to itself. Each ends when that has
    # grown by what it needs since it began, so those of one length end in the order in which they began.
    served_before, served = np.zeros((links, many)), np.zeros(links)
    now, begun, ended, row = begins[:, 0].copy(), np.zeros(links, int), np.zeros(links, int), np.arange(links)
    for _ in range(2 * many):
        active = begun - ended
        first = served_before[row, np.minimum(ended, many - 1)]
        ending = np.where(active > 0, now + (first + busy - served) * active, np.inf)
        beginning = begins[row, begun]
        then = np.minimum(beginning, ending)
        going = np.isfinite(then)
        served[going] += (then - now)[going] / np.maximum(active, 1)[going]
        now[going] = then[going]
        begin, end = going & (beginning <= ending), going & (ending < beginning)
        served_before[row[begin], begun[begin]] = served[begin]
        ends[row[end], ended[end]] = now[end]
        begun[begin] += 1
        ended[end] += 1
    found = np.empty_like(ends)
    np.put_along_axis(found, order, ends, axis=1)
    return found


def messages_sent(count: int, root: int) -> Floats:
    """How many messages each process sends in a broadcast.

    >>> messages_sent(6, 0).tolist()
    [3.0, 0.0, 1.0, 0.0, 1.0, 0.0]
    """
    sends = np.zeros(count)
    for parents, children in _families(count):
        sends[(parents + root) % count] = np.count_nonzero(children < count, axis=1)
    return sends


def _rounds(count: int) -> int:
    return math.ceil(math.log2(max(count, 1)))


def _families(count: int) -> Iterator[tuple[Ints, Ints]]:
    """Senders of a tree from the root on, those with as many children together, and their children, one row each."""
    for many in reversed(range(1, _rounds(count) + 1)):
        parents = np.arange(1 << many, count, 2 << many) if many < _rounds(count) else np.zeros(1, int)
        children = parents[:, None] + (1 << np.arange(many))[None, :]
        yield parents, children
