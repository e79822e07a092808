"""Nodes that no small set needs, since enough processors of other nodes are as wide and at least as fast.

A search that is made once, for the jobs placed until now, spends most of its time on nodes that no set can contain.
Whether a node is outdone is decided in blocks of its group: what is outdone in a block is outdone in the group, and
what is outdone below one switch is so below every switch above it, where no width is larger.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Entries that are compared with each other, and the part that at most is left by a round after which another is made.
BLOCK, WORTH = 16, 0.8


def needed(group: Ints, node: Ints, width: Floats, speed: Floats, processors: Ints, turn: Ints, most: int) -> Ints:
    """The entries of a tree of groups that sets of at most ``most`` processors may need, ascending.

    The fastest P processors among the entries of a group as wide as any bandwidth stay the same for P up to ``most``,
    equal ones by their turns.

    Parameters
    ----------
    group, node, width : as :meth:`metasched.placement.clusters.switch_tree.Topology.groups` gives them.
    speed, processors, turn : of each node.
    most : the largest number of processors.

    Examples
    --------
    >>> two = np.zeros(3, np.int64), np.arange(3), np.array([100.0, 90.0, 95.0])
    >>> needed(*two, np.array([1.0, 0.5, 0.5]), np.array([4, 4, 4]), np.arange(3), most=4).tolist()
    [0]
    """
    ends = np.concatenate([[0], np.flatnonzero(np.diff(node) <= 0) + 1, [node.size]])
    left, found = np.full(speed.size, True), [np.empty(0, np.int64)]
    for first, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        entries = first + np.flatnonzero(left.take(node[first:end]))
        entries = entries[np.argsort(group.take(entries), kind="stable")]
        before = np.inf
        while WORTH * before > entries.size > 0:
            before, of = entries.size, node.take(entries)
            columns = (speed.take(of), processors.take(of), turn.take(of))
            kept = _not_outdone(group.take(entries), width.take(entries), *columns, most)
            left[of] = kept
            entries = entries[kept]
        found.append(entries)
    return np.sort(np.concatenate(found))


def _not_outdone(
    group: Ints, width: Floats, speed: Floats, processors: Ints, turn: Ints, most: int
) -> NDArray[np.bool_]:
    """Which entries, ascending in their groups, fewer than ``most`` processors outdo in their block."""
    begins = np.append(True, group[1:] != group[:-1])
    start = np.flatnonzero(begins)
    place = np.arange(group.size) - np.repeat(start, np.diff(np.append(start, group.size)))
    block = np.cumsum(place % BLOCK == 0) - 1
    at = block, place % BLOCK
    shape = int(block[-1]) + 1, BLOCK
    wide, fast, count, early = np.full(shape, -np.inf), np.zeros(shape), np.zeros(shape, np.float32), np.zeros(shape)
    wide[at], fast[at], count[at], early[at] = width, speed, processors, turn
    outdone = fast[:, None] > fast[..., None]
    outdone |= (fast[:, None] == fast[..., None]) & (early[:, None] < early[..., None])
    outdone &= wide[:, None] >= wide[..., None]
    by = np.matmul(outdone.astype(np.float32), count[..., None])[..., 0]
    kept: NDArray[np.bool_] = by[at] < most
    return kept
