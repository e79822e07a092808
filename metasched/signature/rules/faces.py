"""Shares that are faces of blocks of data: along which sides of a grid, and of which lengths."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from metasched.arrays import Flags
from metasched.signature.equations.expressions import Expression, atom_value
from metasched.signature.equations.nearness import ROUNDING
from metasched.signature.equations.topologies import TOPOLOGIES
from metasched.signature.rules.attributes import STEPS, Attribute, with_grid
from metasched.signature.rules.samples import Samples

#: A share along one side.
SHARE = re.compile(r"1/P(\d)|floor(\d):\d+")
#: Largest divisor of a product of lengths that the program shares out elsewhere too.
MOST_DIVIDED = 16
_SHARED = re.compile(r"floor(\d):(\d+)")
#: What is dealt out among all, one way or another.
DEALT = re.compile(r"(floor|most|ceil|block|spread)(\d):(\d+)")
_ALONG = re.compile(r"1/P(\d)")


def off_the_way(
    rule: Attribute, peer: Attribute | None, samples: Samples, made: Flags, otherwise: Sequence[int] = ()
) -> Attribute:
    """A share along other sides than the one that a message goes along, where the runs do not tell them apart.

    What neighbours exchange is the face between them: across the direction that it is sent in.

    Parameters
    ----------
    rule : of a number of the message.
    peer : the rule of its partner.
    samples : the rows.
    made : which of them are messages; sides that are the same at all counts of these are not distinguished.
    otherwise : these counts, where none is.
    """
    if peer is None:
        return rule
    counts = np.unique(samples.counts[made]).tolist() or otherwise
    stepped = peer if peer.table and peer.placement is None else rule
    if stepped.table and stepped.placement is None:
        own, ways = (each.table if each.table and each.steps == stepped.steps else (each,) * len(stepped.table)
                     for each in (rule, peer))  # fmt: skip
        rows = samples.by_step(*stepped.steps)
        table = tuple(
            off_the_way(share, way, part, made[chosen], counts)
            for share, way, (chosen, part) in zip(own, ways, rows, strict=True)
        )
        if table == own:
            return rule
        return replace(stepped, table=table) if len({*table}) > 1 else table[0]
    return _across(rule, peer, rule.topology or samples.topology, counts)


def _across(rule: Attribute, peer: Attribute, topology: str, counts: Sequence[int]) -> Attribute:
    """A share without table along other sides than the message goes, where these have it as well at some counts."""
    last = len(TOPOLOGIES[topology](counts[0])) - 1
    along = {place for place, axis in enumerate(peer.axes)
             if axis.kind in STEPS and (axis.by.terms or axis.by.constant)}  # fmt: skip
    ways = along if peer.topology == topology else set()
    if peer.topology == "line" and any(not axis.by.terms and abs(axis.by.constant) == 1 for axis in peer.axes):
        # The next rank is the neighbour along the last side of every grid.
        ways = {last for _ in along}
    terms = rule.expression.terms if rule.expression is not None else ()
    factors = [factor for _, atom in terms for factor in atom.split("*")]
    if not ways or len(terms) != 1 or not all(SHARE.fullmatch(each) for each in factors):
        return rule
    (slope, _), constant = terms[0], rule.expression.constant if rule.expression is not None else 0.0
    sides = [TOPOLOGIES[topology](n) for n in counts]
    grids = [with_grid({"r": np.zeros(1)}, each) for each in sides]
    shares = {int(SHARE.sub(r"\1\2", each)): each for each in factors}
    others = [side for side in range(last + 1) if side not in ways]
    if len(shares) < len(factors) or {*shares} == {*others}:
        return rule
    # All of the face, or the edge to a corner, or else one side in place of another.
    values = [slope * math.prod(float(atom_value(each, grid)[0]) for each in factors) for grid in grids]
    for like in dict.fromkeys((next((each for side, each in shares.items() if side in ways), factors[0]), "1/P0")):
        face = [_turned(like, side) for side in others]
        made = [math.prod(float(atom_value(each, grid)[0]) for each in face) for grid in grids]
        each_has = np.array([value / each if each else 0.0 for value, each in zip(values, made, strict=True)])
        whole = float(np.round(each_has[0]))
        if face and whole and np.all(np.abs(each_has - whole) <= ROUNDING * whole):
            return Attribute(rule.topology, expression=Expression(constant, ((whole, "*".join(face)),)))
    if len(ways) > 1:
        # Along the sides that the message does not cross: of others the runs show one length.
        edges = [each for side, each in shares.items() if side not in ways]
        steady = all(each[way] == sides[0][way] for each in sides for way in ways & {*shares})
        if not edges or len(edges) == len(shares) or not steady:
            return rule
        slope *= float(np.prod([atom_value(each, grids[0]) for each in factors if each not in edges]))
        return Attribute(rule.topology, expression=Expression(constant, ((slope, "*".join(edges)),)))
    (way,) = ways
    free = [side for side in others if side not in shares and all(each[side] == each[way] for each in sides)]
    if way not in shares or not free:
        return rule
    turned = [_turned(share, free[0] if side == way else side) for side, share in shares.items()]
    return Attribute(rule.topology, expression=Expression(constant, ((slope, "*".join(turned)),)))


def _turned(share: str, side: int) -> str:
    """A share with another side in place of its own."""
    return re.sub(r"(?<=P)\d|(?<=floor)\d", str(side), share)


def shared_lengths(rules: Iterable[Attribute]) -> dict[str, dict[int, set[int]]]:
    """The lengths that rules share out along each side of a grid, where a rule has several: edges of its data."""
    found: dict[str, dict[int, set[int]]] = {}
    for rule in (part for each in rules for part in (each, *each.table)):
        for _, atom in rule.expression.terms if rule.expression is not None else ():
            factors = [_SHARED.fullmatch(each) for each in atom.split("*")]
            if len(factors) > 1 and all(factors):
                for factor in filter(None, factors):
                    found.setdefault(rule.topology, {}).setdefault(int(factor[1]), set()).add(int(factor[2]))
    return found


@dataclass(frozen=True)
class Dealt:
    """How a length is dealt out along a side of a grid.

    Parameters
    ----------
    kind : as shares are called (:func:`part_of <metasched.signature.equations.expressions.part_of>`).
    each : how many bytes, or other numbers, a piece of it has.
    length : in pieces.
    """

    kind: str
    each: int
    length: int


def dealt_lengths(rules: Iterable[Attribute]) -> dict[str, set[Dealt]]:
    """How the lengths are dealt out that do not come out even in all runs, by topology."""
    found: dict[str, set[Dealt]] = {}
    for rule in (part for each in rules for part in each.parts()):
        terms = rule.expression.terms if rule.expression is not None and not rule.expression.constant else ()
        share = DEALT.fullmatch(terms[0][1]) if len(terms) == 1 else None
        if share is not None and terms[0][0] == int(terms[0][0]) > 0:
            found.setdefault(rule.topology, set()).add(Dealt(share[1], int(terms[0][0]), int(share[3])))
    return found


def dealt_alike(rule: Attribute, dealt: Mapping[str, Iterable[Dealt]], counts: Sequence[int], roles: str) -> Attribute:
    """A share along one side that came out even in all runs, dealt out as lengths are that did not.

    A program that shares out the rows of its data in one way does so with the columns. Of the same length, whatever a
    piece of it has; of other ones, in as large pieces.

    Parameters
    ----------
    rule : of a number that is no rank.
    dealt : of :func:`dealt_lengths`, by topology.
    counts : where both are the same.
    roles : the topology that rules without one of their own speak of.

    Examples
    --------
    >>> known = {"grid 01": {Dealt("block", 8, 1000)}}
    >>> even = Attribute("grid 01", expression=Expression(0.0, ((24000.0, "1/P1"),)))
    >>> print(dealt_alike(even, known, [4, 8, 16], "line"))
    24 block1:1000
    """
    if rule.table:
        return replace(rule, table=tuple(dealt_alike(each, dealt, counts, roles) for each in rule.table))
    terms = rule.expression.terms if rule.expression is not None and not rule.expression.constant else ()
    side = _ALONG.fullmatch(terms[0][1]) if len(terms) == 1 else None
    if side is None or terms[0][0] != int(terms[0][0]):
        return rule
    whole, place = int(terms[0][0]), int(side[1])
    sides = [TOPOLOGIES[rule.topology or roles](n)[place] for n in counts]
    known = sorted(dealt.get(rule.topology, ()), key=lambda each: (whole % each.length > 0, each.kind, each.each))
    for each in known:
        piece = whole // each.length if whole % each.length == 0 else each.each
        if whole % piece == 0 and all(whole // piece % many == 0 for many in sides):
            share = f"{each.kind}{place}:{whole // piece}"
            return replace(rule, expression=Expression(0.0, ((float(piece), share),)))
    return rule


def of_known_lengths(
    rule: Attribute, lengths: Mapping[str, Mapping[int, set[int]]], counts: Sequence[int], roles: str
) -> Attribute:
    """A share of a whole as a part of a face or block, where the whole is one of lengths that the program shares out.

    Messages of half a face, or of a face and a half, look like a share of all; they are rounded down once the lengths
    have been.

    Parameters
    ----------
    rule : of a number that is no rank.
    lengths : of :func:`shared_lengths`, by topology and side.
    counts : where both have to be the same.
    roles : the topology that rules without one of their own speak of.
    """
    if rule.table:
        return replace(rule, table=tuple(of_known_lengths(each, lengths, counts, roles) for each in rule.table))
    terms = rule.expression.terms if rule.expression is not None and not rule.expression.constant else ()
    if len(terms) != 1 or rule.expression is None or rule.expression.modulus:
        return rule
    ((_, atom),) = terms
    if not (atom == "1/n" or DEALT.fullmatch(atom)):
        return rule
    grid = {n: with_grid({"r": np.zeros(1), "n": np.full(1, float(n))}, TOPOLOGIES[roles](n)) for n in counts}
    values = [float(rule(grid[n], n)[0]) for n in counts]
    for topology, sides in lengths.items():
        if any(len(TOPOLOGIES[topology or roles](n)) != len(sides) for n in counts):
            continue
        for edges in product(*(sorted(sides[side]) for side in sorted(sides))):
            shares = "*".join(f"floor{side}:{edge}" for side, edge in zip(sorted(sides), edges, strict=True))
            whole = Attribute(topology, expression=Expression(0.0, ((1.0, shares),)))
            faces = [float(whole(grid[n], n)[0]) for n in counts]
            if min(faces) < 1.0:
                continue
            # A part of the face that is rounded down lies between these.
            low = max(value / face for value, face in zip(values, faces, strict=True))
            high = min((value + 1.0) / face for value, face in zip(values, faces, strict=True))
            for below in range(1, MOST_DIVIDED + 1):
                over = math.ceil(low * below - ROUNDING)
                if 0 < over < high * below - ROUNDING:
                    return Attribute(topology, expression=Expression(0.0, ((over / below, shares),)))
    return rule
