"""What messages to neighbours hold: it follows their direction, in all roles and along all sides of a grid."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from metasched.arrays import Floats
from metasched.signature.equations.topologies import TOPOLOGIES
from metasched.signature.rules.attributes import Attribute, turned_to
from metasched.signature.rules.samples import Samples


def across_steady_sides(rule: Attribute, peer: Attribute | None, samples: Samples, values: Floats) -> Attribute:
    """Sizes of messages to a list of neighbours, also along sides that are as long in all runs.

    How a size follows such a side no run shows. The message in the direction that is the same but for this side and
    another one does: where its size, with the sides exchanged, holds as well, it is taken.

    Parameters
    ----------
    rule : of a number of the messages, with a rule for each step of the loop over the neighbours.
    peer : the rule of the partner, with a direction for each step.
    samples, values : the rows.
    """
    if peer is None or not rule.table or rule.steps != peer.steps or rule.placement is not None:
        return rule
    # A partner by no relation of ranks stands in no grid.
    topology = next((each.topology for each in peer.table if each.topology not in ("", "line")), "line")
    sides = np.array([TOPOLOGIES[topology](n) for n in samples.distinct])
    ways = [_crossed(each, topology, sides.shape[1]) for each in peer.table]
    if None in ways:
        return rule
    steady = np.flatnonzero(np.ptp(sides, axis=0) == 0).tolist()
    spoken = [each if each.topology else replace(each, topology=samples.topology) for each in rule.table]
    found = [*rule.table]
    for place, (chosen, part) in enumerate(samples.by_step(*rule.steps)):
        for one, other in ((one, other) for one in steady for other in range(sides.shape[1]) if other not in steady):
            exchanged = {one: other, other: one}
            way = {exchanged.get(side, side) for side in ways[place] or ()}
            for like, direction in zip(spoken, ways, strict=True):
                turned = turned_to(like, topology, one, other)
                if direction == way and turned != like and part.holds(turned, values[chosen]):
                    found[place] = turned
    return replace(rule, table=tuple(found))


def _crossed(peer: Attribute, topology: str, dimensions: int) -> set[int] | None:
    """Along which sides of a grid a partner is elsewhere; None where it is no neighbour there."""
    if {axis.kind for axis in peer.axes} != {"shift"} or peer.topology not in (topology, "line"):
        return None
    # The next rank is the neighbour along the last side of every grid.
    first = dimensions - len(peer.axes)
    return {first + place for place, axis in enumerate(peer.axes) if axis.by.constant or axis.by.terms}


class Neighbours:
    """What roles that every run shows teach those that few runs show: the sizes of messages, by their direction."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int, Attribute], list[Attribute]] = {}

    def taught(
        self,
        call: tuple[int, int],
        rule: Attribute,
        peer: Attribute | None,
        samples: Samples,
        values: Floats,
        everywhere: bool,
    ) -> Attribute:
        """The rule of a number of messages; where few runs show them, that of others in the same direction.

        Parameters
        ----------
        call : the shape of the action, and the place of the number in it.
        rule, peer : of the number, and of the partner.
        samples, values : the rows.
        everywhere : whether they are of all runs.
        """
        alike = not rule.table or (peer is not None and rule.steps == peer.steps)
        placed = rule.placement or (peer and peer.placement)
        if peer is None or placed is not None or not rule.ruled or not alike:
            return rule
        ways = peer.table or (peer,)
        own = rule.table or (rule,) * len(ways)
        if everywhere:
            for way, each in zip(ways, own, strict=True):
                known = self._known.setdefault((*call, way), [])
                known += [each] if each not in known else []
            return rule
        whole = np.ones(values.size, dtype=np.bool_)
        rows = samples.by_step(*peer.steps) if peer.table else iter([(whole, samples)])
        found = tuple(
            next((one for one in self._known.get((*call, way), ()) if part.holds(one, values[chosen])), each)
            for way, each, (chosen, part) in zip(ways, own, rows, strict=True)
        )
        return replace(peer, table=found) if len({*found}) > 1 else found[0]
