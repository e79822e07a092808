"""The contract of a cluster's network for the search: a tree of switches or a measured matrix."""

from __future__ import annotations

from typing import Protocol

from numpy.typing import ArrayLike

from metasched.arrays import Floats, Ints

#: Groups of nodes: arrays of shape (m,) with the number of the group, the number of the node and the width (Mbit/s)
#: that the node brings into the group. Any nodes of a group are joined by at least the smallest of their widths.
Groups = tuple[Ints, Ints, Floats]


class Network(Protocol):
    """The bandwidths between the nodes of a cluster."""

    def groups(self, link: ArrayLike) -> tuple[Groups, Groups | None]:
        """Groups to search, and groups that bound what the search can miss.

        Parameters
        ----------
        link : array of shape (n,), width of each node's own link (Mbit/s).

        Returns
        -------
        groups : the best set of the best group is the best of all sets, or a good one where that is too much.
        optimistic : groups that promise at least the bandwidth of any set; None where ``groups`` hold the optimum.
        """

    def bandwidth(self, link: ArrayLike, nodes: ArrayLike) -> float:
        """Bandwidth of a set of nodes (Mbit/s), 0 where nothing joins them.

        Parameters
        ----------
        link : array of shape (n,), width of each node's own link (Mbit/s).
        nodes : numbers of the nodes.
        """

    def select(self, nodes: ArrayLike) -> Network:
        """The network between some of the nodes, in the order given."""

    @property
    def nodes(self) -> int:
        """Number of nodes that the network joins."""
