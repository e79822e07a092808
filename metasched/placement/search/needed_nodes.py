"""Nodes that no small set needs, since enough processors of other nodes are as wide and at least as fast.

A search that is made once, for the jobs placed until now, spends most of its time on nodes that no set can contain.
Whether a node is outdone is decided in blocks of its group: what is outdone in a block is outdone in the group, and
what is outdone below one switch is so below every switch above it, where no width is larger.

Between two such searches the loads of a few nodes change, those of the job placed last. So the nodes are found with
some processors to spare, and stay enough until that many processors got slower, narrower or taken in one group.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from metasched.arrays import Flags, Floats, Ints, matrix_product
from metasched.placement.clusters.state import ClusterState
from metasched.placement.clusters.switch_tree import Topology

#: Entries that are compared with each other, and the part that at most is left by a round after which another is made.
BLOCK, WORTH = 64, 0.8
#: The share of a group's processors that may change before its nodes are searched again, and the largest such number as
#: a share of the processors of ``BLOCK`` average nodes: near 1 no node could be left out.
SPARE, SPARE_OF_BLOCK = 1 / 16, 1 / 4


class NeededNodes:
    """The nodes of one cluster that sets of at most ``most`` processors may need, while its loads change.

    >>> needed, offered = NeededNodes(most=1), np.ones(3, np.int64)
    >>> state = ClusterState.make("c", ["a", "b", "c"], available_cpu=[0.9, 0.8, 0.7])
    >>> later = ClusterState.make("c", ["a", "b", "c"], available_cpu=[0.4, 0.8, 0.7])
    >>> [needed.of(each, each.network, offered).tolist() for each in (state, later)]
    [[True, False, False], [False, True, False]]
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._columns, self._kept = np.empty((3, 0)), np.empty(0, np.bool_)
        self._group, self._node, self._spare = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)

    def of(self, cluster: ClusterState, tree: Topology, offered: Ints) -> Flags:
        """Which nodes these are, shape (n,).

        Parameters
        ----------
        cluster : in any state with the same nodes, network and turns as before.
        tree : its network.
        offered : the processors that the job may take on each node, shape (n,).
        """
        columns = np.stack([offered, cluster.effective_cpu, cluster.available_bandwidth])
        if columns.shape != self._columns.shape:
            self._find(cluster, tree, columns)
        better = (columns > self._columns).any(axis=0)
        worse = np.where((columns < self._columns).any(axis=0), self._columns[0], 0.0)
        if (np.bincount(self._group, worse.take(self._node), self._spare.size) > self._spare).any():
            self._find(cluster, tree, columns)
            return self._kept
        return (self._kept | better) & (offered > 0)

    def _find(self, cluster: ClusterState, network: Topology, columns: Floats) -> None:
        """Find them for a state, with processors to spare in each group."""
        offered, speed, link = columns
        group, node, width = network.domains(link)
        kept = np.flatnonzero(network.narrowed_above(group, width))
        group, node, width = group.take(kept), node.take(kept), width.take(kept)
        spare = np.minimum(SPARE * np.bincount(group, offered.take(node)), SPARE_OF_BLOCK * BLOCK * offered.mean())
        turn = np.arange(link.size) if cluster.turn is None else cluster.turn
        entries = needed(group, node, width, speed, offered, turn, self._most + np.floor(spare))
        self._kept = np.zeros(link.size, np.bool_)
        self._kept[node[entries]] = True
        self._kept &= offered > 0
        self._columns, self._group, self._node, self._spare = columns, group, node, spare


def needed(
    group: Ints, node: Ints, width: Floats, speed: Floats, processors: ArrayLike, turn: Ints, most: ArrayLike
) -> Ints:
    """The entries of a tree of groups that sets of at most ``most`` processors may need, ascending.

    The fastest P processors among the entries of a group as wide as any bandwidth stay the same for P up to ``most``,
    equal ones by their turns.

    Parameters
    ----------
    group, node, width : as :meth:`metasched.placement.clusters.switch_tree.Topology.groups` gives them.
    speed, processors, turn : of each node.
    most : the largest number of processors, one for all or one for each group.

    Examples
    --------
    >>> two = np.zeros(3, np.int64), np.arange(3), np.array([100.0, 90.0, 95.0])
    >>> needed(*two, np.array([1.0, 0.5, 0.5]), np.array([4, 4, 4]), np.arange(3), most=4).tolist()
    [0]
    """
    processors, most = np.asarray(processors), np.broadcast_to(most, int(group.max(initial=-1)) + 1)
    ends = np.concatenate([[0], np.flatnonzero(np.diff(node) <= 0) + 1, [node.size]])
    left, found = np.full(speed.size, True), [np.empty(0, np.int64)]
    for first, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        entries = first + np.flatnonzero(left.take(node[first:end]))
        entries = entries[np.argsort(group.take(entries), kind="stable")]
        before = np.inf
        while WORTH * before > entries.size > 0:
            before, of = entries.size, node.take(entries)
            here = group.take(entries)
            columns = (speed.take(of), processors.take(of), turn.take(of), most.take(here))
            kept = _not_outdone(here, width.take(entries), *columns)
            left[of] = kept
            entries = entries[kept]
        found.append(entries)
    return np.sort(np.concatenate(found))


def _not_outdone(group: Ints, width: Floats, speed: Floats, processors: Ints, turn: Ints, most: Floats) -> Flags:
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
    by = matrix_product(outdone, count[..., None])[..., 0]
    kept: Flags = by[at] < most
    return kept
