"""Lengths that are dealt out along a side of a grid: a program does so in one way, whatever the role of a process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from metasched.signature.equations.expressions import Expression
from metasched.signature.equations.share_search import SHARES
from metasched.signature.rules.application import Application, Role
from metasched.signature.rules.attributes import Attribute
from metasched.signature.rules.members import equal_in, members_of
from metasched.signature.rules.roles import Cell
from metasched.signature.rules.shares import QUOTIENT, Share, share_of
from metasched.signature.traces.actions import AMOUNTS

#: A way to deal out: how many bytes or other numbers each piece has, how they are shared, and how many there are.
Way = tuple[float, str, int]
#: What is dealt out: the grid, its side, and the whole.
Length = tuple[str, int, float]
#: The shape of an action, and which of its numbers is dealt out; and where a way is used.
Call = tuple[int, int]
Use = tuple[Way, Cell, Call]


def dealt_in_one_way(application: Application) -> dict[Cell, Role] | None:
    """The roles of an application, with each length dealt out in the way that holds in all of them, where one does.

    At the first places along a side, or at those between, several ways come to the same; at all places, few do. None
    where no way holds for one call in all roles, each of which has one: then they do not tell places along the side.
    """
    uses: dict[Length, Counter[Use]] = {}
    for cell, role in application.roles.items():
        for length, way, call in _ways(application, role):
            uses.setdefault(length, Counter())[way, cell, call] += 1
    several = {length: used for length, used in uses.items() if len({way for way, _, _ in used}) > 1}
    if not several:
        return application.roles
    members, chosen = members_of(application), dict[tuple[Length, Call], Way]()

    def in_all(length: Length, used: Mapping[Use, int]) -> Way | None:
        often = Counter[Way]()
        for (way, _, _), many in used.items():
            often[way] += many
        own = [way for way, _ in often.most_common()]
        others = [(piece, kind, many) for piece, _, many in own for kind in SHARES]
        return next((
            way for way in (*own, *others)
            if all(equal_in(_dealt(length, old), _dealt(length, way), application, members[cell])
                   for old, cell, _ in used)
        ), None)  # fmt: skip

    for length, used in several.items():
        for call in {call for _, _, call in used}:
            of_call = {use: many for use, many in used.items() if use[2] == call}
            if (found := in_all(length, used) or in_all(length, of_call)) is not None:
                chosen[length, call] = found
            elif len(of_call) == len({cell for _, cell, _ in of_call}):
                return None
    return {cell: _changed(application, role, chosen) for cell, role in application.roles.items()}


def _ways(application: Application, role: Role) -> Iterator[tuple[Length, Way, Call]]:
    """What a role deals out, how, and in which call."""
    for leaf, rule in zip(role.program.leaves, role.rules, strict=True):
        for column, number in enumerate(rule.numbers if application.shapes[leaf.shape].name not in AMOUNTS else ()):
            for known in filter(None, (_way(application, part) for part in number.parts())):
                yield (*known, (leaf.shape, column))


def _way(application: Application, rule: Attribute) -> tuple[Length, Way] | None:
    """What a rule deals out along one side, and how; None where it does not."""
    piece, share = share_of(rule) or (0.0, None)
    if share is None or share.kind == QUOTIENT:
        return None
    whole = piece * share.length
    return (rule.topology or application.topology, share.side, whole), (piece, share.kind, share.length)


def _dealt(length: Length, way: Way) -> Attribute:
    (topology, side, _), (piece, kind, many) = length, way
    return Attribute(topology, expression=Expression(0.0, ((piece, str(Share(kind, side, many))),)))


def _changed(application: Application, role: Role, chosen: Mapping[tuple[Length, Call], Way]) -> Role:
    """A role with the ways that were chosen."""

    def changed(rule: Attribute, call: Call) -> Attribute:
        known = _way(application, rule)
        if known is not None and (known[0], call) in chosen:
            return replace(rule, expression=_dealt(known[0], chosen[known[0], call]).expression)
        return replace(rule, table=tuple(changed(each, call) for each in rule.table))

    return replace(role, rules=tuple(
        rule
        if application.shapes[leaf.shape].name in AMOUNTS
        else replace(rule, numbers=tuple(changed(each, (leaf.shape, at)) for at, each in enumerate(rule.numbers)))
        for leaf, rule in zip(role.program.leaves, role.rules, strict=True)
    ))  # fmt: skip
