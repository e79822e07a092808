"""Builds the tree of switches from the nodes and switches below each, and reports contradictions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from metasched.arrays import Ints
from metasched.node_names import first_twice
from metasched.placement.clusters.switch_tree import Topology
from metasched.records import InputError
from metasched.validation import Located


@dataclass(frozen=True, slots=True)
class Switch:
    """A switch, with the nodes and switches attached to it.

    Parameters
    ----------
    name : the switch's name.
    nodes, switches : names of the nodes and of the switches on it.
    uplink : width of its link to the switch above (Mbit/s), inf where it never limits.
    """

    name: str
    nodes: Sequence[str] = ()
    switches: Sequence[str] = ()
    uplink: float = np.inf


def tree(switches: Sequence[Switch], nodes: Sequence[str], *, where: str, elsewhere: Collection[str] = ()) -> Topology:
    """The tree that some switches make above the nodes.

    Parameters
    ----------
    switches : in any order.
    nodes : names of the nodes that must be attached to them.
    where : put in front of error messages.
    elsewhere : nodes that switches may list although they are not wanted here.

    Raises
    ------
    InputError : for unknown, repeated or unlisted nodes and switches, and for rings.

    Examples
    --------
    >>> tree([Switch("r1", ["a"], uplink=9.0), Switch("top", ["b"], ["r1"])], ["a", "b"], where="x").leaf.tolist()
    [0, 1]
    """
    names = [switch.name for switch in switches]
    twice = first_twice(names)
    if twice is not None:
        raise InputError(f"switch {twice} is given twice", where=where)
    parent = _above([switch.switches for switch in switches], names, "switch", names, where, ())
    leaf = _above([switch.nodes for switch in switches], nodes, "node", names, where, elsewhere)
    hanging = np.flatnonzero(leaf < 0)
    if hanging.size:
        raise InputError(f"node {nodes[int(hanging[0])]} is on no switch, expected every node on one", where=where)
    with Located(where):
        return Topology(tuple(names), parent, np.array([switch.uplink for switch in switches]), leaf)


def _above(
    below: Sequence[Sequence[str]],
    names: Sequence[str],
    kind: str,
    switches: Sequence[str],
    where: str,
    elsewhere: Collection[str],
) -> Ints:
    """For each name the switch that lists it, -1 where none does."""
    number = {name: index for index, name in enumerate(names)}
    above = np.full(len(names), -1, dtype=np.int64)
    for index, listed in enumerate(below):
        for name in listed:
            if name in elsewhere:
                continue
            if name not in number:
                raise InputError(f"{switches[index]} lists {kind} {name}, which is not described", where=where)
            if above[number[name]] >= 0:
                first = switches[int(above[number[name]])]
                raise InputError(f"{kind} {name} is on both {first} and {switches[index]}", where=where)
            above[number[name]] = index
    return above
