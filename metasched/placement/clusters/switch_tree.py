"""The tree of switches between the nodes of a cluster, and the bandwidths in it.

A path is as wide as its narrowest link, and in a tree there is one path only. So the bandwidth of a set of nodes, the
width of the narrowest link that joins them, is the smallest over its nodes of the width of the way up to the lowest
switch above all of them. That turns a tree into a family of flat clusters, one for each switch: the *domain* of a
switch is the nodes below it, each with the width of its way up to that switch.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from metasched.arrays import Flags, Floats, Ints
from metasched.placement.clusters.network import Groups
from metasched.records import InputError


@dataclass(frozen=True, slots=True)
class Topology:
    """A tree of switches, or several trees that no link joins.

    Parameters
    ----------
    switches : names of the switches, s of them.
    parent : array of shape (s,), the switch above each one, -1 at a root.
    uplink : array of shape (s,), width of the link to the switch above (Mbit/s), inf where it never limits.
    leaf : array of shape (n,), the switch that each node is attached to.

    Raises
    ------
    InputError : when the links upwards form a ring, or an uplink is not wider than 0.

    Examples
    --------
    Two racks under one switch; the second rack's uplink has 50 Mbit/s to spare.

    >>> tree = Topology(("r1", "r2", "top"), [2, 2, -1], [np.inf, 50.0, np.inf], [0, 0, 1, 1])
    >>> tree.bandwidth([100.0, 80.0, 100.0, 100.0], [0, 1]), tree.bandwidth([100.0, 80.0, 100.0, 100.0], [0, 2])
    (80.0, 50.0)
    """

    switches: tuple[str, ...]
    parent: Ints
    uplink: Floats
    leaf: Ints
    #: The domains of :meth:`domains` with the narrowest uplink on each way: it depends on the tree alone.
    _ways: Groups = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "parent", np.asarray(self.parent, dtype=np.int64))
        object.__setattr__(self, "uplink", np.asarray(self.uplink, dtype=np.float64))
        object.__setattr__(self, "leaf", np.asarray(self.leaf, dtype=np.int64))
        narrow = np.flatnonzero(~(self.uplink > 0))
        if narrow.size:
            index = int(narrow[0])
            raise InputError(f"uplink of switch {self.switches[index]} is {self.uplink[index]:g}, expected more than 0")
        above = np.arange(len(self.switches))
        for _ in self.switches:
            above = self.parent[above[above >= 0]]
            if not above.size:
                break
        above = above[above >= 0]
        if above.size:
            ring = self.switches[int(above[0])]
            raise InputError(f"switch {ring} is part of a cycle, expected a tree of switches")
        object.__setattr__(self, "_ways", self._found_ways())

    @classmethod
    def star(cls, name: str, nodes: int) -> Topology:
        """Nodes on one switch, which never limits the bandwidth."""
        return cls((name,), np.array([-1]), np.array([np.inf]), np.zeros(nodes, dtype=np.int64))

    @property
    def nodes(self) -> int:
        """Number of nodes that the network joins."""
        return int(self.leaf.size)

    def select(self, nodes: ArrayLike) -> Topology:
        """The same switches with some of the nodes only."""
        return Topology(self.switches, self.parent, self.uplink, self.leaf[np.asarray(nodes)])

    def domains(self, link: ArrayLike) -> Groups:
        """Every node once for each switch above it.

        Parameters
        ----------
        link : array of shape (n,), width of each node's own link (Mbit/s).

        Returns
        -------
        switch, node : arrays of shape (m,), m the sum of the nodes' depths.
        width : array of shape (m,), the narrowest link on the node's way up to that switch (Mbit/s).
        """
        switch, node, way = self._ways
        return switch, node, np.minimum(np.asarray(link, dtype=np.float64).take(node), way)

    def narrowed_above(self, switch: Ints, width: Floats) -> Flags:
        """Which entries of domains, shape (m,), no domain above has with the same width.

        A set with any other entry is also found below the switch above, with the same bandwidth: the uplink is as wide.

        Parameters
        ----------
        switch, width : of each entry, as :meth:`domains` gives them.
        """
        return np.asarray((self.parent.take(switch) < 0) | (width > self.uplink.take(switch)))

    def groups(self, link: ArrayLike) -> tuple[Groups, None]:
        """The domains, and nothing to bound: in a tree they hold the optimum."""
        return self.domains(link), None

    def bandwidth(self, link: ArrayLike, nodes: ArrayLike) -> float:
        """Width of the narrowest link that joins some nodes; a single node's own link (Mbit/s).

        Zero where no switch is above all of them.
        """
        link = np.asarray(link, dtype=np.float64)
        chosen = np.unique(np.asarray(nodes))
        switch, width = self.leaf[chosen], link[chosen]
        while np.any(switch != switch[0]):
            # All paths go up until they meet; the deeper ones move first.
            depth = self._depth(switch)
            moving = depth == depth.max()
            width = np.where(moving, np.minimum(width, self.uplink[switch]), width)
            switch = np.where(moving, self.parent[switch], switch)
            if np.any(switch < 0):
                return 0.0
        return float(width.min())

    def _found_ways(self) -> Groups:
        switch, node, way = self.leaf, np.arange(self.leaf.size), np.full(self.leaf.size, np.inf)
        levels = [(switch, node, way)]
        while switch.size:
            way, switch = np.minimum(way, self.uplink[switch]), self.parent[switch]
            inside = switch >= 0
            switch, node, way = switch[inside], node[inside], way[inside]
            levels.append((switch, node, way))
        switch, node, way = (np.concatenate(column) for column in zip(*levels, strict=True))
        for column in (switch, node, way):
            column.flags.writeable = False
        return switch, node, way

    def _depth(self, switch: Ints) -> Ints:
        depth = np.zeros(switch.size, dtype=np.int64)
        above = self.parent[switch]
        while np.any(above >= 0):
            depth += above >= 0
            above = np.where(above >= 0, self.parent[above], -1)
        return depth
