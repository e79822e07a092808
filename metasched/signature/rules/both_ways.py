"""Directions along sides that were two processes long at most in all runs, where the neighbours on both sides are one.

Which way a message goes round such a side no run shows. Of as many calls to one partner as there are ways to it, each
goes another way, the first as the first does along other sides; what is sent one way is received from the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product

from metasched.signature.equations.expressions import Expression
from metasched.signature.equations.topologies import TOPOLOGIES
from metasched.signature.rules.application import Application, Role
from metasched.signature.rules.attributes import STEPS, Attribute
from metasched.signature.rules.members import members_of
from metasched.signature.rules.roles import Cell
from metasched.signature.traces.trace import places_of_ends


def either_way(partner: Attribute, counts: Iterable[int]) -> tuple[int, ...]:
    """The sides along which a partner is as far away one way as the other at some numbers of processes.

    Examples
    --------
    >>> from metasched.signature.rules.attributes import shifted
    >>> either_way(shifted("grid 01", 2, 1, -1), [2, 4, 8]), either_way(shifted("grid 01", 2, 1, -1), [16])
    ((1,), ())
    """
    if any(axis.kind not in STEPS or axis.by.terms for axis in partner.axes):
        return ()
    sides = [TOPOLOGIES[partner.topology](n) for n in counts if partner.axes]
    return tuple(
        at
        for at, axis in enumerate(partner.axes)
        if axis.kind == "shift" and axis.by.constant and all(2 * axis.by.constant % each[at] == 0 for each in sides)
    )


def turned_round(partner: Attribute, sides: Collection[int]) -> Attribute:
    """A partner as far away the other way round some sides."""
    return replace(partner, axes=tuple(
        replace(axis, by=Expression(-axis.by.constant)) if at in sides else axis
        for at, axis in enumerate(partner.axes)
    ))  # fmt: skip


@dataclass(frozen=True)
class _End:
    """An end of a message whose way is open.

    Parameters
    ----------
    leaf, place, step : where its partner stands.
    sends : 1 where it sends, -1 where it receives.
    forward : where its message goes, forwards along all open sides.
    sides : the open ones.
    message : what else the call says, as the other end does.
    """

    leaf: int
    place: int
    step: int
    sends: int
    forward: Attribute
    sides: tuple[int, ...]
    message: tuple[Attribute, ...]


def open_ways(application: Application) -> dict[Attribute, tuple[int, ...]]:
    """Partners of which no role shows which way round some sides they are, and these sides."""
    members, found = members_of(application), dict[Attribute, set[int]]()
    for cell, role in application.roles.items():
        partners = (each for rule in role.rules for number in rule.numbers for each in number.parts() if each.axes)
        for each in dict.fromkeys(partners):
            # One role that shows the way tells it of all.
            found.setdefault(each, {*range(len(each.axes))}).intersection_update(either_way(each, members[cell]))
    return {partner: tuple(sorted(sides)) for partner, sides in found.items() if sides}


def told_apart(application: Application) -> dict[Cell, Role]:
    """The roles of an application, with messages in different directions where the runs tell none from its opposite."""
    either = open_ways(application)
    if not either:
        return application.roles
    return {cell: _told_apart(application, role, either) for cell, role in application.roles.items()}


def _told_apart(application: Application, role: Role, either: Mapping[Attribute, tuple[int, ...]]) -> Role:
    ends = [*_ends(application, role, either)]
    if not ends:
        return role
    backwards = {sign: _backwards(application, role, either, sign) for sign in (1, -1)}
    chosen: dict[tuple[int, int, int], Attribute] = {}
    for forward in dict.fromkeys(end.forward for end in ends):
        alike = [end for end in ends if end.forward == forward]
        sent, received = ([end for end in alike if end.sends == sign] for sign in (1, -1))
        ways = [*zip(sent, _in_turn(alike[0].sides, len(sent), backwards[1]), strict=True)]
        back = [*zip(received, _in_turn(alike[0].sides, len(received), backwards[-1]), strict=True)]
        both = (Counter((end.message, way) for end, way in each) for each in (_opposite(ways), back))
        if backwards[-1] is None or next(both) != next(both):
            back = _received(_opposite(ways), received)
        for end, way in (*ways, *back):
            others = {*range(len(forward.axes))} - {*end.sides} if end.sends < 0 else set()
            chosen[end.leaf, end.place, end.step] = turned_round(forward, others.union(way))
    rules = [*role.rules]
    for leaf, place in dict.fromkeys((end.leaf, end.place) for end in ends):
        numbers, of = [*rules[leaf].numbers], rules[leaf].numbers[place]
        table = tuple(chosen.get((leaf, place, step), each) for step, each in enumerate(of.table))
        numbers[place] = replace(of, table=table) if table else chosen[leaf, place, 0]
        rules[leaf] = replace(rules[leaf], numbers=tuple(numbers))
    return replace(role, rules=tuple(rules))


def _backwards(
    application: Application, role: Role, either: Mapping[Attribute, tuple[int, ...]], sends: int
) -> bool | None:
    """Whether the first message that is sent, or received, along a side whose ways the runs tell goes back there."""
    for leaf, rule in zip(role.program.leaves, role.rules, strict=True):
        for place, sign in places_of_ends(application.shapes[leaf.shape]):
            for partner in rule.numbers[place].parts() if sign == sends else ():
                known = [
                    axis.by.constant
                    for side, axis in enumerate(partner.axes)
                    if axis.kind in STEPS and axis.by.constant and side not in either.get(partner, ())
                ]
                if known:
                    return known[0] < 0
    return None


def _in_turn(sides: tuple[int, ...], many: int, backwards: bool | None) -> list[tuple[int, ...]]:
    """Along which of the open sides each of so many calls goes back: one after another where there are enough."""
    if many % 2 ** len(sides):
        return [sides if backwards else ()] * many
    first = backwards is not False
    ways = [
        tuple(side for side, back in zip(sides, way, strict=True) if back)
        for way in product((first, not first), repeat=len(sides))
    ]
    return ways * (many // len(ways))


def _opposite(ways: list[tuple[_End, tuple[int, ...]]]) -> list[tuple[_End, tuple[int, ...]]]:
    """The ways from which what is sent is received."""
    return [(end, tuple(side for side in end.sides if side not in way)) for end, way in ways]


def _received(sent: list[tuple[_End, tuple[int, ...]]], received: list[_End]) -> list[tuple[_End, tuple[int, ...]]]:
    """The ways from which the ends of the same messages are received, in their order."""
    left = dict[tuple[Attribute, ...], list[tuple[int, ...]]]()
    for end, way in sent:
        left.setdefault(end.message, []).append(way)
    return [(end, left[end.message].pop(0) if left.get(end.message) else end.sides) for end in received]


def _ends(application: Application, role: Role, either: Mapping[Attribute, tuple[int, ...]]) -> Iterator[_End]:
    """The ends of messages whose ways are open, in the order of a role's calls."""
    for at, (leaf, rule) in enumerate(zip(role.program.leaves, role.rules, strict=True)):
        shape = application.shapes[leaf.shape]
        for place, sends in places_of_ends(shape):
            partner = rule.numbers[place]
            for step, each in enumerate(partner.table or (partner,) if partner.placement is None else ()):
                if sides := either.get(each, ()):
                    # What is received has gone the other way along the sides that the runs tell.
                    back = {side for side in sides if each.axes[side].by.constant < 0}
                    back |= {side for side in range(len(each.axes)) if side not in sides and sends < 0}
                    message = tuple(
                        number.table[step] if number.table and number.steps == partner.steps else number
                        for column, number in enumerate(rule.numbers)
                        if column not in shape.peers
                    )
                    yield _End(at, place, step, sends, turned_round(each, back), sides, message)
