"""Sizes of messages to neighbours, also along sides of a grid that are as long in all runs.

How a size follows such a side no run shows. The message in the direction that is the same but for this side and another
one does: where its size, with the sides exchanged, holds as well, it is taken.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from metasched.signature.equations.expressions import Expression, atom_value
from metasched.signature.equations.topologies import TOPOLOGIES, dimensions_of
from metasched.signature.rules.application import Application, Role
from metasched.signature.rules.attributes import STEPS, Attribute, turned_to, with_grid
from metasched.signature.rules.members import equal_in, members_of
from metasched.signature.rules.roles import Cell
from metasched.signature.rules.shares import QUOTIENT, Share, product_of, shares_of
from metasched.signature.traces.matching import Leaf


@dataclass(frozen=True)
class _Message:
    """A number of a message, by its direction.

    Parameters
    ----------
    cell, leaf, column : where it stands.
    name : of the call.
    partner : the rule of the partner.
    sizes : the rule of the number, of each step of a loop over neighbours.
    """

    cell: Cell
    leaf: int
    column: int
    name: str
    partner: Attribute
    sizes: tuple[Attribute, ...]

    @property
    def partners(self) -> tuple[Attribute, ...]:
        """The rules of the partners, of each step."""
        return self.partner.table or (self.partner,)


def across_steady_sides(application: Application) -> dict[Cell, Role]:
    """The roles of an application, with the sizes of messages to neighbours where sides are longer than in all runs.

    Sizes that the runs tell stay as they are.
    """
    messages = [*_messages(application)]
    grids = Counter(each.topology for message in messages for each in message.partners)
    topology = next((name for name, _ in grids.most_common() if name not in ("", "line")), "line")
    sides = np.array([TOPOLOGIES[topology](n) for n in application.learned])
    if sides.shape[1] == 1:
        return application.roles
    known: dict[tuple[str, int, frozenset[int]], list[Attribute]] = {}
    for message in messages:
        for size, partner in zip(message.sizes, message.partners, strict=True):
            if size.expression is not None and (crossed := _crossed(partner, topology)):
                known.setdefault((message.name, message.column, crossed), []).append(_spoken(size, application))
    roles, members = dict(application.roles), members_of(application)
    for message in messages:
        found, here = [*message.sizes], members[message.cell]
        for at, partner in enumerate(message.partners):
            crossed = _crossed(partner, topology)
            # Where a side is one process long, no message crosses it.
            made = sides[np.all(sides[:, [*crossed]] > 1, axis=1)]
            steady = np.flatnonzero(np.ptp(made, axis=0) == 0).tolist() if crossed and len(made) else []
            for one, other in product(steady, {*range(sides.shape[1])} - {*steady}):
                like = frozenset({one: other, other: one}.get(side, side) for side in crossed)
                for size in dict.fromkeys(known.get((message.name, message.column, like), ())):
                    turned = turned_to(size, topology, one, other)
                    own = _spoken(found[at], application)
                    if _shares(turned) in (_shares(size), _shares(own)):
                        continue
                    if equal_in(turned, own, application, here):
                        found[at] = turned
                    elif (scaled := _scaled(turned, own, application, topology, crossed)) is not None:
                        found[at] = scaled
        if found != [*message.sizes]:
            roles[message.cell] = _with(roles[message.cell], message, found)
    return roles


def _scaled(
    turned: Attribute, own: Attribute, application: Application, topology: str, crossed: frozenset[int]
) -> Attribute | None:
    """A share along another side of a block that is longer there; None where the sizes are in no proportion.

    They need only agree where the message is sent, and where its own rule says less of the sides.
    """
    whole, known = turned.product, own.expression
    shares = shares_of(whole[1]) if whole is not None else []
    if known is None or len(known.terms) > 1 or not shares:
        return None
    if known.terms and known.terms[0][1].count("*") + 1 >= len(shares):
        return None
    plain = product_of(Share(QUOTIENT, share.side) for share in shares)
    sides = [each for n in application.learned if min((each := TOPOLOGIES[topology](n))[side] for side in crossed) > 1]
    grids = [with_grid({"r": np.zeros(1), "n": np.full(1, float(math.prod(each)))}, each) for each in sides]
    try:
        values = [float(own(grid, math.prod(each))[0]) for grid, each in zip(grids, sides, strict=True)]
    except KeyError:  # it depends on the step of a loop
        return None
    wholes = [value / float(atom_value(plain, grid)[0]) for value, grid in zip(values, grids, strict=True)]
    if not wholes or max(wholes) != min(wholes):
        return None
    return Attribute(turned.topology, expression=Expression(0.0, ((wholes[0], plain),)))


def _messages(application: Application) -> Iterator[_Message]:
    for cell, role in application.roles.items():
        for place, (leaf, rule) in enumerate(zip(role.program.leaves, role.rules, strict=True)):
            shape = application.shapes[leaf.shape]
            for column, size in enumerate(rule.numbers if shape.peers else ()):
                partner = rule.numbers[shape.peers[0]]
                if column in shape.peers or size.placement or partner.placement:
                    continue
                sizes = size.along(partner, _turns(role, leaf, partner))
                if sizes is None:
                    continue
                yield _Message(cell, place, column, shape.name, partner, sizes)


def _turns(role: Role, leaf: Leaf, partner: Attribute) -> int:
    """How often the loop runs whose steps have partners of their own; 0 where that is not the same in all runs."""
    known = role.counts[leaf.loops[partner.loop]].expression if partner.table else None
    return int(known.constant) if known is not None and not known.terms else 0


def _crossed(partner: Attribute, topology: str) -> frozenset[int]:
    """Along which sides of a grid a partner is elsewhere; none where it is no neighbour there."""
    if not {axis.kind for axis in partner.axes} <= {*STEPS} or partner.topology not in (topology, "line"):
        return frozenset()
    # The next rank is the neighbour along the last side of every grid.
    first = dimensions_of(topology) - len(partner.axes)
    return frozenset(first + place for place, axis in enumerate(partner.axes) if axis.by.constant or axis.by.terms)


def _spoken(size: Attribute, application: Application) -> Attribute:
    """A rule that says which grid it speaks of."""
    return size if size.topology else replace(size, topology=application.topology)


def _shares(size: Attribute) -> list[tuple[float, list[str]]]:
    """The terms of a rule, whatever the order of their factors."""
    return [(slope, sorted(atom.split("*"))) for slope, atom in size.expression.terms] if size.expression else []


def _with(role: Role, message: _Message, sizes: list[Attribute]) -> Role:
    """A role with other sizes of a message."""
    rules = [*role.rules]
    numbers = [*rules[message.leaf].numbers]
    by_step = message.partner if message.partner.table else None
    numbers[message.column] = replace(by_step, table=tuple(sizes)) if by_step else sizes[0]
    rules[message.leaf] = replace(rules[message.leaf], numbers=tuple(numbers))
    return replace(role, rules=tuple(rules))
