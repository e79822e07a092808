"""What messages to neighbours hold: it follows their direction, in all roles and along all sides of a grid."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from metasched.arrays import Floats
from metasched.signature.rules.attributes import Attribute
from metasched.signature.rules.samples import Samples


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
        if peer is None or rule.placement is not None or peer.placement is not None or not rule.ruled:
            return rule
        turns = samples.env[f"c{peer.loop}"] if peer.table else np.ones(1)
        own = rule.along(peer, int(turns[0]) if np.all(turns == turns[0]) else 0)
        if own is None:
            return rule
        ways = peer.table or (peer,)
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
        if found == own:
            return rule
        return replace(peer, table=found) if len({*found}) > 1 else found[0]
